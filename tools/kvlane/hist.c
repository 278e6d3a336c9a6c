/* SPDX-License-Identifier: Apache-2.0 */
#include "hist.h"

#include <string.h>

#define SUB_SHIFT 6
#define SUB       (1u << SUB_SHIFT)

void hist_reset(struct hist *h)
{
	memset(h, 0, sizeof(*h));
	h->min = UINT64_MAX;
}

/* Values below SUB are exact; above, the six bits after the leading one choose the sub-bucket. */
static unsigned hist_index(uint64_t ns)
{
	unsigned log;

	if (ns < SUB)
		return (unsigned)ns;
	log = 63u - (unsigned)__builtin_clzll(ns);
	return (log - SUB_SHIFT + 1) * SUB + (unsigned)((ns >> (log - SUB_SHIFT)) & (SUB - 1));
}

static uint64_t hist_upper(unsigned index)
{
	unsigned shift;

	if (index < SUB)
		return index;
	shift = index / SUB - 1;
	/* The topmost edge is 2^64 - 1: the shifted value wraps to 0 there, and 0 - 1 is right. */
	return ((uint64_t)(SUB + index % SUB + 1) << shift) - 1;
}

void hist_add(struct hist *h, uint64_t ns)
{
	h->n++;
	h->sum += ns;
	if (ns < h->min)
		h->min = ns;
	if (ns > h->max)
		h->max = ns;
	h->bucket[hist_index(ns)]++;
}

void hist_merge(struct hist *to, const struct hist *from)
{
	to->n += from->n;
	to->sum += from->sum;
	if (from->n && from->min < to->min)
		to->min = from->min;
	if (from->max > to->max)
		to->max = from->max;
	for (size_t i = 0; i < sizeof(to->bucket) / sizeof(to->bucket[0]); i++)
		to->bucket[i] += from->bucket[i];
}

uint64_t hist_quantile(const struct hist *h, double q)
{
	uint64_t rank, seen = 0;
	unsigned last = sizeof(h->bucket) / sizeof(h->bucket[0]) - 1;

	if (!h->n)
		return 0;
	rank = (uint64_t)((double)(h->n - 1) * q);
	for (unsigned i = 0; i <= last; i++) {
		seen += h->bucket[i];
		if (seen > rank)
			return hist_upper(i) < h->max ? hist_upper(i) : h->max;
	}
	return h->max;
}
