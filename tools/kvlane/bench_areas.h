/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An agent with a few areas of memory, guards around each: what one end of the latency shapes has. Areas are
 * never shared, so the bytes of one can not pass for those of another.
 */
#ifndef KVLANE_TOOL_BENCH_AREAS_H
#define KVLANE_TOOL_BENCH_AREAS_H

#include <kvlane/kvlane.h>
#include <stdint.h>

#include "bench_agent.h"

#define AREAS_MAX 4

struct areas {
	const struct bench_options *options;
	kvl_agent_t agent;
	struct bench_memory memory;
	uint64_t offset[AREAS_MAX], len[AREAS_MAX];
	unsigned n;
};

/* Opens an agent with n areas of len[i] bytes. config: NULL for the options'. 0, or -1 after a message. */
int areas_open(struct areas *a, const struct bench_options *o, const struct kvl_config *config,
	       const char *name, const uint64_t *len, unsigned n);
void areas_close(struct areas *a);

unsigned char *areas_at(const struct areas *a, unsigned area);

/* Bytes of this epoch into an area; how many bytes of it are not of this epoch. At the start all is epoch 0.
 */
void areas_fill(const struct areas *a, unsigned area, uint64_t epoch);
uint64_t areas_check(const struct areas *a, unsigned area, uint64_t epoch);

/* How many bytes outside the areas have changed since the start. */
uint64_t areas_check_guards(const struct areas *a);

#endif
