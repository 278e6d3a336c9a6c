/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A software NIC inside one process. Its time is virtual: it goes on by one tick with every poll of a
 * lane, so that what happens depends on the seed and on the calls alone, never on a clock. docs/sim.md
 * is its manual.
 *
 * Locks nest in this order, and none is held during an upcall:
 *
 *	registry	process-wide, sim_registry.c: who is open, who is connected to whom, running upcalls
 *	queue.lock	of the lane, or of the whole wire with reorder = 0: chunks in flight and the tick
 *	serve		of the target: its regions. Held while bytes move, which makes revoke() a fence
 *
 * Never registry and queue.lock together. Fields that name no lock are set once, before anyone else can see
 * them, or belong to the lane's driver.
 */
#ifndef KVLI_SIM_H
#define KVLI_SIM_H

#include <pthread.h>

#include "wire/wire.h"

#define SIM_PIECES    64         /* most pieces of one chunk */
#define SIM_MAX_CHUNK (1u << 30) /* bytes */
#define SIM_STORM     100        /* longest run of AGAIN that again = P makes */

struct sim_options {
	uint64_t seed;
	uint64_t delay;   /* ticks that a chunk may take beyond the first */
	uint64_t again;   /* percent of issues and notifications */
	uint64_t error;   /* per mille of chunks */
	uint64_t reorder; /* 0: all lanes of the agent complete in the order of issue */
};

struct sim_piece {
	uint64_t local, remote, len, generation;
	uint32_t slot;
};

struct sim_chunk {
	struct sim_chunk *next;
	struct kvli_wire_lane *lane;
	uint64_t due; /* tick; later when an older chunk of the queue is due later */
	uint64_t cookie;
	uint64_t limit; /* bytes that move: all, or less when fault is set */
	enum kvl_op op;
	int fault;
	int status; /* what poll() reports */
	uint32_t n;
	struct sim_piece piece[SIM_PIECES];
};

struct sim_list {
	struct sim_chunk *head, *tail;
};

struct sim_queue {
	pthread_mutex_t lock;
	uint64_t tick;
	struct sim_list flight; /* in the order of issue; only the first may complete, once it is due */
};

struct sim_region {
	uint64_t generation, base, len;
	uint32_t rights;
	int exposed;
};

struct kvli_wire_lane {
	struct kvli_conn *conn;
	uint32_t index;
	uint32_t epoch;
	int failed;     /* an error was reported: nothing is taken until reopen() */
	uint32_t storm; /* AGAIN in a row */
	uint64_t random;
	struct sim_queue own, *queue;
	struct sim_list done;  /* fenced or flushed without having moved; reported before anything else */
	struct sim_list spare; /* chunks to use again */
	struct sim_chunk *pool;
	uint32_t used; /* pool entries that were ever taken: the others are untouched memory */
};

struct kvli_conn {
	struct kvli_wire *owner;
	struct kvli_wire *target;
	void *peer;             /* handed to the owner's lost() and kick() */
	struct kvli_conn *next; /* registry: of target->inbound */
	uint32_t upcalls;       /* registry: lost() and kick() that run now */
	int blocked;            /* registry: the target had no room for a notification */
	int due_kick, due_lost; /* registry: one upcall is owed */
	uint32_t n_lanes;
	struct kvli_wire_lane lane[];
};

struct kvli_wire {
	struct kvli_wire_host host;
	struct sim_options options;
	uint32_t lanes, window;
	struct kvli_wire *next;    /* registry */
	struct kvli_conn *inbound; /* registry: connections of peers to this wire */
	uint32_t refs;             /* registry: the agent's and one per inbound connection */
	uint32_t upcalls;          /* registry: deliver() that run now */
	uint64_t resumes;          /* registry: how often resume() was called */
	int closed;                /* written under registry and serve, read under either */
	pthread_mutex_t turn;      /* taken before serve and dropped at once, see kvli_sim_serve() */
	pthread_mutex_t serve;
	struct sim_region *region; /* serve */
	uint32_t n_regions;        /* serve */
	struct sim_queue queue;    /* of all lanes when reorder = 0 */
};

extern const struct kvli_wire_ops kvli_wire_sim;

/* Any thread. KVL_ERR_OPTION names the key, the value and what is allowed. text may be NULL: all defaults. */
int kvli_sim_options(const char *text, struct sim_options *out);

/*
 * Takes the serve lock behind one waiter at most per copy: a mutex alone is not fair, and a lane that copies
 * over and over could keep revoke() out for long. Dropped by unlocking serve.
 */
void kvli_sim_serve(struct kvli_wire *wire);

/* Bytes from here on may be touched by peers, or not any more once it has returned. */
int kvli_sim_expose(struct kvli_wire *wire, uint32_t slot, uint64_t generation, const struct kvl_mem *mem);
void kvli_sim_revoke(struct kvli_wire *wire, uint32_t slot);
int kvli_sim_exposed(struct kvli_wire *wire, const struct kvli_remote *remote); /* 1 or 0 */

/*
 * Moves the chunk's bytes, up to its limit, after all its pieces were found inside regions of their
 * generation: 0, or an error and nothing has moved. Under the lane's queue.lock.
 */
int kvli_sim_move(struct kvli_wire *target, const struct sim_chunk *chunk);

/* The last step of open() and the first of close(). After leave() no upcall of this wire runs. */
int kvli_sim_enter(struct kvli_wire *wire);
void kvli_sim_leave(struct kvli_wire *wire);
void kvli_sim_put(struct kvli_wire *wire); /* drops a reference; the last one frees */

/* Finds the target and ties conn to it. After detach() no upcall about conn runs. */
int kvli_sim_attach(struct kvli_conn *conn, const struct kvli_identity *peer, const void *incarnation);
void kvli_sim_detach(struct kvli_conn *conn);

/* Takes the notification on success only. KVL_ERR_AGAIN: the owner is kicked when the target resumes. */
int kvli_sim_deliver(struct kvli_conn *conn, struct kvli_notif *notif);
void kvli_sim_resume(struct kvli_wire *wire);

void kvli_sim_queue_init(struct sim_queue *queue);
void kvli_sim_queue_fini(struct sim_queue *queue);

/* KVL_ERR_NOMEM. conn is attached: both names seed the lane. */
int kvli_sim_lane_open(struct kvli_wire_lane *lane, struct kvli_conn *conn, uint32_t index);
void kvli_sim_lane_close(struct kvli_wire_lane *lane); /* what is in flight is forgotten */

/* As the calls of struct kvli_wire_ops; by the lane's driver. */
int64_t kvli_sim_issue(struct kvli_wire_lane *lane, enum kvl_op op, struct kvli_cursor *cursor,
		       uint64_t max_bytes, uint64_t cookie, const char **path, int *provider);
int kvli_sim_poll(struct kvli_wire_lane *lane, struct kvli_completion *out, int max);
int kvli_sim_notify(struct kvli_wire_lane *lane, const void *data, uint64_t len, uint64_t *sent);
int kvli_sim_fence(struct kvli_wire_lane *lane, int status);
void kvli_sim_reopen(struct kvli_wire_lane *lane);

#endif
