/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 32-bit sequence numbers that wrap. The only place that subtracts indices: at 10 million steps a second they
 * wrap after seven minutes, so a plain < is a hang that a short test never sees. Tests start near the wrap.
 */
#ifndef KVLI_SEQ_H
#define KVLI_SEQ_H

#include "shared/word.h"

/* Steps from `from` to `to`; right while they are less than 2^31 apart. */
KVLI_FN uint32_t seq_distance(uint32_t from, uint32_t to)
{
	return to - from;
}

KVLI_FN int seq_before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

#endif
