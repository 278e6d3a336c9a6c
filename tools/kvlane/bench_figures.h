/* SPDX-License-Identifier: Apache-2.0 */
/* Samples and the figures made of them. */
#ifndef KVLANE_TOOL_BENCH_FIGURES_H
#define KVLANE_TOOL_BENCH_FIGURES_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "table.h"

/* Raw samples in the order they were taken, so that two arms of one round can be compared. */
struct series {
	uint64_t *v;
	size_t n, room;
};

/* Room for n samples, touched now: a page fault must not fall into a measured window. 0, or -1 (no memory).
 */
int series_init(struct series *s, size_t room);
void series_fini(struct series *s);

/* Drops the sample when the room is used up, which is a mistake of the caller. */
void series_add(struct series *s, uint64_t value);

/* q-quantiles are sorted[floor((n - 1) * q)]; all 0 when there are no samples. */
struct figures {
	uint64_t min, p50, p99, p999, max;
};

/* 0, or -1 when there is no memory to sort in. */
int series_figures(const struct series *s, struct figures *out);

/* Median over rounds of below[i] / above[i]: for times, the rate of `above` relative to `below`. 0: none. */
double series_ratio(const struct series *above, const struct series *below);

/* p50_ns, p99_ns, p999_ns, max_ns, gbps (bytes over the median), mismatches. */
json_t *bench_figures_json(const struct series *s, uint64_t bytes, uint64_t mismatches);

/* The table: name, GB/s, times, mismatches. bench_table_row adds a row. */
void bench_table_init(struct table *t);
void bench_table_row(struct table *t, const char *name, const struct series *s, uint64_t bytes,
		     uint64_t mismatches);
void bench_table_print(struct table *t);

#define BENCH_TIME_TEXT 24

/* "812 ns", "1.23 us", "45.6 ms". Returns buf. */
const char *bench_time(double ns, char buf[BENCH_TIME_TEXT]);

#endif
