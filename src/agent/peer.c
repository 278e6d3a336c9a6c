/* SPDX-License-Identifier: Apache-2.0 */
/* Peers: connecting, what they export, and their end. */
#include "agent/agent.h"
#include "agent/peer.h"

#include <stdlib.h>
#include <string.h>

#include "agent/remote.h"
#include "base/sized.h"

void kvli_peer_hold(void *arg)
{
	struct kvli_peer *peer = arg;

	word32_add_seq_sys(&peer->refs, 1); /* no edge: a count */
}

void kvli_peer_drop(void *arg)
{
	struct kvli_peer *peer = arg;

	if (word32_add_seq_sys(&peer->refs, UINT32_MAX)) /* no edge: a count */
		return;
	for (uint32_t i = 0; i < peer->n_lanes; i++)
		kvli_lane_free(&peer->lane[i]);
	kvli_region_set_fini(&peer->regions);
	free(peer->by_slot);
	pthread_mutex_destroy(&peer->update_lock);
	free(peer);
}

/* Whoever comes first decides what its requests end with; a close after a loss still frees the connection. */
void kvli_peer_shut(struct kvli_peer *peer, enum kvli_peer_state state, int error)
{
	struct kvli_conn *conn = NULL;

	if (!word32_cas_seq_sys(&peer->state, KVLI_PEER_CONNECTED, (uint32_t)state)) /* no edge: a flag */
		word32_cas_seq_sys(&peer->state, KVLI_PEER_LOST, (uint32_t)state);   /* no edge: a flag */
	for (uint32_t i = 0; i < peer->n_lanes; i++)
		kvli_lane_shut(&peer->lane[i], error);
	if (state == KVLI_PEER_LOST) {
		kvli_remote_close_all(peer, 0);
		return;
	}
	if (peer->conn)
		peer->agent->ops->abandon(
			peer->conn); /* an update that waits for the peer gives the lock back */
	pthread_mutex_lock(&peer->update_lock);
	if (!peer->closed)
		conn = peer->conn;
	peer->closed = 1;
	pthread_mutex_unlock(&peer->update_lock);
	if (conn == NULL)
		return;
	kvli_remote_close_all(peer, 1);
	peer->agent->ops->disconnect(conn);
}

static struct kvli_peer *peer_new(struct kvli_agent *agent, const struct kvli_md *md)
{
	uint32_t n = agent->config.lanes;
	struct kvli_peer *peer =
		aligned_alloc(KVLI_LINE, (sizeof(*peer) + n * sizeof(peer->lane[0]) + KVLI_LINE - 1) &
						 ~(size_t)(KVLI_LINE - 1));

	if (peer == NULL) {
		kvli_fail(KVL_ERR_NOMEM, KVL_NO_ENTRY, 0, "memory", "no memory for peer '%s'", md->name);
		return NULL;
	}
	memset(peer, 0, sizeof(*peer) + n * sizeof(peer->lane[0]));
	peer->agent = agent;
	word32_store_relaxed_sys(&peer->refs, 1); /* not shared yet */
	memcpy(peer->identity.name, md->name, sizeof(peer->identity.name));
	memcpy(peer->identity.incarnation, md->incarnation, sizeof(peer->identity.incarnation));
	pthread_mutex_init(&peer->update_lock, NULL);
	kvli_region_set_init(&peer->regions);
	peer->n_latency = agent->config.latency_lanes;
	return peer;
}

static int peer_open_lanes(struct kvli_peer *peer)
{
	const struct kvl_config *c = &peer->agent->config;

	for (uint32_t i = 0; i < c->lanes; i++) {
		struct kvli_lane *lane = &peer->lane[i];
		int rc = kvli_lane_open(lane, &peer->agent->engine, i, c->queue_depth, c->window);

		if (rc)
			return rc;
		lane->owner = peer;
		lane->ops = peer->agent->ops;
		lane->needs_poll = peer->agent->wire_info.needs_poll;
		peer->n_lanes = i + 1;
	}
	return 0;
}

static int peer_check_wire(const struct kvli_agent *agent, const struct kvli_md *md)
{
	if (strcmp(md->wire, agent->ops->name))
		return kvli_fail(KVL_ERR_UNSUPPORTED, KVL_NO_ENTRY, 0, "same wire",
				 "agent '%s' is reached by wire %s, this agent uses %s", md->name, md->wire,
				 agent->ops->name);
	return 0;
}

static int peer_is(const struct kvli_peer *peer, const struct kvli_md *md)
{
	return memcmp(peer->identity.incarnation, md->incarnation, KVL_INCARNATION) == 0;
}

/* Under connect_lock: whether this incarnation is connected, or about to be. */
static int peer_known(struct kvli_agent *agent, const struct kvli_md *md)
{
	for (const struct kvli_peer *p = agent->connecting; p; p = p->next_connecting)
		if (peer_is(p, md))
			return 1;
	for (uint32_t i = 0; i < kvli_table_room(&agent->peer_table); i++) {
		uint64_t handle;
		struct kvli_peer *peer = kvli_table_at(&agent->peer_table, i, kvli_peer_hold, &handle);
		int same;

		if (peer == NULL)
			continue;
		same = word32_load_acquire_sys(&peer->state) == KVLI_PEER_CONNECTED && /* a flag */
		       peer_is(peer, md);
		kvli_peer_drop(peer);
		if (same)
			return 1;
	}
	return 0;
}

/* Claims the incarnation, so that two connects at once do not make two peers of it. */
static int peer_begin(struct kvli_agent *agent, struct kvli_peer *peer, const struct kvli_md *md)
{
	int rc = 0;

	pthread_mutex_lock(&agent->connect_lock);
	if (peer_known(agent, md)) {
		rc = kvli_fail(KVL_ERR_EXISTS, KVL_NO_ENTRY, 0, "not connected yet",
			       "agent '%s' is connected already", md->name);
	} else {
		peer->next_connecting = agent->connecting;
		agent->connecting = peer;
	}
	pthread_mutex_unlock(&agent->connect_lock);
	return rc;
}

/* Puts a connected peer into its handle and gives the claim up. */
static int peer_finish(struct kvli_agent *agent, struct kvli_peer *peer, int rc)
{
	struct kvli_peer **at = &agent->connecting;

	pthread_mutex_lock(&agent->connect_lock);
	while (*at != peer)
		at = &(*at)->next_connecting;
	*at = peer->next_connecting;
	if (rc == 0)
		rc = kvli_table_add(&agent->peer_table, peer, &peer->handle);
	pthread_mutex_unlock(&agent->connect_lock);
	return rc;
}

static int peer_connect(struct kvli_peer *peer, const struct kvli_md *md, uint64_t deadline)
{
	struct kvli_agent *agent = peer->agent;
	int rc = agent->ops->connect(agent->wire, &peer->identity, md->address, md->address_len, deadline,
				     peer, &peer->conn);

	if (rc)
		return rc;
	for (uint32_t i = 0; i < peer->n_lanes; i++)
		peer->lane[i].wire = agent->ops->lane(peer->conn, i);
	agent->ops->path(peer->conn, &peer->path);
	return kvli_remote_update(peer, md, deadline);
}

/* The handshake runs without a lock: a peer that does not answer delays nobody else. */
static int peer_add(struct kvli_agent *agent, const struct kvli_md *md, uint64_t deadline, kvl_peer_t *out)
{
	struct kvli_peer *peer = peer_new(agent, md);
	int rc;

	if (peer == NULL)
		return KVL_ERR_NOMEM;
	rc = peer_open_lanes(peer);
	if (rc == 0)
		rc = peer_begin(agent, peer, md);
	if (rc) {
		kvli_peer_drop(peer);
		return rc;
	}
	rc = peer_finish(agent, peer, peer_connect(peer, md, deadline));
	if (rc == 0) {
		*out = peer->handle;
		return 0;
	}
	kvli_peer_shut(peer, KVLI_PEER_CLOSED, KVL_ERR_PEER_LOST);
	kvli_peer_drop(peer);
	return rc;
}

static uint64_t agent_deadline(const struct kvli_agent *agent, uint64_t timeout_ns)
{
	return kvli_deadline(timeout_ns ? timeout_ns : agent->config.connect_timeout_ms * 1000000);
}

int kvl_peer_connect(kvl_agent_t handle, const void *metadata, size_t len, uint64_t timeout_ns,
		     kvl_peer_t *out)
{
	struct kvli_agent *agent = kvli_agent_enter(handle);
	struct kvli_md md;
	int rc;

	if (agent == NULL)
		return kvli_agent_refused(handle);
	if (metadata == NULL || out == NULL)
		return kvli_agent_return(agent, kvli_fail(KVL_ERR_INVALID, KVL_NO_ENTRY, 0, "metadata, out",
							  "metadata or out is NULL"));
	rc = kvli_md_decode(metadata, len, &md);
	if (rc)
		return kvli_agent_return(agent, rc);
	rc = peer_check_wire(agent, &md);
	if (rc == 0)
		rc = peer_add(agent, &md, agent_deadline(agent, timeout_ns), out);
	kvli_md_fini(&md);
	return kvli_agent_return(agent, rc);
}

int kvli_peer_usable(const struct kvli_peer *peer)
{
	switch (word32_load_acquire_sys(&peer->state)) { /* a flag */
	case KVLI_PEER_CONNECTED:
		return 0;
	case KVLI_PEER_LOST:
		return kvli_fail(KVL_ERR_PEER_LOST, KVL_NO_ENTRY, 0, "peer is connected", "peer '%s' is gone",
				 peer->identity.name);
	default:
		return kvli_fail(KVL_ERR_STALE, KVL_NO_ENTRY, 0, "peer is connected", "peer '%s' was closed",
				 peer->identity.name);
	}
}

static struct kvli_peer *peer_get(struct kvli_agent *agent, kvl_peer_t handle)
{
	return kvli_table_get(&agent->peer_table, handle, KVL_NO_ENTRY, kvli_peer_hold);
}

int kvl_peer_update(kvl_agent_t handle, kvl_peer_t peer_handle, const void *metadata, size_t len)
{
	struct kvli_agent *agent = kvli_agent_enter(handle);
	struct kvli_peer *peer;
	struct kvli_md md;
	int rc;

	if (agent == NULL)
		return kvli_agent_refused(handle);
	rc = metadata ? kvli_md_decode(metadata, len, &md)
		      : kvli_fail(KVL_ERR_INVALID, KVL_NO_ENTRY, 0, "metadata", "metadata is NULL");
	if (rc)
		return kvli_agent_return(agent, rc);
	peer = peer_get(agent, peer_handle);
	rc = peer ? 0 : kvli_handle_code(peer_handle, KVLI_PEER);
	if (peer && memcmp(md.incarnation, peer->identity.incarnation, KVL_INCARNATION))
		rc = kvli_fail(KVL_ERR_STALE, KVL_NO_ENTRY, 0, "same incarnation",
			       "the metadata of '%s' is of another life than the connected '%s'", md.name,
			       peer->identity.name);
	else if (peer)
		rc = kvli_remote_update(peer, &md, agent_deadline(agent, 0));
	if (peer)
		kvli_peer_drop(peer);
	kvli_md_fini(&md);
	return kvli_agent_return(agent, rc);
}

int kvl_peer_close(kvl_agent_t handle, kvl_peer_t peer_handle)
{
	struct kvli_agent *agent = kvli_agent_enter(handle);
	struct kvli_peer *peer;

	if (agent == NULL)
		return kvli_agent_refused(handle);
	peer = kvli_table_remove(&agent->peer_table, peer_handle);
	if (peer == NULL)
		return kvli_agent_return(agent, kvli_handle_code(peer_handle, KVLI_PEER));
	kvli_peer_shut(peer, KVLI_PEER_CLOSED, KVL_ERR_PEER_LOST);
	kvli_peer_drop(peer);
	return kvli_agent_return(agent, 0);
}

static void peer_count_regions(struct kvli_peer *peer, struct kvl_peer_info *info)
{
	pthread_mutex_lock(&peer->regions.lock);
	info->regions = (uint32_t)peer->regions.n;
	for (size_t i = 0; i < peer->regions.n; i++)
		info->mapped_regions += peer->regions.region[i]->at.map != NULL;
	pthread_mutex_unlock(&peer->regions.lock);
}

int kvl_peer_info(kvl_agent_t handle, kvl_peer_t peer_handle, struct kvl_peer_info *out)
{
	struct kvli_agent *agent = kvli_agent_enter(handle);
	struct kvl_peer_info info = { .size = sizeof(info) };
	struct kvli_peer *peer;

	if (agent == NULL)
		return kvli_agent_refused(handle);
	peer = peer_get(agent, peer_handle);
	if (peer == NULL)
		return kvli_agent_return(agent, kvli_handle_code(peer_handle, KVLI_PEER));
	memcpy(info.name, peer->identity.name, sizeof(info.name));
	memcpy(info.incarnation, peer->identity.incarnation, sizeof(info.incarnation));
	memcpy(info.path, peer->path.path, sizeof(info.path));
	memcpy(info.path_reason, peer->path.reason, sizeof(info.path_reason));
	strncpy(info.wire, agent->ops->name, sizeof(info.wire) - 1);
	info.connected = word32_load_acquire_sys(&peer->state) == KVLI_PEER_CONNECTED; /* a flag */
	info.lanes = peer->n_lanes;
	info.latency_lanes = peer->n_latency;
	peer_count_regions(peer, &info);
	kvli_peer_drop(peer);
	return kvli_agent_return(agent, kvli_sized_copy(out, &info, sizeof(info)));
}

int kvl_peer_region(kvl_agent_t handle, kvl_peer_t peer_handle, size_t index, struct kvl_region_info *out)
{
	struct kvli_agent *agent = kvli_agent_enter(handle);
	struct kvl_region_info info = { .size = sizeof(info) };
	struct kvli_peer *peer;
	int rc;

	if (agent == NULL)
		return kvli_agent_refused(handle);
	peer = peer_get(agent, peer_handle);
	if (peer == NULL)
		return kvli_agent_return(agent, kvli_handle_code(peer_handle, KVLI_PEER));
	rc = kvli_remote_info(peer, index, &info);
	kvli_peer_drop(peer);
	return kvli_agent_return(agent, rc ? rc : kvli_sized_copy(out, &info, sizeof(info)));
}

int kvl_peer_map(kvl_agent_t handle, kvl_peer_t peer_handle, uint64_t addr, uint64_t len, void **out)
{
	struct kvli_agent *agent = kvli_agent_enter(handle);
	struct kvli_peer *peer;
	int rc;

	if (agent == NULL)
		return kvli_agent_refused(handle);
	peer = peer_get(agent, peer_handle);
	if (peer == NULL)
		return kvli_agent_return(agent, kvli_handle_code(peer_handle, KVLI_PEER));
	rc = out ? kvli_remote_map(peer, addr, len, out)
		 : kvli_fail(KVL_ERR_INVALID, KVL_NO_ENTRY, 0, "out", "out is NULL");
	kvli_peer_drop(peer);
	return kvli_agent_return(agent, rc);
}
