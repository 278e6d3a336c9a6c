/* SPDX-License-Identifier: Apache-2.0 */
/* An end is an end: also of a process whose forked child lives on with copies of all its descriptors. */
#include "testing_process.h"
#include "testing_raw.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child that keeps what its parent had open. It makes no thread and no call of the library. */
static pid_t fork_keeper(int until_parent_dies)
{
	pid_t pid = fork();

	must(pid >= 0);
	if (pid)
		return pid;
	testing_watchdog();
	if (until_parent_dies)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

/* --------------------------------------------------------------------------- killed inside a copy */

struct killed {
	size_t notifications; /* empty: they wait where the queue of the target is full */
	int forks;
};

/* Takes metadata, stands inside a copy, and waits there to be killed. Sends the pid of its child, or 0. */
static void killed_main(int sock, void *arg)
{
	unsigned char bytes[4 * KIB];
	const struct killed *how = arg;
	struct raw_initiator raw;
	pid_t child = 0;
	size_t len;

	len = sock_get(sock, bytes, sizeof(bytes), 0);
	raw_initiator_open(&raw, bytes, len, 2, 1u << 22, SOCK_SEQPACKET);
	must(raw.status == 0);
	if (how->notifications)
		raw_initiator_notify(&raw, 0, how->notifications, MIB);
	raw_initiator_busy(&raw, 1, 1);
	if (how->forks)
		child = fork_keeper(0);
	sock_put(sock, &child, sizeof(child));
	for (;;)
		pause();
}

/* Until the queue is full: one notification was delivered, and the ring has been read up to the next. */
static void wait_notified(kvl_agent_t agent)
{
	assert_int_equal(assert_ok(kvl_agent_wait(agent, PATIENCE)), 1);
}

static void deregister_after_kill(struct killed how)
{
	static unsigned char memory[64];
	struct kvl_mem mem = memory_of(memory, sizeof(memory), 0);
	struct kvl_config config;
	struct other other;
	kvl_agent_t agent;
	uint64_t start;
	pid_t child;
	kvl_mr_t mr;
	int code;

	other_start(&other, killed_main, &how);
	kvl_config_init(&config);
	config.notif_queue_bytes = MIB;
	assert_ok(kvl_agent_open("owner", &config, &agent));
	assert_ok(kvl_mem_register(agent, &mem, 1, &mr));
	sock_put_agent(other.sock, agent);
	sock_get(other.sock, &child, sizeof(child), sizeof(child));
	if (how.notifications)
		wait_notified(agent);
	other_kill(&other);
	assert_true(WIFSIGNALED(other_end(&other)));
	start = kvl_now();
	while ((code = kvl_mem_deregister(agent, &mr, 1)) == KVL_ERR_TIMED_OUT &&
	       kvl_now() - start < 2 * SECOND)
		;
	if (child)
		kill(child, SIGKILL);
	assert_ok(code);
	assert_ok(kvl_agent_close(agent, SECOND));
}

TEST(deregister_after_an_initiator_was_killed_inside_a_copy)
{
	deregister_after_kill((struct killed){ 0 });
}

TEST(deregister_after_an_initiator_was_killed_while_the_queue_is_full)
{
	deregister_after_kill((struct killed){ .notifications = 3 });
}

TEST(deregister_after_an_initiator_with_a_forked_child_was_killed)
{
	deregister_after_kill((struct killed){ .forks = 1 });
}

TEST(deregister_after_a_forked_initiator_was_killed_while_the_queue_is_full)
{
	deregister_after_kill((struct killed){ .notifications = 3, .forks = 1 });
}

/* ------------------------------------------------------------------- closed in a process that has forked */

/* Opens an agent; forks, then closes it; stays. */
static void closer_main(int sock, void *arg)
{
	kvl_agent_t agent;
	char byte;

	(void)arg;
	must_ok(kvl_agent_open("closer", NULL, &agent));
	sock_put_agent(sock, agent);
	sock_get(sock, &byte, 1, 1);
	fork_keeper(1);
	must_ok(kvl_agent_close(agent, SECOND));
	sock_put(sock, "x", 1);
	sock_get(sock, &byte, 1, 1);
}

static void wait_lost(kvl_agent_t agent, kvl_peer_t peer)
{
	struct kvl_peer_info info = { .size = sizeof(info) };
	uint64_t start = kvl_now();

	do {
		assert_ok(kvl_peer_info(agent, peer, &info));
		assert_true(kvl_now() - start < 2 * SECOND);
	} while (info.connected);
}

TEST(close_of_an_agent_is_seen_although_a_forked_child_lives)
{
	unsigned char bytes[4 * KIB];
	struct other other;
	kvl_agent_t agent;
	kvl_peer_t peer = 0;
	uint64_t start;
	size_t len;
	char byte;

	other_start(&other, closer_main, NULL);
	assert_ok(kvl_agent_open("agent", NULL, &agent));
	len = sock_get(other.sock, bytes, sizeof(bytes), 0);
	assert_ok(kvl_peer_connect(agent, bytes, len, 0, &peer));
	sock_put(other.sock, "x", 1);
	sock_get(other.sock, &byte, 1, 1);
	wait_lost(agent, peer);
	assert_int_equal(kvl_notify(agent, peer, "x", 1, NULL), KVL_ERR_PEER_LOST);
	assert_ok(kvl_peer_close(agent, peer));
	start = kvl_now();
	assert_refused(kvl_peer_connect(agent, bytes, len, SECOND, &peer), KVL_ERR_STALE);
	assert_true(kvl_now() - start < SECOND);
	sock_put(other.sock, "x", 1);
	assert_int_equal(other_end(&other), 0);
	assert_ok(kvl_agent_close(agent, SECOND));
}

#define ROUNDS 5

/* Connects, forks, closes the peer, several times; stays. */
static void peer_closer_main(int sock, void *arg)
{
	unsigned char bytes[4 * KIB];
	kvl_agent_t agent;
	size_t len;
	char byte;

	(void)arg;
	len = sock_get(sock, bytes, sizeof(bytes), 0);
	must_ok(kvl_agent_open("peer-closer", NULL, &agent));
	for (int i = 0; i < ROUNDS; i++) {
		kvl_peer_t peer = 0;

		must_ok(kvl_peer_connect(agent, bytes, len, 0, &peer));
		fork_keeper(1);
		must_ok(kvl_peer_close(agent, peer));
	}
	sock_put(sock, "x", 1);
	sock_get(sock, &byte, 1, 1);
}

TEST(close_of_a_peer_is_seen_although_a_forked_child_lives)
{
	struct other other;
	kvl_agent_t agent;
	uint64_t start;
	size_t before;
	char byte;

	other_start(&other, peer_closer_main, NULL);
	assert_ok(kvl_agent_open("target", NULL, &agent));
	before = process_descriptors();
	sock_put_agent(other.sock, agent);
	sock_get(other.sock, &byte, 1, 1);
	start = kvl_now();
	while (process_descriptors() > before)
		assert_true(kvl_now() - start < 2 * SECOND);
	sock_put(other.sock, "x", 1);
	assert_int_equal(other_end(&other), 0);
	assert_ok(kvl_agent_close(agent, SECOND));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deregister_after_an_initiator_was_killed_inside_a_copy),
		cmocka_unit_test(deregister_after_an_initiator_was_killed_while_the_queue_is_full),
		cmocka_unit_test(deregister_after_an_initiator_with_a_forked_child_was_killed),
		cmocka_unit_test(deregister_after_a_forked_initiator_was_killed_while_the_queue_is_full),
		cmocka_unit_test(close_of_an_agent_is_seen_although_a_forked_child_lives),
		cmocka_unit_test(close_of_a_peer_is_seen_although_a_forked_child_lives),
	};

	return TESTING_RUN(tests, 30);
}
