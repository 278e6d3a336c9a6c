/* SPDX-License-Identifier: Apache-2.0 */
/* bench post: its state, and the calls that each arm measures. */
#ifndef KVLANE_TOOL_BENCH_POST_H
#define KVLANE_TOOL_BENCH_POST_H

#include <kvlane/kvlane.h>
#include <stdint.h>

#include "bench_arm.h"
#include "bench_pool.h"

enum post_kind {
	POST_PREPARED,
	POST_REPOST,
	POST_UNPREPARED,
	POST_KINDS
};

/* Every arm posts all blocks and a tenth of them in each round. */
enum post_size {
	POST_TENTH,
	POST_ALL,
	POST_SIZES
};

/* What is known of one move. CALLER: PREPARE and POST together; CPU: the processor time of the same. */
enum post_metric {
	POST_PREPARE_NS,
	POST_POST_NS,
	POST_CALLER_NS,
	POST_CPU_NS,
	POST_WHOLE_NS, /* from the first call to the end */
	POST_METRICS
};

struct post_arm {
	struct series sample[POST_METRICS][POST_SIZES];
};

struct post {
	struct bench_options options;
	enum kvl_op op;
	uint64_t block, blocks, n[POST_SIZES];
	struct bench_arms arms;
	struct post_arm arm[POST_KINDS];
	struct pool_pair pp;
	kvl_xfer_t repost[POST_SIZES];
	struct kvl_desc *local, *remote; /* of the unprepared arm */
};

/* Makes a request of the first n entries of the present list. 0, or a negative value after a message. */
int post_prepare(struct post *s, size_t n, kvl_xfer_t *out);

/* Moves n[size] entries the arm's way; t: its metrics. The same. */
int post_move(struct post *s, enum post_kind kind, enum post_size size, uint64_t t[POST_METRICS]);

#endif
