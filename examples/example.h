/* SPDX-License-Identifier: Apache-2.0 */
/* What the examples share: they stop at the first refusal, and they run in several processes. */
#ifndef KVLANE_EXAMPLE_H
#define KVLANE_EXAMPLE_H

#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kvlane/kvlane.h>

/* Every refused call leaves a sentence that says what was wrong. */
static inline int must(int code)
{
	if (code < 0)
		errx(1, "%s: %s", kvl_error_name(code), kvl_error_message());
	return code;
}

/* Opens an agent with memory for its peers, and connects it to one that joins the same directory. */
static inline kvl_agent_t agent_join(const char *dir, const char *name, const char *other, uint64_t len,
				     char **memory, kvl_peer_t *peer)
{
	kvl_agent_t agent;
	kvl_mr_t mr;
	void *addr;

	must(kvl_agent_open(name, NULL, &agent));
	must(kvl_mem_alloc(agent, len, KVL_REMOTE_ALL, &addr, &mr));
	must(kvl_publish(agent, dir));
	must(kvl_peer_find(agent, dir, other, KVL_FOREVER, peer));
	*memory = addr;
	return agent;
}

static inline struct kvl_notif *notif_wait(kvl_agent_t agent)
{
	struct kvl_notif *notif;

	must(kvl_notif_wait(agent, KVL_FOREVER, &notif));
	return notif;
}

/*
 * Runs n children in processes of their own and parent in this one, with a fresh directory to meet in. Forked
 * before any agent is open: an agent does not survive a fork. Returns the exit code of the whole.
 */
static inline int processes_run(int n, void (*child)(const char *dir), void (*parent)(const char *dir))
{
	char dir[] = "kvlane-example.XXXXXX";
	int status, failed = 0;

	if (!mkdtemp(dir))
		err(1, "%s", dir);
	alarm(40);
	for (int i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid < 0)
			err(1, "fork");
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			child(dir);
			exit(0);
		}
	}
	parent(dir);
	while (wait(&status) > 0)
		failed |= status;
	if (rmdir(dir) < 0)
		err(1, "%s", dir);
	return failed != 0;
}

/* Stops unless each of len bytes has the value. */
static inline void bytes_check(const void *memory, unsigned value, size_t len)
{
	const unsigned char *byte = memory;

	for (size_t i = 0; i < len; i++)
		if (byte[i] != (unsigned char)value)
			errx(1, "byte %zu is %d instead of %u", i, byte[i], value % 256);
}

#endif
