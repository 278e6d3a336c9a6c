/* SPDX-License-Identifier: Apache-2.0 */
#include "lane/loop.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "base/error.h"
#include "lane/order.h"

void kvli_loop_put(struct kvli_lane *lane)
{
	struct kvli_loop *loop = lane->loop;
	const struct kvli_engine_config *config = &loop->engine->config;
	int added = 0, wake;

	pthread_mutex_lock(&loop->lock);
	if (!lane->on_ready) {
		config->hold(lane->owner);
		lane->on_ready = added = 1;
		lane->next_ready = NULL;
		if (loop->last)
			loop->last->next_ready = lane;
		else
			loop->first = lane;
		loop->last = lane;
		loop->n_ready++;
	}
	wake = loop->sleeping;
	pthread_mutex_unlock(&loop->lock);
	if (wake)
		pthread_cond_signal(&loop->wake);
	if (added && config->workers == 0)
		config->call(config->agent);
}

/* Under loop->lock. */
static struct kvli_lane *loop_pop(struct kvli_loop *loop)
{
	struct kvli_lane *lane = loop->first;

	if (lane == NULL)
		return NULL;
	loop->first = lane->next_ready;
	if (loop->first == NULL)
		loop->last = NULL;
	lane->on_ready = 0;
	loop->n_ready--;
	return lane;
}

struct kvli_lane *kvli_loop_take(struct kvli_loop *loop)
{
	struct kvli_lane *lane;

	pthread_mutex_lock(&loop->lock);
	lane = loop_pop(loop);
	pthread_mutex_unlock(&loop->lock);
	return lane;
}

void kvli_loop_remove(struct kvli_lane *lane)
{
	struct kvli_loop *loop = lane->loop;
	struct kvli_lane *at, *before = NULL;

	pthread_mutex_lock(&loop->lock);
	for (at = loop->first; at && at != lane; at = at->next_ready)
		before = at;
	if (at) {
		if (before)
			before->next_ready = lane->next_ready;
		else
			loop->first = lane->next_ready;
		if (loop->last == lane)
			loop->last = before;
		lane->on_ready = 0;
		loop->n_ready--;
	}
	pthread_mutex_unlock(&loop->lock);
	if (at)
		loop->engine->config.drop(lane->owner);
}

/* ------------------------------------------------------------------------------------------------- workers */

#define IDLE_YIELDS 200 /* fruitless turns before a worker with polled lanes sleeps between them */
#define IDLE_NAP_NS UINT64_C(50000) /* how long it then sleeps */

/* Lanes that only wait for a completion to be polled: look again, but do not hold the core. */
static void worker_rest(uint32_t fruitless)
{
	struct timespec nap = { 0, IDLE_NAP_NS };

	if (fruitless < IDLE_YIELDS)
		sched_yield();
	else
		nanosleep(&nap, NULL);
}

/* Blocks until a lane is ready. NULL: stop. */
static struct kvli_lane *worker_next(struct kvli_loop *loop, uint32_t *n_ready)
{
	struct kvli_lane *lane;

	pthread_mutex_lock(&loop->lock);
	while (loop->first == NULL && !loop->stopping) {
		loop->sleeping = 1;
		pthread_cond_wait(&loop->wake, &loop->lock);
		loop->sleeping = 0;
	}
	*n_ready = loop->n_ready;
	lane = loop_pop(loop);
	pthread_mutex_unlock(&loop->lock);
	return lane;
}

static void *worker_main(void *arg)
{
	struct kvli_loop *loop = arg;
	struct kvli_lane *lane;
	uint32_t fruitless = 0, n_ready;
	enum lane_result result;

	while ((lane = worker_next(loop, &n_ready))) {
		result = kvli_lane_run(lane);
		loop->engine->config.drop(lane->owner);
		fruitless = result == LANE_MOVED ? 0 : fruitless + 1;
		if (fruitless > n_ready)
			worker_rest(fruitless - n_ready);
	}
	return NULL;
}

/* A batch thread does not preempt the thread that wakes it: a post returns before its bulk is copied. */
static void worker_yields_to_posters(pthread_t thread)
{
	const struct sched_param param = { 0 };

	pthread_setschedparam(thread, SCHED_BATCH, &param); /* a matter of speed: refused, it works as well */
}

static int loop_start(struct kvli_loop *loop)
{
	sigset_t all, old;
	int rc;

	sigfillset(&all); /* the application's signals are not for workers */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&loop->thread, NULL, worker_main, loop);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc == 0)
		worker_yields_to_posters(loop->thread);
	return rc ? kvli_fail(KVL_ERR_SYSTEM, KVL_NO_ENTRY, rc, "worker thread", "can not start a worker")
		  : 0;
}

static void loop_stop(struct kvli_loop *loop, int started)
{
	pthread_mutex_lock(&loop->lock);
	loop->stopping = 1;
	pthread_mutex_unlock(&loop->lock);
	pthread_cond_signal(&loop->wake);
	if (started)
		pthread_join(loop->thread, NULL);
	pthread_cond_destroy(&loop->wake);
	pthread_mutex_destroy(&loop->lock);
}

/* -------------------------------------------------------------------------------------------------- engine */

static int engine_start(struct kvli_engine *engine)
{
	for (uint32_t i = 0; i < engine->config.workers; i++) {
		int rc = loop_start(&engine->loop[i]);

		if (rc) {
			for (uint32_t k = 0; k < engine->n_loops; k++)
				loop_stop(&engine->loop[k], k < i);
			return rc;
		}
	}
	return 0;
}

int kvli_engine_open(struct kvli_engine *engine, const struct kvli_engine_config *config)
{
	int rc;

	engine->config = *config;
	engine->n_loops = config->workers ? config->workers : 1;
	engine->loop = calloc(engine->n_loops, sizeof(*engine->loop));
	if (engine->loop == NULL)
		return kvli_fail(KVL_ERR_NOMEM, KVL_NO_ENTRY, 0, "memory", "no memory for %u loops",
				 engine->n_loops);
	rc = kvli_order_open(&engine->order, config->max_jobs);
	if (rc)
		goto free_loops;
	for (uint32_t i = 0; i < engine->n_loops; i++) {
		engine->loop[i].engine = engine;
		pthread_mutex_init(&engine->loop[i].lock, NULL);
		pthread_cond_init(&engine->loop[i].wake, NULL);
	}
	rc = engine_start(engine);
	if (rc == 0)
		return 0;
	kvli_order_close(&engine->order);
free_loops:
	free(engine->loop);
	return rc;
}

void kvli_engine_close(struct kvli_engine *engine)
{
	for (uint32_t i = 0; i < engine->n_loops; i++)
		loop_stop(&engine->loop[i], engine->config.workers != 0);
	kvli_order_close(&engine->order);
	free(engine->loop);
}

int kvli_engine_progress(struct kvli_engine *engine)
{
	int moved = 0;

	for (uint32_t i = 0; i < engine->n_loops; i++) {
		struct kvli_loop *loop = &engine->loop[i];
		struct kvli_lane *lane;
		uint32_t turns;

		pthread_mutex_lock(&loop->lock);
		turns = loop->n_ready;
		pthread_mutex_unlock(&loop->lock);
		while (turns-- && (lane = kvli_loop_take(loop))) {
			moved += kvli_lane_run(lane) == LANE_MOVED;
			engine->config.drop(lane->owner);
		}
	}
	return moved;
}
