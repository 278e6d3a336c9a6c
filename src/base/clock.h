/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVLI_CLOCK_H
#define KVLI_CLOCK_H

#include <stdint.h>
#include <time.h>

#define KVLI_NS_PER_MS UINT64_C(1000000)
#define KVLI_NS_PER_S  UINT64_C(1000000000)

/* CLOCK_MONOTONIC, ns. Any thread; never blocks. */
static inline uint64_t kvli_now(void)
{
	struct timespec t;

	/* Cannot fail: the clock exists in every Linux that runs this, and t is ours. */
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * KVLI_NS_PER_S + (uint64_t)t.tv_nsec;
}

/* The point in time timeout_ns from now; UINT64_MAX (never) instead of a wrap, so that "for ever" works. */
static inline uint64_t kvli_deadline(uint64_t timeout_ns)
{
	uint64_t now = kvli_now();

	return timeout_ns > UINT64_MAX - now ? UINT64_MAX : now + timeout_ns;
}

/* What is left until then, 0 when it is past. */
static inline uint64_t kvli_left(uint64_t deadline_ns)
{
	uint64_t now = kvli_now();

	return now < deadline_ns ? deadline_ns - now : 0;
}

#endif
