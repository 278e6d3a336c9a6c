/* SPDX-License-Identifier: Apache-2.0 */
/* Structs that carry their own size: an older caller's is shorter, a newer one's longer, than ours. */
#ifndef KVLI_SIZED_H
#define KVLI_SIZED_H

#include <stddef.h>

/* Fills a caller's struct (its first member is its size) from ours, as far as it goes. */
int kvli_sized_copy(void *out, const void *from, size_t size);

/*
 * Reads a caller's options into ours: missing members are zero. NULL gives all zero. KVL_ERR_INVALID when
 * size is 0, or members that are not known here are set.
 */
int kvli_sized_read(void *out, size_t size, const void *in, const char *what);

#endif
