/* SPDX-License-Identifier: Apache-2.0 */
/* Metadata, and the rendezvous that carries it. */
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "control/metadata.h"

/* Under memory_lock, in the order of slots. Regions that are being withdrawn are left out. */
static uint32_t metadata_regions(struct kvli_agent *agent, struct kvli_md_region *out)
{
	uint32_t n = 0, slots = kvli_table_room(&agent->region_table);

	for (uint32_t i = 0; i < slots; i++) {
		uint64_t handle;
		const struct kvli_region *r = kvli_table_at(&agent->region_table, i, NULL, &handle);

		if (r == NULL || !(r->at.rights & KVL_REMOTE_ALL) || r->withdrawn)
			continue;
		out[n++] = (struct kvli_md_region){
			.slot = r->at.slot,
			.rights = r->at.rights & KVL_REMOTE_ALL,
			.generation = r->at.generation,
			.base = r->at.base,
			.len = r->at.len,
			.device = r->at.device,
			.mappable = r->mappable,
		};
	}
	return n;
}

/* A room that is too short is left as it is. */
static int metadata_write(const struct kvli_md *md, void *buf, size_t *len)
{
	size_t need = 0;
	int rc = kvli_md_encode(md, NULL, &need);

	if (rc == KVL_ERR_LIMIT && need <= *len)
		return kvli_md_encode(md, buf, len);
	if (rc == KVL_ERR_LIMIT) {
		kvli_fail(rc, KVL_NO_ENTRY, 0, "room in buf",
			  "the metadata is %zu bytes, buf has room for %zu", need, *len);
		*len = need;
	}
	return rc;
}

static int metadata_encode(struct kvli_agent *agent, void *buf, size_t *len)
{
	struct kvli_md md;
	int rc;

	memset(&md, 0, sizeof(md));
	memcpy(md.name, agent->self.name, sizeof(md.name));
	memcpy(md.incarnation, agent->self.incarnation, sizeof(md.incarnation));
	strncpy(md.wire, agent->ops->name, sizeof(md.wire) - 1);
	md.address_len = sizeof(md.address);
	rc = agent->ops->address(agent->wire, md.address, &md.address_len);
	if (rc)
		return rc;
	pthread_mutex_lock(&agent->memory_lock);
	md.region = calloc(agent->regions.n ? agent->regions.n : 1, sizeof(*md.region));
	if (md.region)
		md.n_regions = metadata_regions(agent, md.region);
	pthread_mutex_unlock(&agent->memory_lock);
	if (md.region == NULL)
		return kvli_fail(KVL_ERR_NOMEM, KVL_NO_ENTRY, 0, "memory", "no memory for the metadata");
	rc = metadata_write(&md, buf, len);
	free(md.region);
	return rc;
}

int kvl_agent_metadata(kvl_agent_t handle, void *buf, size_t *len)
{
	struct kvli_agent *agent = kvli_agent_enter(handle);

	if (agent == NULL)
		return kvli_agent_refused(handle);
	if (len == NULL || (buf == NULL && *len))
		return kvli_agent_return(
			agent, kvli_fail(KVL_ERR_INVALID, KVL_NO_ENTRY, 0, "buf, len", "buf or len is NULL"));
	return kvli_agent_return(agent, metadata_encode(agent, buf, len));
}

/* Regions may be added between asking for the length and encoding: then once more. */
static int metadata_alloc(struct kvli_agent *agent, void **buf, size_t *len)
{
	int rc = KVL_ERR_LIMIT;

	*buf = NULL;
	*len = 0;
	while (rc == KVL_ERR_LIMIT) {
		size_t room = 0;

		rc = metadata_encode(agent, NULL, &room);
		if (rc != KVL_ERR_LIMIT)
			break;
		free(*buf);
		*buf = malloc(room);
		if (*buf == NULL)
			return kvli_fail(KVL_ERR_NOMEM, KVL_NO_ENTRY, 0, "memory", "no memory for %zu bytes",
					 room);
		*len = room;
		rc = metadata_encode(agent, *buf, len);
	}
	if (rc) {
		free(*buf);
		*buf = NULL;
	}
	return rc;
}

/* Under publish_lock. In one directory at a time: the earlier one is left when the new one has the entry. */
static int publish(struct kvli_agent *agent, const char *dir, const void *buf, size_t len)
{
	int moved = agent->published && strcmp(agent->published_dir, dir);
	struct kvli_dir_entry *entry = moved ? NULL : agent->published;
	char *copy = strdup(dir);
	int rc;

	if (copy == NULL)
		return kvli_fail(KVL_ERR_NOMEM, KVL_NO_ENTRY, 0, "memory", "no memory");
	rc = kvli_dir_publish(dir, agent->self.name, buf, len, &entry);
	if (rc) {
		free(copy);
		return rc;
	}
	if (moved)
		kvli_dir_withdraw(agent->published);
	free(agent->published_dir);
	agent->published = entry;
	agent->published_dir = copy;
	return 0;
}

int kvl_publish(kvl_agent_t handle, const char *dir)
{
	struct kvli_agent *agent = kvli_agent_enter(handle);
	size_t len;
	void *buf;
	int rc;

	if (agent == NULL)
		return kvli_agent_refused(handle);
	if (dir == NULL)
		return kvli_agent_return(agent,
					 kvli_fail(KVL_ERR_INVALID, KVL_NO_ENTRY, 0, "dir", "dir is NULL"));
	pthread_mutex_lock(&agent->publish_lock);
	rc = metadata_alloc(agent, &buf, &len);
	if (rc == 0) {
		rc = publish(agent, dir, buf, len);
		free(buf);
	}
	pthread_mutex_unlock(&agent->publish_lock);
	return kvli_agent_return(agent, rc);
}

int kvl_lookup(const char *dir, const char *name, uint64_t timeout_ns, void **buf, size_t *len)
{
	if (dir == NULL || name == NULL || buf == NULL || len == NULL)
		return kvli_fail(KVL_ERR_INVALID, KVL_NO_ENTRY, 0, "dir, name, buf, len",
				 "an argument is NULL");
	return kvli_dir_lookup(dir, name, timeout_ns, buf, len);
}

/* How soon a lookup notices that its agent is being closed. */
#define LOOKUP_SLICE_NS UINT64_C(50000000)

static int agent_open_still(kvl_agent_t handle)
{
	struct kvli_agent *agent = kvli_agent_enter(handle);

	if (agent == NULL)
		return 0;
	kvli_agent_leave(agent);
	return 1;
}

int kvl_peer_find(kvl_agent_t agent, const char *dir, const char *name, uint64_t timeout_ns, kvl_peer_t *out)
{
	uint64_t deadline = kvli_deadline(timeout_ns), left;
	size_t len;
	void *buf;
	int rc;

	do {
		if (!agent_open_still(agent))
			return kvli_agent_refused(agent);
		left = kvli_left(deadline);
		rc = kvl_lookup(dir, name, left < LOOKUP_SLICE_NS ? left : LOOKUP_SLICE_NS, &buf, &len);
	} while (rc == KVL_ERR_NOT_FOUND && left > LOOKUP_SLICE_NS);
	if (rc)
		return rc;
	rc = kvl_peer_connect(agent, buf, len, 0, out);
	free(buf);
	return rc;
}
