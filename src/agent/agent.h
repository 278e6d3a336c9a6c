/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An agent and its peers. The public calls in src/agent/ check handles, look objects up, and call the layers below.
 *
 * Locks, each with what it guards. A thread that holds one may take those further down, never one above:
 *
 *	reactor run	held while the control thread runs a callback; kvli_watch_del() and _pause() wait for it
 *	publish_lock	the rendezvous entry
 *	update_lock	a peer's metadata update, by_slot, closed; waits for the peer, for connect_timeout_ms at most
 *	memory_lock	registrations: counted, naming, closing
 *	lane drive	one driver a lane (E6); seized in lane order
 *	connect_lock	which incarnations are connected or about to be
 *	serve_lock	local wire: what peers ask and send; taken by the control thread and by revoke()
 *	regions.lock	a region set, at.map of a peer's regions
 *	table locks	slots and lives of handles
 *	rpc		local wire: one question on a connection's socket
 *	producers, then order.lock	a lane's tickets, and their places for retire_order = global
 *	events.lock	ends, notifications, waiters; terminal records are ended and released under it
 *	loop.lock	a ready list
 *	requests.lock	free request slots
 *
 * The control thread is never waited for with a lock that its callbacks take: these are lane drive, serve_lock and
 * all that is below them.
 */
#ifndef KVLI_AGENT_H
#define KVLI_AGENT_H

#include "agent/config.h"
#include "agent/table.h"
#include "base/clock.h"
#include "base/error.h"
#include "control/reactor.h"
#include "lane/lane.h"
#include "rendezvous/dir.h"
#include "xfer/events.h"
#include "xfer/list.h"
#include "xfer/request.h"

struct kvli_agent_slot;

struct kvli_agent {
	kvl_agent_t handle;
	uint32_t index;                   /* in the registry; part of every handle */
	struct kvli_agent_slot *registry; /* where calls of other threads are counted */
	struct kvli_identity self;
	struct kvl_config config; /* resolved; strings owned */
	struct word32 closing;

	struct kvli_reactor *reactor;
	const struct kvli_wire_ops *ops;
	struct kvli_wire *wire;
	struct kvli_wire_host host;
	struct kvli_wire_info wire_info;
	struct kvli_engine engine;
	struct kvli_events events;
	struct kvli_requests requests;

	pthread_mutex_t memory_lock; /* registrations, one at a time */
	struct kvli_region_set regions;
	struct kvli_table region_table, peer_table, list_table;
	pthread_mutex_t connect_lock; /* no incarnation is connected twice; guards connecting */
	struct kvli_peer *connecting;

	struct word32 ticking; /* the deadline timer runs */
	int timer_fd;
	struct kvli_watch *timer;

	pthread_mutex_t publish_lock;
	struct kvli_dir_entry *published;
	char *published_dir;
};

enum kvli_peer_state {
	KVLI_PEER_CONNECTED = 0,
	KVLI_PEER_LOST = 1,
	KVLI_PEER_CLOSED = 2
};

struct kvli_peer {
	struct kvli_agent *agent;
	struct word32 refs;
	struct word32 state;
	kvl_peer_t handle;
	struct kvli_peer *next_connecting;
	struct kvli_identity identity;
	struct kvli_conn *conn;
	struct kvli_path_info path;
	pthread_mutex_t update_lock; /* one metadata update at a time; also guards closed */
	int closed;
	struct kvli_region_set regions;
	struct kvli_region **by_slot; /* of the owner's table; under update_lock, as the next two */
	uint32_t n_by_slot, updates;
	struct word32 turn; /* requests assigned to lanes of their class */
	uint32_t n_lanes, n_latency;
	struct kvli_lane lane[];
};

/* ---- registry.c: handles of agents, and who is inside a call */

/* The agent, not to be closed before kvli_agent_leave(); NULL with KVL_ERR_STALE or KVL_ERR_INVALID recorded. */
struct kvli_agent *kvli_agent_enter(kvl_agent_t handle);
void kvli_agent_leave(struct kvli_agent *agent);
/* What a call returns when enter gave NULL. */
int kvli_agent_refused(kvl_agent_t handle);
/* Leaves and passes a result on. */
int kvli_agent_return(struct kvli_agent *agent, int rc);

int kvli_registry_claim(struct kvli_agent *agent, uint32_t max_requests, struct kvli_records **records);
void kvli_registry_open(struct kvli_agent *agent); /* from here on kvli_agent_enter finds it */
/* Ends the handle: the agent for exactly one caller, NULL for any other. */
struct kvli_agent *kvli_registry_end(kvl_agent_t handle);
/* 1 when nobody is inside a call any more. */
int kvli_registry_drained(const struct kvli_agent *agent);
void kvli_registry_free(struct kvli_agent *agent);

/* The record a request handle names, whether or not its agent lives; NULL when there never was one. */
const struct word64 *kvli_registry_record(kvl_agent_t agent, kvl_xfer_t xfer);

#endif
