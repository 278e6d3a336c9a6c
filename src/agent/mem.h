/* SPDX-License-Identifier: Apache-2.0 */
/* Registered memory of this agent, for the other calls and for the wire. */
#ifndef KVLI_MEM_H
#define KVLI_MEM_H

#include "agent/agent.h"

int kvli_agent_region_may_touch(void *agent, uint32_t slot, uint64_t generation, uint64_t addr, uint64_t len,
				uint32_t right);
/* Withdraws every region; KVL_ERR_TIMED_OUT when a peer is inside a copy past the deadline. */
int kvli_agent_withdraw_all(struct kvli_agent *agent, uint64_t deadline_ns);

/* ---- what registering and withdrawing share; under memory_lock */

/* The region of a handle, NULL with the error recorded. */
struct kvli_region *kvli_region_get(struct kvli_agent *agent, kvl_mr_t mr, size_t entry);

/* Takes it out of every index and frees its memory, if it is ours. Its struct stays while lists name it. */
void kvli_region_forget(struct kvli_agent *agent, struct kvli_region *r);

#endif
