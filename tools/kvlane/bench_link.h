/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two ends of a shape. The initiator runs in the program's own thread; the target in a second process,
 * or, on the sim wire, which lives inside one process, in a second thread. The initiator commands, the target
 * answers and blocks in between, so it is idle whenever something is measured.
 */
#ifndef KVLANE_TOOL_BENCH_LINK_H
#define KVLANE_TOOL_BENCH_LINK_H

#include <kvlane/kvlane.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

#include "bench_agent.h"
#include "bench_options.h"
#include "pair.h"

struct bench_link {
	struct pair pair;
	/* sim only */
	int threaded;
	struct pair target;
	pthread_t thread;
	int (*target_main)(struct pair *pair, void *arg);
	void *arg;
	int rc;
};

/*
 * Starts the target; before any agent is opened. On the sim wire arg is shared with it. 0, or -1 after a
 * message.
 */
int bench_link_start(struct bench_link *link, const struct bench_options *o,
		     int (*target_main)(struct pair *pair, void *arg), void *arg);

/* Ends the target: 0 when it ended well. */
int bench_link_finish(struct bench_link *link);

struct bench_command {
	uint32_t verb; /* of the shape, from 1; BENCH_QUIT ends the target */
	uint32_t arm;
	uint64_t list, n, epoch;
};

#define BENCH_QUIT 0u

struct bench_reply {
	int64_t status;    /* 0, or negative: the target has printed why */
	uint64_t value[2]; /* what the verb asks for */
};

/* A command, its reply, or one after the other. 0, or -1 after a message (none when the target had one). */
int bench_tell(struct bench_link *link, const struct bench_command *command);
int bench_hear(struct bench_link *link, struct bench_reply *reply);
int bench_ask(struct bench_link *link, const struct bench_command *command, struct bench_reply *reply);

/* The target's loop: runs handle for each command until BENCH_QUIT. Returns the target's exit code. */
int bench_serve(struct pair *pair,
		void (*handle)(void *ctx, const struct bench_command *command, struct bench_reply *reply),
		void *ctx);

/* What the target tells: how to connect to an agent, and where its memory is. */
struct bench_offer {
	uint64_t addr, len;
	int64_t pid; /* for bare system calls on its memory */
	uint64_t metadata_len;
	void *metadata;
};

/* Both: 0, or a negative value after a message. */
int bench_offer_send(struct pair *pair, kvl_agent_t agent, const struct bench_memory *memory);
int bench_offer_recv(struct pair *pair, struct bench_offer *out);
void bench_offer_free(struct bench_offer *offer);
int bench_offer_connect(const struct bench_offer *offer, kvl_agent_t agent, kvl_peer_t *out);

#endif
