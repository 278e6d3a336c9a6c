/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An agent and its peers. The public calls in src/agent/ check handles, look objects up, and call the parts
 * below; they hold no logic of their own.
 *
 * Lock order, outermost first: memory_lock, table locks, region_set locks; engine and events locks are leaves
 * taken under none of these but memory_lock. The control thread's run lock is outermost of all: nobody waits
 * for the control thread (kvli_watch_del) while holding a lock that its callbacks take.
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

/* ---- peer.c */
void kvli_peer_hold(void *peer);
void kvli_peer_drop(void *peer);
/* Ends all that is pending on its lanes and frees the connection. The handle is gone already. */
void kvli_peer_shut(struct kvli_peer *peer, enum kvli_peer_state state, int error);

/* ---- mem.c */
int kvli_agent_region_may_touch(void *agent, uint32_t slot, uint64_t generation, uint64_t addr, uint64_t len,
				uint32_t right);
/* Withdraws every region; KVL_ERR_TIMED_OUT when a peer is inside a copy past the deadline. */
int kvli_agent_withdraw_all(struct kvli_agent *agent, uint64_t deadline_ns);

/* ---- post.c */
void kvli_agent_ended(void *agent, uint32_t index, int status); /* the engine's ended() */

/* ---- deadline.c */
int kvli_deadline_open(struct kvli_agent *agent);
void kvli_deadline_close(struct kvli_agent *agent);
/* Something is pending: make sure the timer runs. */
void kvli_deadline_arm(struct kvli_agent *agent);

/* The request of a handle and its record's value; NULL with the error recorded. */
struct kvli_request *kvli_agent_request(struct kvli_agent *agent, kvl_xfer_t xfer, uint64_t *record);

/*
 * The lane of a post that was seen in its record, its peer held; NULL when it is not pending any more. stop: 0, or
 * the early end that is asked for it in the same step, so that no later post can be meant.
 */
struct kvli_lane *kvli_pending_lane(struct kvli_agent *agent, uint32_t index, uint64_t seen, int stop);

#endif
