/* SPDX-License-Identifier: Apache-2.0 */
/* Mapping descriptors that another process passed. */
#ifndef KVLI_LOCAL_MAP_H
#define KVLI_LOCAL_MAP_H

#include <stddef.h>
#include <stdint.h>

/* Seals a memfd against shrinking: a peer's access past its end would be a SIGBUS. 0 or KVL_ERR_UNSUPPORTED. */
int kvli_map_seal(int fd);

/* Maps the first len bytes, shared. NULL when it is shorter or may shrink. */
void *kvli_map_sealed(int fd, size_t len, int writable);

/*
 * Maps [offset, offset + len), whatever their alignment; *start and *start_len are for munmap(). NULL when the
 * file is shorter, may shrink, or can not be mapped that way.
 */
void *kvli_map_range(int fd, uint64_t offset, uint64_t len, int writable, void **start, size_t *start_len);

#endif
