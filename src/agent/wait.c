/* SPDX-License-Identifier: Apache-2.0 */
/* Polling and waiting. A waiter drives progress rather than sleeping beside it. */
#include <sched.h>
#include <stdlib.h>

#include "agent/agent.h"
#include "agent/peer.h"
#include "agent/post.h"

/* How long a waiter looks at a record before it sleeps: about the cost of being woken. */
#define SPIN_NS 20000

int kvl_xfer_poll(kvl_agent_t agent, kvl_xfer_t xfer)
{
	const struct word64 *word = kvli_registry_record(agent, xfer);
	uint64_t record = word ? record_observe(word) : 0;

	if (word == NULL || kvli_handle_make(KVLI_XFER, kvli_handle_index(agent), record_life(record),
					     kvli_handle_index(xfer)) != xfer)
		return kvli_handle_refuse(xfer, KVLI_XFER, KVL_NO_ENTRY);
	switch (record_state(record)) {
	case RECORD_ENDED:
		return record_error(record);
	case RECORD_POSTING:
	case RECORD_PENDING:
		return KVL_PENDING;
	case RECORD_PREPARED:
		return kvli_fail(KVL_ERR_NOT_POSTED, KVL_NO_ENTRY, 0, "posted",
				 "the request has not been posted");
	default:
		return kvli_handle_refuse(xfer, KVLI_XFER, KVL_NO_ENTRY);
	}
}

static uint64_t wait_deadline(uint64_t timeout_ns)
{
	uint64_t now = kvli_now();

	return timeout_ns < INT64_MAX / 2 ? now + timeout_ns : now + INT64_MAX / 2;
}

/* Without workers and with a wire that has to be polled, nobody would wake a sleeper. */
static int wait_may_sleep(const struct kvli_agent *agent)
{
	return agent->config.workers || !agent->wire_info.needs_poll;
}

struct wait_record {
	const struct word64 *record;
	uint64_t pending;
};

static int wait_changed(const struct kvli_events *e, const void *arg)
{
	const struct wait_record *w = arg;

	(void)e;
	return record_observe(w->record) != w->pending;
}

static int wait_spin(const struct wait_record *w, uint64_t deadline)
{
	uint64_t until = kvli_now() + SPIN_NS;

	if (until > deadline)
		until = deadline;
	do {
		for (int i = 0; i < 50; i++) {
			if (wait_changed(NULL, w))
				return 1;
			kvli_pause();
		}
	} while (kvli_now() < until);
	return 0;
}

/* Drives the request's own lane when workers see to the others, else every lane in turn. */
static void wait_drive(struct kvli_agent *agent, kvl_xfer_t xfer, const struct wait_record *w,
		       uint64_t deadline)
{
	struct kvli_lane *lane;

	if (agent->config.workers == 0) {
		kvli_engine_progress(&agent->engine);
		return;
	}
	lane = kvli_pending_lane(agent, kvli_handle_index(xfer), w->pending, 0);
	if (lane == NULL)
		return;
	kvli_lane_run_until(lane, w->record, w->pending, deadline);
	kvli_peer_drop(lane->owner);
}

static void wait_step(struct kvli_agent *agent, kvl_xfer_t xfer, const struct wait_record *w,
		      uint64_t deadline)
{
	uint64_t calls = kvli_events_calls(&agent->events);

	wait_drive(agent, xfer, w, deadline);
	if (wait_changed(NULL, w))
		return;
	if (!wait_may_sleep(agent))
		sched_yield();
	else if (!wait_spin(w, deadline))
		kvli_events_sleep(&agent->events, wait_changed, w, calls, deadline);
}

static int agent_closing(const struct kvli_agent *agent)
{
	return word32_load_acquire_sys(&agent->closing) != 0; /* a flag */
}

int kvl_xfer_wait(kvl_agent_t handle, kvl_xfer_t xfer, uint64_t timeout_ns)
{
	struct kvli_agent *agent;
	struct wait_record w;
	uint64_t deadline;
	int rc = kvl_xfer_poll(handle, xfer);

	if (rc != KVL_PENDING)
		return rc;
	agent = kvli_agent_enter(handle);
	if (agent == NULL)
		return kvli_agent_refused(handle);
	deadline = wait_deadline(timeout_ns);
	w.record = kvli_registry_record(handle, xfer);
	for (;;) {
		w.pending = record_observe(w.record);
		rc = kvl_xfer_poll(handle, xfer);
		if (rc != KVL_PENDING)
			break;
		if (agent_closing(agent)) {
			rc = kvli_fail(KVL_ERR_CLOSED, KVL_NO_ENTRY, 0, "agent is open",
				       "the agent is being closed");
			break;
		}
		wait_step(agent, xfer, &w, deadline);
		if (kvli_now() >= deadline) {
			rc = kvl_xfer_poll(handle, xfer);
			break;
		}
	}
	return kvli_agent_return(agent, rc);
}

static int ready_end(const struct kvli_events *e, const void *unused)
{
	(void)unused;
	return e->end_first != NULL;
}

/* Drives and sleeps once; 0 when the wait is over. */
static int wait_more(struct kvli_agent *agent, kvli_ready_fn ready, uint64_t deadline)
{
	uint64_t calls = kvli_events_calls(&agent->events);
	int moved = kvli_engine_progress(&agent->engine);

	if (agent_closing(agent) || kvli_now() >= deadline)
		return 0;
	if (moved)
		return 1;
	if (wait_may_sleep(agent))
		kvli_events_sleep(&agent->events, ready, NULL, calls, deadline);
	else
		sched_yield();
	return 1;
}

#define ENDS_AT_ONCE 64

static int take_ends(struct kvli_agent *agent, struct kvl_end *out, size_t max)
{
	struct kvli_ended ended[ENDS_AT_ONCE];
	size_t n = kvli_events_take_ends(&agent->events, ended, max < ENDS_AT_ONCE ? max : ENDS_AT_ONCE);

	for (size_t i = 0; i < n; i++) {
		out[i].xfer = kvli_handle_make(KVLI_XFER, agent->index, record_life(ended[i].record),
					       ended[i].index);
		out[i].status = record_error(ended[i].record);
		out[i].user = ended[i].user;
	}
	return (int)n;
}

int kvl_poll_many(kvl_agent_t handle, struct kvl_end *out, size_t max, uint64_t timeout_ns)
{
	struct kvli_agent *agent = kvli_agent_enter(handle);
	uint64_t deadline = wait_deadline(timeout_ns);
	size_t n = 0;

	if (agent == NULL)
		return kvli_agent_refused(handle);
	if (max && out == NULL)
		return kvli_agent_return(agent,
					 kvli_fail(KVL_ERR_INVALID, KVL_NO_ENTRY, 0, "out", "out is NULL"));
	if (max > INT32_MAX)
		max = INT32_MAX;
	do {
		int got;

		do {
			got = take_ends(agent, out + n, max - n);
			n += (size_t)got;
		} while (got == ENDS_AT_ONCE && n < max);
	} while (n == 0 && max && wait_more(agent, ready_end, deadline));
	return kvli_agent_return(agent, (int)n);
}

static int events_ready(struct kvli_agent *agent)
{
	int any;

	pthread_mutex_lock(&agent->events.lock);
	any = kvli_events_any(&agent->events, NULL);
	pthread_mutex_unlock(&agent->events.lock);
	return any;
}

int kvl_agent_wait(kvl_agent_t handle, uint64_t timeout_ns)
{
	struct kvli_agent *agent = kvli_agent_enter(handle);
	uint64_t deadline = wait_deadline(timeout_ns);
	int any;

	if (agent == NULL)
		return kvli_agent_refused(handle);
	while (!(any = events_ready(agent)) && wait_more(agent, kvli_events_any, deadline))
		;
	return kvli_agent_return(agent, any);
}

static int ready_notif(const struct kvli_events *e, const void *unused)
{
	(void)unused;
	return e->notif_first != NULL;
}

int kvl_notif_wait(kvl_agent_t handle, uint64_t timeout_ns, struct kvl_notif **out)
{
	struct kvli_agent *agent = kvli_agent_enter(handle);
	uint64_t deadline = wait_deadline(timeout_ns);
	int rc;

	if (agent == NULL)
		return kvli_agent_refused(handle);
	while ((rc = kvl_notif_next(handle, out)) == KVL_ERR_AGAIN && wait_more(agent, ready_notif, deadline))
		;
	return kvli_agent_return(agent, rc);
}

int kvl_progress(kvl_agent_t handle)
{
	struct kvli_agent *agent = kvli_agent_enter(handle);

	if (agent == NULL)
		return kvli_agent_refused(handle);
	return kvli_agent_return(agent, kvli_engine_progress(&agent->engine));
}

int kvl_agent_fd(kvl_agent_t handle)
{
	struct kvli_agent *agent = kvli_agent_enter(handle);

	if (agent == NULL)
		return kvli_agent_refused(handle);
	return kvli_agent_return(agent, kvli_events_fd(&agent->events));
}
