/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The local wire: processes of one host, found by an abstract Unix socket named after the target's incarnation
 * (nothing on disk, nothing in /dev/shm). Three ways for bytes, tried in this order for each region:
 *
 *	map	the region's memfd is mapped here: plain copies, by the initiator
 *	copy	process_vm_writev / readv, by the initiator, many pieces a call
 *	slot	through a shared ring, copied out by the target's control thread
 *
 * A connection has one direction: the initiator's (struct kvli_conn) and the target's end (struct serve). An
 * agent that writes to a peer that also writes to it has one of each.
 */
#ifndef KVLI_LOCAL_H
#define KVLI_LOCAL_H

#include <pthread.h>

#include "base/error.h"
#include "control/reactor.h"
#include "wire/local/message.h"
#include "wire/local/segment.h"
#include "wire/wire.h"

#define PATH_MAP  1u
#define PATH_COPY 2u
#define PATH_SLOT 4u

extern const char kvli_path_map[], kvli_path_copy[], kvli_path_slot[];

/* ------------------------------------------------------------------------------------------- target's side */

struct export
{
	uint64_t generation; /* 0: not exported */
	int fd;              /* -1: can not be mapped */
	uint64_t offset, len;
};

/* A lane as the target sees it. Under wire->serve_lock. */
struct serve_lane {
	struct segment_lane *words;
	struct ring_consumer forward;
	struct ring_producer back;
	struct kvli_notif *notif; /* being put together, or complete and waiting for room in the queue */
	uint64_t notif_got;
};

/* The target's end of one connection. */
struct serve {
	struct kvli_wire *wire;
	struct serve *next; /* under wire->serve_lock */
	struct word32 refs; /* the list, and a fence that waits outside the lock */
	struct word32 dead; /* the initiator has closed or died: it copies no more */
	int sock, bell;     /* bell: -1 before HELLO */
	int pidfd;          /* of the initiator; -1 when it has no number in this PID namespace */
	struct kvli_watch *sock_watch, *bell_watch, *pid_watch;
	int gone;   /* dead, and what it had sent is being delivered */
	int failed; /* it broke the protocol: nothing of it is read, but its copies may go on until it closes */
	struct kvli_identity peer;
	void *segment;
	size_t segment_len;
	uint32_t n_lanes;
	struct serve_lane *lane;
	int blocked; /* a notification found the queue full */
};

struct kvli_wire {
	const struct kvli_wire_host *host;
	uint32_t paths, lanes, ring_bytes, window, max_regions;
	uint64_t notif_max_bytes;
	int listen;
	int spare; /* a descriptor to give up for turning a peer away when there are no more */
	struct kvli_watch *listen_watch;
	int resume_fd; /* eventfd: the notification queue has room again */
	struct kvli_watch *resume_watch;
	int table_fd;
	struct word64 *table; /* generations by slot; peers map it read-only */
	pthread_mutex_t serve_lock;
	struct serve *serves;
	uint32_t n_serves;
	struct export *export; /* by slot; under serve_lock */
};

int kvli_serve_open(struct kvli_wire *wire);
void kvli_serve_close(struct kvli_wire *wire);
/* Waits until no peer is inside a copy that began before now. KVL_ERR_TIMED_OUT. */
int kvli_serve_fence(struct kvli_wire *wire, uint64_t timeout_ns);
void kvli_serve_hold(struct serve *s);
void kvli_serve_drop(struct serve *s);
/* Works off what the rings hold. Under serve_lock. 1: more is there. KVL_ERR_CORRUPT: drop the connection. */
int kvli_serve_drain(struct serve *s);

/* ---------------------------------------------------------------------------------------- initiator's side */

/* One slot operation in flight. */
struct slot_op {
	uint64_t cookie;
	uint8_t *read_to; /* NULL: WRITE */
	uint64_t len;
	uint32_t back_bytes; /* ring room its answer takes */
};

struct kvli_wire_lane {
	struct kvli_conn *conn;
	struct segment_lane *words;
	uint64_t busy;
	struct ring_producer forward;
	struct ring_consumer back;
	struct kvli_completion *done; /* FIFO of completions not polled yet; room for window of them */
	uint32_t done_first, n_done;
	struct slot_op *op; /* FIFO by sequence; room for window of them, a power of two */
	uint32_t op_mask, op_first, op_next;
	uint32_t fence_tries;
	uint32_t back_bytes; /* taken by the answers in flight: at most half the ring, see slot.c */
};

struct kvli_conn {
	struct kvli_wire *wire;
	void *peer; /* the agent's */
	int sock, bell, pidfd;
	struct kvli_watch *sock_watch, *bell_watch, *pid_watch;
	struct word32 told; /* lost() has been called */
	pid_t pid;
	struct kvli_identity identity;
	void *segment;
	size_t segment_len;
	const struct word64 *table;
	size_t table_len;
	uint32_t exports;
	struct word32 copy_works;
	pthread_mutex_t rpc; /* one question on the socket at a time */
	struct kvli_path_info path;
	uint32_t n_lanes;
	struct kvli_wire_lane *lane;
};

int kvli_conn_open(struct kvli_wire *wire, const struct kvli_identity *peer, const void *address,
		   uint32_t address_len, uint64_t deadline_ns, void *peer_arg, struct kvli_conn **out);
void kvli_conn_close(struct kvli_conn *conn);
int kvli_conn_import(struct kvli_conn *conn, struct kvli_remote *remote, int mappable, uint64_t deadline_ns);
void kvli_conn_forget(struct kvli_conn *conn, struct kvli_remote *remote);
/* Makes the control thread find the connection broken, and waiting calls return. From any thread. */
void kvli_conn_break(struct kvli_conn *conn);

/* Records why an answer did not come; `when` ends the sentence. Returns rc. */
int kvli_conn_late(const struct kvli_conn *conn, int rc, const char *when);

/* 1 when the region still is what the initiator was told. Inside a busy period, see segment.h. */
int kvli_conn_live(const struct kvli_conn *conn, const struct kvli_remote *r);

int64_t kvli_local_issue(struct kvli_wire_lane *lane, enum kvl_op op, struct kvli_cursor *cursor,
			 uint64_t max_bytes, uint64_t cookie, const char **path, int *provider);
void kvli_local_done(struct kvli_wire_lane *lane, uint64_t cookie, int status, int provider);

int64_t kvli_slot_issue(struct kvli_wire_lane *lane, enum kvl_op op, struct kvli_cursor *cursor,
			uint64_t max_bytes, uint64_t cookie);
void kvli_slot_poll(struct kvli_wire_lane *lane);
int kvli_slot_fence(struct kvli_wire_lane *lane, int status);
/* ---- the forward ring */

/* Smallest frame worth sending while the ring is nearly full. */
#define FRAME_LEAST 256u

static inline uint64_t kvli_least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Room for a payload of at least `want` bytes, KVL_ERR_AGAIN with a kick to come, or RING_CORRUPT. */
int64_t kvli_forward_room(struct kvli_wire_lane *lane, uint32_t want);
/* Wakes the target, once for all frames that it has not seen. */
void kvli_forward_ring(struct kvli_wire_lane *lane);
/* Breaks the connection of a peer that spoilt the ring. */
int kvli_lane_broken(struct kvli_wire_lane *lane);

int kvli_local_notify(struct kvli_wire_lane *lane, const void *data, uint64_t len, uint64_t *sent);

#endif
