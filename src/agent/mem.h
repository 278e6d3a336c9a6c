/* SPDX-License-Identifier: Apache-2.0 */
/* What registering and withdrawing share. All under memory_lock. */
#ifndef KVLI_MEM_H
#define KVLI_MEM_H

#include "agent/agent.h"

/* The region of a handle, NULL with the error recorded. */
struct kvli_region *kvli_region_get(struct kvli_agent *agent, kvl_mr_t mr, size_t entry);

/* Takes it out of every index and frees its memory, if it is ours. Its struct stays while lists name it. */
void kvli_region_forget(struct kvli_agent *agent, struct kvli_region *r);

#endif
