/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing agents. */
#include "agent/agent.h"
#include "agent/deadline.h"
#include "agent/mem.h"
#include "agent/peer.h"
#include "agent/post.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/random.h"
#include "control/metadata.h"

/* ----------------------------------------------------------------------------------- upcalls of the wire */

static int agent_deliver(void *arg, struct kvli_notif *notif)
{
	struct kvli_agent *agent = arg;

	return kvli_events_deliver(&agent->events, notif);
}

static void agent_lost(void *arg)
{
	struct kvli_peer *peer = arg;

	kvli_peer_shut(peer, KVLI_PEER_LOST, KVL_ERR_PEER_LOST);
}

static void agent_kick(void *arg)
{
	struct kvli_peer *peer = arg;

	for (uint32_t i = 0; i < peer->n_lanes; i++)
		kvli_lane_kick(&peer->lane[i]);
}

static void agent_call(void *arg)
{
	struct kvli_agent *agent = arg;

	kvli_events_call(&agent->events);
}

/* -------------------------------------------------------------------------------------------------- opening */

static const struct kvli_wire_ops *wire_named(const char *name)
{
	for (size_t i = 0; kvli_wires[i]; i++)
		if (strcmp(kvli_wires[i]->name, name) == 0)
			return kvli_wires[i];
	return NULL;
}

static int agent_open_wire(struct kvli_agent *agent)
{
	char reason[160];
	int rc;

	agent->ops = wire_named(agent->config.wire);
	if (agent->ops == NULL)
		return kvli_fail(KVL_ERR_OPTION, KVL_NO_ENTRY, 0, "wire", "wire = %s is not in this build",
				 agent->config.wire);
	if (!agent->ops->available(reason, sizeof(reason)))
		return kvli_fail(KVL_ERR_UNSUPPORTED, KVL_NO_ENTRY, 0, "wire", "wire %s: %s",
				 agent->ops->name, reason);
	agent->host = (struct kvli_wire_host){
		.agent = agent,
		.self = agent->self,
		.reactor = agent->reactor,
		.closing = &agent->closing,
		.deliver = agent_deliver,
		.may_touch = kvli_agent_region_may_touch,
		.lost = agent_lost,
		.kick = agent_kick,
	};
	rc = agent->ops->open(&agent->host, &agent->config, &agent->wire);
	if (rc == 0)
		agent->ops->info(agent->wire, &agent->wire_info);
	return rc;
}

static int agent_open_engine(struct kvli_agent *agent)
{
	const struct kvl_config *c = &agent->config;
	struct kvli_engine_config e = {
		.workers = c->workers,
		.chunk_bytes = c->chunk_bytes < agent->wire_info.max_chunk ? c->chunk_bytes
									   : agent->wire_info.max_chunk,
		.max_jobs = c->max_requests,
		.global = c->retire_order == KVL_RETIRE_GLOBAL,
		.jobs = (uint8_t *)agent->requests.slot,
		.stride = sizeof(struct kvli_request),
		.agent = agent,
		.ended = kvli_agent_ended,
		.hold = kvli_peer_hold,
		.drop = kvli_peer_drop,
		.call = agent_call,
	};

	return kvli_engine_open(&agent->engine, &e);
}

static void agent_init_tables(struct kvli_agent *agent)
{
	const struct kvl_config *c = &agent->config;

	pthread_mutex_init(&agent->memory_lock, NULL);
	pthread_mutex_init(&agent->connect_lock, NULL);
	pthread_mutex_init(&agent->publish_lock, NULL);
	kvli_region_set_init(&agent->regions);
	kvli_table_init(&agent->region_table, KVLI_REGION, c->max_regions, "max_regions");
	kvli_table_init(&agent->peer_table, KVLI_PEER, c->max_peers, "max_peers");
	kvli_table_init(&agent->list_table, KVLI_LIST, 1u << KVLI_HANDLE_INDEX_BITS, "lists");
}

static void agent_name_tables(struct kvli_agent *agent)
{
	uint64_t first;

	memcpy(&first, agent->self.incarnation, sizeof(first)); /* random */
	first = (first & KVLI_HANDLE_LIFE_MASK) >> 1;
	kvli_table_name(&agent->region_table, agent->index, first);
	kvli_table_name(&agent->peer_table, agent->index, first);
	kvli_table_name(&agent->list_table, agent->index, first);
}

static void agent_fini_tables(struct kvli_agent *agent)
{
	kvli_table_fini(&agent->list_table);
	kvli_table_fini(&agent->peer_table);
	kvli_table_fini(&agent->region_table);
	kvli_region_set_fini(&agent->regions);
	pthread_mutex_destroy(&agent->publish_lock);
	pthread_mutex_destroy(&agent->connect_lock);
	pthread_mutex_destroy(&agent->memory_lock);
}

/* Everything behind the configuration, in order; undone in reverse. */
static int agent_start(struct kvli_agent *agent)
{
	struct kvli_records *records;
	int rc = kvli_registry_claim(agent, agent->config.max_requests, &records);

	if (rc)
		return rc;
	agent_name_tables(agent);
	rc = kvli_events_open(&agent->events, agent->config.notif_queue_bytes);
	if (rc)
		goto free_registry;
	rc = kvli_requests_open(&agent->requests, records, agent->config.max_requests);
	if (rc)
		goto close_events;
	rc = kvli_reactor_open(&agent->reactor);
	if (rc)
		goto close_requests;
	rc = kvli_deadline_open(agent);
	if (rc)
		goto close_reactor;
	rc = agent_open_wire(agent);
	if (rc)
		goto close_deadline;
	rc = agent_open_engine(agent);
	if (rc)
		goto close_wire;
	return 0;

close_wire:
	agent->ops->close(agent->wire);
close_deadline:
	kvli_deadline_close(agent);
close_reactor:
	kvli_reactor_close(agent->reactor);
close_requests:
	kvli_requests_close(&agent->requests);
close_events:
	kvli_events_close(&agent->events);
free_registry:
	kvli_registry_free(agent);
	return rc;
}

static int agent_configure(struct kvli_agent *agent, const char *name, const struct kvl_config *config)
{
	int rc;

	if (name == NULL || !kvli_name_valid(name))
		return kvli_fail(KVL_ERR_INVALID, KVL_NO_ENTRY, 0, "agent name",
				 "agent name '%s' is not 1 to %d of [A-Za-z0-9._-]", name ? name : "(null)",
				 KVL_NAME_MAX - 1);
	memcpy(agent->self.name, name, strlen(name) + 1);
	rc = kvli_random_bytes(agent->self.incarnation, sizeof(agent->self.incarnation));
	if (rc)
		return rc;
	rc = kvli_config_resolve(config, &agent->config);
	return rc ? rc : kvli_config_own(&agent->config);
}

int kvl_agent_open(const char *name, const struct kvl_config *config, kvl_agent_t *out)
{
	struct kvli_agent *agent;
	int rc;

	if (out == NULL)
		return kvli_fail(KVL_ERR_INVALID, KVL_NO_ENTRY, 0, "out", "out is NULL");
	agent = calloc(1, sizeof(*agent));
	if (agent == NULL)
		return kvli_fail(KVL_ERR_NOMEM, KVL_NO_ENTRY, 0, "memory", "no memory for an agent");
	rc = agent_configure(agent, name, config);
	if (rc)
		goto free_agent;
	agent_init_tables(agent);
	rc = agent_start(agent);
	if (rc)
		goto fini_tables;
	*out = agent->handle;
	kvli_registry_open(agent);
	return 0;

fini_tables:
	agent_fini_tables(agent);
	kvl_config_fini(&agent->config);
free_agent:
	free(agent);
	return rc;
}

/* -------------------------------------------------------------------------------------------------- closing */

static void agent_close_peers(struct kvli_agent *agent)
{
	for (uint32_t i = 0; i < kvli_table_room(&agent->peer_table); i++) {
		uint64_t handle;
		struct kvli_peer *peer = kvli_table_at(&agent->peer_table, i, NULL, &handle);

		if (peer == NULL)
			continue;
		kvli_table_remove(&agent->peer_table, handle);
		kvli_peer_shut(peer, KVLI_PEER_CLOSED, KVL_ERR_CLOSED);
		kvli_peer_drop(peer);
	}
}

static void agent_drop_lists(struct kvli_agent *agent)
{
	for (uint32_t i = 0; i < kvli_table_room(&agent->list_table); i++) {
		uint64_t handle;
		struct kvli_list *list = kvli_table_at(&agent->list_table, i, NULL, &handle);

		if (list && kvli_table_remove(&agent->list_table, handle))
			kvli_list_drop(list);
	}
}

/* Every request has ended; what is not released yet goes, and its handle turns stale. */
static void agent_drop_requests(struct kvli_agent *agent)
{
	uint32_t high = word32_load_acquire_sys(&agent->requests.high); /* E10 */

	for (uint32_t i = 0; i < high; i++) {
		struct kvli_request *r = &agent->requests.slot[i];
		void *peer = r->peer;

		if (record_state(record_observe(r->record)) == RECORD_FREE)
			continue;
		kvli_request_give(&agent->requests, r);
		if (peer)
			kvli_peer_drop(peer);
	}
}

/* Calls of other threads have been told to return; they do so within their own bounds. */
static int agent_wait_calls(const struct kvli_agent *agent, uint64_t deadline)
{
	const struct timespec nap = { 0, 200000 }; /* a small part of the time that waking a waiter takes */

	while (!kvli_registry_drained(agent)) {
		if (kvli_now() > deadline)
			return KVL_ERR_TIMED_OUT;
		nanosleep(&nap, NULL);
	}
	return 0;
}

static void agent_free(struct kvli_agent *agent)
{
	agent_drop_requests(agent);
	agent_drop_lists(agent);
	kvli_engine_close(&agent->engine);
	kvli_deadline_close(agent);
	agent->ops->close(agent->wire);
	kvli_reactor_close(agent->reactor);
	kvli_requests_close(&agent->requests);
	kvli_events_close(&agent->events);
	kvli_registry_free(agent);
	agent_fini_tables(agent);
	kvl_config_fini(&agent->config);
	free(agent->published_dir);
	free(agent);
}

/* Nobody is inside a call any more. */
static int agent_finish(struct kvli_agent *agent, uint64_t deadline)
{
	int rc;

	kvli_dir_withdraw(agent->published);
	agent->published = NULL;
	agent_close_peers(agent); /* after the calls: a connect may have added one */
	rc = kvli_agent_withdraw_all(agent, deadline);
	agent_free(agent);
	return rc;
}

static void *agent_reap(void *arg)
{
	agent_wait_calls(arg, UINT64_MAX);
	agent_finish(arg, kvli_now());
	return NULL;
}

/* The close is out of time while a call is still inside: a thread of its own sees it through. */
static int agent_finish_later(struct kvli_agent *agent)
{
	pthread_attr_t attr;
	pthread_t reaper;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_create(&reaper, &attr, agent_reap, agent); /* without it, the agent's memory stays */
	pthread_attr_destroy(&attr);
	return kvli_fail(KVL_ERR_TIMED_OUT, KVL_NO_ENTRY, 0, "calls return",
			 "a call of another thread has not returned");
}

int kvl_agent_close(kvl_agent_t handle, uint64_t timeout_ns)
{
	struct kvli_agent *agent = kvli_registry_end(handle);
	uint64_t deadline = kvli_deadline(timeout_ns);

	if (agent == NULL)
		return kvli_agent_refused(handle);
	word32_store_release_sys(&agent->closing, 1); /* a flag */
	kvli_events_shut(&agent->events);
	if (agent_wait_calls(agent, deadline))
		return agent_finish_later(agent);
	return agent_finish(agent, deadline);
}
