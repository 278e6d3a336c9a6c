/* SPDX-License-Identifier: Apache-2.0 */
/* The moves of a request's record: post, end, release. */
#ifndef KVLI_POST_H
#define KVLI_POST_H

#include "agent/agent.h"

void kvli_agent_ended(void *agent, uint32_t index, int status); /* the engine's ended() */

/* The request of a handle and its record's value; NULL with the error recorded. */
struct kvli_request *kvli_agent_request(struct kvli_agent *agent, kvl_xfer_t xfer, uint64_t *record);

/*
 * The lane of a post that was seen in its record, its peer held; NULL when it is not pending any more. stop: 0, or
 * the early end that is asked for it in the same step, so that no later post can be meant.
 */
struct kvli_lane *kvli_pending_lane(struct kvli_agent *agent, uint32_t index, uint64_t seen, int stop);

/* Posts a prepared request. As kvl_xfer_post(), inside a call. */
int kvli_post(struct kvli_agent *agent, kvl_xfer_t xfer, const struct kvl_post *post);

/* Releases a request that is not pending. As kvl_xfer_release(), inside a call. */
int kvli_release(struct kvli_agent *agent, kvl_xfer_t xfer);

#endif
