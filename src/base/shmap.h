/* SPDX-License-Identifier: Apache-2.0 */
/* Shared mappings of large memory: aligned and advised so that the kernel can use huge pages where it may. */
#ifndef KVLI_SHMAP_H
#define KVLI_SHMAP_H

#include <stddef.h>
#include <sys/types.h>

/*
 * As mmap() with MAP_SHARED; NULL on failure with errno set. A scattered copy touches a new page with almost
 * every block: with 4 KiB pages that is a TLB miss each, and a fault each for the first time.
 */
void *kvli_shmap(int fd, off_t offset, size_t len, int prot);

#endif
