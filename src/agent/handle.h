/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles: | kind 3 | agent 8 | life 33 | index 20 |. The life is that of the slot the index names, so a handle
 * of an earlier life is told apart; the kind, so a list is never taken for a request; the agent's slot in this
 * process, so that one agent's handle means nothing to another. Slots are reused in FIFO order: at a million
 * requests a second over 16384 slots a life comes again after four years. Tables start their lives at a random
 * number, so that handles of a closed agent do not meet those of the next one in its slot.
 */
#ifndef KVLI_HANDLE_H
#define KVLI_HANDLE_H

#include <stddef.h>
#include <stdint.h>

#include "kvlane/kvlane.h"

enum kvli_kind {
	KVLI_AGENT = 1,
	KVLI_REGION = 2,
	KVLI_PEER = 3,
	KVLI_LIST = 4,
	KVLI_XFER = 5
};

#define KVLI_HANDLE_INDEX_BITS 20
#define KVLI_HANDLE_LIFE_BITS  33
#define KVLI_HANDLE_LIFE_MASK  ((UINT64_C(1) << KVLI_HANDLE_LIFE_BITS) - 1)

static inline uint64_t kvli_handle_make(enum kvli_kind kind, uint32_t agent, uint64_t life, uint32_t index)
{
	return (uint64_t)kind << 61 | (uint64_t)agent << 53 |
	       (life & KVLI_HANDLE_LIFE_MASK) << KVLI_HANDLE_INDEX_BITS | index;
}

static inline uint32_t kvli_handle_index(uint64_t h)
{
	return (uint32_t)h & ((1u << KVLI_HANDLE_INDEX_BITS) - 1);
}

static inline uint64_t kvli_handle_life(uint64_t h)
{
	return h >> KVLI_HANDLE_INDEX_BITS & KVLI_HANDLE_LIFE_MASK;
}

static inline int kvli_handle_is(uint64_t h, enum kvli_kind kind)
{
	return h >> 61 == (uint64_t)kind;
}

/* What a call returns for a handle of no living object, when the detail is recorded already. */
static inline int kvli_handle_code(uint64_t h, enum kvli_kind kind)
{
	return kvli_handle_is(h, kind) ? KVL_ERR_STALE : KVL_ERR_INVALID;
}

/* Records and returns KVL_ERR_INVALID (not a handle of this kind) or KVL_ERR_STALE (of no living object). */
int kvli_handle_refuse(uint64_t h, enum kvli_kind kind, size_t entry);

#endif
