/* SPDX-License-Identifier: Apache-2.0 */
/* Making requests. */
#include <inttypes.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/peer.h"
#include "agent/prepare.h"
#include "base/sized.h"

static int opts_check(const struct kvli_peer *peer, const struct kvl_xfer_opts *o)
{
	if (o->flags & ~(KVL_XFER_NOTIFY | KVL_XFER_NO_MERGE))
		return kvli_fail(KVL_ERR_INVALID, KVL_NO_ENTRY, 0, "flags", "unknown request flags %#x",
				 o->flags);
	if (o->path == KVL_PATH_BOUNCE)
		return kvli_fail(KVL_ERR_UNSUPPORTED, KVL_NO_ENTRY, 0, "path",
				 "path bounce is not in this build");
	if (o->path != KVL_PATH_AUTO && o->path != KVL_PATH_DIRECT)
		return kvli_fail(KVL_ERR_INVALID, KVL_NO_ENTRY, 0, "path", "unknown path %d", (int)o->path);
	return o->flags & KVL_XFER_NOTIFY ? kvli_notif_check(peer, o->notif, o->notif_len) : 0;
}

int kvli_notif_check(const struct kvli_peer *peer, const void *data, uint64_t len)
{
	uint64_t ours = peer->agent->config.notif_max_bytes, theirs = peer->path.notif_max_bytes;

	if (len > ours)
		return kvli_fail(KVL_ERR_LIMIT, KVL_NO_ENTRY, 0, "notif_max_bytes",
				 "a notification of %" PRIu64
				 " bytes, option notif_max_bytes allows %" PRIu64,
				 len, ours);
	if (theirs && len > theirs)
		return kvli_fail(KVL_ERR_LIMIT, KVL_NO_ENTRY, 0, "notif_max_bytes of the peer",
				 "a notification of %" PRIu64 " bytes, peer '%s' takes %" PRIu64, len,
				 peer->identity.name, theirs);
	if (len && data == NULL)
		return kvli_fail(KVL_ERR_INVALID, KVL_NO_ENTRY, 0, "notif",
				 "notif is NULL and its length %" PRIu64, len);
	return 0;
}

/* Requests of one class take its lanes in turn. */
static uint32_t lane_of_class(struct kvli_peer *peer, int latency)
{
	uint32_t n = latency ? peer->n_latency : peer->n_lanes - peer->n_latency;
	uint32_t turn = word32_add_seq_sys(&peer->turn, 1); /* no edge: a count */

	if (n == 0)
		return turn % peer->n_lanes;
	return latency ? turn % n : peer->n_latency + turn % n;
}

static int lane_choose(const struct kvli_agent *agent, struct kvli_peer *peer, uint32_t asked, uint64_t bytes,
		       struct kvli_lane **out)
{
	uint32_t i;

	if (asked == KVL_LANE_AUTO)
		i = lane_of_class(peer, bytes <= agent->config.small_bytes);
	else if (asked == KVL_LANE_LATENCY || asked == KVL_LANE_BULK)
		i = lane_of_class(peer, asked == KVL_LANE_LATENCY);
	else if (asked >= KVL_LANE(0) && asked - KVL_LANE(0) < peer->n_lanes)
		i = asked - KVL_LANE(0);
	else
		return kvli_fail(KVL_ERR_INVALID, KVL_NO_ENTRY, 0, "lane < lanes of the peer",
				 "lane option %u, the peer has %u lanes", asked, peer->n_lanes);
	*out = &peer->lane[i];
	return 0;
}

static int request_fill(struct kvli_agent *agent, struct kvli_request *r, const struct kvli_prepare *p,
			const struct kvl_xfer_opts *o)
{
	struct kvli_peer *peer = p->peer;
	uint32_t right = p->op == KVL_WRITE ? KVL_REMOTE_WRITE : KVL_REMOTE_READ;
	int rc = 0;

	r->op = p->op;
	r->flags = o->flags;
	r->user = o->user;
	r->auto_release = p->auto_release;
	r->deadline_ns = o->deadline_ns ? o->deadline_ns : agent->config.deadline_ms * 1000000;
	if (p->n)
		rc = kvli_request_pair(r, p->local, p->local_index, p->remote, p->remote_index, p->n, right);
	if (rc == 0)
		rc = lane_choose(agent, peer, o->lane, r->total_bytes, &r->lane);
	if (rc == 0 && (o->flags & KVL_XFER_NOTIFY)) {
		r->notif = kvli_request_copy_notif(o->notif, o->notif_len);
		r->notif_len = o->notif_len;
		r->has_notif = 1;
		rc = r->notif ? 0 : KVL_ERR_NOMEM;
	}
	return rc;
}

int kvli_prepare(struct kvli_agent *agent, const struct kvli_prepare *p, const struct kvl_xfer_opts *opts,
		 kvl_xfer_t *out)
{
	struct kvli_request *r;
	struct kvl_xfer_opts o;
	uint64_t life;
	int rc = kvli_sized_read(&o, sizeof(o), opts, "opts");

	if (o.notif || o.notif_len)
		o.flags |= KVL_XFER_NOTIFY;
	if (rc == 0)
		rc = opts_check(p->peer, &o);
	if (rc)
		return rc;
	r = kvli_request_take(&agent->requests);
	if (r == NULL)
		return kvli_fail(KVL_ERR_AGAIN, KVL_NO_ENTRY, 0, "max_requests",
				 "all %u requests are in use (option max_requests)",
				 agent->config.max_requests);
	life = record_life(record_observe(r->record));
	rc = request_fill(agent, r, p, &o);
	if (rc) {
		kvli_request_give(&agent->requests, r);
		return rc;
	}
	if (p->local)
		kvli_list_hold(p->local);
	if (p->remote)
		kvli_list_hold(p->remote);
	r->local = p->local;
	r->remote = p->remote;
	kvli_peer_hold(p->peer);
	r->peer = p->peer;
	word64_store_release_sys(r->record, record_make(life, 0, RECORD_PREPARED, 0)); /* E5 */
	*out = kvli_handle_make(KVLI_XFER, agent->index, life, r->index);
	return 0;
}

static int lists_check(const struct kvli_prepare *p)
{
	if (p->local->peer)
		return kvli_fail(KVL_ERR_INVALID, KVL_NO_ENTRY, 0, "the local list is of KVL_LOCAL",
				 "the list given as local names memory of a peer");
	if (p->remote->peer == NULL)
		return kvli_fail(KVL_ERR_INVALID, KVL_NO_ENTRY, 0, "the remote list is of a peer",
				 "the list given as remote names memory of this agent");
	if (p->op != KVL_WRITE && p->op != KVL_READ)
		return kvli_fail(KVL_ERR_INVALID, KVL_NO_ENTRY, 0, "op", "unknown operation %d", (int)p->op);
	if (p->local_index == NULL && p->remote_index == NULL && p->local->n != p->remote->n)
		return kvli_fail(KVL_ERR_MISMATCH, KVL_NO_ENTRY, 0, "equal counts",
				 "the local list has %zu entries, the remote list %zu", p->local->n,
				 p->remote->n);
	if (kvli_list_stale(p->local) || kvli_list_stale(p->remote))
		return kvli_fail(KVL_ERR_STALE, KVL_NO_ENTRY, 0, "regions of the list are registered",
				 "a region that the %s list names is gone",
				 kvli_list_stale(p->local) ? "local" : "remote");
	return kvli_peer_usable(p->remote->peer);
}

static int prepare_lists(struct kvli_agent *agent, struct kvli_prepare *p, const struct kvl_xfer_opts *opts,
			 kvl_xfer_t *out)
{
	int rc = lists_check(p);

	if (rc)
		return rc;
	p->peer = p->remote->peer;
	if (p->local_index == NULL)
		p->n = p->local->n;
	return kvli_prepare(agent, p, opts, out);
}

static void list_hold(void *list)
{
	kvli_list_hold(list);
}

static struct kvli_list *list_get(struct kvli_agent *agent, kvl_list_t handle)
{
	return kvli_table_get(&agent->list_table, handle, KVL_NO_ENTRY, list_hold);
}

static int prepare_call(kvl_agent_t handle, struct kvli_prepare *p, kvl_list_t local, kvl_list_t remote,
			const struct kvl_xfer_opts *opts, kvl_xfer_t *out)
{
	struct kvli_agent *agent = kvli_agent_enter(handle);
	int rc;

	if (agent == NULL)
		return kvli_agent_refused(handle);
	if (out == NULL)
		return kvli_agent_return(agent,
					 kvli_fail(KVL_ERR_INVALID, KVL_NO_ENTRY, 0, "out", "out is NULL"));
	p->local = list_get(agent, local);
	if (p->local == NULL)
		return kvli_agent_return(agent, kvli_handle_code(local, KVLI_LIST));
	p->remote = list_get(agent, remote);
	rc = p->remote ? prepare_lists(agent, p, opts, out) : kvli_handle_code(remote, KVLI_LIST);
	kvli_list_drop(p->local);
	kvli_list_drop(p->remote);
	return kvli_agent_return(agent, rc);
}

int kvl_xfer_prepare(kvl_agent_t handle, enum kvl_op op, kvl_list_t local, kvl_list_t remote,
		     const struct kvl_xfer_opts *opts, kvl_xfer_t *out)
{
	struct kvli_prepare p = { .op = op };

	return prepare_call(handle, &p, local, remote, opts, out);
}

int kvl_xfer_prepare_indexed(kvl_agent_t handle, enum kvl_op op, kvl_list_t local,
			     const uint32_t *local_index, kvl_list_t remote, const uint32_t *remote_index,
			     size_t n, const struct kvl_xfer_opts *opts, kvl_xfer_t *out)
{
	static const uint32_t none;
	struct kvli_prepare p = {
		.op = op, .local_index = local_index, .remote_index = remote_index, .n = n
	};

	if (n && (local_index == NULL || remote_index == NULL))
		return kvli_fail(KVL_ERR_INVALID, KVL_NO_ENTRY, 0, "index arrays", "an index array is NULL");
	if (n > UINT32_MAX)
		return kvli_fail(KVL_ERR_LIMIT, KVL_NO_ENTRY, 0, "n < 2^32", "%zu entries", n);
	if (n == 0)
		p.local_index = p.remote_index = &none;
	return prepare_call(handle, &p, local, remote, opts, out);
}
