/* SPDX-License-Identifier: Apache-2.0 */
/*
 * F51: where the kernel refuses cross-process copies, that is found at connect time, another path is taken,
 * and its name and the reason can be asked. Two child processes are hardened in one of several ways each;
 * both move plain memory in both directions, every byte checked by its owner.
 */
#include "testing.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEN    (300 * KIB + 7)
#define NOBODY 65534
#define CANNOT 42 /* exit code: this machine does not let the child harden itself */

struct hardening {
	int (*first)(void),
		(*second)(void); /* of each process, before any agent; negative: not possible here */
	const char *path;        /* the first must take to the second */
	int (*later)(void); /* of the first, between its requests; from then on its path must be "slot" */
};

/* ----------------------------------------------------------------------------------------- hardenings */

static int as_it_is(void)
{
	return 0;
}

/* The two calls answer EPERM, as container runtimes' default filters do. */
static int without_vm_calls(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = COUNT(filter), .filter = filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	/* All threads, also those that the library has by then. */
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
}

static int drop_privileges(void)
{
	if (setgid(NOBODY) || setuid(NOBODY))
		return -1;
	/* Changing the user clears both; the watchdog and the death signal must survive it. */
	return prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static int nobody(void)
{
	if (drop_privileges())
		return -1;
	return prctl(PR_SET_DUMPABLE, 1);
}

static int nobody_not_dumpable(void)
{
	if (drop_privileges())
		return -1;
	return prctl(PR_SET_DUMPABLE, 0);
}

/* /dev/shm of one page: the library may not lean on it. */
static int tiny_shm(void)
{
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return -1;
	return mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=4k");
}

/* The agent runs in a child of this process, as process 1 of its own namespace. */
static int own_pid_namespace(void)
{
	pid_t pid;
	int status;

	if (unshare(CLONE_NEWPID))
		return -1;
	pid = fork();
	if (pid < 0)
		return -1;
	if (pid == 0) {
		testing_watchdog();
		return prctl(PR_SET_PDEATHSIG, SIGKILL);
	}
	must(waitpid(pid, &status, 0) == pid);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

/* ------------------------------------------------------------------------------------------- the two ends */

struct end {
	unsigned char *out, *in; /* this process writes `out` to the other's `in`, reads the other's `out` */
};

/* Before the agent is open, so that all of its threads know these bytes. */
static struct end end_make(uint64_t mine)
{
	struct end end = { malloc(LEN), calloc(1, LEN) };

	must(end.out && end.in);
	bytes_fill(end.out, LEN, mine, 0, 1);
	return end;
}

static void end_register(kvl_agent_t agent, const struct end *end)
{
	struct kvl_mem mem[2] = { memory_of(end->out, LEN, 0), memory_of(end->in, LEN, 0) };
	kvl_mr_t mr[2];

	must_ok(kvl_mem_register(agent, mem, 2, mr));
}

/* With a notification, which tells the other side that it is over. */
static void move(kvl_agent_t agent, kvl_peer_t peer, enum kvl_op op, void *mine, void *theirs, char path[16])
{
	struct kvl_report report = { .size = sizeof(report) };
	struct kvl_xfer_opts opts = { .size = sizeof(opts), .flags = KVL_XFER_NOTIFY };
	struct kvl_desc local = desc_of(mine, LEN), remote = desc_of(theirs, LEN);
	kvl_xfer_t xfer;

	if (op == KVL_WRITE)
		must_ok(kvl_write(agent, peer, &local, &remote, 1, &opts, &xfer));
	else
		must_ok(kvl_read(agent, peer, &local, &remote, 1, &opts, &xfer));
	must(kvl_xfer_wait(agent, xfer, PATIENCE) == 0);
	must_ok(kvl_xfer_report(agent, xfer, &report));
	must(report.bytes == LEN);
	memcpy(path, report.path, sizeof(report.path));
	must_ok(kvl_xfer_release(agent, xfer));
}

static void take_notif(kvl_agent_t agent)
{
	struct kvl_notif *notif = NULL;
	uint64_t limit = kvl_now() + PATIENCE;

	while (kvl_notif_next(agent, &notif) == KVL_ERR_AGAIN) {
		must(kvl_now() < limit);
		ignored(kvl_agent_wait(agent, 10 * MS));
	}
	must(notif != NULL);
	kvl_notif_free(notif);
}

static void lock_step(int sock)
{
	char byte = 1;

	sock_put(sock, &byte, 1);
	sock_get(sock, &byte, 1, 1);
}

/* WRITE and READ, each checked by its owner. */
static void end_moves(int sock, kvl_agent_t agent, kvl_peer_t peer, const struct end *end,
		      const struct end *other, const uint64_t seed[2], char used[2][16])
{
	memset(end->in, 0, LEN);
	duo_settle(agent);
	lock_step(sock);
	move(agent, peer, KVL_WRITE, end->out, other->in, used[0]);
	take_notif(agent);
	must(bytes_wrong(end->in, LEN, seed[1], 0, 1) == 0);
	lock_step(sock); /* neither is written any more */
	memset(end->in, 0, LEN);
	move(agent, peer, KVL_READ, end->in, other->out, used[1]);
	must(bytes_wrong(end->in, LEN, seed[1], 0, 1) == 0);
	take_notif(agent);
	must(bytes_wrong(end->out, LEN, seed[0], 0, 1) == 0);
	lock_step(sock);
}

static void paths_are(char used[2][16], const char *path)
{
	must(path == NULL || (strcmp(used[0], path) == 0 && strcmp(used[1], path) == 0));
}

/* Both processes run this; only the first has an opinion on the path. */
static void end_run(int sock, const uint64_t seed[2], const char *path, int (*later)(void))
{
	struct kvl_peer_info info = { .size = sizeof(info) };
	struct end end = end_make(seed[0]), other;
	char used[2][16];
	kvl_agent_t agent;
	kvl_peer_t peer;

	must_ok(kvl_agent_open(seed[0] == 1 ? "first" : "second", NULL, &agent));
	end_register(agent, &end);
	sock_put(sock, &end, sizeof(end));
	sock_get(sock, &other, sizeof(other), sizeof(other));
	sock_put_agent(sock, agent);
	peer = sock_get_agent(sock, agent);
	must_ok(kvl_peer_info(agent, peer, &info));
	end_moves(sock, agent, peer, &end, &other, seed, used);
	printf("%s: peer path %s (%s), write by %s, read by %s\n", seed[0] == 1 ? "first" : "second",
	       info.path, info.path_reason, used[0], used[1]);
	fflush(stdout);
	paths_are(used, path);
	must(path == NULL || strcmp(path, "slot") || info.path_reason[0]);
	if (later && later() < 0)
		_exit(CANNOT);
	end_moves(sock, agent, peer, &end, &other, seed, used);
	paths_are(used, later ? "slot" : path);
	must_ok(kvl_agent_close(agent, SECOND));
}

static void first_main(int sock, void *arg)
{
	const struct hardening *hardening = arg;

	if (hardening->first() < 0)
		_exit(CANNOT);
	end_run(sock, (uint64_t[]){ 1, 2 }, hardening->path, hardening->later);
}

static void second_main(int sock, void *arg)
{
	const struct hardening *hardening = arg;

	if (hardening->second() < 0)
		_exit(CANNOT);
	end_run(sock, (uint64_t[]){ 2, 1 }, NULL, NULL);
}

/* Carries messages between the two until one of them closes; then the other sees its end closed too. */
static void relay(int a, int b)
{
	static unsigned char msg[64 * KIB];
	struct pollfd set[2] = { { .fd = a, .events = POLLIN }, { .fd = b, .events = POLLIN } };

	for (;;) {
		while (poll(set, 2, -1) < 0)
			must(errno == EINTR);
		for (int i = 0; i < 2; i++) {
			ssize_t n = set[i].revents ? recv(set[i].fd, msg, sizeof(msg), 0) : 1;

			if (n <= 0)
				return;
			if (set[i].revents)
				ignored(send(set[!i].fd, msg, (size_t)n, MSG_NOSIGNAL));
		}
	}
}

static void run(const struct hardening *hardening)
{
	struct hardening copy = *hardening;
	struct other first, second;
	int status[2];

	other_start(&first, first_main, &copy);
	other_start(&second, second_main, &copy);
	relay(first.sock, second.sock);
	close(first.sock);
	close(second.sock);
	first.sock = second.sock = -1;
	status[0] = other_end(&first);
	status[1] = other_end(&second);
	for (int i = 0; i < 2; i++)
		if (WIFEXITED(status[i]) && WEXITSTATUS(status[i]) == CANNOT)
			testing_skip("the test may not harden its children this way here");
	assert_int_equal(status[0], 0);
	assert_int_equal(status[1], 0);
}

TEST(f51_nothing_is_hardened)
{
	run(&(struct hardening){ as_it_is, as_it_is, "copy", NULL });
}

TEST(f51_system_calls_filtered)
{
	run(&(struct hardening){ without_vm_calls, as_it_is, "slot", NULL });
}

TEST(f51_system_calls_filtered_on_both_sides)
{
	run(&(struct hardening){ without_vm_calls, without_vm_calls, "slot", NULL });
}

TEST(f51_system_calls_filtered_after_connecting)
{
	run(&(struct hardening){ as_it_is, as_it_is, "copy", without_vm_calls });
}

TEST(f51_peer_is_filtered)
{
	run(&(struct hardening){ as_it_is, without_vm_calls, "copy", NULL });
}

TEST(f51_peer_is_not_dumpable)
{
	run(&(struct hardening){ nobody, nobody_not_dumpable, "slot", NULL });
}

TEST(f51_neither_is_dumpable)
{
	run(&(struct hardening){ nobody_not_dumpable, nobody_not_dumpable, "slot", NULL });
}

TEST(f51_own_pid_namespace)
{
	run(&(struct hardening){ own_pid_namespace, as_it_is, NULL, NULL });
}

TEST(f51_peer_in_own_pid_namespace)
{
	run(&(struct hardening){ as_it_is, own_pid_namespace, NULL, NULL });
}

TEST(f51_both_in_own_pid_namespaces)
{
	run(&(struct hardening){ own_pid_namespace, own_pid_namespace, NULL, NULL });
}

TEST(f51_tiny_shm_mount)
{
	run(&(struct hardening){ tiny_shm, tiny_shm, "copy", NULL });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(f51_nothing_is_hardened),
		cmocka_unit_test(f51_system_calls_filtered),
		cmocka_unit_test(f51_system_calls_filtered_on_both_sides),
		cmocka_unit_test(f51_system_calls_filtered_after_connecting),
		cmocka_unit_test(f51_peer_is_filtered),
		cmocka_unit_test(f51_peer_is_not_dumpable),
		cmocka_unit_test(f51_neither_is_dumpable),
		cmocka_unit_test(f51_own_pid_namespace),
		cmocka_unit_test(f51_peer_in_own_pid_namespace),
		cmocka_unit_test(f51_both_in_own_pid_namespaces),
		cmocka_unit_test(f51_tiny_shm_mount),
	};

	return TESTING_RUN(tests, 60);
}
