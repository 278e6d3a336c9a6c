/* SPDX-License-Identifier: Apache-2.0 */
/* The words of `kvlane demo --help`. */
#ifndef KVLANE_TOOL_DEMO_USAGE_H
#define KVLANE_TOOL_DEMO_USAGE_H

#include <argp.h>

enum demo_key {
	KEY_MODEL = 0x100,
	KEY_REQUESTS,
	KEY_TOKENS,
	KEY_BLOCK_TOKENS,
	KEY_DTYPE,
	KEY_TP,
	KEY_POOL,
	KEY_ROUNDS,
	KEY_SEED,
	KEY_OP,
	KEY_MODE,
	KEY_MEMORY,
	KEY_INFLIGHT,
	KEY_WIRE,
	KEY_RETIRE,
	KEY_WORKERS,
	KEY_LANES,
	KEY_SET,
	KEY_ROLE,
	KEY_RENDEZVOUS,
	KEY_TIMEOUT,
	KEY_JSON,
	KEY_DAMAGE,
};

extern const struct argp_option demo_usage_options[];
extern const char demo_usage_doc[];

#endif
