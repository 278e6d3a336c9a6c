/* SPDX-License-Identifier: Apache-2.0 */
/* Agents, their memory and the ends of their requests, with the messages for what fails. */
#ifndef KVLANE_TOOL_BENCH_AGENT_H
#define KVLANE_TOOL_BENCH_AGENT_H

#include <kvlane/kvlane.h>
#include <stdint.h>

#include "bench_options.h"

/* Opens an agent of this name with the options' configuration. 0 or a kvl_error, after a message. */
int bench_agent_open(const struct bench_options *o, const char *name, kvl_agent_t *out);

/* Closes it; a refusal is printed. */
void bench_agent_close(kvl_agent_t agent);

struct bench_memory {
	unsigned char *addr;
	uint64_t len;
	kvl_mr_t mr;
	int user;
};

/* Zeroed memory of the kind that --memory asks for, registered. 0, or a negative value after a message. */
int bench_memory_open(const struct bench_options *o, kvl_agent_t agent, uint64_t len,
		      struct bench_memory *out);

/* After the agent is closed. */
void bench_memory_close(struct bench_memory *memory);

#define BENCH_END_NS 60000000000ull /* longer than any request may last */

/* Blocks for the end of a request. 0, or its error after a message. */
int bench_wait(kvl_agent_t agent, kvl_xfer_t xfer);

/* Whether an agent of these options has no workers, so that whoever polls must also drive it. */
int bench_must_drive(kvl_agent_t agent);

/* bench_wait by polling alone, for times of single requests; drive: bench_must_drive(). *end: when it was
 * seen. */
int bench_spin(kvl_agent_t agent, kvl_xfer_t xfer, int drive, uint64_t *end);

#endif
