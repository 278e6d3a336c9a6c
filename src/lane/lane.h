/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host lanes: the step functions over a wire, driven by worker threads or by whichever caller waits.
 *
 * A lane with work is either being driven, or on its loop's ready list, or blocked until the wire kicks it.
 * Whoever drives gives each lane a quantum of bytes in turn (deficit round robin, Shreedhar and Varghese
 * 1995), so that a small request waits behind at most one chunk of another lane.
 */
#ifndef KVLI_LANE_H
#define KVLI_LANE_H

#include <pthread.h>

#include "wire/wire.h"
#include "lane/core.h"

/* One posted request as its lane sees it. Lives in the request's slot; the poster fills it, then the driver. */
struct kvli_job {
	struct lane_request core;
	enum kvl_op op;
	struct kvli_cursor cursor;
	const void *notif;
	uint64_t notif_len, notif_sent;
	uint64_t order; /* place in the agent-wide order, for retire_order = global */
	/* for the report */
	uint64_t bytes;
	size_t failed_segment;               /* in which the failing chunk began; SIZE_MAX while well */
	uint64_t post_ns, issue_ns, wire_ns; /* wire_ns 0 at the end: the same as the end */
	const char *path;
	int provider;
};

struct kvli_engine;
struct kvli_loop;

struct kvli_lane {
	struct lane_core core;
	pthread_mutex_t producers; /* reserve order; closed is written under it */
	struct word32 closed;      /* 0, or -error that posts get; a flag to the driver */
	int64_t credit;            /* bytes this lane may still move in its turn */
	struct kvli_engine *engine;
	struct kvli_loop *loop;
	const struct kvli_wire_ops *ops;
	struct kvli_wire_lane *wire;
	void *owner; /* kept alive by engine->hold while the lane is on a list or driven */
	uint32_t index;
	int needs_poll;
	struct kvli_lane *next_ready; /* under loop->lock */
	int on_ready;
};

/* retire_order = global: one list over all lanes, the oldest unfinished request first. */
struct kvli_order {
	pthread_mutex_t lock;
	uint64_t head, next;
	uint32_t mask;
	struct kvli_lane **lane; /* of each place */
	uint8_t *done;
};

struct kvli_engine_config {
	uint32_t workers;
	uint64_t chunk_bytes;
	uint32_t max_jobs;
	int global;
	/* job i is at jobs + i * stride */
	uint8_t *jobs;
	size_t stride;
	void *agent;
	/* The driver's last touch of a job: publishes its record. */
	void (*ended)(void *agent, uint32_t index, int status);
	void (*hold)(void *owner);
	void (*drop)(void *owner);
	/* Without workers: somebody who waits should look for ready lanes. */
	void (*call)(void *agent);
};

struct kvli_engine {
	struct kvli_engine_config config;
	struct kvli_order order;
	struct kvli_loop *loop;
	uint32_t n_loops;
};

int kvli_engine_open(struct kvli_engine *engine, const struct kvli_engine_config *config);
void kvli_engine_close(struct kvli_engine *engine); /* joins the workers; no lane is left */

/* Runs every ready lane once; returns how many moved. */
int kvli_engine_progress(struct kvli_engine *engine);

int kvli_lane_open(struct kvli_lane *lane, struct kvli_engine *engine, uint32_t index, uint32_t depth,
		   uint32_t window);
void kvli_lane_free(struct kvli_lane *lane);

/*
 * Queues a job; its record is PENDING already. KVL_ERR_AGAIN or the lane's closing error: nothing was done.
 * eager: when the lane is idle, the caller moves it here and now.
 */
int kvli_lane_post(struct kvli_lane *lane, uint32_t index, struct kvli_job *job, int eager);

/* Drives the lane for one turn if it is free. The caller keeps the owner alive. */
enum lane_result kvli_lane_run(struct kvli_lane *lane);

/* Drives it, if it is free, until *record is not `pending` any more, the lane blocks, or the deadline. */
void kvli_lane_run_until(struct kvli_lane *lane, const struct word64 *record, uint64_t pending,
			 uint64_t deadline_ns);

/* Asks for an early end of one post, see lane_stop(); then sweep its lane. */
void kvli_job_stop(struct kvli_job *job, uint64_t tag, int error);

/* Makes somebody look at it. From any thread. */
void kvli_lane_kick(struct kvli_lane *lane);

/* Retires what was stopped, moving no bytes. The caller keeps the owner alive. */
void kvli_lane_sweep(struct kvli_lane *lane);

/* Waits for the driver's turn to end and keeps the lane from being driven until unseize. */
void kvli_lane_seize(struct kvli_lane *lane);
void kvli_lane_unseize(struct kvli_lane *lane);

/*
 * Ends everything queued with `error` and refuses later posts with it. Waits for a driver's current turn.
 * On return nothing of the lane is in flight.
 */
void kvli_lane_shut(struct kvli_lane *lane, int error);

#endif
