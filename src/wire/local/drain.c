/* SPDX-License-Identifier: Apache-2.0 */
/* The target's work on what initiators put into their rings. All under wire->serve_lock. */
#include <stdlib.h>
#include <string.h>

#include "base/peercopy.h"
#include "wire/local/local.h"

/* Frames of one lane before the next one has its turn, and turns before other connections have theirs. */
#define FRAMES_A_TURN 32
#define TURNS         2

/* 0 taken, KVL_ERR_AGAIN no room in the queue, KVL_ERR_CORRUPT. */
static int notif_deliver(struct serve *s, struct serve_lane *lane)
{
	int rc = s->wire->host->deliver(s->wire->host->agent, lane->notif);

	if (rc == 0)
		lane->notif = NULL;
	else
		s->blocked = 1;
	return rc;
}

/* One that is incomplete was given up by its sender: its request was stopped. */
static int notif_begin(struct serve *s, struct serve_lane *lane, const struct ring_frame *f)
{
	free(lane->notif);
	lane->notif = NULL;
	if (f->arg > s->wire->notif_max_bytes)
		return KVL_ERR_CORRUPT;
	lane->notif = kvli_notif_new(&s->peer, (uint32_t)(lane - s->lane), f->arg);
	lane->notif_got = 0;
	return lane->notif ? 0 : KVL_ERR_NOMEM;
}

/* f is a private copy of the header; the payload is copied out before anything depends on it. */
static int serve_notif(struct serve *s, struct serve_lane *lane, const struct ring_frame *f,
		       const void *payload)
{
	int rc = f->flags & FRAME_FIRST ? notif_begin(s, lane, f) : 0;

	if (rc)
		return rc;
	if (lane->notif == NULL || f->arg != lane->notif->pub.len ||
	    f->len > lane->notif->pub.len - lane->notif_got)
		return KVL_ERR_CORRUPT;
	memcpy((uint8_t *)(lane->notif + 1) + lane->notif_got, payload, f->len);
	lane->notif_got += f->len;
	if (!(f->flags & FRAME_LAST))
		return 0;
	return lane->notif_got == lane->notif->pub.len ? notif_deliver(s, lane) : KVL_ERR_CORRUPT;
}

static int serve_done(struct serve_lane *lane, uint64_t op, int status, const void *data, uint32_t len)
{
	struct ring_frame f = { status ? 0 : len, FRAME_DONE, (uint16_t)-status, op };
	uint32_t at;
	void *to;

	if (ring_reserve(&lane->back, f.len, &at, &to)) /* initiators keep room for answers */
		return KVL_ERR_CORRUPT;
	if (f.len)
		kvli_peer_copy(to, data, f.len);
	ring_commit(&lane->back, at, f);
	return 0;
}

static int range_status(const struct serve *s, const struct frame_range *r, uint32_t right)
{
	const struct kvli_wire_host *host = s->wire->host;

	return host->may_touch(host->agent, r->slot, r->generation, r->addr, r->len, right) ? 0
											    : KVL_ERR_STALE;
}

/* Inside a serving period. The range is judged after it was copied out of shared memory. */
static int serve_range(struct serve *s, struct serve_lane *lane, const struct ring_frame *f,
		       const void *payload)
{
	const uint8_t *bytes = (const uint8_t *)payload + sizeof(struct frame_range);
	struct frame_range r;
	int status;

	memcpy(&r, payload, sizeof(r));
	if (f->type == FRAME_WRITE) {
		if (r.len != f->len - sizeof(r))
			return KVL_ERR_CORRUPT;
		status = range_status(s, &r, KVL_REMOTE_WRITE);
		if (status == 0)
			kvli_peer_copy((uint8_t *)(uintptr_t)r.addr, bytes, r.len);
		return serve_done(lane, f->arg, status, NULL, 0);
	}
	if (r.len > lane->back.size / 2)
		return KVL_ERR_CORRUPT;
	status = range_status(s, &r, KVL_REMOTE_READ);
	return serve_done(lane, f->arg, status, (const uint8_t *)(uintptr_t)r.addr, (uint32_t)r.len);
}

static int serve_copy(struct serve *s, struct serve_lane *lane, const struct ring_frame *f,
		      const void *payload)
{
	uint64_t serving =
		word64_load_relaxed_sys(&lane->words->serving) | 1; /* own word, or scribbled over: odd */
	int rc = 0;

	if (f->len < sizeof(struct frame_range))
		return KVL_ERR_CORRUPT;
	word64_exchange_seq_sys(&lane->words->serving, serving);                          /* E7 */
	if (!seq_before((uint32_t)f->arg, word32_load_seq_sys(&lane->words->void_below))) /* E7 */
		rc = serve_range(s, lane, f, payload);
	word64_store_release_sys(&lane->words->serving, serving + 1); /* E7 */
	return rc;
}

static int serve_frame(struct serve *s, struct serve_lane *lane, const struct ring_frame *f,
		       const void *payload)
{
	switch (f->type) {
	case FRAME_NOTIF:
		return serve_notif(s, lane, f, payload);
	case FRAME_WRITE:
	case FRAME_READ:
		return serve_copy(s, lane, f, payload);
	default:
		return KVL_ERR_CORRUPT;
	}
}

/* Number of frames worked off, or KVL_ERR_CORRUPT. */
static int drain_lane(struct serve *s, struct serve_lane *lane)
{
	struct ring_frame f;
	const void *payload;
	int n = 0, rc;

	if (lane->notif && lane->notif_got == lane->notif->pub.len && notif_deliver(s, lane))
		return 0; /* order holds: nothing behind it is looked at */
	for (; n < FRAMES_A_TURN; n++) {
		rc = ring_peek(&lane->forward, &f, &payload);
		if (rc == RING_AGAIN)
			break;
		if (rc == 0)
			rc = serve_frame(s, lane, &f, payload);
		if (rc == KVL_ERR_NOMEM)
			return n + 1; /* the frame stays and is tried again */
		if (rc && rc != KVL_ERR_AGAIN)
			return KVL_ERR_CORRUPT;
		ring_consume(&lane->forward, &f);
		if (rc == KVL_ERR_AGAIN)
			return n + 1;
	}
	return n;
}

/* Answers, or room that was waited for, are news to the initiator. */
static void drain_tell(struct serve *s)
{
	struct segment_head *head = s->segment;

	if (word32_exchange_seq_sys(&head->back_bell, 1) == 0) /* E8 */
		kvli_bell_ring(s->bell);
}

int kvli_serve_drain(struct serve *s)
{
	int any = 1;

	s->blocked = 0;
	for (int turn = 0; turn < TURNS && any; turn++) {
		any = 0;
		for (uint32_t i = 0; i < s->n_lanes; i++) {
			struct serve_lane *lane = &s->lane[i];
			uint32_t answered = lane->back.tail;
			int n = drain_lane(s, lane);

			if (n < 0)
				return n;
			any |= n > 0;
			if ((n && word32_exchange_seq_sys(&lane->words->want_room, 0)) || /* E9 */
			    lane->back.tail != answered)
				drain_tell(s);
		}
	}
	return any;
}
