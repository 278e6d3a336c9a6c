/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that are made of others: write, read, notify; and taking notifications. */
#include "agent/agent.h"
#include "agent/peer.h"
#include "agent/post.h"
#include "agent/prepare.h"
#include "base/sized.h"

/* Makes the lists, the request, and posts it; whatever fails, nothing stays. */
static int simple_post(kvl_agent_t agent, kvl_list_t local, kvl_list_t remote, enum kvl_op op,
		       const struct kvl_xfer_opts *opts, kvl_xfer_t *out)
{
	struct kvl_error_detail detail;
	kvl_xfer_t xfer;
	int rc = kvl_xfer_prepare(agent, op, local, remote, opts, &xfer), ignored;

	if (rc)
		return rc;
	rc = kvl_xfer_post(agent, xfer, NULL);
	if (rc == 0) {
		*out = xfer;
		return 0;
	}
	kvl_error_detail(&detail);
	ignored = kvl_xfer_release(agent, xfer);
	(void)ignored; /* not pending: it can not fail */
	kvli_error_put(&detail);
	return rc;
}

static int simple_lists(kvl_agent_t agent, kvl_peer_t peer, enum kvl_op op, const struct kvl_desc *local_desc,
			const struct kvl_desc *remote_desc, size_t n, const struct kvl_xfer_opts *opts,
			kvl_xfer_t *out)
{
	kvl_list_t local, remote;
	int rc, ignored;

	rc = kvl_list_create(agent, KVL_LOCAL, local_desc, n, &local);
	if (rc)
		return rc;
	rc = kvl_list_create(agent, peer, remote_desc, n, &remote);
	if (rc == 0) {
		rc = simple_post(agent, local, remote, op, opts, out);
		ignored = kvl_list_destroy(agent, remote);
	}
	ignored = kvl_list_destroy(agent, local);
	(void)ignored; /* our own lists: they are there */
	return rc;
}

static int simple_call(kvl_agent_t agent, kvl_peer_t peer, enum kvl_op op, const struct kvl_desc *local,
		       const struct kvl_desc *remote, size_t n, const struct kvl_xfer_opts *opts,
		       kvl_xfer_t *out)
{
	if (out == NULL)
		return kvli_fail(KVL_ERR_INVALID, KVL_NO_ENTRY, 0, "out", "out is NULL");
	if (peer == KVL_LOCAL)
		return kvli_fail(KVL_ERR_INVALID, KVL_NO_ENTRY, 0, "peer", "KVL_LOCAL is not a peer");
	return simple_lists(agent, peer, op, local, remote, n, opts, out);
}

int kvl_write(kvl_agent_t agent, kvl_peer_t peer, const struct kvl_desc *local, const struct kvl_desc *remote,
	      size_t n, const struct kvl_xfer_opts *opts, kvl_xfer_t *out)
{
	return simple_call(agent, peer, KVL_WRITE, local, remote, n, opts, out);
}

int kvl_read(kvl_agent_t agent, kvl_peer_t peer, const struct kvl_desc *local, const struct kvl_desc *remote,
	     size_t n, const struct kvl_xfer_opts *opts, kvl_xfer_t *out)
{
	return simple_call(agent, peer, KVL_READ, local, remote, n, opts, out);
}

static int notify_post(struct kvli_agent *agent, struct kvli_peer *peer, const struct kvl_xfer_opts *opts)
{
	struct kvli_prepare p = { .op = KVL_WRITE, .peer = peer, .auto_release = 1 };
	struct kvl_error_detail detail;
	kvl_xfer_t xfer;
	int rc = kvli_peer_usable(peer);

	if (rc == 0)
		rc = kvli_prepare(agent, &p, opts, &xfer);
	if (rc)
		return rc;
	rc = kvli_post(agent, xfer, NULL);
	if (rc == 0)
		return 0;
	kvl_error_detail(&detail);
	kvli_release(agent, xfer);
	kvli_error_put(&detail);
	return rc;
}

int kvl_notify(kvl_agent_t handle, kvl_peer_t peer_handle, const void *data, uint64_t len,
	       const struct kvl_xfer_opts *opts)
{
	struct kvli_agent *agent = kvli_agent_enter(handle);
	struct kvl_xfer_opts o;
	struct kvli_peer *peer;
	int rc;

	if (agent == NULL)
		return kvli_agent_refused(handle);
	rc = kvli_sized_read(&o, sizeof(o), opts, "opts");
	if (rc)
		return kvli_agent_return(agent, rc);
	peer = kvli_table_get(&agent->peer_table, peer_handle, KVL_NO_ENTRY, kvli_peer_hold);
	if (peer == NULL)
		return kvli_agent_return(agent, kvli_handle_code(peer_handle, KVLI_PEER));
	o.size = sizeof(o);
	o.flags |= KVL_XFER_NOTIFY;
	o.notif = data;
	o.notif_len = len;
	rc = notify_post(agent, peer, &o);
	kvli_peer_drop(peer);
	return kvli_agent_return(agent, rc);
}

int kvl_notif_next(kvl_agent_t handle, struct kvl_notif **out)
{
	struct kvli_agent *agent = kvli_agent_enter(handle);
	struct kvli_notif *notif;
	int resume;

	if (agent == NULL)
		return kvli_agent_refused(handle);
	if (out == NULL)
		return kvli_agent_return(agent,
					 kvli_fail(KVL_ERR_INVALID, KVL_NO_ENTRY, 0, "out", "out is NULL"));
	notif = kvli_events_take_notif(&agent->events, &resume);
	if (resume)
		agent->ops->resume(agent->wire);
	if (notif == NULL)
		return kvli_agent_return(agent, KVL_ERR_AGAIN); /* no news is no failure worth a detail */
	*out = &notif->pub;
	return kvli_agent_return(agent, 0);
}
