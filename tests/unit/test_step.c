/* SPDX-License-Identifier: Apache-2.0 */
/* Tickets, window, order and hand-over of a lane whose requests end well. Failures: test_step_ends.c. */
#include "testing_step.h"

/* -------------------------------------------------------------------------------------- well and full */

TEST(idle_lane_does_nothing)
{
	lane_at(0, 4);
	assert_int_equal(lane_issue(&t.lane), LANE_IDLE);
	assert_int_equal(lane_retire(&t.lane), LANE_IDLE);
	assert_true(lane_queue_empty(&t.lane));
}

TEST(retires_in_order_of_tickets)
{
	lane_at(0, 8);
	post_all(3, 1);
	assert_int_equal(issue_all(), 3);
	lane_complete(&t.lane, 2, 0);
	lane_complete(&t.lane, 1, 0);
	assert_int_equal(lane_retire(&t.lane), LANE_BLOCKED);
	lane_complete(&t.lane, 0, 0);
	assert_int_equal(retire_all(), 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(t.ended[i], i);
	assert_true(lane_queue_empty(&t.lane));
	assert_int_equal(t.lane.inflight, 0);
}

TEST(waits_for_every_chunk)
{
	lane_at(0, 8);
	post_all(1, 3);
	issue_all();
	assert_int_equal(t.job[0].core.chunks, 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(lane_retire(&t.lane), LANE_BLOCKED);
		lane_complete(&t.lane, 0, 0);
	}
	assert_int_equal(retire_all(), 1);
	ended_is(0, 0);
}

TEST(partly_issued_head_does_not_retire)
{
	lane_at(0, 8);
	post_all(1, 2);
	assert_int_equal(lane_issue(&t.lane), LANE_MOVED);
	lane_complete(&t.lane, 0, 0);
	assert_int_equal(lane_retire(&t.lane), LANE_IDLE);
	issue_all();
	lane_complete(&t.lane, 0, 0);
	assert_int_equal(retire_all(), 1);
}

TEST(empty_request_ends_well_and_notifies)
{
	lane_at(0, 1);
	post_all(1, 0);
	t.job[0].core.notify = 1;
	assert_int_equal(issue_all(), 1);
	assert_int_equal(t.lane.inflight, 0);
	assert_int_equal(retire_all(), 1);
	ended_is(0, 0);
	assert_int_equal(t.job[0].notified, 1);
}

TEST(window_bounds_what_is_in_flight)
{
	lane_at(0, 2);
	post_all(2, 3);
	assert_int_equal(issue_all(), 2);
	assert_int_equal(lane_issue(&t.lane), LANE_BLOCKED);
	lane_complete(&t.lane, 0, 0);
	assert_int_equal(issue_all(), 1);
	assert_int_equal(t.lane.inflight, 2);
}

TEST(full_queue_says_again_and_takes_nothing)
{
	lane_at(0, 8);
	post_all(DEPTH, 0);
	t.job[DEPTH].core.ticket = 77;
	assert_int_equal(post(DEPTH, 0), KVL_ERR_AGAIN);
	assert_int_equal(t.job[DEPTH].core.ticket, 77);
	assert_int_equal(t.lane.tail.v, DEPTH);
	issue_all();
	assert_int_equal(lane_retire(&t.lane), LANE_MOVED);
	assert_int_equal(post(DEPTH, 0), 0);
}

TEST(wire_that_is_full_is_asked_again)
{
	lane_at(0, 8);
	post_all(1, 1);
	t.job[0].fail_at = 0;
	t.job[0].issue_rc = KVL_ERR_AGAIN;
	assert_int_equal(lane_issue(&t.lane), LANE_BLOCKED);
	assert_int_equal(t.lane.inflight, 0);
	assert_int_equal(t.job[0].core.outstanding, 0);
	t.job[0].fail_at = -1;
	assert_int_equal(issue_all(), 1);
	lane_complete(&t.lane, 0, 0);
	retire_all();
	ended_is(0, 0);
}

TEST(older_request_of_another_lane_blocks_when_asked)
{
	lane_at(0, 8);
	post_all(1, 0);
	issue_all();
	t.may_retire = 0;
	assert_int_equal(lane_retire(&t.lane), LANE_BLOCKED);
	t.may_retire = 1;
	assert_int_equal(lane_retire(&t.lane), LANE_MOVED);
}

TEST(tickets_wrap)
{
	lane_at(0xfffffffd, 8);
	for (uint32_t round = 0; round < 4; round++) {
		uint32_t n = t.n_ended;

		for (uint32_t i = 0; i < 2; i++) {
			t.job[i] = (struct job){ .fail_at = -1 };
			assert_int_equal(post(i, 1), 0);
		}
		issue_all();
		lane_complete(&t.lane, 1, 0);
		assert_int_equal(lane_retire(&t.lane), LANE_BLOCKED);
		lane_complete(&t.lane, 0, 0);
		assert_int_equal(retire_all(), 2);
		assert_int_equal(t.ended[n], 0);
		assert_int_equal(t.ended[n + 1], 1);
	}
	assert_int_equal(t.lane.head.v, 5);
}

TEST(full_queue_is_seen_across_the_wrap)
{
	for (uint32_t start = 0u - DEPTH; start != 1; start++) {
		lane_at(start, 8);
		post_all(DEPTH, 0);
		assert_int_equal(post(DEPTH, 0), KVL_ERR_AGAIN);
		issue_all();
		assert_int_equal(retire_all(), DEPTH);
	}
}

/* ------------------------------------------------------------------------------------------ hand-over */

TEST(lane_is_taken_once_and_left_when_nobody_called)
{
	lane_at(0, 8);
	assert_int_equal(lane_drive_try(&t.lane), 1);
	assert_int_equal(lane_drive_take(&t.lane), 0);
	assert_int_equal(lane_drive_leave(&t.lane), 1);
	assert_int_equal(lane_drive_take(&t.lane), 1);
	assert_int_equal(lane_drive_leave(&t.lane), 1);
	assert_int_equal(t.lane.drive.v, LANE_FREE);
}

TEST(call_makes_the_driver_look_again)
{
	lane_at(0, 8);
	assert_int_equal(lane_drive_try(&t.lane), 1);
	assert_int_equal(lane_drive_try(&t.lane), 0);
	assert_int_equal(lane_drive_try(&t.lane), 0); /* two calls, one look */
	assert_int_equal(lane_drive_leave(&t.lane), 0);
	assert_int_equal(lane_drive_leave(&t.lane), 1);
	assert_int_equal(t.lane.drive.v, LANE_FREE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(idle_lane_does_nothing),
		cmocka_unit_test(retires_in_order_of_tickets),
		cmocka_unit_test(waits_for_every_chunk),
		cmocka_unit_test(partly_issued_head_does_not_retire),
		cmocka_unit_test(empty_request_ends_well_and_notifies),
		cmocka_unit_test(window_bounds_what_is_in_flight),
		cmocka_unit_test(full_queue_says_again_and_takes_nothing),
		cmocka_unit_test(wire_that_is_full_is_asked_again),
		cmocka_unit_test(older_request_of_another_lane_blocks_when_asked),
		cmocka_unit_test(tickets_wrap),
		cmocka_unit_test(full_queue_is_seen_across_the_wrap),
		cmocka_unit_test(lane_is_taken_once_and_left_when_nobody_called),
		cmocka_unit_test(call_makes_the_driver_look_again),
	};

	return TESTING_RUN(tests, 10);
}
