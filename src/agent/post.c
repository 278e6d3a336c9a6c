/* SPDX-License-Identifier: Apache-2.0 */
/* Posting, ending, releasing: the moves of a request's record. */
#include <stdlib.h>

#include "agent/agent.h"
#include "agent/deadline.h"
#include "agent/peer.h"
#include "agent/post.h"
#include "agent/prepare.h"
#include "base/sized.h"

/* Longest list that a post executes itself when its lane is idle. */
#define EAGER_SEGMENTS 256

struct kvli_request *kvli_agent_request(struct kvli_agent *agent, kvl_xfer_t xfer, uint64_t *record)
{
	uint32_t i = kvli_handle_index(xfer);

	if (i < word32_load_acquire_sys(&agent->requests.high)) { /* E10 */
		*record = record_observe(agent->requests.slot[i].record);
		if (record_state(*record) != RECORD_FREE && record_state(*record) != RECORD_RELEASING &&
		    kvli_handle_make(KVLI_XFER, agent->index, record_life(*record), i) == xfer)
			return &agent->requests.slot[i];
	}
	kvli_handle_refuse(xfer, KVLI_XFER, KVL_NO_ENTRY);
	return NULL;
}

static int busy_refuse(void)
{
	return kvli_fail(KVL_ERR_BUSY, KVL_NO_ENTRY, 0, "the request has ended",
			 "the request is still pending");
}

static int record_pending(uint64_t record)
{
	return record_state(record) == RECORD_POSTING || record_state(record) == RECORD_PENDING;
}

/* A notification that takes the place of the request's own. */
struct post_notif {
	int change, has;
	uint8_t *data;
	uint64_t len;
};

static int notif_read(const struct kvli_peer *peer, const struct kvl_post *p, struct post_notif *out)
{
	int rc;

	*out = (struct post_notif){ 0 };
	if (p->flags & ~(KVL_POST_NOTIFY | KVL_POST_NO_NOTIFY) ||
	    p->flags == (KVL_POST_NOTIFY | KVL_POST_NO_NOTIFY))
		return kvli_fail(KVL_ERR_INVALID, KVL_NO_ENTRY, 0, "flags", "post flags %#x", p->flags);
	out->change = p->flags != 0;
	if (!(p->flags & KVL_POST_NOTIFY))
		return 0;
	rc = kvli_notif_check(peer, p->notif, p->notif_len);
	if (rc)
		return rc;
	out->has = 1;
	out->len = p->notif_len;
	out->data = kvli_request_copy_notif(p->notif, p->notif_len);
	return out->data ? 0 : KVL_ERR_NOMEM;
}

/* Exchanges the request's notification with n's; twice is as before. */
static void notif_swap(struct kvli_request *r, struct post_notif *n)
{
	struct post_notif old = { n->change, r->has_notif, r->notif, r->notif_len };

	if (!n->change)
		return;
	r->has_notif = n->has;
	r->notif = n->data;
	r->notif_len = n->len;
	*n = old;
}

static int post_check(const struct kvli_request *r)
{
	int rc = kvli_peer_usable(r->peer);

	if (rc)
		return rc;
	if (kvli_list_stale(r->remote) || !kvli_list_use(r->local))
		return kvli_fail(KVL_ERR_STALE, KVL_NO_ENTRY, 0, "regions of the request are registered",
				 "a region that the request names is gone");
	return 0;
}

static void post_times(struct kvli_request *r, uint64_t deadline_ns)
{
	uint64_t length = deadline_ns ? deadline_ns : r->deadline_ns;

	r->job.post_ns = kvli_now();
	word64_store_relaxed_sys(&r->deadline_at, /* published with PENDING */
				 length < UINT64_MAX - r->job.post_ns ? r->job.post_ns + length : UINT64_MAX);
}

/*
 * The request is ours: its record is POSTING. On success it is the driver's, may have ended and even been
 * posted again, and is not touched any more.
 */
static int post_queue(struct kvli_agent *agent, struct kvli_request *r, uint64_t posting,
		      uint64_t deadline_ns, struct post_notif *notif)
{
	struct kvli_list *local = r->local;
	struct word64 *record = r->record;
	struct kvli_lane *lane = r->lane;
	uint64_t pending = record_with_state(posting, RECORD_PENDING, 0);
	int eager = r->total_bytes <= agent->config.small_bytes && r->n_segments <= EAGER_SEGMENTS;
	int rc = post_check(r);

	if (rc)
		return rc;
	notif_swap(r, notif);
	kvli_request_arm(r, record_tag(pending));
	post_times(r, deadline_ns);
	word64_store_release_sys(record, pending); /* E5: before any driver can end it */
	rc = kvli_lane_post(lane, r->index, &r->job, eager);
	if (rc == 0)
		return 0;
	notif_swap(r, notif);
	kvli_list_unuse(local);
	return rc == KVL_ERR_AGAIN ? kvli_fail(rc, KVL_NO_ENTRY, 0, "queue_depth", "the lane's queue is full")
				   : kvli_fail(rc, KVL_NO_ENTRY, 0, "lane is open", "the lane is closed");
}

/*
 * A refused post leaves all as it was, but for the post count: who has seen this post pending, and stops it late,
 * must not meet the next one. Under the lock, as who saw PENDING under it relies on the slot until it unlocks.
 */
static void record_restore(struct kvli_agent *agent, struct kvli_request *r, uint64_t old, uint64_t posting)
{
	uint64_t back = record_with_state(posting, record_state(old), record_error(old));

	pthread_mutex_lock(&agent->events.lock);
	if (r->start_tag == record_tag(old))
		r->start_tag = record_tag(back);
	word64_store_release_sys(r->record, back); /* E5 */
	pthread_mutex_unlock(&agent->events.lock);
}

int kvli_post(struct kvli_agent *agent, kvl_xfer_t xfer, const struct kvl_post *post)
{
	uint64_t old, posting;
	struct kvli_request *r = kvli_agent_request(agent, xfer, &old);
	struct post_notif notif;
	struct kvl_post p;
	int rc;

	if (r == NULL)
		return kvli_handle_code(xfer, KVLI_XFER);
	rc = kvli_sized_read(&p, sizeof(p), post, "post");
	if (rc)
		return rc;
	if (p.notif || p.notif_len)
		p.flags |= KVL_POST_NOTIFY;
	posting = record_make(record_life(old), record_post(old) + 1, RECORD_POSTING, 0);
	if (record_pending(old) || !word64_cas_seq_sys(r->record, old, posting)) /* E5 */
		return busy_refuse();
	rc = notif_read(r->peer, &p, &notif);
	if (rc == 0)
		rc = post_queue(agent, r, posting, p.deadline_ns, &notif);
	if (rc)
		record_restore(agent, r, old, posting);
	free(notif.data);
	if (rc == 0 && record_state(record_observe(r->record)) == RECORD_PENDING)
		kvli_deadline_arm(agent);
	return rc;
}

int kvl_xfer_post(kvl_agent_t handle, kvl_xfer_t xfer, const struct kvl_post *post)
{
	struct kvli_agent *agent = kvli_agent_enter(handle);

	if (agent == NULL)
		return kvli_agent_refused(handle);
	return kvli_agent_return(agent, kvli_post(agent, xfer, post));
}

static void request_free(struct kvli_agent *agent, struct kvli_request *r)
{
	void *peer = r->peer;

	kvli_request_give(&agent->requests, r);
	if (peer)
		kvli_peer_drop(peer);
}

/* By the lane's driver. After the record is published only what was copied before is looked at. */
void kvli_agent_ended(void *arg, uint32_t index, int status)
{
	struct kvli_agent *agent = arg;
	struct kvli_request *r = &agent->requests.slot[index];
	int auto_release = r->auto_release;

	kvli_list_unuse(r->local);
	kvli_events_end(&agent->events, r, status);
	if (auto_release) /* nobody else has its handle */
		request_free(agent, r);
}

int kvli_release(struct kvli_agent *agent, kvl_xfer_t xfer)
{
	uint64_t old;
	struct kvli_request *r = kvli_agent_request(agent, xfer, &old);

	if (r == NULL)
		return kvli_handle_code(xfer, KVLI_XFER);
	/* under the lock: a report that looks at the request under it is done, or finds it gone */
	if (record_pending(old) || !kvli_events_release(&agent->events, r, old))
		return busy_refuse();
	request_free(agent, r);
	return 0;
}

int kvl_xfer_release(kvl_agent_t handle, kvl_xfer_t xfer)
{
	struct kvli_agent *agent = kvli_agent_enter(handle);

	if (agent == NULL)
		return kvli_agent_refused(handle);
	return kvli_agent_return(agent, kvli_release(agent, xfer));
}

struct kvli_lane *kvli_pending_lane(struct kvli_agent *agent, uint32_t index, uint64_t seen, int stop)
{
	struct kvli_request *r = &agent->requests.slot[index];
	struct kvli_lane *lane = NULL;
	uint64_t record;

	pthread_mutex_lock(&agent->events.lock);
	record = record_observe(r->record);
	if (record_state(record) == RECORD_PENDING && record_tag(record) == record_tag(seen)) {
		lane = r->lane;
		kvli_peer_hold(r->peer);
		if (stop)
			kvli_job_stop(&r->job, record_tag(record), stop);
	}
	pthread_mutex_unlock(&agent->events.lock);
	return lane;
}

int kvl_xfer_cancel(kvl_agent_t handle, kvl_xfer_t xfer)
{
	struct kvli_agent *agent = kvli_agent_enter(handle);
	uint64_t record;
	struct kvli_request *r;
	struct kvli_lane *lane;

	if (agent == NULL)
		return kvli_agent_refused(handle);
	r = kvli_agent_request(agent, xfer, &record);
	if (r == NULL)
		return kvli_agent_return(agent, kvli_handle_code(xfer, KVLI_XFER));
	if (record_state(record) == RECORD_PREPARED)
		return kvli_agent_return(agent, kvli_fail(KVL_ERR_NOT_POSTED, KVL_NO_ENTRY, 0, "posted",
							  "the request has not been posted"));
	lane = kvli_pending_lane(agent, r->index, record, KVL_ERR_CANCELED);
	if (lane) {
		kvli_lane_sweep(lane);
		kvli_peer_drop(lane->owner);
	}
	return kvli_agent_return(agent, 0);
}
