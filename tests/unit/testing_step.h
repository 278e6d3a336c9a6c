/* SPDX-License-Identifier: Apache-2.0 */
/* A lane of lane/step.h over a scripted wire, for one thread. Its schedules: tests/model/explore_lane.c. */
#ifndef TESTING_STEP_H
#define TESTING_STEP_H

#include "testing.h"

#include <string.h>

#include "lane/core.h"

#define DEPTH 4
#define JOBS  8

struct job {
	struct lane_request core;
	uint32_t pieces, issued;
	int fail_at; /* issue gives issue_rc instead of this chunk, counted from 0; -1: never */
	int issue_rc;
	int notify_rc; /* what the wire says */
	int notified, ended, status;
};

static struct {
	struct lane_core lane; /* first: the hooks get its address */
	uint32_t slot[DEPTH];
	struct job job[JOBS];
	uint32_t ended[JOBS], n_ended;
	int may_retire, reopened;
} t;

/* ------------------------------------------------------------------------ hooks of the step functions */

static inline struct lane_request *lane_hook_request(struct lane_core *lane, uint32_t index)
{
	(void)lane;
	return &t.job[index].core;
}

static inline int lane_hook_issue(struct lane_core *lane, uint32_t index)
{
	struct job *j = &t.job[index];

	(void)lane;
	if (j->fail_at == (int)j->issued)
		return j->issue_rc;
	if (j->pieces == 0)
		return LANE_LAST;
	return ++j->issued == j->pieces ? LANE_ISSUED | LANE_LAST : LANE_ISSUED;
}

static inline int lane_hook_may_retire(struct lane_core *lane, uint32_t index)
{
	(void)lane;
	(void)index;
	return t.may_retire;
}

static inline int lane_hook_notify(struct lane_core *lane, uint32_t index)
{
	struct job *j = &t.job[index];

	(void)lane;
	j->notified += j->notify_rc == 0;
	return j->notify_rc;
}

static inline void lane_hook_publish(struct lane_core *lane, uint32_t index, int status)
{
	(void)lane;
	assert_false(t.job[index].ended);
	t.job[index].ended = 1;
	t.job[index].status = status;
	t.ended[t.n_ended++] = index;
}

static inline void lane_hook_reopen(struct lane_core *lane)
{
	assert_int_equal(lane->inflight, 0);
	t.reopened++;
}

#include "lane/step.h"

/* -------------------------------------------------------------------------------------------- fixture */

static inline void lane_at(uint32_t ticket, uint32_t window)
{
	memset(&t, 0, sizeof(t));
	t.lane.tail.v = t.lane.head.v = t.lane.issue = ticket;
	t.lane.mask = DEPTH - 1;
	t.lane.window = window;
	t.lane.slot = t.slot;
	t.may_retire = 1;
	for (int i = 0; i < JOBS; i++)
		t.job[i].fail_at = -1;
}

static inline int post(uint32_t index, uint32_t pieces)
{
	t.job[index].pieces = pieces;
	t.job[index].core.tag = index + 1;
	return lane_reserve(&t.lane, index, &t.job[index].core);
}

static inline void post_all(uint32_t n, uint32_t pieces)
{
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(post(i, pieces), 0);
}

static inline void stop(uint32_t index, int error)
{
	lane_stop(&t.job[index].core, index + 1, error);
}

static inline uint32_t issue_all(void)
{
	uint32_t moved = 0;

	while (lane_issue(&t.lane) == LANE_MOVED)
		moved++;
	return moved;
}

static inline uint32_t retire_all(void)
{
	uint32_t moved = 0;

	while (lane_retire(&t.lane) == LANE_MOVED)
		moved++;
	return moved;
}

static inline void ended_is(uint32_t index, int status)
{
	assert_true(t.job[index].ended);
	assert_int_equal(t.job[index].status, status);
}

#endif
