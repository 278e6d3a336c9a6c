/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Terminal record: one 64-bit word per request slot that tells how its request stands.
 *
 *	| life 36 | post 12 | state 4 | error 12 |
 *
 * life counts the slot's uses, post the posts within one use: together 48 bits of generation. Slots are
 * reused in FIFO order, so at a million requests a second over 16384 slots one slot's life wraps after
 * 35 years; the post count only has to tell neighbours apart.
 *
 * word   | written by                              | read by      | order                      | edge
 * record | poster: PREPARED/ended -> POSTING (CAS) | anyone       | seq                        |
 *        | poster: POSTING -> PENDING              | anyone       | release                    |
 *        | lane's driver: PENDING -> end, once     | pollers      | release.sys / acquire.sys  | E5
 *        | owner: not pending -> RELEASING (CAS)   | anyone       | seq                        |
 *        | owner: RELEASING -> next life, FREE     | anyone       | release                    |
 *
 * Seeing an end with the handle's life proves: every byte of the request has moved or will never move, its
 * notification is out, and nobody but the caller touches its memory or its slot again.
 */
#ifndef KVLI_RECORD_H
#define KVLI_RECORD_H

#include "shared/word.h"

enum record_state {
	RECORD_FREE = 0,
	RECORD_PREPARED = 1,
	RECORD_POSTING = 2, /* one thread is inside post; nobody else may post or release */
	RECORD_PENDING = 3,
	RECORD_ENDED = 4,     /* error 0: well */
	RECORD_RELEASING = 5, /* one thread takes it apart; to anybody else it is gone */
};

#define RECORD_LIFE_BITS  36
#define RECORD_LIFE_MASK  ((UINT64_C(1) << RECORD_LIFE_BITS) - 1)
#define RECORD_LIFE_SHIFT 28
#define RECORD_POST_MASK  UINT64_C(0xfff)
#define RECORD_POST_SHIFT 16

/* error: 0 or a negative kvl_error. */
KVLI_FN uint64_t record_make(uint64_t life, uint64_t post, enum record_state state, int error)
{
	return life << RECORD_LIFE_SHIFT | (post & RECORD_POST_MASK) << RECORD_POST_SHIFT |
	       (uint64_t)state << 12 | (uint64_t)(uint32_t)-error;
}

KVLI_FN uint64_t record_life(uint64_t r)
{
	return r >> RECORD_LIFE_SHIFT;
}

KVLI_FN uint64_t record_post(uint64_t r)
{
	return r >> RECORD_POST_SHIFT & RECORD_POST_MASK;
}

KVLI_FN enum record_state record_state(uint64_t r)
{
	return (enum record_state)(r >> 12 & 15);
}

KVLI_FN int record_error(uint64_t r)
{
	return -(int)(r & 0xfff);
}

/* Names one post of one use of one slot: life and post count together. */
KVLI_FN uint64_t record_tag(uint64_t r)
{
	return r >> RECORD_POST_SHIFT;
}

KVLI_FN uint64_t record_with_state(uint64_t r, enum record_state state, int error)
{
	return record_make(record_life(r), record_post(r), state, error);
}

KVLI_FN uint64_t record_observe(const struct word64 *w)
{
	return word64_load_acquire_sys(w); /* E5 */
}

/* The last thing a driver does for a request: after it the slot belongs to the caller. */
KVLI_FN void record_publish(struct word64 *w, uint64_t pending, int error)
{
	word64_store_release_sys(w, record_with_state(pending, RECORD_ENDED, error)); /* E5 */
}

#endif
