/* SPDX-License-Identifier: Apache-2.0 */
/* The bare vectored cross-process copy, without any library: what kvlane is measured against. */
#ifndef KVLANE_TOOL_BENCH_RAW_H
#define KVLANE_TOOL_BENCH_RAW_H

#include <kvlane/kvlane.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define RAW_MAX_VECTOR 1024 /* UIO_MAXIOV */

struct raw_copy {
	pid_t pid;
	enum kvl_op op; /* WRITE: process_vm_writev, READ: process_vm_readv */
	uint64_t local, remote, block;
	size_t vector; /* blocks a call, 1 to RAW_MAX_VECTOR; vector * block must not exceed 1 GiB */
};

/*
 * Moves block remote_index[i] from or to local_index[i], n of them. 0 or a negative errno; -EPERM and -ENOSYS
 * come before anything has moved.
 */
int raw_copy_move(const struct raw_copy *raw, const uint32_t *local_index, const uint32_t *remote_index,
		  size_t n);

#endif
