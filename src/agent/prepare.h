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

/* Length within what this agent and the peer allow, data there. */
int kvli_notif_check(const struct kvli_peer *peer, const void *data, uint64_t len);

#endif
