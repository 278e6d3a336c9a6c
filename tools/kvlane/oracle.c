/* SPDX-License-Identifier: Apache-2.0 */
#include "oracle.h"

#include <string.h>

#define GOLDEN 0x9e3779b97f4a7c15u

/* The finaliser of SplitMix64: a bijection in which every input bit moves every output bit. */
static uint64_t oracle_mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static uint64_t oracle_key(uint64_t seed, uint64_t epoch)
{
	return oracle_mix(oracle_mix(seed + GOLDEN) + epoch);
}

/* Word `index` of the stream: bytes [8 * index, 8 * index + 8), least significant byte first. */
static uint64_t oracle_word(uint64_t key, uint64_t index)
{
	uint64_t word = oracle_mix(key + index * GOLDEN);

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	word = __builtin_bswap64(word);
#endif
	return word;
}

/* Up to n bytes of the stream from `offset` that do not leave its word; returns how many. */
static size_t oracle_part(unsigned char *dst, size_t n, uint64_t key, uint64_t offset)
{
	uint64_t word = oracle_word(key, offset / 8);
	size_t skip = offset % 8;

	if (n > 8 - skip)
		n = 8 - skip;
	memcpy(dst, (const char *)&word + skip, n);
	return n;
}

void oracle_fill(void *dst, size_t len, uint64_t seed, uint64_t offset, uint64_t epoch)
{
	uint64_t key = oracle_key(seed, epoch);
	unsigned char *p = dst;
	size_t n;

	if (offset % 8 && len) {
		n = oracle_part(p, len, key, offset);
		p += n;
		offset += n;
		len -= n;
	}
	for (; len >= 8; p += 8, offset += 8, len -= 8) {
		uint64_t word = oracle_word(key, offset / 8);

		memcpy(p, &word, 8);
	}
	if (len)
		oracle_part(p, len, key, offset);
}

/* Counts and places the differing bytes of at most one word; `at` is the position of src in the whole. */
static size_t oracle_diff(const unsigned char *src, const unsigned char *want, size_t n, size_t at,
			  size_t *first)
{
	size_t bad = 0;

	for (size_t i = 0; i < n; i++) {
		if (src[i] == want[i])
			continue;
		if (first && *first == SIZE_MAX)
			*first = at + i;
		bad++;
	}
	return bad;
}

size_t oracle_check(const void *src, size_t len, uint64_t seed, uint64_t offset, uint64_t epoch,
		    size_t *first)
{
	uint64_t key = oracle_key(seed, epoch);
	const unsigned char *p = src;
	unsigned char want[8];
	size_t at = 0, bad = 0, n;

	if (first)
		*first = SIZE_MAX;
	while (at < len) {
		/* Whole words that are right, which is nearly all of them, take this short way. */
		for (; (offset + at) % 8 == 0 && len - at >= 8; at += 8) {
			uint64_t word = oracle_word(key, (offset + at) / 8), have;

			memcpy(&have, p + at, 8);
			if (have != word)
				break;
		}
		if (at == len)
			break;
		n = oracle_part(want, len - at, key, offset + at);
		bad += oracle_diff(p + at, want, n, at, first);
		at += n;
	}
	return bad;
}

uint64_t oracle_random(uint64_t *state)
{
	*state += GOLDEN;
	return oracle_mix(*state);
}

/* Unbiased below n: the rare draws of the incomplete last span are thrown away. */
static uint64_t oracle_below(uint64_t n, uint64_t *state)
{
	uint64_t limit = UINT64_MAX - UINT64_MAX % n, x;

	do {
		x = oracle_random(state);
	} while (x >= limit);
	return x % n;
}

void oracle_shuffle(uint32_t *index, size_t n, uint64_t *state)
{
	for (size_t i = 0; i < n; i++)
		index[i] = (uint32_t)i;
	for (size_t i = n; i > 1; i--) {
		size_t j = oracle_below(i, state);
		uint32_t swap = index[i - 1];

		index[i - 1] = index[j];
		index[j] = swap;
	}
}
