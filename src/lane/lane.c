/* SPDX-License-Identifier: Apache-2.0 */
#include "lane/lane.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "lane/loop.h"
#include "lane/order.h"

/* ------------------------------------------------------------------------------- hooks of the step functions */

static struct kvli_lane *lane_of(struct lane_core *core)
{
	return (struct kvli_lane *)core; /* core is its first member */
}

static int lane_closed(const struct kvli_lane *lane)
{
	return -(int)word32_load_acquire_sys(&lane->closed); /* a flag */
}

static struct kvli_job *lane_job(const struct kvli_lane *lane, uint32_t index)
{
	const struct kvli_engine_config *c = &lane->engine->config;

	return (struct kvli_job *)(void *)(c->jobs + index * c->stride);
}

static struct lane_request *lane_hook_request(struct lane_core *core, uint32_t index)
{
	return &lane_job(lane_of(core), index)->core;
}

static void job_issued(struct kvli_job *job, const char *path)
{
	if (job->path == NULL)
		job->path = path;
	else if (job->path != path)
		job->path = "mixed";
}

/* A job that its post executes has the post's time already: reading the clock costs as much as a small copy. */
static void job_stamp_issue(struct kvli_job *job)
{
	if (job->issue_ns == 0)
		job->issue_ns = kvli_now();
}

static int lane_hook_issue(struct lane_core *core, uint32_t index)
{
	struct kvli_lane *lane = lane_of(core);
	struct kvli_job *job = lane_job(lane, index);
	const char *path = NULL;
	uint64_t cookie = (uint64_t)job->cursor.at << 32 | index;
	int64_t bytes;

	if (job->cursor.at == job->cursor.n)
		return LANE_LAST;
	job_stamp_issue(job);
	bytes = lane->ops->issue(lane->wire, job->op, &job->cursor, lane->engine->config.chunk_bytes, cookie,
				 &path, &job->provider);
	if (bytes < 0) {
		if (bytes != KVL_ERR_AGAIN)
			job->failed_segment = job->cursor.at;
		return (int)bytes;
	}
	job_issued(job, path);
	job->bytes += (uint64_t)bytes;
	lane->credit -= bytes;
	return LANE_ISSUED | (job->cursor.at == job->cursor.n ? LANE_LAST : 0);
}

static int lane_hook_may_retire(struct lane_core *core, uint32_t index)
{
	struct kvli_lane *lane = lane_of(core);

	if (!lane->engine->config.global || lane_closed(lane))
		return 1;
	return kvli_order_is_head(&lane->engine->order, lane_job(lane, index)->order);
}

static int lane_hook_notify(struct lane_core *core, uint32_t index)
{
	struct kvli_lane *lane = lane_of(core);
	struct kvli_job *job = lane_job(lane, index);

	return lane->ops->notify(lane->wire, job->notif, job->notif_len, &job->notif_sent);
}

static void lane_hook_publish(struct lane_core *core, uint32_t index, int status)
{
	struct kvli_lane *lane = lane_of(core), *next = NULL;
	struct kvli_engine *engine = lane->engine;
	uint64_t order = engine->config.global ? lane_job(lane, index)->order : 0;

	engine->config.ended(engine->config.agent, index, status);
	if (engine->config.global)
		next = kvli_order_end(&engine->order, order, engine->config.hold);
	if (next && next != lane)
		kvli_loop_put(next);
	if (next)
		engine->config.drop(next->owner);
}

static void lane_hook_reopen(struct lane_core *core)
{
	struct kvli_lane *lane = lane_of(core);

	lane->ops->reopen(lane->wire);
}

#include "lane/step.h"

/* ------------------------------------------------------------------------------------------------- driving */

#define COMPLETIONS 16

/* Nothing will come between its last chunk and its end: one time serves for both. */
static int lane_ends_now(const struct kvli_lane *lane, const struct kvli_job *job)
{
	return job->core.ticket == word32_load_relaxed_sys(&lane->core.head) && /* own word */
	       job->cursor.at == job->cursor.n && !job->core.notify && !lane->engine->config.global;
}

static int lane_take_completions(struct kvli_lane *lane)
{
	struct kvli_completion done[COMPLETIONS];
	int n = lane->core.inflight ? lane->ops->poll(lane->wire, done, COMPLETIONS) : 0;

	for (int i = 0; i < n; i++) {
		uint32_t index = (uint32_t)done[i].cookie;
		struct kvli_job *job = lane_job(lane, index);

		if (done[i].status && job->core.error == 0) {
			job->provider = done[i].provider;
			job->failed_segment = (size_t)(done[i].cookie >> 32);
		}
		lane_complete(&lane->core, index, done[i].status);
		if (job->core.outstanding == 0 && !lane_ends_now(lane, job))
			job->wire_ns = kvli_now();
	}
	return n;
}

/*
 * A head request that was told to stop and has chunks in flight gets the wire's fence. Chunks of requests
 * behind it fall with it; they end as flushed.
 */
static void lane_fence_stopped(struct kvli_lane *lane)
{
	struct lane_core *core = &lane->core;
	uint32_t head = word32_load_relaxed_sys(&core->head); /* own word */
	struct lane_request *r;
	int asked;

	if (head == core->issue || core->inflight == 0)
		return;
	r = lane_hook_request(core, core->slot[head & core->mask]);
	asked = lane_stop_asked(r);
	if (r->outstanding == 0 || asked == 0 || asked == KVL_ERR_CANCELED) /* a cancel drains by itself */
		return;
	if (r->error == 0)
		r->error = asked;
	lane->ops->fence(lane->wire, lane_closed(lane) ? KVL_ERR_CLOSED : KVL_ERR_FLUSHED);
}

static int lane_may_issue(const struct kvli_lane *lane)
{
	const struct lane_core *core = &lane->core;

	if (lane->credit > 0)
		return 1;
	if (core->issue == word32_load_acquire_sys(&core->tail)) /* E3 */
		return 0;
	return lane_stop_reason(core, &lane_job(lane, core->slot[core->issue & core->mask])->core) != 0;
}

/* Steps until nothing moves, the credit is spent, or *record has ended. */
static enum lane_result lane_steps(struct kvli_lane *lane, const struct word64 *record, uint64_t pending)
{
	enum lane_result retired, issued = LANE_IDLE, result = LANE_IDLE;
	int moved;

	do {
		moved = lane_take_completions(lane);
		retired = lane_retire(&lane->core);
		if (retired == LANE_BLOCKED)
			lane_fence_stopped(lane);
		if (record && word64_load_acquire_sys(record) != pending) /* E5 */
			return LANE_MOVED;
		issued = lane_may_issue(lane) ? lane_issue(&lane->core) : LANE_IDLE;
		if (moved || retired == LANE_MOVED || issued == LANE_MOVED)
			result = LANE_MOVED;
	} while (moved || retired == LANE_MOVED || issued == LANE_MOVED);
	if (retired == LANE_BLOCKED || issued == LANE_BLOCKED)
		return result == LANE_MOVED ? result : LANE_BLOCKED;
	return result;
}

/* Whether it could move more at once, had it credit; asked by its driver. */
static int lane_wants_turn(const struct kvli_lane *lane)
{
	const struct lane_core *core = &lane->core;

	if (lane->needs_poll && !lane_queue_empty(core))
		return 1;
	return lane->credit <= 0 && core->issue != word32_load_acquire_sys(&core->tail); /* E3 */
}

/* Leaves the lane, and sees to it that somebody takes up what is left. */
static int lane_leave(struct kvli_lane *lane, int again)
{
	if (!again)
		lane->credit = 0; /* an idle lane saves nothing up */
	if (!lane_drive_leave(&lane->core))
		return 0;
	if (again)
		kvli_loop_put(lane);
	return 1;
}

static enum lane_result lane_turn(struct kvli_lane *lane)
{
	enum lane_result result;

	do
		result = lane_steps(lane, NULL, 0);
	while (!lane_leave(lane, lane_wants_turn(lane)));
	return result;
}

/* What a lane overdrew in its last turn counts; what it could not use does not. */
enum lane_result kvli_lane_run(struct kvli_lane *lane)
{
	if (!lane_drive_try(&lane->core))
		return LANE_IDLE;
	lane->credit = (lane->credit < 0 ? lane->credit : 0) + (int64_t)lane->engine->config.chunk_bytes;
	return lane_turn(lane);
}

void kvli_lane_run_until(struct kvli_lane *lane, const struct word64 *record, uint64_t pending,
			 uint64_t deadline_ns)
{
	enum lane_result result;

	if (!lane_drive_try(&lane->core))
		return;
	do {
		do {
			lane->credit = (int64_t)lane->engine->config.chunk_bytes;
			result = lane_steps(lane, record, pending);
		} while (result == LANE_MOVED && word64_load_acquire_sys(record) == pending && /* E5 */
			 kvli_now() < deadline_ns);
	} while (!lane_leave(lane,
			     (result == LANE_MOVED || lane->needs_poll) && !lane_queue_empty(&lane->core)));
}

void kvli_lane_sweep(struct kvli_lane *lane)
{
	if (!lane_drive_try(&lane->core))
		return;
	lane->credit = lane->credit < 0 ? lane->credit : 0; /* ends only, no bytes */
	lane_turn(lane);
}

void kvli_job_stop(struct kvli_job *job, uint64_t tag, int error)
{
	lane_stop(&job->core, tag, error);
}

void kvli_lane_kick(struct kvli_lane *lane)
{
	if (!lane_queue_empty(&lane->core))
		kvli_loop_put(lane);
}

/* ------------------------------------------------------------------------------------------ posting and ends */

static int lane_reserve_ordered(struct kvli_lane *lane, uint32_t index, struct kvli_job *job)
{
	struct kvli_order *order = &lane->engine->order;
	int rc;

	pthread_mutex_lock(&order->lock);
	job->order = order->next; /* before the driver can see the ticket */
	rc = kvli_order_full(order) ? KVL_ERR_AGAIN : lane_reserve(&lane->core, index, &job->core);
	if (rc == 0)
		kvli_order_begin(order, lane);
	pthread_mutex_unlock(&order->lock);
	return rc;
}

static int lane_enqueue(struct kvli_lane *lane, uint32_t index, struct kvli_job *job)
{
	int rc;

	pthread_mutex_lock(&lane->producers);
	rc = lane_closed(lane);
	if (rc == 0 && lane->engine->config.global)
		rc = lane_reserve_ordered(lane, index, job);
	else if (rc == 0)
		rc = lane_reserve(&lane->core, index, &job->core);
	pthread_mutex_unlock(&lane->producers);
	return rc;
}

int kvli_lane_post(struct kvli_lane *lane, uint32_t index, struct kvli_job *job, int eager)
{
	int rc, idle = eager && lane_queue_empty(&lane->core);

	if (idle) {
		lane->engine->config.hold(lane->owner); /* the job's own hold may end with the job */
		job->issue_ns = job->post_ns;
	}
	rc = lane_enqueue(lane, index, job);
	if (rc == 0 && idle)
		kvli_lane_run(lane);
	else if (rc == 0)
		kvli_loop_put(lane);
	if (idle)
		lane->engine->config.drop(lane->owner);
	return rc;
}

int kvli_lane_open(struct kvli_lane *lane, struct kvli_engine *engine, uint32_t index, uint32_t depth,
		   uint32_t window)
{
	memset(lane, 0, sizeof(*lane));
	lane->core.slot = calloc(depth, sizeof(*lane->core.slot));
	if (lane->core.slot == NULL)
		return kvli_fail(KVL_ERR_NOMEM, KVL_NO_ENTRY, 0, "memory", "no memory for lane %u", index);
	lane->core.mask = depth - 1;
	lane->core.window = window;
	lane->engine = engine;
	lane->loop = &engine->loop[index % engine->n_loops];
	lane->index = index;
	pthread_mutex_init(&lane->producers, NULL);
	return 0;
}

void kvli_lane_free(struct kvli_lane *lane)
{
	free(lane->core.slot);
	lane->core.slot = NULL;
	pthread_mutex_destroy(&lane->producers);
}

static void lane_stop_all(struct kvli_lane *lane, int error)
{
	struct lane_core *core = &lane->core;
	uint32_t tail = word32_load_acquire_sys(&core->tail); /* E3 */

	for (uint32_t t = word32_load_relaxed_sys(&core->head); t != tail; t++) { /* own word: we drive */
		struct lane_request *r = lane_hook_request(core, core->slot[t & core->mask]);

		lane_stop(r, r->tag, error);
		if (r->outstanding && r->error == 0)
			r->error = error; /* what the fence will say of its chunks comes second */
	}
}

void kvli_lane_seize(struct kvli_lane *lane)
{
	while (!lane_drive_take(&lane->core))
		sched_yield();
}

/* A call that came meanwhile is answered by a driver of its own. */
void kvli_lane_unseize(struct kvli_lane *lane)
{
	while (!lane_drive_leave(&lane->core))
		;
	kvli_lane_kick(lane);
}

void kvli_lane_shut(struct kvli_lane *lane, int error)
{
	pthread_mutex_lock(&lane->producers);
	if (lane_closed(lane) == 0)
		word32_store_release_sys(&lane->closed, (uint32_t)-error); /* a flag */
	pthread_mutex_unlock(&lane->producers);
	kvli_lane_seize(lane);
	lane->credit = 0;
	do {
		lane_stop_all(lane, error);
		while (!lane_queue_empty(&lane->core))
			if (lane_steps(lane, NULL, 0) != LANE_MOVED)
				sched_yield();
	} while (!lane_drive_leave(&lane->core));
	kvli_loop_remove(lane);
}
