/* SPDX-License-Identifier: Apache-2.0 */
/* Arms: the ways that one run measures against each other, round by round. */
#ifndef KVLANE_TOOL_BENCH_ARM_H
#define KVLANE_TOOL_BENCH_ARM_H

#include <argp.h>
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "bench_figures.h"

#define BENCH_MAX_ARMS 4

struct bench_arm {
	const char *name;
	unsigned kind;       /* index in the shape's table of known arms */
	struct series ns;    /* of each measured round */
	uint64_t bytes;      /* that a round moves */
	uint64_t moved;      /* of all rounds whose bytes were checked */
	uint64_t mismatches; /* bytes that were wrong, warm-up included */
	char skipped[200];   /* why it did not run; empty: it runs */
};

struct bench_arms {
	struct bench_arm arm[BENCH_MAX_ARMS];
	size_t n;
};

/*
 * Selects arms from text ("direct,memcpy") among the NULL-ended known ones; an unknown or repeated one is a
 * usage error.
 */
void bench_arms_parse(const struct argp_state *state, const char *text, const char *const *known,
		      struct bench_arms *out);

/* Room for rounds samples in each arm. 0, or -1 after a message. */
int bench_arms_init(struct bench_arms *arms, uint64_t rounds, uint64_t bytes);
void bench_arms_fini(struct bench_arms *arms);

/* The arm whose turn is i-th in this round: the order rotates, so that no arm always follows the same one. */
struct bench_arm *bench_arms_turn(struct bench_arms *arms, uint64_t round, size_t i);

/* NULL when it was not selected or was skipped. */
struct bench_arm *bench_arms_find(struct bench_arms *arms, const char *name);

/* Arms that ran. */
size_t bench_arms_ran(const struct bench_arms *arms);
uint64_t bench_arms_mismatches(const struct bench_arms *arms);
uint64_t bench_arms_moved(const struct bench_arms *arms);

/* Takes an arm out of the run, and says so. */
void bench_arm_skip(struct bench_arm *arm, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* bench_figures_json of an arm; {"skipped": reason} of one that did not run. */
json_t *bench_arm_json(const struct bench_arm *arm);

/*
 * Two arms by name, compared round by round: sets ratios["above_over_below"], the rate of one relative to the
 * other, or ratios["above_time_over_below"], its time relative to the other's, and prints it. Nothing when
 * one of them did not run.
 */
void bench_ratio(json_t *ratios, struct bench_arms *arms, const char *above, const char *below);
void bench_ratio_time(json_t *ratios, struct bench_arms *arms, const char *above, const char *below);

/* A row of bench_table_init for each arm that ran. */
void bench_table_arms(struct table *t, const struct bench_arms *arms);

#endif
