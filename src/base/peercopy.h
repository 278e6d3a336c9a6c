/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies between a ring that another process maps and memory that its application orders with us through that
 * ring. The thread sanitizer sees neither the other process nor, with both agents in one process, that two mappings
 * are one memory: it would report every such copy. tests/model proves the ring instead.
 */
#ifndef KVLI_PEERCOPY_H
#define KVLI_PEERCOPY_H

#include <stddef.h>
#include <string.h>

#if defined(__SANITIZE_THREAD__)
__attribute__((no_sanitize("thread"), noinline, optimize("no-tree-loop-distribute-patterns"))) static void
kvli_peer_copy(void *to, const void *from, size_t n)
{
	unsigned char *t = to;
	const unsigned char *f = from;

	while (n--)
		*t++ = *f++;
}
#else
static inline void kvli_peer_copy(void *to, const void *from, size_t n)
{
	memcpy(to, from, n);
}
#endif

#endif
