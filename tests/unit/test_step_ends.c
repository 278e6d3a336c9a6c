/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of a lane that end with an error: of the wire, of their own, or asked for. */
#include "testing_step.h"

/* ------------------------------------------------------------------------------------------- failures */

TEST(first_error_is_kept)
{
	lane_at(0, 8);
	post_all(1, 3);
	issue_all();
	lane_complete(&t.lane, 0, KVL_ERR_RANGE);
	lane_complete(&t.lane, 0, KVL_ERR_WIRE);
	lane_complete(&t.lane, 0, 0);
	retire_all();
	ended_is(0, KVL_ERR_RANGE);
}

TEST(error_while_issuing_drains_what_was_issued)
{
	lane_at(0, 8);
	post_all(1, 3);
	t.job[0].fail_at = 1;
	t.job[0].issue_rc = KVL_ERR_RANGE;
	assert_int_equal(issue_all(), 2);
	assert_int_equal(lane_retire(&t.lane), LANE_BLOCKED);
	lane_complete(&t.lane, 0, 0);
	assert_int_equal(retire_all(), 1);
	ended_is(0, KVL_ERR_RANGE);
	assert_int_equal(t.job[0].issued, 1);
}

TEST(error_of_one_operation_leaves_the_lane_alone)
{
	lane_at(0, 8);
	post_all(2, 1);
	t.job[0].fail_at = 0;
	t.job[0].issue_rc = KVL_ERR_STALE;
	issue_all();
	lane_complete(&t.lane, 1, 0);
	retire_all();
	ended_is(0, KVL_ERR_STALE);
	ended_is(1, 0);
	assert_int_equal(t.reopened, 0);
}

TEST(wire_error_flushes_what_is_queued_and_reopens)
{
	lane_at(0xfffffffe, 1); /* the flush spans the wrap */
	post_all(3, 1);
	assert_int_equal(issue_all(), 1);
	lane_complete(&t.lane, 0, KVL_ERR_WIRE);
	assert_int_equal(post(3, 1), 0); /* of the next epoch */
	assert_int_equal(lane_issue(&t.lane), LANE_MOVED);
	assert_int_equal(lane_issue(&t.lane), LANE_MOVED);
	assert_int_equal(lane_issue(&t.lane), LANE_BLOCKED);
	assert_int_equal(retire_all(), 3);
	ended_is(0, KVL_ERR_WIRE);
	ended_is(1, KVL_ERR_FLUSHED);
	ended_is(2, KVL_ERR_FLUSHED);
	assert_int_equal(t.job[1].issued + t.job[2].issued, 0);
	assert_int_equal(t.reopened, 1);
	assert_int_equal(t.lane.epoch, 1);
	assert_int_equal(issue_all(), 1);
	lane_complete(&t.lane, 3, 0);
	retire_all();
	ended_is(3, 0);
}

TEST(flush_waits_for_what_is_in_flight)
{
	lane_at(0, 8);
	post_all(2, 2);
	issue_all();
	lane_complete(&t.lane, 0, KVL_ERR_WIRE);
	lane_complete(&t.lane, 0, 0);
	assert_int_equal(retire_all(), 1);
	assert_int_equal(t.reopened, 0);
	lane_complete(&t.lane, 1, 0);
	assert_int_equal(lane_retire(&t.lane), LANE_BLOCKED);
	lane_complete(&t.lane, 1, 0);
	assert_int_equal(retire_all(), 1);
	ended_is(1, KVL_ERR_FLUSHED);
	assert_int_equal(t.reopened, 1);
}

TEST(older_request_of_a_failed_lane_ends_as_it_would_have)
{
	lane_at(0xffffffff, 8);
	post_all(3, 1);
	t.job[0].core.notify = 1;
	issue_all();
	lane_complete(&t.lane, 1, KVL_ERR_WIRE);
	lane_complete(&t.lane, 2, 0);
	lane_complete(&t.lane, 0, 0);
	assert_int_equal(retire_all(), 3);
	ended_is(0, 0);
	assert_int_equal(t.job[0].notified, 1);
	ended_is(1, KVL_ERR_WIRE);
	ended_is(2, KVL_ERR_FLUSHED);
	assert_int_equal(t.reopened, 1);
}

TEST(second_wire_error_of_an_epoch_changes_nothing)
{
	lane_at(0, 8);
	post_all(2, 1);
	issue_all();
	lane_complete(&t.lane, 0, KVL_ERR_WIRE);
	assert_int_equal(post(2, 1), 0);
	lane_complete(&t.lane, 1, KVL_ERR_WIRE);
	assert_int_equal(t.lane.flush_until, 2);
	retire_all();
	ended_is(0, KVL_ERR_WIRE);
	ended_is(1, KVL_ERR_WIRE);
	assert_int_equal(t.lane.epoch, 1);
	issue_all();
	lane_complete(&t.lane, 2, 0);
	retire_all();
	ended_is(2, 0);
}

TEST(notification_that_fails_is_the_requests_error)
{
	lane_at(0, 8);
	post_all(2, 0);
	t.job[0].core.notify = 1;
	t.job[0].notify_rc = KVL_ERR_WIRE;
	issue_all();
	retire_all();
	ended_is(0, KVL_ERR_WIRE);
	ended_is(1, KVL_ERR_FLUSHED);
	assert_int_equal(t.lane.epoch, 1);
}

TEST(failed_request_does_not_notify)
{
	lane_at(0, 8);
	post_all(1, 1);
	t.job[0].core.notify = 1;
	issue_all();
	lane_complete(&t.lane, 0, KVL_ERR_RANGE);
	retire_all();
	ended_is(0, KVL_ERR_RANGE);
	assert_int_equal(t.job[0].notified, 0);
}

/* ---------------------------------------------------------------------------------------------- stops */

TEST(stop_before_issue_moves_nothing)
{
	lane_at(0, 8);
	post_all(2, 2);
	stop(0, KVL_ERR_CANCELED);
	issue_all();
	lane_complete(&t.lane, 1, 0);
	lane_complete(&t.lane, 1, 0);
	retire_all();
	ended_is(0, KVL_ERR_CANCELED);
	ended_is(1, 0);
	assert_int_equal(t.job[0].issued, 0);
}

TEST(stop_half_way_drains_what_was_issued)
{
	lane_at(0, 8);
	post_all(1, 3);
	lane_issue(&t.lane);
	stop(0, KVL_ERR_TIMED_OUT);
	issue_all();
	assert_int_equal(t.job[0].issued, 1);
	assert_int_equal(lane_retire(&t.lane), LANE_BLOCKED);
	lane_complete(&t.lane, 0, 0);
	retire_all();
	ended_is(0, KVL_ERR_TIMED_OUT);
}

TEST(stop_needs_no_room_in_the_window)
{
	lane_at(0, 1);
	post_all(2, 1);
	issue_all();
	stop(1, KVL_ERR_CANCELED);
	assert_int_equal(issue_all(), 1);
	assert_int_equal(t.lane.inflight, 1);
}

TEST(stop_ends_a_notification_that_can_not_go)
{
	lane_at(0, 8);
	post_all(1, 1);
	t.job[0].core.notify = 1;
	t.job[0].notify_rc = KVL_ERR_AGAIN;
	issue_all();
	lane_complete(&t.lane, 0, 0);
	assert_int_equal(lane_retire(&t.lane), LANE_BLOCKED);
	assert_int_equal(lane_retire(&t.lane), LANE_BLOCKED);
	stop(0, KVL_ERR_TIMED_OUT);
	assert_int_equal(lane_retire(&t.lane), LANE_MOVED);
	ended_is(0, KVL_ERR_TIMED_OUT);
	assert_int_equal(t.job[0].notified, 0);
}

TEST(own_error_goes_before_a_stop)
{
	lane_at(0, 8);
	post_all(1, 2);
	lane_issue(&t.lane);
	lane_complete(&t.lane, 0, KVL_ERR_RANGE);
	stop(0, KVL_ERR_CANCELED);
	issue_all();
	retire_all();
	ended_is(0, KVL_ERR_RANGE);
}

TEST(first_stop_stands_but_a_cancel_gives_way)
{
	lane_at(0, 8);
	post_all(2, 1);
	stop(0, KVL_ERR_CANCELED);
	stop(0, KVL_ERR_TIMED_OUT);
	assert_int_equal(lane_stop_asked(&t.job[0].core), KVL_ERR_TIMED_OUT);
	stop(0, KVL_ERR_CANCELED);
	assert_int_equal(lane_stop_asked(&t.job[0].core), KVL_ERR_TIMED_OUT);
	assert_int_equal(lane_stop_asked(&t.job[1].core), 0);
}

TEST(stop_of_an_earlier_post_is_not_this_ones)
{
	lane_at(0, 8);
	post_all(1, 1);
	stop(0, KVL_ERR_CANCELED);
	issue_all();
	retire_all();
	ended_is(0, KVL_ERR_CANCELED);
	t.job[0] = (struct job){ .core = t.job[0].core, .fail_at = -1, .pieces = 1 };
	t.job[0].core.tag = 99;
	assert_int_equal(lane_reserve(&t.lane, 0, &t.job[0].core), 0);
	issue_all();
	lane_complete(&t.lane, 0, 0);
	retire_all();
	ended_is(0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_error_is_kept),
		cmocka_unit_test(error_while_issuing_drains_what_was_issued),
		cmocka_unit_test(error_of_one_operation_leaves_the_lane_alone),
		cmocka_unit_test(wire_error_flushes_what_is_queued_and_reopens),
		cmocka_unit_test(flush_waits_for_what_is_in_flight),
		cmocka_unit_test(older_request_of_a_failed_lane_ends_as_it_would_have),
		cmocka_unit_test(second_wire_error_of_an_epoch_changes_nothing),
		cmocka_unit_test(notification_that_fails_is_the_requests_error),
		cmocka_unit_test(failed_request_does_not_notify),
		cmocka_unit_test(stop_before_issue_moves_nothing),
		cmocka_unit_test(stop_half_way_drains_what_was_issued),
		cmocka_unit_test(stop_needs_no_room_in_the_window),
		cmocka_unit_test(stop_ends_a_notification_that_can_not_go),
		cmocka_unit_test(own_error_goes_before_a_stop),
		cmocka_unit_test(first_stop_stands_but_a_cancel_gives_way),
		cmocka_unit_test(stop_of_an_earlier_post_is_not_this_ones),
	};

	return TESTING_RUN(tests, 10);
}
