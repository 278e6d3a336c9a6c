/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slot path, initiator's side: bytes go through the shared rings and the target's control thread copies
 * them. One chunk is one frame and one operation; the target answers in order.
 *
 * The target must never wait for room in the back ring. So the answers in flight may take at most half of it:
 * a frame that does not fit before the end of the ring is preceded by a pad no longer than itself.
 */
#include <string.h>

#include "base/peercopy.h"
#include "wire/local/local.h"

/* How much of the piece one frame takes, KVL_ERR_AGAIN, or an error. */
static int64_t slot_take(struct kvli_wire_lane *lane, enum kvl_op op, uint64_t left)
{
	uint32_t quarter = lane->forward.size / 4, head = sizeof(struct frame_range);
	uint32_t want = head + (op == KVL_WRITE ? (uint32_t)kvli_least(left, FRAME_LEAST) : 0);
	uint32_t back = lane->back.size / 2 - lane->back_bytes;
	int64_t room;

	if (lane->op_next - lane->op_first > lane->op_mask ||
	    back < ring_need(op == KVL_READ ? FRAME_LEAST : 0))
		return KVL_ERR_AGAIN;
	room = kvli_forward_room(lane, want);
	if (room < 0)
		return room == RING_CORRUPT ? kvli_lane_broken(lane) : room;
	if (op == KVL_WRITE)
		return (int64_t)kvli_least(left, kvli_least((uint64_t)room, quarter) - head);
	return (int64_t)kvli_least(left,
				   kvli_least(back - RING_GRAIN, quarter) & ~(uint64_t)(RING_GRAIN - 1));
}

static int slot_push(struct kvli_wire_lane *lane, enum kvl_op op, const struct kvli_cursor *c, uint64_t n)
{
	const struct kvli_segment *s = &c->segment[c->at];
	struct frame_range range = { s->region->generation, s->remote + c->offset, n, s->region->slot, 0 };
	uint32_t payload = sizeof(range) + (op == KVL_WRITE ? (uint32_t)n : 0), at;
	struct ring_frame frame = { payload, op == KVL_WRITE ? FRAME_WRITE : FRAME_READ, 0, lane->op_next };
	void *to;
	int rc = ring_reserve(&lane->forward, payload, &at, &to);

	if (rc)
		return rc == RING_CORRUPT ? kvli_lane_broken(lane) : KVL_ERR_AGAIN;
	memcpy(to, &range, sizeof(range));
	if (op == KVL_WRITE)
		memcpy((uint8_t *)to + sizeof(range), (const uint8_t *)(uintptr_t)(s->local + c->offset), n);
	ring_commit(&lane->forward, at, frame);
	kvli_forward_ring(lane);
	return 0;
}

int64_t kvli_slot_issue(struct kvli_wire_lane *lane, enum kvl_op op, struct kvli_cursor *c,
			uint64_t max_bytes, uint64_t cookie)
{
	const struct kvli_segment *s = &c->segment[c->at];
	struct slot_op *o = &lane->op[lane->op_next & lane->op_mask];
	int64_t n;
	int rc;

	if (!kvli_conn_live(lane->conn, s->region))
		return KVL_ERR_STALE;
	if (!(lane->conn->wire->paths & PATH_SLOT))
		return KVL_ERR_UNSUPPORTED;
	n = slot_take(lane, op, kvli_least(s->len - c->offset, max_bytes));
	if (n < 0)
		return n;
	*o = (struct slot_op){
		.cookie = cookie,
		.read_to = op == KVL_READ ? (uint8_t *)(uintptr_t)(s->local + c->offset) : NULL,
		.len = (uint64_t)n,
		.back_bytes = ring_need(op == KVL_READ ? (uint32_t)n : 0),
	};
	rc = slot_push(lane, op, c, (uint64_t)n);
	if (rc)
		return rc;
	lane->back_bytes += o->back_bytes;
	lane->op_next++;
	c->offset += (uint64_t)n;
	if (c->offset == s->len) {
		c->at++;
		c->offset = 0;
	}
	return n;
}

/* Operations are compared by wrap-around: what is void must not fall half a circle behind. */
#define VOID_STEP (1u << 24)

static void slot_finish(struct kvli_wire_lane *lane, int status)
{
	struct slot_op *o = &lane->op[lane->op_first++ & lane->op_mask];

	if (lane->op_first % VOID_STEP == 0)
		word32_exchange_seq_sys(&lane->words->void_below, lane->op_first); /* E7 */
	lane->back_bytes -= o->back_bytes;
	kvli_local_done(lane, o->cookie, status, 0);
}

/* An answer to the oldest operation; 0 when it is not one, and the peer has lost its mind. */
static int slot_answer(struct kvli_wire_lane *lane, const struct ring_frame *f, const void *payload)
{
	struct slot_op *o = &lane->op[lane->op_first & lane->op_mask];
	int status = -(int)f->flags;

	if (f->type != FRAME_DONE || lane->op_first == lane->op_next || f->arg != lane->op_first)
		return 0;
	if (o->read_to && status == 0) {
		if (f->len != o->len)
			return 0;
		kvli_peer_copy(o->read_to, payload, o->len);
	}
	slot_finish(lane, status >= KVL_ERR_FATAL ? status : KVL_ERR_WIRE);
	return 1;
}

void kvli_slot_poll(struct kvli_wire_lane *lane)
{
	struct ring_frame f;
	const void *payload;
	int rc = 0;

	/* a target that answers for ever, in vain, must not hold the driver */
	for (uint32_t n = 0; n <= 2 * lane->op_mask + 2; n++) {
		rc = ring_peek(&lane->back, &f, &payload);
		if (rc)
			break;
		/* answers to operations that the fence has voided may still come */
		if (seq_before((uint32_t)f.arg, lane->op_first)) {
			ring_consume(&lane->back, &f);
			continue;
		}
		if (!slot_answer(lane, &f, payload)) {
			kvli_conn_break(lane->conn);
			return;
		}
		ring_consume(&lane->back, &f);
	}
	if (rc == RING_CORRUPT)
		kvli_conn_break(lane->conn);
}

/* How often a fence waits for a target that is in the middle of one copy: it is asked every 10 ms. */
#define FENCE_TRIES 5

/*
 * Operations so far are void: the target drops those it has not begun. One that it is in the middle of is waited
 * for (KVL_ERR_AGAIN), but not for ever: a target that was stopped there would keep the request past its deadline.
 * Local memory is out of it in any case, as the bytes lie in the ring; of the target's own, it may still fill the
 * range of that one frame when it goes on.
 */
int kvli_slot_fence(struct kvli_wire_lane *lane, int status)
{
	int gone = status == KVL_ERR_CLOSED || word32_load_acquire_sys(&lane->conn->told); /* a flag */

	if (lane->op_first == lane->op_next)
		return 0;
	word32_exchange_seq_sys(&lane->words->void_below, lane->op_next); /* E7 */
	if (!gone && lane->fence_tries++ < FENCE_TRIES &&
	    word64_load_seq_sys(&lane->words->serving) & 1) /* E7 */
		return KVL_ERR_AGAIN;
	while (lane->op_first != lane->op_next)
		slot_finish(lane, status);
	kvli_slot_poll(
		lane); /* answers given before they were void: none can follow, and the ring is free again */
	return 0;
}
