/* SPDX-License-Identifier: Apache-2.0 */
/* bench idle: the runs in fresh processes that its figures come from. */
#ifndef KVLANE_TOOL_BENCH_IDLE_H
#define KVLANE_TOOL_BENCH_IDLE_H

#include <stdint.h>

#include "bench_options.h"

#define IDLE_MAX_PEERS 256

struct idle_setup {
	const struct bench_options *options;
	uint64_t peers, idle_ns;
};

/* What an agent costs that is connected to `peers` idle ones; of its whole process, relative to before. */
struct idle_cost {
	int64_t rc;               /* 0, or the run failed */
	int64_t open_bytes;       /* resident once the agent is open */
	int64_t idle_bytes;       /* resident after the idle time, peers connected */
	uint64_t cpu_ns, wall_ns; /* of the idle time */
	uint64_t wakeups;         /* times that a thread of the process slept and was woken in that time */
};

/* From before both agents are opened to the end of a first small write. */
struct idle_first {
	int64_t rc;
	uint64_t ns, bytes, mismatches;
};

/* Each starts its own processes. 0, or -1 after a message. */
int idle_measure_cost(const struct idle_setup *setup, struct idle_cost *out);
int idle_measure_first(const struct idle_setup *setup, struct idle_first *out);

#endif
