/* SPDX-License-Identifier: Apache-2.0 */
/* bench scatter: its state, and how each arm moves a list. */
#ifndef KVLANE_TOOL_BENCH_SCATTER_H
#define KVLANE_TOOL_BENCH_SCATTER_H

#include <stddef.h>
#include <stdint.h>

#include "bench_arm.h"
#include "bench_pool.h"
#include "bench_raw.h"

enum scatter_kind {
	SCATTER_DIRECT,
	SCATTER_MEMCPY,
	SCATTER_RAW
};

struct scatter {
	struct bench_options options;
	enum kvl_op op;
	uint64_t block, pool, count, vector;
	const char *block_typed, *pool_typed; /* NULL: the default */
	struct bench_arms arms;
	struct pool_pair pp;
	struct raw_copy raw;
	struct series prepare, post, whole; /* of the direct arm; whole: from prepare to the end */
	char path[32];
};

/* What one move took; prepare and post only in the direct arm. */
struct scatter_time {
	uint64_t prepare, post, move;
};

/*
 * The arm moves the first n entries of the present list. 0 (also when the arm turns out to be impossible
 * here: it is marked as skipped and nothing has moved), or a negative value after a message.
 */
int scatter_move(struct scatter *s, struct bench_arm *arm, size_t n, struct scatter_time *t);

#endif
