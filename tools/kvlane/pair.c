/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layout on disk: <base>/kvlane-pair-<uid>-XXXXXX/agents. The outer directory is flock()ed through one open
 * file description that both processes share, so the lock is free exactly when both are gone, however they
 * went; the inner one is what agents publish in (the library locks that one itself).
 */
#include "pair.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAIR_AGENTS  "/agents"
#define PAIR_SEND_MS 10000

static const char *pair_base(void)
{
	const char *base = getenv("TMPDIR");

	return base && *base ? base : P_tmpdir;
}

/* ---------------------------------------------------------------------------------------- the directory */

/* Removes a directory that holds no directories. */
static void pair_remove_flat(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	_Alignas(struct dirent64) char buf[4096];
	const struct dirent64 *e;
	ssize_t n, at;

	if (fd < 0)
		return;
	/* Not readdir: a signal handler comes here, and malloc may be what it interrupted. */
	while ((n = getdents64(fd, buf, sizeof(buf))) > 0) {
		for (at = 0; at < n; at += e->d_reclen) {
			e = (const void *)(buf + at);
			unlinkat(fd, e->d_name, 0);
		}
	}
	close(fd);
	rmdir(dir);
}

static void pair_remove(const char *outer)
{
	size_t len = strlen(outer);
	char agents[160];

	if (len + sizeof(PAIR_AGENTS) <= sizeof(agents)) {
		memcpy(agents, outer, len);
		memcpy(agents + len, PAIR_AGENTS, sizeof(PAIR_AGENTS));
		pair_remove_flat(agents);
	}
	rmdir(outer);
}

/* 1 when fd is still what path names: a sweeper may have removed it before it was locked. */
static int pair_same(int fd, const char *path)
{
	struct stat open_st, path_st;

	return !fstat(fd, &open_st) && !lstat(path, &path_st) && open_st.st_dev == path_st.st_dev &&
	       open_st.st_ino == path_st.st_ino;
}

/* Opens and locks; a negative errno when it is not ours or its pair lives. */
static int pair_lock(const char *outer, int flags)
{
	int fd = open(outer, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;
	int error = 0;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || st.st_uid != geteuid())
		error = -EPERM;
	else if (flock(fd, flags))
		error = -errno;
	else if (!pair_same(fd, outer))
		error = -ESTALE;
	if (!error)
		return fd;
	close(fd);
	return error;
}

/* Removes what killed pairs of this user left. */
static void pair_sweep(const char *base)
{
	char prefix[40], path[160];
	DIR *d = opendir(base);
	struct dirent *e;
	int fd;

	if (!d)
		return;
	snprintf(prefix, sizeof(prefix), "kvlane-pair-%u-", (unsigned)geteuid());
	while ((e = readdir(d))) {
		if (strncmp(e->d_name, prefix, strlen(prefix)))
			continue;
		if ((size_t)snprintf(path, sizeof(path), "%s/%s", base, e->d_name) >= sizeof(path))
			continue;
		fd = pair_lock(path, LOCK_EX | LOCK_NB);
		if (fd < 0)
			continue;
		pair_remove(path);
		close(fd);
	}
	closedir(d);
}

/* Makes and locks the outer directory, makes the inner one. Returns the lock's descriptor. */
static int pair_dir_create(struct pair *pair)
{
	size_t room = sizeof(pair->dir) - strlen(PAIR_AGENTS);
	int fd, error;

	do {
		if ((size_t)snprintf(pair->dir, room, "%s/kvlane-pair-%u-XXXXXX", pair_base(),
				     (unsigned)geteuid()) >= room)
			return -ENAMETOOLONG;
		if (!mkdtemp(pair->dir))
			return -errno;
		fd = pair_lock(pair->dir, LOCK_EX);
	} while (fd == -ESTALE || fd == -ENOENT);
	if (fd < 0)
		return fd;
	memcpy(pair->dir + strlen(pair->dir), PAIR_AGENTS, sizeof(PAIR_AGENTS)); /* room was left for it */
	if (!mkdir(pair->dir, 0700))
		return fd;
	error = -errno;
	*strrchr(pair->dir, '/') = 0;
	pair_remove(pair->dir);
	close(fd);
	return error;
}

static void pair_dir_remove(struct pair *pair)
{
	*strrchr(pair->dir, '/') = 0;
	pair_remove(pair->dir);
}

const char *pair_reason(int error)
{
	static char text[512];
	const char *base = pair_base(), *name = base == getenv("TMPDIR") ? "TMPDIR " : "";

	if (error != -ENAMETOOLONG && !access(base, R_OK | W_OK | X_OK))
		return strerror(-error);
	snprintf(text, sizeof(text), "%s%s: %s", name, base, strerror(-error));
	return text;
}

/* ------------------------------------------------------------------------------------------------ signals */

static const int pair_ends[] = { SIGINT, SIGTERM, SIGHUP };

#define N_PAIR_ENDS  (sizeof(pair_ends) / sizeof(pair_ends[0]))
#define PAIR_STOP_NS 2000000000u

/* The pair of this process, for the handler; child 0: none. It changes while the signals are blocked only. */
static struct pair pair_current;

static int pair_poll(const struct pair *pair, short events, uint64_t timeout_ns);

static void pair_block(sigset_t *before)
{
	sigset_t ends;

	sigemptyset(&ends);
	for (size_t i = 0; i < N_PAIR_ENDS; i++)
		sigaddset(&ends, pair_ends[i]);
	pthread_sigmask(SIG_BLOCK, &ends, before);
}

/* Async-signal-safe throughout. SIGTERM first: the child may have a pair of its own to clean up after. */
static void pair_on_signal(int sig)
{
	struct pair *pair = &pair_current;
	int kept = errno; /* of whatever was interrupted */

	if (pair->child) {
		kill(pair->child, SIGTERM);
		kill(pair->child, SIGCONT);
		if (pair_poll(pair, 0, PAIR_STOP_NS))
			kill(pair->child, SIGKILL);
		while (waitpid(pair->child, NULL, 0) < 0 && errno == EINTR)
			;
		pair_dir_remove(pair);
	}
	signal(sig, SIG_DFL);
	raise(sig); /* pending until this handler returns */
	errno = kept;
}

/* What the user chose to ignore (nohup) stays ignored. */
static void pair_set_handlers(const struct pair *pair)
{
	struct sigaction action = { .sa_handler = pair ? pair_on_signal : SIG_DFL }, old;

	for (size_t i = 0; i < N_PAIR_ENDS; i++)
		sigaddset(&action.sa_mask, pair_ends[i]);
	pair_current = pair ? *pair : (struct pair){ .child = 0 };
	for (size_t i = 0; i < N_PAIR_ENDS; i++) {
		if (!sigaction(pair_ends[i], NULL, &old) && old.sa_handler != SIG_IGN)
			sigaction(pair_ends[i], &action, NULL);
	}
}

/* ------------------------------------------------------------------------------------------ the processes */

static _Noreturn void pair_child(struct pair *pair, pid_t parent, const sigset_t *mask,
				 int (*child_main)(struct pair *pair, void *arg), void *arg)
{
	/* The parent may have died before the request was in force. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		_exit(1);
	pair->child = 0;
	pair_set_handlers(NULL);
	pthread_sigmask(SIG_SETMASK, mask, NULL);
	exit(child_main(pair, arg));
}

/* With the signals blocked, as they were before in *mask. */
static int pair_launch(struct pair *pair, const sigset_t *mask,
		       int (*child_main)(struct pair *pair, void *arg), void *arg)
{
	pid_t parent = getpid();
	int lock, error, sock[2];

	pair_sweep(pair_base());
	lock = pair_dir_create(pair);
	if (lock < 0)
		return lock;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock)) {
		error = -errno;
		goto remove_dir;
	}
	fflush(NULL); /* or buffered output would be written by both */
	pair->child = fork();
	if (pair->child < 0) {
		error = -errno;
		goto close_sock;
	}
	pair->sock = sock[pair->child ? 0 : 1];
	close(sock[pair->child ? 1 : 0]);
	if (!pair->child)
		pair_child(pair, parent, mask, child_main, arg);
	pair_set_handlers(pair);
	/* `lock` stays open in both processes: closing it is what their deaths do. */
	return 0;

close_sock:
	close(sock[0]);
	close(sock[1]);
remove_dir:
	pair_dir_remove(pair);
	close(lock);
	return error;
}

int pair_start(struct pair *pair, int (*child_main)(struct pair *pair, void *arg), void *arg)
{
	sigset_t mask;
	int error;

	pair_block(&mask);
	error = pair_launch(pair, &mask, child_main, arg);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	return error;
}

/* ------------------------------------------------------------------------------------------- the messages */

static uint64_t pair_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Waits until one of `events` or a hang-up shows. 0, -ETIMEDOUT or another negative errno. */
static int pair_poll(const struct pair *pair, short events, uint64_t timeout_ns)
{
	struct pollfd fd = { .fd = pair->sock, .events = events };
	uint64_t start = pair_now(), gone = 0;
	struct timespec ts;
	int n;

	do {
		ts.tv_sec = (time_t)((timeout_ns - gone) / 1000000000u);
		ts.tv_nsec = (long)((timeout_ns - gone) % 1000000000u);
		n = ppoll(&fd, 1, &ts, NULL);
		gone = pair_now() - start;
	} while (n < 0 && errno == EINTR && gone < timeout_ns);
	if (n > 0)
		return 0;
	return !n || errno == EINTR ? -ETIMEDOUT : -errno;
}

static int pair_error(int error)
{
	return error == ECONNRESET || error == ENOTCONN ? -EPIPE : -error;
}

int pair_send(struct pair *pair, const void *msg, size_t len)
{
	int error;

	if (!len)
		return -EMSGSIZE; /* an empty message looks like the end of the connection */
	error = pair_poll(pair, POLLOUT, PAIR_SEND_MS * 1000000ull);
	if (error)
		return error;
	if (send(pair->sock, msg, len, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
		return 0;
	return errno == EAGAIN ? -ETIMEDOUT : pair_error(errno);
}

int pair_recv(struct pair *pair, void *msg, size_t len, uint64_t timeout_ns)
{
	int error = pair_poll(pair, POLLIN, timeout_ns);
	ssize_t n;

	if (error)
		return error;
	n = recv(pair->sock, msg, len, MSG_TRUNC | MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN ? -ETIMEDOUT : pair_error(errno);
	if (!n)
		return -EPIPE;
	return (size_t)n == len ? 0 : -EMSGSIZE;
}

int pair_finish(struct pair *pair, uint64_t timeout_ns)
{
	int status = 0;
	sigset_t mask;

	/* The child holds the other end until it dies, so the hang-up is its death (or the moment before it).
	 */
	if (pair_poll(pair, 0, timeout_ns))
		kill(pair->child, SIGKILL);
	pair_block(&mask);
	close(pair->sock);
	while (waitpid(pair->child, &status, 0) < 0 && errno == EINTR)
		;
	pair_dir_remove(pair);
	pair_set_handlers(NULL);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
