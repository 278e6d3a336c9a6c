/* SPDX-License-Identifier: Apache-2.0 */
/* The sim wire's table of calls. */
#include "wire/sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* ---------------------------------------------------------------------------------------------- owner side
 */

static int sim_available(char *reason, size_t len)
{
	if (len)
		reason[0] = '\0';
	return 1;
}

static int sim_open(const struct kvli_wire_host *host, const struct kvl_config *config,
		    struct kvli_wire **out)
{
	struct sim_options options;
	struct kvli_wire *wire;
	int rc = kvli_sim_options(config->sim, &options);

	if (rc)
		return rc;
	wire = calloc(1, sizeof(*wire));
	if (wire == NULL)
		return kvli_fail(KVL_ERR_NOMEM, KVL_NO_ENTRY, 0, "memory", "no memory for the sim wire");
	wire->host = *host;
	wire->options = options;
	wire->lanes = config->lanes;
	wire->window = config->window;
	pthread_mutex_init(&wire->turn, NULL);
	pthread_mutex_init(&wire->serve, NULL);
	kvli_sim_queue_init(&wire->queue);
	rc = kvli_sim_enter(wire);
	if (rc)
		goto free_wire;
	*out = wire;
	return 0;

free_wire:
	kvli_sim_queue_fini(&wire->queue);
	pthread_mutex_destroy(&wire->serve);
	pthread_mutex_destroy(&wire->turn);
	free(wire);
	return rc;
}

static void sim_close(struct kvli_wire *wire)
{
	kvli_sim_leave(wire);
	kvli_sim_put(wire);
}

static void sim_info(struct kvli_wire *wire, struct kvli_wire_info *out)
{
	(void)wire;
	out->needs_poll = 1;
	out->max_chunk = SIM_MAX_CHUNK;
}

static int sim_address(struct kvli_wire *wire, void *buf, uint32_t *len)
{
	uint32_t room = *len;

	*len = KVL_INCARNATION;
	if (room < KVL_INCARNATION)
		return kvli_fail(KVL_ERR_LIMIT, KVL_NO_ENTRY, 0, "room for the address",
				 "the address has %u bytes, the room %u", KVL_INCARNATION, room);
	memcpy(buf, wire->host.self.incarnation, KVL_INCARNATION);
	return 0;
}

static int sim_expose(struct kvli_wire *wire, uint32_t slot, uint64_t generation, const struct kvl_mem *mem,
		      uint32_t *mappable)
{
	*mappable = 1;
	return kvli_sim_expose(wire, slot, generation, mem);
}

/* Waits for the copy of one chunk at most, and no copy of this process stops while the caller runs. */
static int sim_revoke(struct kvli_wire *wire, uint32_t slot, uint64_t timeout_ns)
{
	(void)timeout_ns;
	kvli_sim_revoke(wire, slot);
	return 0;
}

/* ------------------------------------------------------------------------------------------ initiator side
 */

static int lanes_open(struct kvli_conn *conn)
{
	uint32_t n = conn->owner->lanes;
	int rc = 0;

	while (conn->n_lanes < n && rc == 0) {
		rc = kvli_sim_lane_open(&conn->lane[conn->n_lanes], conn, conn->n_lanes);
		if (rc == 0)
			conn->n_lanes++;
	}
	if (rc)
		return kvli_fail(rc, KVL_NO_ENTRY, 0, "memory", "no memory for %u lanes of the sim wire", n);
	return 0;
}

static void sim_abandon(struct kvli_conn *conn)
{
	(void)conn; /* no call of this wire waits for a peer */
}

static void sim_disconnect(struct kvli_conn *conn)
{
	for (uint32_t i = 0; i < conn->n_lanes; i++)
		kvli_sim_lane_close(&conn->lane[i]);
	kvli_sim_detach(conn);
	free(conn);
}

/* deadline_ns does not matter: the target is found at once or not at all. */
static int sim_connect(struct kvli_wire *wire, const struct kvli_identity *peer, const void *address,
		       uint32_t address_len, uint64_t deadline_ns, void *peer_arg, struct kvli_conn **out)
{
	struct kvli_conn *conn;
	int rc;

	(void)deadline_ns;
	if (address_len != KVL_INCARNATION)
		return kvli_fail(KVL_ERR_CORRUPT, KVL_NO_ENTRY, 0, "a sim address has 16 bytes",
				 "the address of agent \"%s\" has %u bytes instead of %u", peer->name,
				 address_len, KVL_INCARNATION);
	conn = calloc(1, sizeof(*conn) + wire->lanes * sizeof(conn->lane[0]));
	if (conn == NULL)
		return kvli_fail(KVL_ERR_NOMEM, KVL_NO_ENTRY, 0, "memory",
				 "no memory for a peer of the sim wire");
	conn->owner = wire;
	conn->peer = peer_arg;
	rc = kvli_sim_attach(conn, peer, address);
	if (rc) {
		free(conn);
		return rc;
	}
	rc = lanes_open(conn);
	if (rc) {
		sim_disconnect(conn);
		return rc;
	}
	*out = conn;
	return 0;
}

static void sim_path(struct kvli_conn *conn, struct kvli_path_info *out)
{
	(void)conn;
	snprintf(out->path, sizeof(out->path), "%s", kvli_wire_sim.name);
	out->reason[0] = '\0';
}

/*
 * All memory of this process is mapped here. A region that has gone since the metadata was made stays
 * unmapped, and a chunk that names it will say so.
 */
static int sim_import(struct kvli_conn *conn, struct kvli_remote *remote, int mappable, uint64_t deadline_ns)
{
	(void)mappable;
	(void)deadline_ns;
	remote->map = NULL;
	remote->map_start = NULL;
	remote->map_len = 0;
	if (!kvli_sim_exposed(conn->target, remote))
		return 0;
	remote->map = (uint8_t *)(uintptr_t)remote->base;
	remote->map_start = remote->map;
	remote->map_len = remote->len;
	return 0;
}

static void sim_forget(struct kvli_conn *conn, struct kvli_remote *remote)
{
	(void)conn;
	remote->map = NULL;
	remote->map_start = NULL;
	remote->map_len = 0;
	remote->generation = 0; /* no region has it: whoever still names it finds it stale */
}

static struct kvli_wire_lane *sim_lane(struct kvli_conn *conn, uint32_t lane)
{
	return &conn->lane[lane];
}

const struct kvli_wire_ops kvli_wire_sim = {
	.name = "sim",
	.available = sim_available,
	.open = sim_open,
	.close = sim_close,
	.info = sim_info,
	.address = sim_address,
	.expose = sim_expose,
	.revoke = sim_revoke,
	.connect = sim_connect,
	.abandon = sim_abandon,
	.disconnect = sim_disconnect,
	.path = sim_path,
	.import = sim_import,
	.forget = sim_forget,
	.lane = sim_lane,
	.issue = kvli_sim_issue,
	.poll = kvli_sim_poll,
	.notify = kvli_sim_notify,
	.fence = kvli_sim_fence,
	.reopen = kvli_sim_reopen,
	.resume = kvli_sim_resume,
};
