/* SPDX-License-Identifier: Apache-2.0 */
/* Withdrawing memory: counts, the fence against peers, and the end of a region. */
#include <inttypes.h>

#include "agent/agent.h"
#include "agent/mem.h"

#define REVOKE_TIMEOUT_NS UINT64_C(1000000000)

/*
 * Four passes, all under memory_lock: count how often each region is named, close those that lose their last count,
 * fence them, then commit. A refusal in the first two changes nothing. When a fence is not done in time, the closed
 * regions stay withdrawn and every count stands: the same call, made again, goes on from there.
 */
static int dereg_count(struct kvli_agent *agent, const kvl_mr_t *mr, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct kvli_region *r = kvli_region_get(agent, mr[i], i);

		if (r == NULL)
			return kvli_handle_code(mr[i], KVLI_REGION);
		r->naming++;
		if (r->naming > r->counted)
			return kvli_fail(KVL_ERR_STALE, i, 0, "named at most as often as registered",
					 "region %zu is named %u times and registered %u times", i, r->naming,
					 r->counted);
	}
	return 0;
}

static int dereg_close(struct kvli_agent *agent, const kvl_mr_t *mr, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct kvli_region *r = kvli_region_get(agent, mr[i], i);

		if (r->closing || r->withdrawn || r->naming < r->counted)
			continue;
		if (!kvli_region_close(r))
			return kvli_fail(KVL_ERR_BUSY, i, 0, "no pending request names it",
					 "region %zu, %#" PRIx64 " + %" PRIu64
					 ", is named by a pending request",
					 i, r->at.base, r->at.len);
		r->closing = 1;
	}
	return 0;
}

static void dereg_undo(struct kvli_agent *agent, const kvl_mr_t *mr, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct kvli_region *r = kvli_table_peek(&agent->region_table, mr[i], NULL);

		if (r == NULL)
			continue;
		if (r->closing && !r->withdrawn)
			kvli_region_reopen(r);
		r->naming = 0;
		r->closing = 0;
	}
}

/* Also for regions that were never exposed: the fence keeps the wire from asking about freed ones. */
static int region_fence(struct kvli_agent *agent, struct kvli_region *r, size_t i, uint64_t deadline)
{
	int rc = agent->ops->revoke(agent->wire, r->at.slot, kvli_left(deadline));

	if (rc == KVL_ERR_TIMED_OUT)
		return kvli_fail(rc, i, 0, "peers have left the region",
				 "region %zu, %#" PRIx64 " + %" PRIu64
				 ", is withdrawn, but a peer is still inside a copy: call again",
				 i, r->at.base, r->at.len);
	if (rc)
		return kvli_fail(rc, i, 0, "memory",
				 "no memory to see whether peers have left region %zu: call again", i);
	return 0;
}

static int dereg_fence(struct kvli_agent *agent, const kvl_mr_t *mr, size_t n)
{
	uint64_t deadline = kvli_deadline(REVOKE_TIMEOUT_NS);
	int rc = 0;

	for (size_t i = 0; i < n; i++) {
		struct kvli_region *r = kvli_region_get(agent, mr[i], i);
		int one;

		if (r->naming < r->counted)
			continue;
		r->withdrawn = 1;
		one = region_fence(agent, r, i, deadline);
		if (rc == 0)
			rc = one;
	}
	return rc;
}

static void dereg_commit(struct kvli_agent *agent, const kvl_mr_t *mr, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct kvli_region *r = kvli_table_peek(&agent->region_table, mr[i], NULL);

		if (r == NULL || r->naming == 0) /* done with an earlier mention */
			continue;
		r->counted -= r->naming;
		r->naming = 0;
		if (r->counted == 0)
			kvli_region_forget(agent, r);
	}
}

int kvl_mem_deregister(kvl_agent_t handle, const kvl_mr_t *mr, size_t n)
{
	struct kvli_agent *agent = kvli_agent_enter(handle);
	int rc;

	if (agent == NULL)
		return kvli_agent_refused(handle);
	if (n && mr == NULL)
		return kvli_agent_return(agent,
					 kvli_fail(KVL_ERR_INVALID, KVL_NO_ENTRY, 0, "mr", "mr is NULL"));
	pthread_mutex_lock(&agent->memory_lock);
	rc = dereg_count(agent, mr, n);
	if (rc == 0)
		rc = dereg_close(agent, mr, n);
	if (rc == 0)
		rc = dereg_fence(agent, mr, n);
	if (rc == 0)
		dereg_commit(agent, mr, n);
	else
		dereg_undo(agent, mr, n);
	pthread_mutex_unlock(&agent->memory_lock);
	return kvli_agent_return(agent, rc);
}

int kvli_agent_withdraw_all(struct kvli_agent *agent, uint64_t deadline_ns)
{
	int rc = 0;

	pthread_mutex_lock(&agent->memory_lock);
	for (uint32_t i = 0; i < kvli_table_room(&agent->region_table); i++) {
		uint64_t mr;
		struct kvli_region *r = kvli_table_at(&agent->region_table, i, NULL, &mr);

		if (r == NULL)
			continue;
		kvli_region_force_close(r);
		if (region_fence(agent, r, i, deadline_ns)) {
			rc = KVL_ERR_TIMED_OUT;
			r->mem.flags &= ~KVL_MEM_FD; /* in doubt: what a peer may write is not unmapped */
			r->owned = 0;
		}
		kvli_region_forget(agent, r);
	}
	pthread_mutex_unlock(&agent->memory_lock);
	return rc;
}
