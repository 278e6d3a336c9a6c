/* SPDX-License-Identifier: Apache-2.0 */
/* Peers as the other calls use them. */
#ifndef KVLI_PEER_H
#define KVLI_PEER_H

#include "agent/agent.h"

void kvli_peer_hold(void *peer);
void kvli_peer_drop(void *peer);
/* Ends all that is pending on its lanes and frees the connection. The handle is gone already. */
void kvli_peer_shut(struct kvli_peer *peer, enum kvli_peer_state state, int error);

/* 0, KVL_ERR_PEER_LOST or, once closed, KVL_ERR_STALE. */
int kvli_peer_usable(const struct kvli_peer *peer);

#endif
