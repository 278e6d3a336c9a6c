/* SPDX-License-Identifier: Apache-2.0 */
/* How every shape ends: the table, the JSON object, the verdict. */
#ifndef KVLANE_TOOL_BENCH_REPORT_H
#define KVLANE_TOOL_BENCH_REPORT_H

#include <jansson.h>

#include "bench_arm.h"
#include "bench_options.h"

struct bench_report {
	json_t *root, *ratios;
	uint64_t stray; /* mismatches that no arm is to blame for: blocks that nothing was to touch */
};

/* Sets root["arms"] and root["ratios"]; takes over root. */
void bench_report_init(struct bench_report *report, json_t *root, const struct bench_arms *arms);

/* Prints the table of arms. */
void bench_report_table(const struct bench_arms *arms);

/* Prints the verdict, writes the JSON file, frees the report. Returns the exit code. */
int bench_report_finish(struct bench_report *report, struct bench_options *o, const struct bench_arms *arms);

#endif
