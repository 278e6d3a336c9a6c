/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_raw.h"

#include <errno.h>
#include <sys/uio.h>

static void raw_vector(struct iovec *iov, uint64_t base, uint64_t block, const uint32_t *index, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		iov[i].iov_base = (void *)(uintptr_t)(base + index[i] * block);
		iov[i].iov_len = block;
	}
}

int raw_copy_move(const struct raw_copy *raw, const uint32_t *local_index, const uint32_t *remote_index,
		  size_t n)
{
	struct iovec local[RAW_MAX_VECTOR], remote[RAW_MAX_VECTOR];
	ssize_t moved;
	size_t k;

	for (size_t i = 0; i < n; i += k) {
		k = n - i < raw->vector ? n - i : raw->vector;
		raw_vector(local, raw->local, raw->block, local_index + i, k);
		raw_vector(remote, raw->remote, raw->block, remote_index + i, k);
		if (raw->op == KVL_WRITE)
			moved = process_vm_writev(raw->pid, local, k, remote, k, 0);
		else
			moved = process_vm_readv(raw->pid, local, k, remote, k, 0);
		if (moved < 0)
			return -errno;
		if ((uint64_t)moved != k * raw->block)
			return -EIO;
	}
	return 0;
}
