/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What carries chunks. A wire is a table of calls behind this header: every call is present (unsupported
 * ones return KVL_ERR_UNSUPPORTED), wires never see each other, and nothing above sees inside one.
 *
 * Who calls what:
 *	owner side		expose / revoke regions; the wire serves peers from the agent's control thread
 *	initiator side		connect, import regions, then per lane: issue, poll, notify, fence
 *
 * A lane's calls are made by its driver alone (src/lane), one thread at a time; different lanes at once.
 *
 * Rules for every wire:
 * - host outlives open(): a wire may keep the pointer. Options it does not know are not its business.
 * - Calls that fail in a caller's thread (open, expose, revoke, connect, import) record an error detail; a lane's
 *   calls do not, their codes end up in reports.
 * - connect and import run in callers' threads, one at a time for a connection, and give up when host->closing is
 *   set. lost() may come as soon as *out of connect is set.
 * - revoke also comes for slots that were never exposed.
 * - A lane has at most `window` chunks in flight, and their completions can always be kept until poll() takes them.
 * - *path of issue is a string constant; the same way is the same pointer.
 * - forget leaves map NULL and generation 0, which no region has: whoever still names the region finds it stale.
 *
 * Done means placed: a completion with status 0 says that the bytes are in the target's memory and visible
 * there (WRITE) or in local memory (READ). After a completion nothing of that chunk is read or written again.
 */
#ifndef KVLI_WIRE_H
#define KVLI_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "kvlane/kvlane.h"
#include "shared/word.h"

struct kvli_reactor;
struct kvli_conn;      /* an initiator's connection to one peer; the wire's own type */
struct kvli_wire;      /* one agent's end of a wire; the wire's own type */
struct kvli_wire_lane; /* the wire's part of one lane */

struct kvli_identity {
	char name[KVL_NAME_MAX];
	uint8_t incarnation[KVL_INCARNATION];
};

/* A peer's region as the initiator knows it. The wire fills map in import() and clears it in forget(). */
struct kvli_remote {
	uint64_t base, len, generation;
	uint32_t slot, rights, device;
	uint8_t *map; /* where [base, base + len) is mapped here; NULL when it is not */
	size_t map_len;
	void *map_start;
};

/* One piece of a request: both sides contiguous. region is NULL only on wires that need none. */
struct kvli_segment {
	uint64_t local, remote, len;
	const struct kvli_remote *region;
	size_t entry; /* of the lists, the first one merged into this piece */
};

/* How far a request's pieces have been issued. */
struct kvli_cursor {
	const struct kvli_segment *segment;
	size_t n, at;
	uint64_t offset; /* within segment[at] */
};

struct kvli_completion {
	uint64_t cookie;
	int status; /* 0 or a negative kvl_error. After KVL_ERR_WIRE the lane is in error: what was issued behind
		       * moves nothing and completes with KVL_ERR_FLUSHED, until reopen() */
	int provider; /* the wire's own code */
};

/* A received notification. The public part comes first, so that its pointer is this one's. */
struct kvli_notif {
	struct kvl_notif pub; /* pub.data points behind this struct */
	struct kvli_notif *next;
};

/* malloc'd with room for len bytes of data; NULL without memory. kvl_notif_free() frees it. */
struct kvli_notif *kvli_notif_new(const struct kvli_identity *from, uint32_t lane, uint64_t len);

/* Upcalls of the agent. Called from any of the wire's contexts, without the wire's locks but where said. */
struct kvli_wire_host {
	void *agent;
	struct kvli_identity self;
	struct kvli_reactor *reactor;
	const struct word32 *closing; /* 1: calls that wait are to give up */

	/*
	 * Takes a notification. KVL_ERR_AGAIN: the queue is full and notif stays yours; offer it again when the
	 * agent has read some (resume() of the wire tells).
	 */
	int (*deliver)(void *agent, struct kvli_notif *notif);
	/*
	 * Target side of wires that place by the target's CPU: is [addr, addr + len) inside this very region,
	 * with this right? Called with the wire's serve lock held, which revoke() takes: a yes holds until it
	 * is dropped.
	 */
	int (*may_touch)(void *agent, uint32_t slot, uint64_t generation, uint64_t addr, uint64_t len,
			 uint32_t right);
	/* Initiator side; peer is the pointer given to connect(). */
	void (*lost)(void *peer); /* the peer is dead or gone */
	void (*kick)(void *peer); /* a blocked lane may go on: an answer or room has come */
};

struct kvli_wire_info {
	int needs_poll; /* completions come only by poll(): a driver with chunks in flight keeps polling */
	uint64_t max_chunk; /* bytes */
};

struct kvli_path_info {
	char path[16];
	char reason[128];
	uint64_t notif_max_bytes; /* what the peer takes; 0: any length */
};

struct kvli_wire_ops {
	const char *name;
	int (*available)(char *reason, size_t len); /* 1 or 0 with the reason */

	int (*open)(const struct kvli_wire_host *host, const struct kvl_config *config,
		    struct kvli_wire **out);
	/* Serving ends and connections of peers drop; all own connections are closed by now. */
	void (*close)(struct kvli_wire *wire);
	void (*info)(struct kvli_wire *wire, struct kvli_wire_info *out);
	/* Address bytes for the metadata; *len is the room and gets the length. */
	int (*address)(struct kvli_wire *wire, void *buf, uint32_t *len);

	/* The region may be touched by peers from here on. *mappable: peers of this host may map it. */
	int (*expose)(struct kvli_wire *wire, uint32_t slot, uint64_t generation, const struct kvl_mem *mem,
		      uint32_t *mappable);
	/* A fence: on success no peer touches it any more. KVL_ERR_TIMED_OUT: withdrawn, call again. */
	int (*revoke)(struct kvli_wire *wire, uint32_t slot, uint64_t timeout_ns);

	int (*connect)(struct kvli_wire *wire, const struct kvli_identity *peer, const void *address,
		       uint32_t address_len, uint64_t deadline_ns, void *peer_arg, struct kvli_conn **out);
	/* The connection is about to be closed: calls that wait for the peer return. From any thread. */
	void (*abandon)(struct kvli_conn *conn);
	/* No lane is driven by now. Mappings are gone on return; lost() and kick() do not run after it. */
	void (*disconnect)(struct kvli_conn *conn);
	void (*path)(struct kvli_conn *conn, struct kvli_path_info *out);
	int (*import)(struct kvli_conn *conn, struct kvli_remote *remote, int mappable, uint64_t deadline_ns);
	/* Under the lock of the peer's region set; no lane uses it by now. May come twice. */
	void (*forget)(struct kvli_conn *conn, struct kvli_remote *remote);
	struct kvli_wire_lane *(*lane)(struct kvli_conn *conn, uint32_t lane);

	/*
	 * Hands one chunk of at most max_bytes from the cursor to the wire and advances it: bytes taken (>= 1),
	 * KVL_ERR_AGAIN (nothing taken), or an error (nothing taken). *path names the way it went.
	 */
	int64_t (*issue)(struct kvli_wire_lane *lane, enum kvl_op op, struct kvli_cursor *cursor,
			 uint64_t max_bytes, uint64_t cookie, const char **path, int *provider);
	int (*poll)(struct kvli_wire_lane *lane, struct kvli_completion *out, int max);
	/* Sends bytes [*sent, len) of a notification, all or as far as there is room; AGAIN until *sent == len. */
	int (*notify)(struct kvli_wire_lane *lane, const void *data, uint64_t len, uint64_t *sent);
	/*
	 * Makes chunks in flight land never more and completes them with status; AGAIN while that can not be
	 * had yet. Wires without anything in flight after issue() return 0. KVL_ERR_CLOSED as status says that
	 * the connection is given up: local memory is out of it on return, there is no AGAIN.
	 */
	int (*fence)(struct kvli_wire_lane *lane, int status);
	void (*reopen)(struct kvli_wire_lane *lane); /* a new epoch after a failure; nothing is in flight */
	/* The notification queue has room again after deliver() said AGAIN. From any thread, must not block. */
	void (*resume)(struct kvli_wire *wire);
};

extern const struct kvli_wire_ops kvli_wire_local, kvli_wire_sim;

/* The wires of this build, best first; NULL-terminated. */
extern const struct kvli_wire_ops *const kvli_wires[];

#endif
