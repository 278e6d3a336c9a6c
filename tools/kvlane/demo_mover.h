/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The side that moves data: prefill for WRITE, decode for READ. A request becomes pieces (one per layer, or
 * one in all), posted in order on one lane, so that the notification attached to the last piece comes after
 * all data. At most --inflight requests are on their way at once, each on the next bulk lane.
 */
#ifndef KVLANE_TOOL_DEMO_MOVER_H
#define KVLANE_TOOL_DEMO_MOVER_H

#include <stdint.h>

#include "demo_message.h"

struct move {
	struct kvl_notif *table; /* the other side's block table: a TABLE message */
	kvl_xfer_t prepared;     /* the next piece, when its post found the lane full */
	uint64_t start_ns, end_ns;
	uint32_t posted, ended; /* pieces */
};

struct mover {
	struct demo *d;
	kvl_list_t remote;
	uint32_t round, n_pieces;
	struct move *move;        /* by request */
	uint32_t *queue;          /* requests in order of their tables */
	uint32_t queued, started; /* of queue */
	uint32_t done;            /* requests whose pieces have all ended */
	uint32_t *local_index, *remote_index;
	uint64_t busy_since;
	struct demo_stats stats;
	/* Called when all pieces of a request have ended well. */
	void (*finished)(void *user, uint32_t request, const struct move *move);
	void *user;
};

/* 0 or an exit code. remote is destroyed with the mover. */
int mover_create(struct mover *m, struct demo *d, kvl_list_t remote);
void mover_destroy(struct mover *m);

void mover_round(struct mover *m, uint32_t round);

/* Queues a request: takes over n, whose message h is. -1 when that request has a table already. */
int mover_add(struct mover *m, const struct demo_header *h, struct kvl_notif *n);

/* Posts what may be posted, takes what has ended. Never blocks. Exit codes. */
int mover_pump(struct mover *m);

#endif
