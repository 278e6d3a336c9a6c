/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/local/map.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/shmap.h"
#include "kvlane/kvlane.h"

int kvli_map_seal(int fd)
{
	int seals;

	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0)
		return 0;
	seals = fcntl(fd, F_GET_SEALS);
	return seals >= 0 && (seals & F_SEAL_SHRINK) ? 0 : KVL_ERR_UNSUPPORTED;
}

static int fd_holds(int fd, uint64_t end)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	return seals >= 0 && (seals & F_SEAL_SHRINK) && fstat(fd, &st) == 0 && (uint64_t)st.st_size >= end;
}

void *kvli_map_sealed(int fd, size_t len, int writable)
{
	void *at;

	if (!fd_holds(fd, len))
		return NULL;
	at = mmap(NULL, len, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, fd, 0);
	return at == MAP_FAILED ? NULL : at;
}

void *kvli_map_range(int fd, uint64_t offset, uint64_t len, int writable, void **start, size_t *start_len)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), skip = offset & (page - 1);
	void *at;

	if (len > SIZE_MAX - skip || offset > UINT64_MAX - len || !fd_holds(fd, offset + len))
		return NULL;
	at = kvli_shmap(fd, (off_t)(offset - skip), (size_t)(len + skip),
			PROT_READ | (writable ? PROT_WRITE : 0));
	if (at == NULL)
		return NULL;
	*start = at;
	*start_len = (size_t)(len + skip);
	return (uint8_t *)at + skip;
}
