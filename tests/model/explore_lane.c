/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real lane/step.h, tickets across the 32-bit wrap. Whoever posts, completes or stops something then
 * calls the lane, and drives it if it is free; nobody polls, so a lost call ends in "every thread waits".
 */
#include "explore.h"

#include <string.h>

#include "kvlane/kvlane.h"
#include "lane/core.h"

#define REQUESTS 4
#define CHUNKS   8
#define START    0xfffffffeu
#define POISON   0xdd /* a request's driver part once it belongs to the caller again */

struct request {
	struct lane_request core;
	uint32_t pieces, issued, well; /* chunks: of the request, on the wire so far, completed with 0 */
	uint32_t place;                /* in the order of tickets */
	int failed, ended, status;
	uint64_t tag; /* of the post that is pending, 0: none; under the lock of ends */
};

struct chunk {
	uint32_t index;
	int status;
};

static struct {
	struct lane_core lane; /* first: the hooks get its address */
	uint32_t slot[REQUESTS];
	struct word32 producers, ends; /* locks */
	struct request request[REQUESTS];
	struct chunk flying[CHUNKS], done[CHUNKS];
	uint32_t n_flying, n_done, n_ended, posted;
	int drivers, failures, failures_left;
} shared;

static uint32_t n_requests; /* of the scenario */

static void lock(struct word32 *w)
{
	for (;;) {
		explore_look();
		if (word32_cas_seq_sys(w, 0, 1))
			return;
		explore_wait();
	}
}

static void unlock(struct word32 *w)
{
	word32_store_release_sys(w, 0);
}

/* ------------------------------------------------------------------------ hooks of the step functions */

static struct lane_request *lane_hook_request(struct lane_core *lane, uint32_t index)
{
	(void)lane;
	return &shared.request[index].core;
}

static int lane_hook_issue(struct lane_core *lane, uint32_t index)
{
	struct request *r = &shared.request[index];

	explore_assert(shared.drivers == 1 && !lane->flushing && !r->ended && !r->failed);
	if (r->pieces == 0)
		return LANE_LAST;
	shared.flying[shared.n_flying++] = (struct chunk){ index, 0 };
	return ++r->issued == r->pieces ? LANE_ISSUED | LANE_LAST : LANE_ISSUED;
}

static int lane_hook_may_retire(struct lane_core *lane, uint32_t index)
{
	(void)lane;
	(void)index;
	return 1;
}

/* Whoever has a notification here has one that never goes out. */
static int lane_hook_notify(struct lane_core *lane, uint32_t index)
{
	(void)lane;
	explore_assert(!shared.request[index].ended);
	return KVL_ERR_AGAIN;
}

static void lane_hook_publish(struct lane_core *lane, uint32_t index, int status)
{
	struct request *r = &shared.request[index];

	(void)lane;
	explore_assert(shared.drivers == 1 && !r->ended);
	explore_assert(r->core.ticket == START + shared.n_ended);
	for (uint32_t i = 0; i < shared.n_flying; i++)
		explore_assert(shared.flying[i].index != index);
	explore_assert(status || (r->well == r->pieces && !r->failed));
	explore_assert(!r->failed || status == KVL_ERR_WIRE);
	r->place = shared.n_ended;
	memset(&r->core, POISON, sizeof(r->core));
	lock(&shared.ends);
	r->ended = 1;
	r->status = status;
	r->tag = 0;
	shared.n_ended++;
	unlock(&shared.ends);
}

static void lane_hook_reopen(struct lane_core *lane)
{
	explore_assert(lane->inflight == 0 && shared.n_flying == 0);
}

#include "lane/step.h"

/* -------------------------------------------------------------------------------------------- driving */

static int lane_take_completions(void)
{
	struct chunk done[CHUNKS];
	uint32_t n;

	kvli_model_point(); /* as if the wire were looked at */
	n = shared.n_done;
	memcpy(done, shared.done, n * sizeof(done[0]));
	shared.n_done = 0;
	for (uint32_t i = 0; i < n; i++)
		lane_complete(&shared.lane, done[i].index, done[i].status);
	return n > 0;
}

static void lane_steps(void)
{
	int moved;

	do {
		moved = lane_take_completions();
		moved |= lane_retire(&shared.lane) == LANE_MOVED;
		moved |= lane_issue(&shared.lane) == LANE_MOVED;
	} while (moved);
}

static void lane_call(void)
{
	if (!lane_drive_try(&shared.lane))
		return;
	do {
		explore_assert(shared.drivers == 0);
		shared.drivers = 1;
		lane_steps();
		shared.drivers = 0;
	} while (!lane_drive_leave(&shared.lane));
}

/* -------------------------------------------------------------------------------------------- threads */

static int lane_reserve_locked(uint32_t index)
{
	int rc;

	lock(&shared.producers);
	rc = lane_reserve(&shared.lane, index, &shared.request[index].core);
	unlock(&shared.producers);
	return rc;
}

static void request_post(uint32_t index, uint64_t tag, uint32_t notify)
{
	struct request *r = &shared.request[index];
	int rc;

	r->core.tag = tag;
	r->core.notify = notify;
	r->tag = tag;
	for (;;) {
		explore_look();
		rc = lane_reserve_locked(index);
		if (rc == 0)
			break;
		explore_assert(rc == KVL_ERR_AGAIN);
		explore_wait();
	}
	shared.posted++;
	lane_call();
}

static void post_two(void)
{
	request_post(0, 1, 0);
	request_post(1, 1, 0);
}

static void post_third(void)
{
	request_post(2, 1, 0);
}

/* Completes one of the flying chunks; up to failures_left of them badly. */
static void wire_complete(void)
{
	uint32_t at = (uint32_t)explore_choose((int)shared.n_flying);
	struct chunk chunk = shared.flying[at];
	struct request *r = &shared.request[chunk.index];

	shared.flying[at] = shared.flying[--shared.n_flying];
	if (shared.failures_left && explore_choose(2)) {
		chunk.status = KVL_ERR_WIRE;
		shared.failures_left--;
		shared.failures++;
		r->failed = 1;
	}
	r->well += chunk.status == 0;
	shared.done[shared.n_done++] = chunk;
}

static void wire(void)
{
	while (shared.n_ended < n_requests) {
		explore_look();
		if (shared.n_flying) {
			wire_complete();
			lane_call();
		} else if (shared.n_ended < n_requests) {
			explore_wait();
		}
	}
}

static void wait_posted(uint32_t n)
{
	for (;;) {
		explore_look();
		if (shared.posted >= n)
			return;
		explore_wait();
	}
}

static void wait_ended(uint32_t n)
{
	for (;;) {
		explore_look();
		if (shared.n_ended >= n)
			return;
		explore_wait();
	}
}

/* Only a pending post is stopped: whoever holds the lock and sees it pending knows that it stays so. */
static void request_stop(uint32_t index, uint64_t tag, int error)
{
	struct request *r = &shared.request[index];

	lock(&shared.ends);
	if (r->tag == tag)
		lane_stop(&r->core, tag, error);
	unlock(&shared.ends);
	lane_call();
}

/* A first post that others cancel, then the same slot again, stopped by its own poster. */
static void post_again(void)
{
	request_post(0, 1, 1);
	wait_ended(1);
	explore_assert(shared.request[0].status == KVL_ERR_CANCELED);
	shared.request[0].ended = 0;
	request_post(0, 2, 1);
	request_stop(0, 2, KVL_ERR_TIMED_OUT);
	wait_ended(2);
	explore_assert(shared.request[0].status == KVL_ERR_TIMED_OUT);
}

static void cancel_first(void)
{
	wait_posted(1);
	request_stop(0, 1, KVL_ERR_CANCELED);
}

/* ------------------------------------------------------------------------------------------ scenarios */

static void lane_reset(uint32_t depth, uint32_t n)
{
	memset(&shared, 0, sizeof(shared));
	shared.lane.tail.v = shared.lane.head.v = shared.lane.issue = START;
	shared.lane.mask = depth - 1;
	shared.lane.window = 2;
	shared.lane.slot = shared.slot;
	n_requests = n;
}

static void post_reset(void)
{
	lane_reset(2, 3);
	shared.request[0].pieces = 2;
	shared.request[1].pieces = 1;
}

static void failure_reset(void)
{
	lane_reset(4, 3);
	shared.failures_left = 1;
	for (int i = 0; i < 3; i++)
		shared.request[i].pieces = 1;
}

static void stop_reset(void)
{
	lane_reset(2, 2);
}

static void lane_check(void)
{
	const struct lane_core *l = &shared.lane;
	uint32_t head = l->head.v, queued = seq_distance(head, l->tail.v);

	explore_assert(queued <= l->mask + 1 && seq_distance(head, l->issue) <= queued);
	explore_assert(l->inflight <= l->window && l->drive.v <= LANE_CALLED);
}

static void lane_end(void)
{
	const struct lane_core *l = &shared.lane;

	explore_assert(shared.n_ended == n_requests && l->head.v == l->tail.v && l->drive.v == LANE_FREE);
	explore_assert(l->inflight == 0 && shared.n_flying == 0 && !l->flushing);
	explore_assert(l->epoch == (uint32_t)shared.failures);
	for (int i = 0; i < REQUESTS; i++)
		for (size_t k = 0; shared.request[i].ended && k < sizeof(struct lane_request); k++)
			explore_assert(((const unsigned char *)&shared.request[i].core)[k] == POISON);
}

/* What was posted before the failed request ends as it would have. */
static void failure_end(void)
{
	uint32_t failed = REQUESTS;

	lane_end();
	for (uint32_t i = 0; i < n_requests; i++)
		if (shared.request[i].failed)
			failed = shared.request[i].place;
	for (uint32_t i = 0; i < n_requests; i++) {
		const struct request *r = &shared.request[i];

		explore_assert(r->status == (r->failed ? KVL_ERR_WIRE : 0) ||
			       (r->status == KVL_ERR_FLUSHED && r->place > failed));
	}
}

static struct explore_scenario scenarios[] = {
	{ .name = "posts", .reset = post_reset, .end = lane_end, .thread = { post_two, post_third, wire } },
	{ .name = "failure",
	  .reset = failure_reset,
	  .end = failure_end,
	  .thread = { post_two, post_third, wire } },
	{ .name = "stop",
	  .reset = stop_reset,
	  .end = lane_end,
	  .thread = { post_again, cancel_first, cancel_first } },
};

/* Argument: the scenario; none: all. */
int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
		struct explore_scenario *s = &scenarios[i];

		if (argc > 1 && strcmp(argv[1], s->name))
			continue;
		s->n_threads = 3;
		s->preemptions = 2;
		s->max_steps = 400;
		s->check = lane_check;
		s->shared = &shared;
		s->shared_len = sizeof(shared);
		explore_run(s);
	}
	return 0;
}
