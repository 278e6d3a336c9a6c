/* SPDX-License-Identifier: Apache-2.0 */
/* Copies made by the initiator: into mapped memory, or across processes. */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "wire/local/local.h"

/* Bounds a chunk of tiny pieces: they cost a cache miss each, whatever their size. */
#define CHUNK_PIECES 2048

/* Pieces of one cross-process call. Longer vectors pay little: "kvlane bench scatter --memory user" tries them. */
#define VECTOR 128

void kvli_local_done(struct kvli_wire_lane *lane, uint64_t cookie, int status, int provider)
{
	uint32_t at = (lane->done_first + lane->n_done++) & lane->op_mask;

	lane->done[at] = (struct kvli_completion){ cookie, status, provider };
}

/* Generation 0 is that of a region forgotten here, and what the table holds for one that was revoked. */
int kvli_conn_live(const struct kvli_conn *conn, const struct kvli_remote *r)
{
	return r->generation && r->slot < conn->exports &&
	       word64_load_seq_sys(&conn->table[r->slot]) == r->generation; /* E7 */
}

static void lane_busy_begin(struct kvli_wire_lane *lane)
{
	word64_exchange_seq_sys(&lane->words->busy, ++lane->busy); /* E7: odd */
}

static void lane_busy_end(struct kvli_wire_lane *lane)
{
	word64_store_release_sys(&lane->words->busy, ++lane->busy); /* E7: even, after the last byte */
}

static void cursor_advance(struct kvli_cursor *c, uint64_t bytes)
{
	c->offset += bytes;
	if (c->offset < c->segment[c->at].len)
		return;
	c->at++;
	c->offset = 0;
}

static uint64_t piece_left(const struct kvli_cursor *c, uint64_t max)
{
	uint64_t left = c->segment[c->at].len - c->offset;

	return left < max ? left : max;
}

/* Inside a busy period. Stops before the first piece that is not mapped or whose region is gone. */
static uint64_t map_copy(struct kvli_wire_lane *lane, enum kvl_op op, struct kvli_cursor *c, uint64_t max)
{
	const struct kvli_remote *region = NULL;
	uint64_t bytes = 0;

	for (int pieces = 0; c->at < c->n && bytes < max && pieces < CHUNK_PIECES; pieces++) {
		const struct kvli_segment *s = &c->segment[c->at];
		uint64_t n = piece_left(c, max - bytes);
		uint8_t *local = (uint8_t *)(uintptr_t)(s->local + c->offset), *remote;

		if (s->region != region && (s->region->map == NULL || !kvli_conn_live(lane->conn, s->region)))
			break;
		region = s->region;
		remote = region->map + (s->remote - region->base) + c->offset;
		memcpy(op == KVL_WRITE ? remote : local, op == KVL_WRITE ? local : remote, n);
		bytes += n;
		cursor_advance(c, n);
	}
	return bytes;
}

static int64_t map_issue(struct kvli_wire_lane *lane, enum kvl_op op, struct kvli_cursor *c, uint64_t max,
			 uint64_t cookie)
{
	uint64_t bytes;

	lane_busy_begin(lane);
	bytes = map_copy(lane, op, c, max);
	lane_busy_end(lane);
	if (bytes == 0)
		return KVL_ERR_STALE;
	kvli_local_done(lane, cookie, 0, 0);
	return (int64_t)bytes;
}

/* Gathers up to VECTOR pieces, without moving the cursor. Inside a busy period. */
static int vector_fill(struct kvli_wire_lane *lane, const struct kvli_cursor *from, uint64_t max,
		       struct iovec *local, struct iovec *remote)
{
	const struct kvli_remote *region = NULL;
	struct kvli_cursor c = *from;
	int n = 0;

	while (n < VECTOR && c.at < c.n && max > 0) {
		const struct kvli_segment *s = &c.segment[c.at];
		uint64_t len = piece_left(&c, max);

		if (s->region != region && (s->region->map || !kvli_conn_live(lane->conn, s->region)))
			break;
		region = s->region;
		local[n] = (struct iovec){ (void *)(uintptr_t)(s->local + c.offset), len };
		remote[n++] = (struct iovec){ (void *)(uintptr_t)(s->remote + c.offset), len };
		max -= len;
		cursor_advance(&c, len);
	}
	return n;
}

static void cursor_skip(struct kvli_cursor *c, uint64_t bytes)
{
	while (bytes > 0) {
		uint64_t n = piece_left(c, bytes);

		cursor_advance(c, n);
		bytes -= n;
	}
}

/*
 * One kernel call: bytes moved, which may be fewer than asked at a page that is not there, KVL_ERR_STALE when
 * the first region is gone, or KVL_ERR_WIRE with errno.
 */
static int64_t vector_move(struct kvli_wire_lane *lane, enum kvl_op op, struct kvli_cursor *c, uint64_t max)
{
	struct iovec local[VECTOR], remote[VECTOR];
	int n = vector_fill(lane, c, max, local, remote);
	ssize_t moved;

	if (n == 0)
		return KVL_ERR_STALE;
	moved = op == KVL_WRITE ? process_vm_writev(lane->conn->pid, local, (unsigned long)n, remote,
						    (unsigned long)n, 0)
				: process_vm_readv(lane->conn->pid, local, (unsigned long)n, remote,
						   (unsigned long)n, 0);
	if (moved == 0)
		errno = EFAULT;
	if (moved <= 0)
		return KVL_ERR_WIRE;
	cursor_skip(c, (uint64_t)moved);
	return moved;
}

/*
 * What the kernel's no means. 0: the slot path takes over, as the kernel refuses now what it allowed at connect.
 * KVL_ERR_AGAIN: the process is gone, and the control thread is about to end the lane with everything on it.
 */
static int vector_refused(struct kvli_wire_lane *lane, int error, int *provider)
{
	if (error == ESRCH) {
		kvli_conn_break(lane->conn);
		return KVL_ERR_AGAIN;
	}
	if ((error == EPERM || error == ENOSYS) && (lane->conn->wire->paths & PATH_SLOT)) {
		word32_store_release_sys(&lane->conn->copy_works, 0); /* a flag */
		return 0;
	}
	*provider = error;
	return KVL_ERR_WIRE;
}

static int64_t vector_issue(struct kvli_wire_lane *lane, enum kvl_op op, struct kvli_cursor *c, uint64_t max,
			    uint64_t cookie, int *provider)
{
	uint64_t bytes = 0;
	int64_t rc = 0;
	int error = 0;

	lane_busy_begin(lane);
	while (bytes < max && c->at < c->n) {
		rc = vector_move(lane, op, c, max - bytes);
		error = errno;
		if (rc < 0)
			break;
		bytes += (uint64_t)rc;
	}
	lane_busy_end(lane);
	if (bytes) { /* what stopped it will stop the next chunk at its start */
		kvli_local_done(lane, cookie, 0, 0);
		return (int64_t)bytes;
	}
	return rc == KVL_ERR_WIRE ? vector_refused(lane, error, provider) : rc;
}

int64_t kvli_local_issue(struct kvli_wire_lane *lane, enum kvl_op op, struct kvli_cursor *cursor,
			 uint64_t max_bytes, uint64_t cookie, const char **path, int *provider)
{
	const struct kvli_conn *conn = lane->conn;
	int64_t bytes = 0;

	if (cursor->segment[cursor->at].region->map) {
		*path = kvli_path_map;
		return map_issue(lane, op, cursor, max_bytes, cookie);
	}
	if (word32_load_relaxed_sys(&conn->copy_works)) { /* a hint: the kernel has the last word */
		*path = kvli_path_copy;
		bytes = vector_issue(lane, op, cursor, max_bytes, cookie, provider);
	}
	if (bytes)
		return bytes;
	*path = kvli_path_slot;
	return kvli_slot_issue(lane, op, cursor, max_bytes, cookie);
}
