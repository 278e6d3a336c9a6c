/* SPDX-License-Identifier: Apache-2.0 */
/* The words and fields of a lane and of its requests; what they mean and who touches them: lane/step.h. */
#ifndef KVLI_CORE_H
#define KVLI_CORE_H

#include "shared/layout.h"
#include "shared/seq.h"

struct lane_core {
	struct word32 tail;
	uint8_t pad0[KVLI_LINE - sizeof(struct word32)];
	struct word32 head;
	uint8_t pad1[KVLI_LINE - sizeof(struct word32)];
	struct word32 drive;
	uint32_t issue;       /* ticket now being issued */
	uint32_t inflight;    /* chunks handed to the wire and not completed */
	uint32_t window;      /* bound of inflight */
	uint32_t mask;        /* queue depth - 1 */
	uint32_t flush_after; /* while flushing: tickets after this one, which failed, ... */
	uint32_t flush_until; /* ... and before this one end FLUSHED */
	uint32_t flushing;
	uint32_t epoch; /* failures survived */
	uint32_t *slot; /* ticket & mask -> request index */
};

/* The driver's part of a request. lane_reserve() resets it but for stop, tag and notify, which the poster sets. */
struct lane_request {
	uint32_t ticket;
	uint32_t outstanding; /* chunks in flight; the request's countdown */
	uint32_t chunks;      /* chunks issued so far */
	int32_t error;        /* the first one, 0 while well */
	struct word64 stop;   /* {tag, -error} of an end that was asked for, see lane_stop() */
	uint64_t tag;         /* generation of this post; set by the poster before lane_reserve() */
	uint32_t notify;      /* a notification is attached and not sent */
};

enum lane_result {
	LANE_IDLE = 0,    /* nothing to do */
	LANE_BLOCKED = 1, /* something to do, not now: window full, wire busy, chunks in flight */
	LANE_MOVED = 2,   /* did a step */
};

#define LANE_ISSUED 1 /* a chunk is on the wire */
#define LANE_LAST   2 /* and nothing of the request is left */

enum lane_drive {
	LANE_FREE = 0,
	LANE_DRIVEN = 1,
	LANE_CALLED = 2
};

#endif
