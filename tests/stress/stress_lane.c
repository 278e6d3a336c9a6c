/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lane/step.h under threads, tickets across the 32-bit wrap. Two rounds: with two threads that keep driving,
 * and with none, where whoever posts calls the lane once and then only polls its record: a lost call hangs
 * there and the watchdog ends the program.
 */
#include "stress.h"

#include <string.h>

#include "kvlane/kvlane.h"
#include "lane/core.h"
#include "shared/record.h"

#define POSTS     60000u
#define PRODUCERS 2
#define DRIVERS   2
#define WINDOW    4
#define DEPTH     8
#define JOBS      6 /* of each producer */
#define START     (0u - 1000)

struct job {
	struct lane_request core;
	struct word64 record;
	uint32_t pieces, issued;
	uint64_t key, moved; /* what the poster gives, what the driver makes of it */
};

static struct lane {
	struct lane_core core; /* first: the hooks get its address */
	uint32_t slot[DEPTH];
	pthread_mutex_t producers;
	/* the driver's */
	uint32_t flying[WINDOW], n_flying, next;
	uint64_t state;
	int fails; /* one chunk in so many fails, 0: none */
	uint32_t n_failed;
} lane;

static struct job job[PRODUCERS * JOBS];
static struct word32 finished;
static uint32_t posts;

/* ------------------------------------------------------------------------ hooks of the step functions */

static struct lane_request *lane_hook_request(struct lane_core *l, uint32_t index)
{
	(void)l;
	return &job[index].core;
}

static int lane_hook_issue(struct lane_core *l, uint32_t index)
{
	struct job *j = &job[index];

	stress_assert(!l->flushing && lane.n_flying < WINDOW);
	if (j->pieces == 0)
		return LANE_LAST;
	if (stress_below(&lane.state, 8) == 0 && lane.n_flying)
		return KVL_ERR_AGAIN;
	lane.flying[lane.n_flying++] = index;
	return ++j->issued == j->pieces ? LANE_ISSUED | LANE_LAST : LANE_ISSUED;
}

static int lane_hook_may_retire(struct lane_core *l, uint32_t index)
{
	(void)l;
	(void)index;
	return 1;
}

static int lane_hook_notify(struct lane_core *l, uint32_t index)
{
	(void)l;
	stress_assert(job[index].moved == job[index].pieces);
	return 0;
}

static void lane_hook_publish(struct lane_core *l, uint32_t index, int status)
{
	struct job *j = &job[index];
	uint64_t pending = record_observe(&j->record);

	stress_assert(j->core.ticket == lane.next && record_state(pending) == RECORD_PENDING);
	lane.next++;
	stress_assert(seq_distance(lane.next, l->head.v) == 0);
	j->moved += j->key;
	record_publish(&j->record, pending, status); /* E5 */
}

static void lane_hook_reopen(struct lane_core *l)
{
	stress_assert(l->inflight == 0 && lane.n_flying == 0);
}

#include "lane/step.h"

/* -------------------------------------------------------------------------------------------- driving */

/* Completes chunks in random order; with none left to issue, all of them: nobody would come back for them. */
static int lane_take_completions(void)
{
	int n = 0;

	while (lane.n_flying && stress_below(&lane.state, 4)) {
		uint32_t at = stress_below(&lane.state, lane.n_flying), index = lane.flying[at];
		int bad = lane.fails && stress_below(&lane.state, (uint32_t)lane.fails) == 0;

		lane.flying[at] = lane.flying[--lane.n_flying];
		job[index].moved += !bad;
		lane.n_failed += (uint32_t)bad;
		lane_complete(&lane.core, index, bad ? KVL_ERR_WIRE : 0);
		n++;
	}
	return n;
}

static void lane_steps(void)
{
	int moved;

	do {
		moved = lane_take_completions() > 0;
		moved |= lane_retire(&lane.core) == LANE_MOVED;
		moved |= lane_issue(&lane.core) == LANE_MOVED;
	} while (moved || lane.n_flying);
}

static void lane_call(void)
{
	if (!lane_drive_try(&lane.core))
		return;
	do
		lane_steps();
	while (!lane_drive_leave(&lane.core));
}

static void *driver(void *arg)
{
	while (word32_load_acquire_sys(&finished) < PRODUCERS) {
		if (lane_queue_empty(&lane.core))
			sched_yield();
		else
			lane_call();
	}
	return arg;
}

/* ------------------------------------------------------------------------------------------ producers */

static void job_post(uint32_t index, uint64_t key)
{
	struct job *j = &job[index];
	uint64_t old = record_observe(&j->record);
	int rc;

	memset(&j->core, 0, sizeof(j->core));
	j->core.notify = key % 2;
	j->pieces = (uint32_t)(key % 5);
	j->issued = 0;
	j->key = key;
	j->moved = 0;
	word64_store_release_sys(&j->record,
				 record_make(record_life(old), record_post(old) + 1, RECORD_PENDING, 0));
	for (;;) {
		pthread_mutex_lock(&lane.producers);
		rc = lane_reserve(&lane.core, index, &j->core);
		pthread_mutex_unlock(&lane.producers);
		if (rc == 0)
			break;
		stress_assert(rc == KVL_ERR_AGAIN);
		sched_yield();
	}
	lane_call();
}

/* Once the end is seen, the job is the poster's: the driver's plain writes are there. */
static int job_ended(uint32_t index)
{
	const struct job *j = &job[index];
	uint64_t now = record_observe(&j->record); /* E5 */
	int error = record_error(now);

	if (record_state(now) == RECORD_PENDING)
		return 0;
	stress_assert(error == 0 || error == KVL_ERR_WIRE || error == KVL_ERR_FLUSHED);
	stress_assert(error || j->moved == j->pieces + j->key);
	return 1;
}

static void *producer(void *arg)
{
	uint32_t first = (uint32_t)(uintptr_t)arg * JOBS;
	uint64_t state = first + 1;

	for (uint32_t i = 0; i < posts; i++) {
		uint32_t index = first + i % JOBS;

		while (!job_ended(index))
			sched_yield();
		job_post(index, stress_random(&state));
	}
	for (uint32_t i = first; i < first + JOBS; i++)
		while (!job_ended(i))
			sched_yield();
	word32_add_seq_sys(&finished, 1);
	return NULL;
}

static void round_run(const char *name, int drivers, int fails)
{
	pthread_t thread[PRODUCERS + DRIVERS];

	memset(&lane, 0, sizeof(lane));
	memset(job, 0, sizeof(job));
	lane.core.tail.v = lane.core.head.v = lane.core.issue = lane.next = START;
	lane.core.mask = DEPTH - 1;
	lane.core.window = WINDOW;
	lane.core.slot = lane.slot;
	lane.state = 3;
	lane.fails = fails;
	finished.v = 0;
	for (int i = 0; i < PRODUCERS * JOBS; i++) /* as if each had ended before */
		job[i].record.v = record_make(1, 0, RECORD_ENDED, 0);
	pthread_mutex_init(&lane.producers, NULL);
	for (int i = 0; i < PRODUCERS + drivers; i++)
		thread[i] = stress_start(i < PRODUCERS ? producer : driver, (void *)(uintptr_t)i);
	for (int i = 0; i < PRODUCERS + drivers; i++)
		pthread_join(thread[i], NULL);
	pthread_mutex_destroy(&lane.producers);
	stress_assert(lane.next == START + PRODUCERS * posts && lane_queue_empty(&lane.core));
	stress_assert(lane.core.drive.v == LANE_FREE && lane.core.inflight == 0 && !lane.core.flushing);
	printf("%s: %u posts, tickets from %#x to %#x, %u failed chunks, %u epochs\n", name,
	       PRODUCERS * posts, START, lane.next, lane.n_failed, lane.core.epoch);
}

int main(int argc, char **argv)
{
	posts = stress_begin(argc, argv, POSTS);
	round_run("two drivers", DRIVERS, 500);
	round_run("none but the callers", 0, 500);
	return 0;
}
