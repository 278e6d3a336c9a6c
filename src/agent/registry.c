/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agents of this process: the one piece of global state. A slot is never freed, and neither is its record
 * table, so that a handle of a closed agent meets a valid word that says it is stale.
 *
 * word    | written by        | read by       | order | edge
 * open    | open, close       | every call    | seq   | E11 store-then-look with users: a caller who saw the
 * users   | every call        | close         | seq   |     agent open is seen by close, and waited for
 * records | open              | pollers       | release / acquire | E12: the table is filled in
 */
#include <stdlib.h>

#include "agent/agent.h"

#define MAX_AGENTS 256

struct kvli_agent_slot {
	struct word64 open; /* the handle while the agent is open, else 0 */
	struct word32 users;
	struct word64 records; /* struct kvli_records * */
	struct kvli_agent *agent;
	uint64_t life;
	int taken;
};

static struct kvli_agent_slot registry[MAX_AGENTS];
static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;

static struct kvli_agent_slot *registry_slot(kvl_agent_t handle)
{
	uint32_t i = kvli_handle_index(handle);

	return kvli_handle_is(handle, KVLI_AGENT) && i < MAX_AGENTS ? &registry[i] : NULL;
}

struct kvli_agent *kvli_agent_enter(kvl_agent_t handle)
{
	struct kvli_agent_slot *slot = registry_slot(handle);

	if (slot == NULL) {
		kvli_handle_refuse(handle, KVLI_AGENT, KVL_NO_ENTRY);
		return NULL;
	}
	word32_add_seq_sys(&slot->users, 1);            /* E11 */
	if (word64_load_seq_sys(&slot->open) == handle) /* E11 */
		return slot->agent;
	word32_add_seq_sys(&slot->users, UINT32_MAX); /* E11 */
	kvli_handle_refuse(handle, KVLI_AGENT, KVL_NO_ENTRY);
	return NULL;
}

int kvli_agent_refused(kvl_agent_t handle)
{
	return kvli_handle_code(handle, KVLI_AGENT);
}

void kvli_agent_leave(struct kvli_agent *agent)
{
	word32_add_seq_sys(&agent->registry->users, UINT32_MAX); /* E11 */
}

int kvli_agent_return(struct kvli_agent *agent, int rc)
{
	kvli_agent_leave(agent);
	return rc;
}

/* Lives go on where the smaller table's stood; it stays for pollers that still hold its address. */
static int registry_records(struct kvli_agent_slot *slot, uint32_t n, struct kvli_records **out)
{
	uint64_t word = word64_load_relaxed_sys(&slot->records); /* own word: registry_lock is held */
	struct kvli_records *old = (struct kvli_records *)(uintptr_t)word, *fresh;

	*out = old;
	if (old && old->n >= n)
		return 0;
	fresh = calloc(1, sizeof(*fresh) + n * sizeof(fresh->record[0]));
	if (fresh == NULL)
		return kvli_fail(KVL_ERR_NOMEM, KVL_NO_ENTRY, 0, "memory", "no memory for %u requests", n);
	fresh->n = n;
	fresh->older = old;
	for (uint32_t i = 0; old && i < old->n; i++)
		fresh->record[i] = old->record[i];
	word64_store_release_sys(&slot->records, (uint64_t)(uintptr_t)fresh); /* E12 */
	*out = fresh;
	return 0;
}

static struct kvli_agent_slot *registry_take(void)
{
	for (uint32_t i = 0; i < MAX_AGENTS; i++)
		if (!registry[i].taken)
			return &registry[i];
	return NULL;
}

int kvli_registry_claim(struct kvli_agent *agent, uint32_t max_requests, struct kvli_records **records)
{
	struct kvli_agent_slot *slot;
	int rc;

	pthread_mutex_lock(&registry_lock);
	slot = registry_take();
	rc = slot ? registry_records(slot, max_requests, records)
		  : kvli_fail(KVL_ERR_LIMIT, KVL_NO_ENTRY, 0, "agents of one process",
			      "all %d agents are open", MAX_AGENTS);
	if (rc == 0) {
		slot->taken = 1;
		slot->agent = agent;
		agent->registry = slot;
		agent->index = (uint32_t)(slot - registry);
		agent->handle = kvli_handle_make(KVLI_AGENT, agent->index, ++slot->life, agent->index);
	}
	pthread_mutex_unlock(&registry_lock);
	return rc;
}

void kvli_registry_open(struct kvli_agent *agent)
{
	word64_exchange_seq_sys(&agent->registry->open, agent->handle); /* E11 */
}

struct kvli_agent *kvli_registry_end(kvl_agent_t handle)
{
	struct kvli_agent_slot *slot = registry_slot(handle);

	if (slot && word64_cas_seq_sys(&slot->open, handle, 0)) /* E11 */
		return slot->agent; /* no other caller can have ended it, so it is there until we free it */
	kvli_handle_refuse(handle, KVLI_AGENT, KVL_NO_ENTRY);
	return NULL;
}

int kvli_registry_drained(const struct kvli_agent *agent)
{
	return word32_load_seq_sys(&agent->registry->users) == 0; /* E11 */
}

void kvli_registry_free(struct kvli_agent *agent)
{
	pthread_mutex_lock(&registry_lock);
	agent->registry->agent = NULL;
	agent->registry->taken = 0;
	pthread_mutex_unlock(&registry_lock);
}

const struct word64 *kvli_registry_record(kvl_agent_t agent, kvl_xfer_t xfer)
{
	struct kvli_agent_slot *slot = registry_slot(agent);
	const struct kvli_records *records;
	uint32_t i = kvli_handle_index(xfer);

	if (slot == NULL)
		return NULL;
	records = (const struct kvli_records *)(uintptr_t)word64_load_acquire_sys(&slot->records); /* E12 */
	return records && i < records->n ? &records->record[i] : NULL;
}
