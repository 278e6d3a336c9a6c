/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deadlines need no call of the application: while requests are pending, a timer looks at them.
 *
 * word    | written by             | read by | order | edge
 * ticking | posts 0 -> 1, timer -> 0 | same  | seq   | E13 store-then-look with the records: a post that finds 1
 *         |                          |       |       | is seen by the timer's last look, or finds 0
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/deadline.h"
#include "agent/peer.h"
#include "agent/post.h"

#define TICK_NS 10000000

static void timer_set(const struct kvli_agent *agent, long ns)
{
	struct itimerspec t = { { 0, ns }, { 0, ns } };

	timerfd_settime(agent->timer_fd, 0, &t, NULL);
}

static void deadline_pass(struct kvli_agent *agent, uint32_t index, uint64_t record)
{
	struct kvli_lane *lane = kvli_pending_lane(agent, index, record, KVL_ERR_TIMED_OUT);

	if (lane == NULL)
		return;
	kvli_lane_sweep(lane);
	kvli_peer_drop(lane->owner);
}

/* Stops what is past its deadline; whether anything is pending. */
static int deadline_scan(struct kvli_agent *agent, uint64_t now)
{
	uint32_t high = word32_load_acquire_sys(&agent->requests.high); /* E10 */
	int pending = 0;

	for (uint32_t i = 0; i < high; i++) {
		struct kvli_request *r = &agent->requests.slot[i];
		uint64_t record = record_observe(&agent->requests.records->record[i]);

		if (record_state(record) != RECORD_PENDING)
			continue;
		pending = 1;
		if (word64_load_relaxed_sys(&r->deadline_at) <=
		    now) /* of this post, or pass() will see it is not */
			deadline_pass(agent, i, record);
	}
	return pending;
}

static int deadline_tick(void *arg, uint32_t events)
{
	struct kvli_agent *agent = arg;
	uint64_t ticks;
	ssize_t n = read(agent->timer_fd, &ticks, sizeof(ticks));

	(void)n;
	(void)events;
	if (deadline_scan(agent, kvli_now()))
		return 0;
	timer_set(agent, 0);
	word32_exchange_seq_sys(&agent->ticking, 0); /* E13 */
	if (deadline_scan(agent, kvli_now()))
		kvli_deadline_arm(agent);
	return 0;
}

void kvli_deadline_arm(struct kvli_agent *agent)
{
	if (word32_exchange_seq_sys(&agent->ticking, 1) == 0) /* E13 */
		timer_set(agent, TICK_NS);
}

int kvli_deadline_open(struct kvli_agent *agent)
{
	int rc;

	agent->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (agent->timer_fd < 0)
		return kvli_fail(KVL_ERR_SYSTEM, KVL_NO_ENTRY, errno, "timerfd", "can not make a timer");
	rc = kvli_watch_add(agent->reactor, agent->timer_fd, EPOLLIN, deadline_tick, agent, &agent->timer);
	if (rc)
		close(agent->timer_fd);
	return rc;
}

void kvli_deadline_close(struct kvli_agent *agent)
{
	kvli_watch_del(agent->timer);
	close(agent->timer_fd);
}
