/* SPDX-License-Identifier: Apache-2.0 */
/* The regions a peer exports, as its metadata tells them. */
#ifndef KVLI_REMOTE_H
#define KVLI_REMOTE_H

#include "agent/agent.h"
#include "control/metadata.h"

/* Adds what is new and retracts what is gone. Every region of md is taken, or none. */
int kvli_remote_update(struct kvli_peer *peer, const struct kvli_md *md, uint64_t deadline_ns);

/* All are gone: lists that name them are stale. Mappings that were handed out stay unless disconnecting. */
void kvli_remote_close_all(struct kvli_peer *peer, int disconnecting);

int kvli_remote_info(struct kvli_peer *peer, size_t index, struct kvl_region_info *out);

int kvli_remote_map(struct kvli_peer *peer, uint64_t addr, uint64_t len, void **out);

#endif
