/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data oracle: every byte follows from {seed, offset, epoch}, all 64 bits of each mixed, so a block that
 * is stale, misplaced, torn or of another round can not pass for the right one.
 */
#ifndef KVLANE_TOOL_ORACLE_H
#define KVLANE_TOOL_ORACLE_H

#include <stddef.h>
#include <stdint.h>

/* Fills [dst, dst + len) with the bytes that belong at `offset` of the stream {seed, epoch}. */
void oracle_fill(void *dst, size_t len, uint64_t seed, uint64_t offset, uint64_t epoch);

/* Number of bytes that differ from it; *first gets the position of the first one (may be NULL). */
size_t oracle_check(const void *src, size_t len, uint64_t seed, uint64_t offset, uint64_t epoch,
		    size_t *first);

/* SplitMix64: the tools' only random numbers, so that a printed seed replays a run. */
uint64_t oracle_random(uint64_t *state);

/* A random permutation of 0..n-1 (Fisher-Yates). */
void oracle_shuffle(uint32_t *index, size_t n, uint64_t *state);

#endif
