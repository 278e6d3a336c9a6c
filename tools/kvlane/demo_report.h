/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVLANE_TOOL_DEMO_REPORT_H
#define KVLANE_TOOL_DEMO_REPORT_H

#include <stdint.h>

#include "demo_message.h"
#include "hist.h"

struct demo_result {
	struct hist latency; /* hand-over, per request */
	struct demo_stats stats;
	uint64_t verified;   /* bytes compared at their hand-over */
	uint64_t mismatches; /* bytes */
};

/* Prints the table and the verdict, writes --json. EXIT_OK, or EXIT_FAILED with a mismatch or no JSON. */
int demo_report(struct demo *d, const struct demo_result *r);

#endif
