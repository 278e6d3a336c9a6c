/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One side's paged cache: a region per layer, as engines allocate it, and a block table per request and
 * layer group. Block tables are dealt from a shuffled free list, so the blocks of a request lie scattered.
 *
 * Every block has an expected content at any time: poison (a stream of the side's own), or a request's bytes
 * of some round. Single-threaded.
 */
#ifndef KVLANE_TOOL_DEMO_POOL_H
#define KVLANE_TOOL_DEMO_POOL_H

#include <stddef.h>
#include <stdint.h>

#include <kvlane/kvlane.h>

#include "demo_plan.h"

struct pool_owner {
	uint32_t request, number; /* block number in the prompt */
	uint32_t round;           /* from 1; 0: poison */
};

struct pool {
	const struct plan *plan;
	kvl_agent_t agent;
	int user; /* memory by malloc */
	unsigned n_layers;
	uint8_t *layer[MODEL_LAYERS_MAX];
	kvl_mr_t mr[MODEL_LAYERS_MAX];
	unsigned n_registered;
	uint32_t entry[MODEL_LAYERS_MAX]; /* number of a layer's block 0 in list */
	uint32_t n_entries;
	kvl_list_t list;                        /* every block of every layer */
	uint32_t *table[MODEL_GROUPS];          /* the shuffled free list */
	uint32_t *start[MODEL_GROUPS];          /* where a request's blocks begin in table */
	struct pool_owner *owner[MODEL_GROUPS]; /* by block id */
	uint64_t random;
};

/* Allocates and registers, touches nothing. After a negative kvl_error pool_destroy frees what there is. */
int pool_create(struct pool *pool, const struct plan *plan, kvl_agent_t agent, int user, uint64_t random);

/* At a good end: nothing of the pool may be on its way any more. A negative kvl_error. */
int pool_withdraw(struct pool *pool);

/* After the agent is closed, which withdraws what is still registered. In any state. */
void pool_destroy(struct pool *pool);

/* Deals new block tables to all requests. */
void pool_deal(struct pool *pool);

/* Block ids of a request in a group: span[group].n of them, in the order of the prompt. */
const uint32_t *pool_blocks(const struct pool *pool, uint32_t request, enum model_group group);

/* The list of a pool of this plan whose layers begin at base[]: of the peer, or KVL_LOCAL. */
int pool_list_create(const struct plan *plan, kvl_agent_t agent, kvl_peer_t peer, const uint64_t *base,
		     kvl_list_t *out);

void pool_poison(struct pool *pool);

/* Says that the request's blocks hold its bytes of this round, from now on. */
void pool_own(struct pool *pool, uint32_t request, uint32_t round);

/* The two together do what a model's prefill does. */
void pool_fill(struct pool *pool, uint32_t request, uint32_t round);

struct pool_fault {
	uint64_t bytes; /* that differ in this block */
	unsigned layer;
	uint32_t id; /* of the block */
	struct pool_owner owner;
	size_t offset; /* of the first one in the block */
};

/* Compares one block of a layer with what it should hold. 0, or 1 and *fault. */
int pool_check(const struct pool *pool, unsigned layer, uint32_t id, struct pool_fault *fault);

#endif
