/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVLANE_TOOL_DEMO_DECODE_H
#define KVLANE_TOOL_DEMO_DECODE_H

#include <stdint.h>

#include "demo_mover.h"
#include "demo_report.h"

struct decode {
	struct demo *d;
	struct mover mover; /* READ */
	struct demo_result result;
	uint32_t round;
	uint32_t *queue;  /* requests of the round in the order they were handed over */
	uint32_t handed;  /* of queue */
	uint32_t *taken;  /* by request: the last round it was handed over in (WRITE) */
	uint64_t checked; /* blocks, for the progress bar */
	uint64_t *wrong;  /* by list entry: bytes of this round that are known to be wrong */
	unsigned faults;
	int have_stats;
};

#endif
