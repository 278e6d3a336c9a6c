/* SPDX-License-Identifier: Apache-2.0 */
/* bench mixed: its state and its agents. */
#ifndef KVLANE_TOOL_BENCH_MIXED_H
#define KVLANE_TOOL_BENCH_MIXED_H

#include <stdint.h>

#include "bench_areas.h"
#include "bench_arm.h"
#include "bench_link.h"

enum mixed_kind {
	MIXED_GLOBAL,
	MIXED_LANE,
	MIXED_KINDS
};

enum mixed_verb {
	MIXED_CHECK = 1,
	MIXED_GUARDS
};

/* The two requests and their targets. */
enum mixed_part {
	MIXED_BULK,
	MIXED_SMALL,
	MIXED_PARTS
};

/*
 * A payload and its 8-byte epoch, which is the last descriptor of the list. Every agent, source or target,
 * has these areas for the bulk part, then for the small one, so that they lie alike in all of them.
 */
enum mixed_area {
	MIXED_PAYLOAD,
	MIXED_MARKER,
	MIXED_AREAS
};

#define MIXED_MARKER_BYTES 8u

/* One source agent. */
struct mixed_source {
	struct areas areas;
	kvl_xfer_t xfer[MIXED_PARTS];
	struct series part[MIXED_PARTS];
	uint64_t mismatches[MIXED_PARTS];
	int drive;
};

struct mixed {
	struct bench_options options;
	uint64_t size[MIXED_PARTS], epoch;
	struct bench_arms arms; /* their samples are the window: until both are done */
	struct mixed_source source[MIXED_KINDS];
	struct bench_link link;
	struct bench_offer offer[MIXED_PARTS];
};

/* The target process: both of its agents. arg: the struct mixed. */
int mixed_target_main(struct pair *pair, void *arg);

/* Opens the source agent of each arm and prepares its requests. 0, or a negative value after a message. */
int mixed_sources_open(struct mixed *s);

/* New bytes for both requests. */
void mixed_fill(const struct mixed_source *src, uint64_t epoch);

#endif
