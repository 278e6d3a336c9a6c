/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kvlane: moves paged KV caches between processes.
 *
 * The life of a transfer, top to bottom of this file:
 *
 *	open an agent -> register memory -> exchange metadata -> connect to a peer
 *	-> prepare lists -> prepare a request -> post -> poll or wait -> release
 *
 * Rules that hold for every call:
 *
 * - Errors. Fallible calls return a negative kvl_error; 0 or a count is success. The failing entry and the
 *   rule it broke are kept per thread: kvl_error_detail(). A refused call has changed nothing.
 * - Handles carry {kind, index, generation}. A handle from an earlier life of its slot is refused with
 *   KVL_ERR_STALE, never followed. 0 is never a valid handle.
 * - Threads. Any call from any thread at any time, unless a comment says otherwise. Calls that may block say so.
 * - Times are nanoseconds; points in time are CLOCK_MONOTONIC.
 * - Structs that carry `size` are filled by their caller with sizeof; unknown later fields are zero, zero is
 *   the default.
 * - fork: a child must not use its parent's agents.
 */
#ifndef KVLANE_H
#define KVLANE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define KVL_VERSION_MAJOR 0
#define KVL_VERSION_MINOR 1
#define KVL_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define KVL_API   __attribute__((visibility("default")))
#define KVL_CHECK __attribute__((warn_unused_result))
#else
#define KVL_API
#define KVL_CHECK
#endif

/* ------------------------------------------------------------------------------------------------ errors */

/* clang-format off */
/* name, value, scope (what is unusable afterwards), text. Values are fixed for ever. */
#define KVL_ERROR_LIST(X)                                                                             \
	X(AGAIN, -1, CALL, "nothing was consumed: make progress, then call again")                    \
	X(INVALID, -2, CALL, "invalid argument")                                                      \
	X(OPTION, -3, CALL, "unknown option or bad value")                                            \
	X(RANGE, -4, CALL, "not inside one registered region")                                        \
	X(MISMATCH, -5, CALL, "local and remote lists do not match")                                  \
	X(RIGHTS, -6, CALL, "the region does not allow this")                                         \
	X(OVERLAP, -7, CALL, "overlaps a registered region")                                          \
	X(STALE, -8, CALL, "handle or key belongs to an earlier life")                                \
	X(BUSY, -9, CALL, "still pending or in use")                                                  \
	X(LIMIT, -10, CALL, "over a limit")                                                           \
	X(NOMEM, -11, CALL, "out of memory")                                                          \
	X(EXISTS, -12, CALL, "already exists")                                                        \
	X(NOT_FOUND, -13, CALL, "not found")                                                          \
	X(UNSUPPORTED, -14, CALL, "not supported")                                                    \
	X(CORRUPT, -15, CALL, "malformed bytes")                                                      \
	X(VERSION, -16, CALL, "incompatible version")                                                 \
	X(IDENTITY, -17, CALL, "another agent answered")                                              \
	X(PERMISSION, -18, CALL, "refused by the operating system or the peer")                       \
	X(SYSTEM, -19, CALL, "a system call failed")                                                  \
	X(NOT_POSTED, -20, CALL, "the request has not been posted")                                   \
	X(TIMED_OUT, -21, OPERATION, "the deadline passed")                                           \
	X(CANCELED, -22, OPERATION, "canceled")                                                       \
	X(FLUSHED, -23, OPERATION, "an earlier request of this lane failed")                          \
	X(WIRE, -24, LANE, "the wire reported an error")                                              \
	X(PEER_LOST, -25, PEER, "the peer is gone")                                                   \
	X(CLOSED, -26, AGENT, "the agent is closed")                                                  \
	X(FATAL, -27, AGENT, "the agent cannot go on")
/* clang-format on */

enum kvl_error {
	KVL_OK = 0,
#define KVL_ERROR_ENUM(name, value, scope, text) KVL_ERR_##name = (value),
	KVL_ERROR_LIST(KVL_ERROR_ENUM)
#undef KVL_ERROR_ENUM
};

/* Poll and wait only: the request has not ended. Not an error. */
#define KVL_PENDING 1

/* What an error leaves unusable. */
enum kvl_scope {
	KVL_SCOPE_CALL,
	KVL_SCOPE_OPERATION,
	KVL_SCOPE_LANE,
	KVL_SCOPE_PEER,
	KVL_SCOPE_AGENT
};

/* Static strings; an unknown code gives "unknown error". */
KVL_API const char *kvl_error_name(int code);
KVL_API const char *kvl_error_text(int code);
KVL_API enum kvl_scope kvl_error_scope(int code);

#define KVL_NO_ENTRY SIZE_MAX

struct kvl_error_detail {
	int code;          /* of the last kvl_ call that failed in this thread; 0 when none has */
	int system;        /* errno behind it, 0 when there is none */
	size_t entry;      /* index in the array given to the call, KVL_NO_ENTRY when no entry is to blame */
	char rule[64];     /* the rule that was broken, e.g. "end <= region end" */
	char message[256]; /* one sentence with the values */
};

/* The detail of the last failure in the calling thread. Later successes do not clear it. */
KVL_API void kvl_error_detail(struct kvl_error_detail *out);

/* Its message alone; empty when nothing has failed. Valid until the thread's next kvl_ call. */
KVL_API const char *kvl_error_message(void);

/* ----------------------------------------------------------------------------------------------- handles */

typedef uint64_t kvl_agent_t;
typedef uint64_t kvl_mr_t;   /* registered memory region */
typedef uint64_t kvl_peer_t; /* connected remote agent */
typedef uint64_t kvl_list_t; /* prepared descriptor list */
typedef uint64_t kvl_xfer_t; /* request */

#define KVL_FOREVER \
	UINT64_MAX /* a time-out; what is waited for has bounds of its own where the call says so */

#define KVL_NAME_MAX    64 /* agent names: 1 to 63 of [A-Za-z0-9._-], with the final NUL */
#define KVL_INCARNATION 16 /* bytes of the random id of one agent life */

/* ----------------------------------------------------------------------------------------- configuration */

enum kvl_retire_order {
	KVL_RETIRE_LANE = 0, /* a request waits only for older ones of its own lane */
	KVL_RETIRE_GLOBAL =
		1, /* one completion list over all lanes, oldest first: the arm to measure against */
};

/*
 * Options. 0 and NULL mean default. The same names are accepted by kvl_config_set(), in configuration files
 * (name = value, '#' starts a comment) and, in capitals after KVLANE_, in the environment. kvl_option_info() tells
 * what each may be.
 */
struct kvl_config {
	size_t size;
	const char *wire;        /* "auto" (default: local), "local", "sim" */
	const char *local_paths; /* allowed ways of the local wire, best first: "map,copy,slot" */
	const char *sim;         /* sim wire: "seed=1,delay=8,again=0,error=0,reorder=1", see docs/sim.md */
	uint32_t workers;        /* background progress threads; default 1; KVL_NO_WORKERS: callers drive */
	uint32_t lanes;          /* lanes per peer, 1 to 64, default 4 */
	uint32_t
		latency_lanes; /* how many of them are latency lanes, default 1; less than lanes unless lanes = 1 */
	uint32_t queue_depth;      /* posted requests per lane, power of two, 2 to 65536, default 1024 */
	uint32_t max_requests;     /* requests alive, 1 to 1048576, default 16384 */
	uint32_t max_regions;      /* regions registered, 1 to 1048576, default 65536 */
	uint32_t max_peers;        /* peers connected, 1 to 65536, default 1024 */
	uint64_t max_region_bytes; /* longest region, default 2^56 */
	uint64_t small_bytes;      /* longest request that goes to a latency lane, default 65536 */
	uint64_t chunk_bytes;      /* longest chunk, 4096 to 2^30, default 262144 */
	uint32_t window;           /* chunks in flight per lane, 1 to 1024, default 16 */
	uint32_t
		ring_bytes; /* shared ring per lane and direction, power of two, 4096 to 2^24, default 65536 */
	uint64_t notif_max_bytes; /* longest notification, default and least 1 MiB, up to 1 GiB */
	uint64_t
		notif_queue_bytes; /* notifications received and not read, default 64 MiB; beyond it senders wait */
	uint64_t deadline_ms;        /* of requests that name none, default 30000 */
	uint64_t connect_timeout_ms; /* of connects that name none, default 5000 */
	enum kvl_retire_order retire_order;
};

#define KVL_NO_WORKERS UINT32_MAX

/* All defaults; sets size. Inline, so that it is the caller's size whatever library is loaded. */
static inline void kvl_config_init(struct kvl_config *config)
{
	memset(config, 0, sizeof(*config));
	config->size = sizeof(*config);
}

/*
 * Sets one option from text ("workers", "2"; sizes take k, m, g; workers takes 0). The text is copied.
 * KVL_ERR_OPTION names an unknown option, or the value and what is allowed. Undo with kvl_config_fini().
 */
KVL_API KVL_CHECK int kvl_config_set(struct kvl_config *config, const char *name, const char *value);

/* Every line of a file; the error names file and line. May block on the file. */
KVL_API KVL_CHECK int kvl_config_load(struct kvl_config *config, const char *path);

/* Every variable KVLANE_<OPTION>; an unknown KVLANE_ name is refused. */
KVL_API KVL_CHECK int kvl_config_env(struct kvl_config *config);

/* Frees what kvl_config_set, _load and _env copied. */
KVL_API void kvl_config_fini(struct kvl_config *config);

/* Walks the options: name, default as text, one line of help. index from 0; KVL_ERR_NOT_FOUND past the end. */
struct kvl_option_info {
	const char *name, *def, *help;
};
KVL_API int kvl_option_info(size_t index, struct kvl_option_info *out);

/* ------------------------------------------------------------------------------------------------ agents */

/*
 * Opens an agent: one process's end of every transfer. config may be NULL (all defaults; the environment is
 * read only by kvl_config_env). *out is set only on success. KVL_ERR_OPTION names a bad option.
 */
KVL_API KVL_CHECK int kvl_agent_open(const char *name, const struct kvl_config *config, kvl_agent_t *out);

/*
 * Closes it: pending requests end (KVL_ERR_CLOSED), waiters return, peers and lists are freed, regions are
 * withdrawn and memory of kvl_mem_alloc is unmapped. Returns within timeout_ns. KVL_ERR_TIMED_OUT: the agent
 * is closed, but a stopped peer may still be inside a copy to or from memory that was registered. A second
 * close, also a concurrent one, gets KVL_ERR_STALE.
 */
KVL_API KVL_CHECK int kvl_agent_close(kvl_agent_t agent, uint64_t timeout_ns);

struct kvl_limits {
	size_t size;
	uint64_t notif_max_bytes, notif_queue_bytes, max_region_bytes, chunk_bytes, small_bytes;
	uint32_t workers, lanes, latency_lanes, queue_depth, max_requests, max_regions, max_peers, window;
	uint32_t ring_bytes;
	enum kvl_retire_order retire_order;
	uint64_t deadline_ms, connect_timeout_ms;
	char wire[16];
};

/* The limits in force, after defaults. */
KVL_API KVL_CHECK int kvl_agent_limits(kvl_agent_t agent, struct kvl_limits *out);

/* The wires of this build: index from 0; KVL_ERR_NOT_FOUND past the end. reason says why one is unavailable. */
struct kvl_wire_info {
	char name[16];
	int available;
	char reason[160];
};
KVL_API int kvl_wire_info(size_t index, struct kvl_wire_info *out);

/* ------------------------------------------------------------------------------------------------ memory */

enum kvl_rights {
	KVL_REMOTE_READ = 1,
	KVL_REMOTE_WRITE = 2,
	KVL_REMOTE_ALL = 3, /* what 0 means in struct kvl_mem */
	KVL_LOCAL_ONLY = 4, /* not exported to peers */
};

#define KVL_HOST   0u                  /* device of host memory */
#define KVL_GPU(n) ((uint32_t)(n) + 1) /* device of GPU n; KVL_ERR_UNSUPPORTED without the CUDA part */

#define KVL_MEM_FD 1u /* fd and fd_offset describe the memory: peers of this host may map it */

struct kvl_mem {
	void *addr;
	uint64_t len;    /* >= 1; any address, any length */
	uint32_t rights; /* kvl_rights */
	uint32_t device; /* KVL_HOST or KVL_GPU(n) */
	uint32_t flags;  /* KVL_MEM_FD */
	int fd; /* a memfd that backs [addr, addr + len), mapped shared; the library keeps a duplicate */
	uint64_t fd_offset;
};

/*
 * Registers n regions, all or none; the error names the entry. The memory must stay mapped until its last
 * deregister returns. Against regions already registered:
 *
 *	the same addr, len, rights and device	counted: the same handle again, one more deregister needed
 *	same range, other rights or device	KVL_ERR_RIGHTS
 *	any other common byte			KVL_ERR_OVERLAP; the rule says sub-range, superset or partial
 *
 * A memfd that can not be sealed against shrinking is moved by copies, not mapped by peers.
 */
KVL_API KVL_CHECK int kvl_mem_register(kvl_agent_t agent, const struct kvl_mem *mem, size_t n, kvl_mr_t *out);

/*
 * Drops one count of each handle, all or none; a handle may be named as often as it was registered. With the
 * last count the region is withdrawn, and on return no peer reads or writes it. KVL_ERR_BUSY: a posted
 * request of this agent names it. KVL_ERR_TIMED_OUT: withdrawn, but a stopped peer is inside a copy; call
 * again. May block for the length of one chunk copy of a peer, 1 s at most.
 */
KVL_API KVL_CHECK int kvl_mem_deregister(kvl_agent_t agent, const kvl_mr_t *mr, size_t n);

/*
 * Allocates zeroed memory that peers of this host map, and registers it. It is unmapped by the last
 * kvl_mem_deregister of its handle.
 */
KVL_API KVL_CHECK int kvl_mem_alloc(kvl_agent_t agent, uint64_t len, uint32_t rights, void **addr,
				    kvl_mr_t *out);

/* -------------------------------------------------------------------------------------- metadata and peers */

/*
 * The bytes another agent needs to connect: identity, address, regions with rights. *len is the room in buf
 * and gets the length; KVL_ERR_LIMIT when the room is short (buf may be NULL with *len = 0).
 */
KVL_API KVL_CHECK int kvl_agent_metadata(kvl_agent_t agent, void *buf, size_t *len);

/*
 * Connects to the agent that made the bytes; own metadata is welcome (loopback). Blocks at most timeout_ns
 * (0: connect_timeout_ms). KVL_ERR_STALE: that agent's life is over. KVL_ERR_IDENTITY: another agent answers
 * at its address. KVL_ERR_EXISTS: this incarnation is connected already.
 */
KVL_API KVL_CHECK int kvl_peer_connect(kvl_agent_t agent, const void *metadata, size_t len,
				       uint64_t timeout_ns, kvl_peer_t *out);

/*
 * Takes the peer's newer metadata: regions are added and retracted while requests are in flight; requests
 * that name a retracted region end with KVL_ERR_STALE. KVL_ERR_STALE: bytes of another incarnation.
 * Blocks at most connect_timeout_ms.
 */
KVL_API KVL_CHECK int kvl_peer_update(kvl_agent_t agent, kvl_peer_t peer, const void *metadata, size_t len);

/*
 * Closes it: its pending requests end (KVL_ERR_PEER_LOST). From then on its lists and requests can not be posted
 * (KVL_ERR_STALE); requests can still be polled, reported and released. May block for one chunk copy of a lane.
 */
KVL_API KVL_CHECK int kvl_peer_close(kvl_agent_t agent, kvl_peer_t peer);

struct kvl_peer_info {
	size_t size;
	char name[KVL_NAME_MAX];
	uint8_t incarnation[KVL_INCARNATION];
	char wire[16];
	char path[16];         /* best way found at connect: "map", "copy", "slot", "sim" */
	char path_reason[128]; /* why not a better one; empty when it is the best */
	int connected;         /* 0 once the peer is lost */
	uint32_t lanes, latency_lanes;
	uint32_t regions, mapped_regions;
};
KVL_API KVL_CHECK int kvl_peer_info(kvl_agent_t agent, kvl_peer_t peer, struct kvl_peer_info *out);

struct kvl_region_info {
	size_t size;
	uint64_t addr, len;
	uint32_t rights, device;
	int mapped; /* in this process */
};

/* The regions of its metadata: index from 0; KVL_ERR_NOT_FOUND past the end. An update changes the numbering. */
KVL_API KVL_CHECK int kvl_peer_region(kvl_agent_t agent, kvl_peer_t peer, size_t index,
				      struct kvl_region_info *out);

/*
 * Where [addr, addr + len) of the peer is mapped in this process: for measuring against a plain copy, or for
 * looking at data in place. Valid until kvl_peer_close, or a kvl_peer_update that retracts the region; after the
 * peer's death it still can be read. KVL_ERR_UNSUPPORTED when not mapped.
 */
KVL_API KVL_CHECK int kvl_peer_map(kvl_agent_t agent, kvl_peer_t peer, uint64_t addr, uint64_t len,
				   void **out);

/* -------------------------------------------------------------------------------------------- rendezvous */

/*
 * Publishes the agent's metadata under its name in a directory, or refreshes it after registrations changed.
 * Leftovers of dead agents are removed. KVL_ERR_EXISTS: a live agent of that name is there. Withdrawn by
 * kvl_agent_close; after a crash the entry is recognised as stale.
 */
KVL_API KVL_CHECK int kvl_publish(kvl_agent_t agent, const char *dir);

/*
 * Reads the metadata of a live agent, waiting up to timeout_ns for it to appear (may block that long).
 * KVL_ERR_NOT_FOUND: no live agent of that name. *buf is freed by the caller with free().
 */
KVL_API KVL_CHECK int kvl_lookup(const char *dir, const char *name, uint64_t timeout_ns, void **buf,
				 size_t *len);

/* kvl_lookup, waiting up to timeout_ns for the agent, then kvl_peer_connect with connect_timeout_ms. */
KVL_API KVL_CHECK int kvl_peer_find(kvl_agent_t agent, const char *dir, const char *name, uint64_t timeout_ns,
				    kvl_peer_t *out);

/* ------------------------------------------------------------------------------------------------- lists */

/* For the peer argument of the list calls: memory of this agent. */
#define KVL_LOCAL ((kvl_peer_t)0)

struct kvl_desc {
	uint64_t addr; /* in the address space of its owner */
	uint64_t len;  /* >= 1 */
	uint32_t device;
	uint32_t reserved; /* 0 */
};

/* count pieces of len bytes, stride bytes from start to start (stride >= len when count > 1). */
struct kvl_run {
	uint64_t addr, len, stride, count;
	uint32_t device;
	uint32_t reserved;
};

/*
 * Prepares a list: every entry is checked once against the registered regions (of this agent, or of the peer
 * as in its metadata) and must lie inside one region; an entry across two regions is refused. Lists are
 * shared freely by requests and threads. n = 0 is allowed: a request of empty lists ends OK and carries its
 * notification. Entries of runs are numbered piece by piece, in order.
 */
KVL_API KVL_CHECK int kvl_list_create(kvl_agent_t agent, kvl_peer_t peer, const struct kvl_desc *desc,
				      size_t n, kvl_list_t *out);
KVL_API KVL_CHECK int kvl_list_create_runs(kvl_agent_t agent, kvl_peer_t peer, const struct kvl_run *run,
					   size_t n, kvl_list_t *out);

/* A block table: entry i is [base + index[i] * block_bytes, + block_bytes). */
KVL_API KVL_CHECK int kvl_list_create_blocks(kvl_agent_t agent, kvl_peer_t peer, uint64_t base,
					     uint64_t block_bytes, const uint32_t *index, size_t n,
					     uint32_t device, kvl_list_t *out);

/* Number of entries, or a negative error. */
KVL_API int64_t kvl_list_entries(kvl_agent_t agent, kvl_list_t list);

/* The handle ends at once; requests made from the list keep what they need. */
KVL_API KVL_CHECK int kvl_list_destroy(kvl_agent_t agent, kvl_list_t list);

/* ---------------------------------------------------------------------------------------------- requests */

enum kvl_op {
	KVL_WRITE = 1,
	KVL_READ = 2
}; /* as seen from the caller: WRITE fills the peer's memory */

enum kvl_path {
	KVL_PATH_AUTO = 0,
	KVL_PATH_DIRECT = 1,
	KVL_PATH_BOUNCE = 2
};

#define KVL_LANE_AUTO    0u /* by size: small_bytes */
#define KVL_LANE_LATENCY 1u
#define KVL_LANE_BULK    2u
#define KVL_LANE(n)      (16u + (uint32_t)(n)) /* this one, from 0; latency lanes come first */

#define KVL_XFER_NOTIFY   1u /* a notification is attached; only an empty one needs the flag */
#define KVL_XFER_NO_MERGE 2u /* keep neighbours apart that could move as one piece */

struct kvl_xfer_opts {
	size_t size;
	uint32_t lane;  /* KVL_LANE_... */
	uint32_t flags; /* KVL_XFER_... */
	enum kvl_path path;
	const void *notif; /* copied */
	uint64_t notif_len;
	uint64_t deadline_ns; /* from each post; 0: deadline_ms of the agent */
	void *user;           /* handed back by kvl_poll_many */
};

/*
 * Makes a request of two lists with equal counts and equal lengths entry by entry. opts may be NULL. The
 * request keeps what it needs of the lists. It holds a slot until released; KVL_ERR_AGAIN: all in use.
 */
KVL_API KVL_CHECK int kvl_xfer_prepare(kvl_agent_t agent, enum kvl_op op, kvl_list_t local, kvl_list_t remote,
				       const struct kvl_xfer_opts *opts, kvl_xfer_t *out);

/*
 * The same for n chosen entries: local entry local_index[i] with remote entry remote_index[i]. The arrays
 * are the block ids of one hand-over and are not kept. An index may occur more than once; two that write the
 * same bytes leave them undefined.
 */
KVL_API KVL_CHECK int kvl_xfer_prepare_indexed(kvl_agent_t agent, enum kvl_op op, kvl_list_t local,
					       const uint32_t *local_index, kvl_list_t remote,
					       const uint32_t *remote_index, size_t n,
					       const struct kvl_xfer_opts *opts, kvl_xfer_t *out);

#define KVL_POST_NOTIFY    1u /* this notification from now on; only an empty one needs the flag */
#define KVL_POST_NO_NOTIFY 2u /* none from now on */

struct kvl_post {
	size_t size;
	uint32_t flags;
	const void *notif; /* copied */
	uint64_t notif_len;
	uint64_t deadline_ns; /* 0: as prepared */
};

/*
 * Posts a request, again as often as wanted once it has ended. post may be NULL: as before. From here to the
 * end the local memory belongs to the library: do not write it (WRITE), do not touch it (READ).
 * The end of a WRITE means that its bytes are placed in the peer's memory and visible to it; of a READ, in
 * local memory. Requests of one lane end in the order of their posts; there is no order across lanes, nor
 * between entries of one request. Never blocks. A small request on an idle lane is executed by the call itself.
 * The deadline is kept whatever the peer does, but not against an older request of the same lane that has a later
 * one: FIFO comes first. KVL_ERR_TIMED_OUT on path "slot" leaves one frame in doubt when the peer was stopped in the
 * middle of it: it may fill that range of its own memory when it goes on.
 * KVL_ERR_AGAIN: the lane's queue is full. KVL_ERR_BUSY: still pending. KVL_ERR_STALE: the peer was closed, or a
 * region is gone. KVL_ERR_PEER_LOST: the peer died or closed.
 */
KVL_API KVL_CHECK int kvl_xfer_post(kvl_agent_t agent, kvl_xfer_t xfer, const struct kvl_post *post);

/*
 * One load: 0 once the request has ended well, KVL_PENDING, or the error it ended with. The end is the
 * permission to reuse its memory, whatever the code. Drives no progress.
 */
KVL_API KVL_CHECK int kvl_xfer_poll(kvl_agent_t agent, kvl_xfer_t xfer);

/*
 * Like poll, but drives progress and blocks up to timeout_ns for the end; KVL_PENDING when that passes first,
 * KVL_ERR_CLOSED when the agent is closed meanwhile.
 */
KVL_API KVL_CHECK int kvl_xfer_wait(kvl_agent_t agent, kvl_xfer_t xfer, uint64_t timeout_ns);

/*
 * Asks for an early end: nothing more is issued, what is in flight drains, then the request ends with
 * KVL_ERR_CANCELED (or as it would have, if it was done by then). Poll for the end. Never blocks.
 */
KVL_API KVL_CHECK int kvl_xfer_cancel(kvl_agent_t agent, kvl_xfer_t xfer);

/* Frees the slot. KVL_ERR_BUSY while pending, and the handle stays good. */
KVL_API KVL_CHECK int kvl_xfer_release(kvl_agent_t agent, kvl_xfer_t xfer);

/* List of descriptors to request to post in one call. The request is released by the caller as always. */
KVL_API KVL_CHECK int kvl_write(kvl_agent_t agent, kvl_peer_t peer, const struct kvl_desc *local,
				const struct kvl_desc *remote, size_t n, const struct kvl_xfer_opts *opts,
				kvl_xfer_t *out);
KVL_API KVL_CHECK int kvl_read(kvl_agent_t agent, kvl_peer_t peer, const struct kvl_desc *local,
			       const struct kvl_desc *remote, size_t n, const struct kvl_xfer_opts *opts,
			       kvl_xfer_t *out);

struct kvl_report {
	size_t size;
	int status;     /* as kvl_xfer_poll */
	int provider;   /* the wire's own code of the first error (errno on the local wire), 0 when none */
	uint64_t bytes; /* handed to the wire; 0 until the end */
	uint64_t total_bytes; /* of the lists */
	uint64_t descriptors; /* entries of the lists */
	uint64_t pieces;      /* after neighbours were merged */
	uint64_t chunks;      /* handed to the wire */
	size_t failed_entry;  /* list entry at the start of the failing chunk, KVL_NO_ENTRY when none */
	uint32_t lane;
	uint64_t ticket; /* place in the lane */
	char path[16];   /* "map", "copy", "slot", "sim", "none" (empty lists); "mixed" */
	char reason[64]; /* why this path */
	uint64_t start_ns, post_ns, issue_ns, wire_ns,
		end_ns; /* start: stamped, or the post; wire: last chunk done */
};

/* Of the latest post. Allowed at any time; times that have not come are 0. */
KVL_API KVL_CHECK int kvl_xfer_report(kvl_agent_t agent, kvl_xfer_t xfer, struct kvl_report *out);

enum kvl_stamp {
	KVL_STAMP_START = 1,
	KVL_STAMP_END = 2
};

/*
 * Sets start_ns or end_ns of the report by hand, for callers who count from an earlier event or to a later
 * one; time_ns 0 means now; a post clears both. KVL_ERR_BUSY: an end is stamped only after the end.
 */
KVL_API KVL_CHECK int kvl_xfer_stamp(kvl_agent_t agent, kvl_xfer_t xfer, enum kvl_stamp stamp,
				     uint64_t time_ns);

/* CLOCK_MONOTONIC, ns. */
KVL_API uint64_t kvl_now(void);

/* ------------------------------------------------------------------------------- notifications and events */

/*
 * Sends bytes to the peer, alone: shorthand for a request of empty lists with a notification that releases
 * itself. opts: lane and deadline. Ordered after earlier posts of the same lane only. Never blocks.
 */
KVL_API KVL_CHECK int kvl_notify(kvl_agent_t agent, kvl_peer_t peer, const void *data, uint64_t len,
				 const struct kvl_xfer_opts *opts);

struct kvl_notif {
	const void *data; /* len bytes; 8-byte aligned */
	uint64_t len;
	uint32_t lane;           /* of the sender; order holds within one sender's lane */
	char peer[KVL_NAME_MAX]; /* who sent it */
	uint8_t incarnation[KVL_INCARNATION];
};

/*
 * Takes the oldest notification, KVL_ERR_AGAIN when there is none. An attached one appears only after all
 * data of its request is visible here. *out belongs to the caller until kvl_notif_free().
 */
KVL_API KVL_CHECK int kvl_notif_next(kvl_agent_t agent, struct kvl_notif **out);
KVL_API void kvl_notif_free(struct kvl_notif *notif);

/* The same, blocking up to timeout_ns for one while driving progress; KVL_ERR_AGAIN when that passes first. */
KVL_API KVL_CHECK int kvl_notif_wait(kvl_agent_t agent, uint64_t timeout_ns, struct kvl_notif **out);

struct kvl_end {
	kvl_xfer_t xfer;
	int status; /* as kvl_xfer_poll */
	void *user;
};

/*
 * Takes up to max ended requests, oldest end first, each end exactly once; blocks up to timeout_ns for the
 * first while driving progress. Returns their number, 0 on timeout. Ends that kvl_xfer_poll or _wait have
 * shown are still listed here until the request is posted again or released.
 */
KVL_API KVL_CHECK int kvl_poll_many(kvl_agent_t agent, struct kvl_end *out, size_t max, uint64_t timeout_ns);

/*
 * Blocks until a notification or an ended request can be taken, up to timeout_ns, driving progress. Returns
 * 1 when something is there, 0 on timeout.
 */
KVL_API KVL_CHECK int kvl_agent_wait(kvl_agent_t agent, uint64_t timeout_ns);

/* One bounded pass over the lanes; returns how many of them moved something. For agents with no workers. */
KVL_API int kvl_progress(kvl_agent_t agent);

/*
 * A descriptor for epoll: readable while ended requests or notifications can be taken. Owned by the agent;
 * do not read or close it. Take until kvl_notif_next says KVL_ERR_AGAIN and kvl_poll_many says 0.
 */
KVL_API KVL_CHECK int kvl_agent_fd(kvl_agent_t agent);

#ifdef __cplusplus
}
#endif

#endif
