/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two processes that belong together: the second one is forked before any agent is opened, both share a
 * fresh rendezvous directory and a socket for lock-step messages. The directory is removed at the end; one
 * that a killed pair left behind is swept by the next start. SIGINT, SIGTERM and SIGHUP of the first process
 * end the second, remove the directory and then have their default effect; a process has one pair at a time.
 */
#ifndef KVLANE_TOOL_PAIR_H
#define KVLANE_TOOL_PAIR_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct pair {
	pid_t child; /* 0 in the child itself */
	int sock;    /* SOCK_SEQPACKET to the other process; closed when it dies */
	char dir[128];
};

/*
 * Starts child_main(pair, arg) in a second process; its return value is that process's exit code. The child
 * is killed when the parent dies. Returns 0 or a negative errno; prints nothing.
 */
int pair_start(struct pair *pair, int (*child_main)(struct pair *pair, void *arg), void *arg);

/* One lock-step message. 0, or -ETIMEDOUT, -EPIPE (the other is gone), -EMSGSIZE (another length came). */
int pair_send(struct pair *pair, const void *msg, size_t len);
int pair_recv(struct pair *pair, void *msg, size_t len, uint64_t timeout_ns);

/* Why pair_start failed, for a message: names TMPDIR when that is the reason. Valid until the next call. */
const char *pair_reason(int error);

/* Waits for the child (kills it after timeout_ns), removes the directory. Returns the child's exit code. */
int pair_finish(struct pair *pair, uint64_t timeout_ns);

#endif
