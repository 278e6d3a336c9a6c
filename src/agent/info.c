/* SPDX-License-Identifier: Apache-2.0 */
/* What is there: limits in force, wires of this build. */
#include <string.h>

#include "agent/agent.h"
#include "base/sized.h"

int kvl_agent_limits(kvl_agent_t handle, struct kvl_limits *out)
{
	struct kvli_agent *agent = kvli_agent_enter(handle);
	struct kvl_limits limits = { .size = sizeof(limits) };
	const struct kvl_config *c;

	if (agent == NULL)
		return kvli_agent_refused(handle);
	c = &agent->config;
	limits.notif_max_bytes = c->notif_max_bytes;
	limits.notif_queue_bytes = c->notif_queue_bytes;
	limits.max_region_bytes = c->max_region_bytes;
	limits.chunk_bytes = agent->engine.config.chunk_bytes;
	limits.small_bytes = c->small_bytes;
	limits.workers = c->workers;
	limits.lanes = c->lanes;
	limits.latency_lanes = c->latency_lanes;
	limits.queue_depth = c->queue_depth;
	limits.max_requests = c->max_requests;
	limits.max_regions = c->max_regions;
	limits.max_peers = c->max_peers;
	limits.window = c->window;
	limits.ring_bytes = c->ring_bytes;
	limits.retire_order = c->retire_order;
	limits.deadline_ms = c->deadline_ms;
	limits.connect_timeout_ms = c->connect_timeout_ms;
	strncpy(limits.wire, agent->ops->name, sizeof(limits.wire) - 1);
	return kvli_agent_return(agent, kvli_sized_copy(out, &limits, sizeof(limits)));
}

int kvl_wire_info(size_t index, struct kvl_wire_info *out)
{
	size_t n = 0;

	while (kvli_wires[n])
		n++;
	if (index >= n)
		return kvli_fail(KVL_ERR_NOT_FOUND, KVL_NO_ENTRY, 0, "index < number of wires",
				 "there are %zu wires", n);
	if (out == NULL)
		return kvli_fail(KVL_ERR_INVALID, KVL_NO_ENTRY, 0, "out", "out is NULL");
	memset(out, 0, sizeof(*out));
	strncpy(out->name, kvli_wires[index]->name, sizeof(out->name) - 1);
	out->available = kvli_wires[index]->available(out->reason, sizeof(out->reason));
	return 0;
}
