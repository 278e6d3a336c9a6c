/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two pools of blocks and lists that move random blocks of one (the origin) to random blocks of the other
 * (the sink). Both ends derive list number k from the seed, so lists need not travel. Every step has an epoch
 * of its own in its data; the sink knows what each of its blocks must hold, listed or not, so lost, stale,
 * misplaced and stray bytes are all found.
 */
#ifndef KVLANE_TOOL_BENCH_POOL_H
#define KVLANE_TOOL_BENCH_POOL_H

#include <kvlane/kvlane.h>
#include <stddef.h>
#include <stdint.h>

#include "bench_link.h"

struct pool_shape {
	const struct bench_options *options;
	enum kvl_op op; /* WRITE: the initiator is the origin; READ: the target is */
	uint64_t block, blocks;
};

struct pool_content {
	uint32_t block, epoch; /* origin block and epoch that a sink block holds */
};

/* One end. */
struct block_pool {
	const struct pool_shape *shape;
	kvl_agent_t agent;
	struct bench_memory memory;
	uint64_t list;                /* number of the list that the index arrays hold; UINT64_MAX: none */
	uint32_t *origin, *sink;      /* entry i moves block origin[i] to block sink[i]; `blocks` entries */
	struct pool_content *content; /* of the sink; NULL at the origin */
};

/* The initiator's view of both. */
struct pool_pair {
	struct pool_shape shape;
	struct bench_link link;
	struct block_pool local;
	kvl_peer_t peer;
	kvl_list_t local_list, remote_list; /* entry i is block i */
	uint64_t remote;                    /* address of the target's pool */
	pid_t pid;                          /* of the target */
	unsigned char *map; /* the target's pool in this process, NULL when it can not be mapped */
	char map_refused[160];
	uint32_t epoch;
};

/* Starts both ends, connects, prepares the pool lists. shape stays the caller's. 0, or -1 after a message. */
int pool_pair_open(struct pool_pair *pp, const struct pool_shape *shape);

/* Ends both. 0 when the target ended well. */
int pool_pair_close(struct pool_pair *pp);

/* Makes this the present list of the initiator. pool_step_begin does that, too. */
void pool_pair_list(struct pool_pair *pp, uint64_t list);

/* Arrays of the present list, for the initiator's calls. */
const uint32_t *pool_pair_local_index(const struct pool_pair *pp);
const uint32_t *pool_pair_remote_index(const struct pool_pair *pp);

/*
 * Around each measured move of the first n entries of a list: fresh data into the origin; then every byte of
 * the listed blocks and a sample of the others checked by the process that owns the sink. 0, or -1 after a
 * message.
 */
int pool_step_begin(struct pool_pair *pp, uint64_t list, size_t n);
int pool_step_end(struct pool_pair *pp, size_t n, uint64_t *mismatches);

/* Checks every block of the sink. */
int pool_check_all(struct pool_pair *pp, uint64_t *mismatches);

#endif
