/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory that one connection shares: made and sealed against resizing by the initiator, mapped by both.
 *
 * word          | per        | written by | read by   | write   | read    | edge
 * busy          | lane       | initiator  | target    | seq     | seq     | E7 copy fence: odd while a copy runs
 * serving       | lane       | target     | initiator | seq     | seq     | E7 the same for the slot path
 * void_below    | lane       | initiator  | target    | seq     | seq     | E7 slot operations before it are void
 * forward, back | lane       | see shared/ring.h                           | E1, E2
 * want_room     | lane       | both (exchange)        | seq     | seq     | E9 the initiator waits for ring room
 * forward_bell, | connection | both (exchange)        | seq     | seq     | E8 1: a wake-up is on its way
 * back_bell     |            |            |           |         |         |
 *
 * And in the owner's export table, mapped read-only by peers:
 * export[slot]  | region     | owner      | initiators| seq     | seq     | E7 generation; 0: not exported
 *
 * E7, store-then-look: the initiator makes busy odd, then looks at the generation, then copies; the owner
 * changes the generation, then looks at busy and waits while it keeps the odd value it saw. Either the
 * initiator sees the change and does not copy, or the owner sees the copy and waits for its end.
 *
 * A process can scribble over all of this: each side uses only its private copies of sizes and of its own
 * indices, so it can spoil its own lanes and nothing else.
 */
#ifndef KVLI_LOCAL_SEGMENT_H
#define KVLI_LOCAL_SEGMENT_H

#include "shared/ring.h"

#define SEGMENT_LINE(type, name) \
	type name;               \
	uint8_t pad_##name[KVLI_LINE - sizeof(type)]

struct segment_head {
	SEGMENT_LINE(struct word32, forward_bell);
	SEGMENT_LINE(struct word32, back_bell);
};

struct segment_lane {
	SEGMENT_LINE(struct word64, busy);
	SEGMENT_LINE(struct word64, serving);
	SEGMENT_LINE(struct word32, void_below);
	SEGMENT_LINE(struct word32, want_room);
	struct ring_words forward; /* initiator to target */
	struct ring_words back;
};

KVLI_ASSERT_LAYOUT(sizeof(struct segment_head) == 2 * KVLI_LINE, "both processes compute the same offsets");
KVLI_ASSERT_LAYOUT(sizeof(struct segment_lane) == 8 * KVLI_LINE, "both processes compute the same offsets");

/* Heads first, then a forward and a back ring for each lane. */
static inline size_t segment_bytes(uint32_t lanes, uint32_t ring_bytes)
{
	return sizeof(struct segment_head) + lanes * (sizeof(struct segment_lane) + 2 * (size_t)ring_bytes);
}

static inline struct segment_lane *segment_lane(void *segment, uint32_t lane)
{
	return (struct segment_lane *)(void *)((uint8_t *)segment + sizeof(struct segment_head)) + lane;
}

static inline uint8_t *segment_ring(void *segment, uint32_t lanes, uint32_t ring_bytes, uint32_t lane,
				    int back)
{
	return (uint8_t *)segment_lane(segment, lanes) + (2 * (size_t)lane + (size_t)back) * ring_bytes;
}

/* ---- frames in the rings */

enum frame_type {
	FRAME_NOTIF = 1, /* forward; arg: length of the whole notification */
	FRAME_WRITE = 2, /* forward; arg: operation; payload: struct frame_range, then the bytes */
	FRAME_READ = 3,  /* forward; arg: operation; payload: struct frame_range */
	FRAME_DONE = 4,  /* back; arg: operation; flags: -status; a READ's bytes as payload */
};

#define FRAME_FIRST 1 /* flags of FRAME_NOTIF */
#define FRAME_LAST  2

struct frame_range {
	uint64_t generation, addr, len;
	uint32_t slot, reserved;
};

KVLI_ASSERT_LAYOUT(sizeof(struct frame_range) == 32, "read by another process");

#endif
