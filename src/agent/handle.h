/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles: | kind 4 | life 36 | index 24 |. The life is that of the slot the index names, so a handle of an
 * earlier life is told apart; the kind, so a list is never taken for a request.
 */
#ifndef KVLI_HANDLE_H
#define KVLI_HANDLE_H

#include <stdint.h>

#include "shared/record.h"

enum kvli_kind { KVLI_AGENT = 1, KVLI_REGION = 2, KVLI_PEER = 3, KVLI_LIST = 4, KVLI_XFER = 5 };

static inline uint64_t kvli_handle_make(enum kvli_kind kind, uint64_t life, uint32_t index)
{
	return (uint64_t)kind << 60 | (life & RECORD_LIFE_MASK) << 24 | index;
}

static inline uint32_t kvli_handle_index(uint64_t h)
{
	return (uint32_t)h & 0xffffff;
}

static inline uint64_t kvli_handle_life(uint64_t h)
{
	return h >> 24 & RECORD_LIFE_MASK;
}

static inline int kvli_handle_is(uint64_t h, enum kvli_kind kind)
{
	return h >> 60 == (uint64_t)kind;
}

/* Fails with KVL_ERR_INVALID (not a handle of this kind) or KVL_ERR_STALE (an earlier life). */
int kvli_handle_refuse(uint64_t h, enum kvli_kind kind, size_t entry);

#endif
