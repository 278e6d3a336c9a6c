/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVLI_PREPARE_H
#define KVLI_PREPARE_H

#include "agent/agent.h"

/* What a request is made of; lists and peer are held by the caller, NULL lists stand for empty ones. */
struct kvli_prepare {
	enum kvl_op op;
	struct kvli_list *local, *remote;
	const uint32_t *local_index, *remote_index; /* NULL: entry i with entry i */
	size_t n;
	struct kvli_peer *peer;
	int auto_release;
};

int kvli_prepare(struct kvli_agent *agent, const struct kvli_prepare *p, const struct kvl_xfer_opts *opts,
		 kvl_xfer_t *out);

/* 0, KVL_ERR_PEER_LOST or, once closed, KVL_ERR_STALE. */
int kvli_peer_usable(const struct kvli_peer *peer);

/* Length within notif_max_bytes, data there. */
int kvli_notif_check(const struct kvli_agent *agent, const void *data, uint64_t len);

/* Posts a prepared request. As kvl_xfer_post(), inside a call. */
int kvli_post(struct kvli_agent *agent, kvl_xfer_t xfer, const struct kvl_post *post);

/* Releases a request that is not pending. As kvl_xfer_release(), inside a call. */
int kvli_release(struct kvli_agent *agent, kvl_xfer_t xfer);

#endif
