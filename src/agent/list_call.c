/* SPDX-License-Identifier: Apache-2.0 */
/* The list calls. */
#include "agent/agent.h"
#include "agent/peer.h"

/* Whose memory: the agent's own set, or the peer's, then held. */
static int list_owner(struct kvli_agent *agent, kvl_peer_t handle, struct kvli_peer **peer,
		      struct kvli_region_set **set)
{
	int rc;

	*peer = NULL;
	*set = &agent->regions;
	if (handle == KVL_LOCAL)
		return 0;
	*peer = kvli_table_get(&agent->peer_table, handle, KVL_NO_ENTRY, kvli_peer_hold);
	if (*peer == NULL)
		return kvli_handle_code(handle, KVLI_PEER);
	*set = &(*peer)->regions;
	rc = kvli_peer_usable(*peer);
	if (rc)
		kvli_peer_drop(*peer);
	return rc;
}

/* Puts a new list, or the failure to make one, into its handle. */
static int list_finish(struct kvli_agent *agent, struct kvli_peer *peer, struct kvli_list *list, int rc,
		       kvl_list_t *out)
{
	if (rc) {
		if (peer)
			kvli_peer_drop(peer);
		return kvli_agent_return(agent, rc);
	}
	list->peer = peer;
	list->drop_peer = kvli_peer_drop;
	rc = kvli_table_add(&agent->list_table, list, out);
	if (rc)
		kvli_list_drop(list);
	return kvli_agent_return(agent, rc);
}

/* What a list is made of: one of the three ways. */
struct list_source {
	enum {
		LIST_OF_DESCS,
		LIST_OF_RUNS,
		LIST_OF_BLOCKS
	} kind;
	const void *array;
	size_t n;
	uint64_t base, block_bytes; /* of blocks, as the next */
	uint32_t device;
};

static int list_build(struct kvli_region_set *set, const struct list_source *from, struct kvli_list **out)
{
	switch (from->kind) {
	case LIST_OF_DESCS:
		return kvli_list_from_descs(set, from->array, from->n, out);
	case LIST_OF_RUNS:
		return kvli_list_from_runs(set, from->array, from->n, out);
	default:
		return kvli_list_from_blocks(set, from->base, from->block_bytes, from->array, from->n,
					     from->device, out);
	}
}

static int list_create(kvl_agent_t handle, kvl_peer_t peer_handle, const struct list_source *from,
		       kvl_list_t *out)
{
	struct kvli_agent *agent = kvli_agent_enter(handle);
	struct kvli_region_set *set;
	struct kvli_list *list = NULL;
	struct kvli_peer *peer;
	int rc;

	if (agent == NULL)
		return kvli_agent_refused(handle);
	if (out == NULL || (from->n && from->array == NULL))
		return kvli_agent_return(agent, kvli_fail(KVL_ERR_INVALID, KVL_NO_ENTRY, 0, "array, out",
							  "the array or out is NULL"));
	rc = list_owner(agent, peer_handle, &peer, &set);
	if (rc)
		return kvli_agent_return(agent, rc);
	rc = list_build(set, from, &list);
	return list_finish(agent, peer, list, rc, out);
}

int kvl_list_create(kvl_agent_t agent, kvl_peer_t peer, const struct kvl_desc *desc, size_t n,
		    kvl_list_t *out)
{
	struct list_source from = { .kind = LIST_OF_DESCS, .array = desc, .n = n };

	return list_create(agent, peer, &from, out);
}

int kvl_list_create_runs(kvl_agent_t agent, kvl_peer_t peer, const struct kvl_run *run, size_t n,
			 kvl_list_t *out)
{
	struct list_source from = { .kind = LIST_OF_RUNS, .array = run, .n = n };

	return list_create(agent, peer, &from, out);
}

int kvl_list_create_blocks(kvl_agent_t agent, kvl_peer_t peer, uint64_t base, uint64_t block_bytes,
			   const uint32_t *index, size_t n, uint32_t device, kvl_list_t *out)
{
	struct list_source from = { LIST_OF_BLOCKS, index, n, base, block_bytes, device };

	return list_create(agent, peer, &from, out);
}

static void list_hold(void *list)
{
	kvli_list_hold(list);
}

int64_t kvl_list_entries(kvl_agent_t handle, kvl_list_t list_handle)
{
	struct kvli_agent *agent = kvli_agent_enter(handle);
	struct kvli_list *list;
	int64_t n = kvli_handle_code(list_handle, KVLI_LIST);

	if (agent == NULL)
		return kvli_agent_refused(handle);
	list = kvli_table_get(&agent->list_table, list_handle, KVL_NO_ENTRY, list_hold);
	if (list) {
		n = (int64_t)list->n;
		kvli_list_drop(list);
	}
	kvli_agent_leave(agent);
	return n;
}

int kvl_list_destroy(kvl_agent_t handle, kvl_list_t list_handle)
{
	struct kvli_agent *agent = kvli_agent_enter(handle);
	struct kvli_list *list;

	if (agent == NULL)
		return kvli_agent_refused(handle);
	list = kvli_table_remove(&agent->list_table, list_handle);
	if (list == NULL)
		return kvli_agent_return(agent, kvli_handle_code(list_handle, KVLI_LIST));
	kvli_list_drop(list);
	return kvli_agent_return(agent, 0);
}
