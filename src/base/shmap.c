/* SPDX-License-Identifier: Apache-2.0 */
#include "base/shmap.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_BYTES ((size_t)2 << 20)

static void *map_plain(int fd, off_t offset, size_t len, int prot)
{
	void *at = mmap(NULL, len, prot, MAP_SHARED, fd, offset);

	return at == MAP_FAILED ? NULL : at;
}

/* Address space for len bytes at a multiple of HUGE_BYTES; what is over is given back. */
static uint8_t *reserve_aligned(size_t len)
{
	size_t room = len + HUGE_BYTES, before;
	uint8_t *at = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		return NULL;
	before = (HUGE_BYTES - ((uintptr_t)at & (HUGE_BYTES - 1))) & (HUGE_BYTES - 1);
	if (before)
		munmap(at, before);
	munmap(at + before + len, room - before - len);
	return at + before;
}

void *kvli_shmap(int fd, off_t offset, size_t len, int prot)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *at;

	if (len < HUGE_BYTES || offset % (off_t)HUGE_BYTES)
		return map_plain(fd, offset, len, prot);
	len = (len + page - 1) & ~(page - 1);
	at = reserve_aligned(len);
	if (at == NULL)
		return map_plain(fd, offset, len, prot);
	if (mmap(at, len, prot, MAP_SHARED | MAP_FIXED, fd, offset) == MAP_FAILED) {
		munmap(at, len);
		return NULL;
	}
	madvise(at, len, MADV_HUGEPAGE); /* advice: where the kernel has none to give, 4 KiB pages do */
	return at;
}
