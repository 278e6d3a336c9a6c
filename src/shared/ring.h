/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single-producer single-consumer ring of variable-length frames, in memory that both processes map.
 *
 * word | lives in       | written by | read by  | write       | read        | edge
 * tail | shared segment | producer   | consumer | release.sys | acquire.sys | E1: bytes < tail are filled
 * head | shared segment | consumer   | producer | release.sys | acquire.sys | E2: bytes < head may be refilled
 *
 * Invariant, 32-bit wrap-around: 0 <= tail - head <= size, both multiples of RING_GRAIN.
 *
 * The other side may be broken or hostile: each side keeps its own index private, takes only the other's from
 * shared memory, copies a frame header once before it looks at it, and finds any value that breaks the
 * invariant (RING_CORRUPT) instead of following it. A payload may still change while it is read: consumers
 * copy it out before they judge it.
 *
 * A frame never wraps: the rest of the ring is skipped with a pad frame.
 */
#ifndef KVLI_RING_H
#define KVLI_RING_H

#include <string.h>

#include "shared/layout.h"
#include "shared/seq.h"

#define RING_GRAIN   16u
#define RING_AGAIN   (-1)
#define RING_CORRUPT (-15)
#define RING_PAD     0u /* frame type; users' types start at 1 */

struct ring_frame {
	uint32_t len; /* of the payload, without padding */
	uint16_t type;
	uint16_t flags;
	uint64_t arg;
};

struct ring_words {
	struct word32 tail;
	uint8_t pad0[KVLI_LINE - sizeof(struct word32)];
	struct word32 head;
	uint8_t pad1[KVLI_LINE - sizeof(struct word32)];
};

KVLI_ASSERT_LAYOUT(sizeof(struct ring_frame) == RING_GRAIN, "frames are read by another process");
KVLI_ASSERT_LAYOUT(sizeof(struct ring_words) == 2 * KVLI_LINE, "producer and consumer must not share a line");

/* Private ends: never in shared memory. size is a power of two. */
struct ring_producer {
	struct ring_words *words;
	uint8_t *data;
	uint32_t size, tail, head_seen;
};

struct ring_consumer {
	struct ring_words *words;
	uint8_t *data;
	uint32_t size, head, tail_seen;
};

KVLI_FN uint32_t ring_need(uint32_t len)
{
	return RING_GRAIN + ((len + RING_GRAIN - 1) & ~(RING_GRAIN - 1));
}

/* Longest payload that always fits an empty ring, wherever its indices stand. */
KVLI_FN uint32_t ring_max_payload(uint32_t size)
{
	return size / 2 - RING_GRAIN;
}

KVLI_FN uint32_t ring_to_end(uint32_t index, uint32_t size)
{
	return size - (index & (size - 1));
}

KVLI_FN int ring_has_room(struct ring_producer *p, uint32_t bytes)
{
	uint32_t head;

	if (p->size - seq_distance(p->head_seen, p->tail) >= bytes)
		return 0;
	head = word32_load_acquire_sys(&p->words->head); /* E2 */
	if (seq_distance(head, p->tail) > p->size || head % RING_GRAIN)
		return RING_CORRUPT; /* not kept: it would look like room to the next call */
	p->head_seen = head;
	return p->size - seq_distance(p->head_seen, p->tail) >= bytes ? 0 : RING_AGAIN;
}

/* Bytes of payload that one frame could take now; 0 when there is no room at all, or RING_CORRUPT. */
KVLI_FN int64_t ring_room(struct ring_producer *p)
{
	uint32_t used, to_end, room;
	int rc = ring_has_room(p, p->size); /* refreshes head_seen unless all is free */

	if (rc == RING_CORRUPT)
		return rc;
	used = seq_distance(p->head_seen, p->tail);
	to_end = ring_to_end(p->tail, p->size);
	room = p->size - used;
	if (room > to_end) /* either up to the end, or from the start after a pad */
		room = to_end > room - to_end ? to_end : room - to_end;
	return room > RING_GRAIN ? room - RING_GRAIN : 0;
}

/*
 * Reserves a frame of len payload bytes and gives the place to fill. Nothing is visible until ring_commit();
 * a reservation that is not committed is simply forgotten.
 */
KVLI_FN int ring_reserve(struct ring_producer *p, uint32_t len, uint32_t *at, void **payload)
{
	uint32_t need = ring_need(len), to_end = ring_to_end(p->tail, p->size),
		 skip = to_end < need ? to_end : 0;
	struct ring_frame pad = { skip - RING_GRAIN, RING_PAD, 0, 0 };
	int rc = ring_has_room(p, need + skip);

	if (rc)
		return rc;
	if (skip)
		memcpy(p->data + (p->tail & (p->size - 1)), &pad, sizeof(pad));
	*at = p->tail + skip;
	*payload = p->data + (*at & (p->size - 1)) + RING_GRAIN;
	return 0;
}

KVLI_FN void ring_commit(struct ring_producer *p, uint32_t at, struct ring_frame frame)
{
	memcpy(p->data + (at & (p->size - 1)), &frame, sizeof(frame));
	p->tail = at + ring_need(frame.len);
	word32_store_release_sys(&p->words->tail, p->tail); /* E1 */
}

/* Copies the next frame's header; its payload lies at *payload until ring_consume(). */
KVLI_FN int ring_peek(struct ring_consumer *c, struct ring_frame *frame, const void **payload)
{
	for (int padded = 0;; padded = 1) {
		uint32_t have, to_end = ring_to_end(c->head, c->size);

		if (c->head == c->tail_seen) {
			c->tail_seen = word32_load_acquire_sys(&c->words->tail); /* E1 */
			if (c->head == c->tail_seen)
				return RING_AGAIN;
		}
		have = seq_distance(c->head, c->tail_seen);
		if (have > c->size || have % RING_GRAIN)
			return RING_CORRUPT;
		memcpy(frame, c->data + (c->head & (c->size - 1)), sizeof(*frame));
		if (frame->len > c->size || ring_need(frame->len) > have || ring_need(frame->len) > to_end)
			return RING_CORRUPT;
		if (frame->type != RING_PAD)
			break;
		if (padded)
			return RING_CORRUPT; /* nobody pads twice; who does could keep us here for ever */
		c->head += ring_need(frame->len); /* given back with the next frame that is consumed */
	}
	*payload = c->data + (c->head & (c->size - 1)) + RING_GRAIN;
	return 0;
}

KVLI_FN void ring_consume(struct ring_consumer *c, const struct ring_frame *frame)
{
	c->head += ring_need(frame->len);
	word32_store_release_sys(&c->words->head, c->head); /* E2 */
}

#endif
