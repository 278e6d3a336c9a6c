/* SPDX-License-Identifier: Apache-2.0 */
/* What a run moves: prompt lengths from the seed, blocks and pool sizes from them. Same options, same plan.
 */
#ifndef KVLANE_TOOL_DEMO_PLAN_H
#define KVLANE_TOOL_DEMO_PLAN_H

#include <stdint.h>

#include "model.h"

struct plan_options {
	const struct model *model;
	unsigned element_bytes, block_tokens, tp;
	uint32_t requests, rounds;
	uint64_t tokens; /* mean prompt length */
	uint64_t seed;
	uint64_t pool; /* most bytes of cache per side */
	int pool_given;
};

struct plan_request {
	uint64_t tokens;
	struct {
		uint32_t first, n; /* block numbers in the prompt */
	} span[MODEL_GROUPS];
	uint64_t blocks; /* over all layers */
};

struct plan {
	struct layout layout;
	uint64_t seed;
	uint64_t tokens; /* mean, after scaling */
	uint32_t n_requests, n_rounds;
	struct plan_request *request;
	uint32_t n_blocks[MODEL_GROUPS]; /* of a layer's pool: what the requests need and some spare ones */
	uint64_t pool_bytes;             /* per side */
	uint64_t blocks, bytes;          /* handed over in one round, over all layers */
	uint64_t most_blocks;            /* of one request, over all layers */
};

/*
 * Scales the mean prompt length down until the pool fits, and says so on standard error. -1 (said as well)
 * when the options cannot be met. Undo with plan_destroy.
 */
int plan_create(const struct plan_options *o, struct plan *out);
void plan_destroy(struct plan *plan);

#endif
