/* SPDX-License-Identifier: Apache-2.0 */
/* What the sim wire does to its users: storms, errors, fences, full queues, lost peers. */
#include "testing_sim.h"

#include <errno.h>

static struct sim_link s;

static void open_filled(const char *sim)
{
	sim_link_open(&s, sim);
	sim_fill(&s);
}

/* ------------------------------------------------------------------------------------------------- storms */

TEST(storms_end)
{
	static const char empty = 0;

	open_filled("again=100,delay=0");
	for (uint32_t block = 0; block < 3; block++) {
		for (int i = 0; i < 100; i++)
			assert_int_equal(sim_issue_block(&s, 0, block), KVL_ERR_AGAIN);
		assert_int_equal(sim_issue_block(&s, 0, block), BLOCK);
		assert_int_equal(sim_next(&s, 0).cookie, block);
	}
	for (int i = 0; i < 100; i++)
		assert_int_equal(sim_notify(&s, 1, &empty, 1), KVL_ERR_AGAIN);
	assert_ok(sim_notify(&s, 1, &empty, 1));
	assert_int_equal(s.b.n_notifs, 1);
	assert_int_equal(s.b.refusals, 0);
	sim_link_close(&s);
}

TEST(storms_have_their_share)
{
	uint32_t again = 0;

	open_filled("again=30,delay=0");
	for (uint32_t block = 0; block < BLOCKS; block++) {
		while (sim_issue_block(&s, 0, block) == KVL_ERR_AGAIN)
			again++;
		assert_int_equal(sim_next(&s, 0).status, 0);
	}
	assert_memory_equal(s.a.data, s.b.data, MEMORY);
	assert_in_range(again, BLOCKS / 4, BLOCKS * 2 / 3); /* 3/7 of the blocks are expected */
	sim_link_close(&s);
}

/* ------------------------------------------------------------------------------------------------- errors */

struct tally {
	uint32_t good, failed, flushed, partial;
};

/* An error is followed by everything behind it in the lane, flushed; then the lane takes work again. */
static void check_error(uint32_t lane, uint32_t behind, struct tally *tally)
{
	for (uint32_t i = 0; i < behind; i++) {
		struct kvli_completion done = { 0, 0, 0 };

		assert_int_equal(sim_poll(&s, lane, &done), 1);
		assert_int_equal(done.status, KVL_ERR_FLUSHED);
		assert_int_equal(done.provider, 0);
		assert_int_equal(sim_arrived(&s, (uint32_t)done.cookie), 0);
		tally->flushed++;
	}
	assert_int_equal(sim_issue_block(&s, lane, 0), KVL_ERR_FLUSHED);
	kvli_wire_sim.reopen(sim_lane(&s, lane));
}

static void drain(uint32_t *inflight, struct tally *tally)
{
	for (uint32_t lane = 0; lane < LANES; lane++) {
		while (inflight[lane]) {
			struct kvli_completion done = sim_next(&s, lane);
			size_t arrived = sim_arrived(&s, (uint32_t)done.cookie);

			inflight[lane]--;
			if (done.status == 0) {
				assert_int_equal(arrived, BLOCK);
				tally->good++;
				continue;
			}
			assert_int_equal(done.status, KVL_ERR_WIRE);
			assert_int_equal(done.provider, EIO);
			assert_true(arrived < BLOCK);
			tally->failed++;
			tally->partial += arrived > 0;
			check_error(lane, inflight[lane], tally);
			inflight[lane] = 0;
		}
	}
}

TEST(errors_are_told_and_the_rest_is_exact)
{
	struct tally tally = { 0, 0, 0, 0 };
	uint32_t inflight[LANES] = { 0 };

	open_filled("error=100,delay=5,seed=3");
	for (uint32_t block = 0; block < BLOCKS; block++) {
		if (inflight[block % LANES] == WINDOW)
			drain(inflight, &tally);
		assert_int_equal(sim_issue_block(&s, block % LANES, block), BLOCK);
		inflight[block % LANES]++;
	}
	drain(inflight, &tally);
	assert_int_equal(tally.good + tally.failed + tally.flushed, BLOCKS);
	assert_in_range(tally.failed, 10, 60);
	assert_in_range(tally.partial, 1, tally.failed - 1);
	assert_true(tally.flushed > tally.failed);
	sim_link_close(&s);
}

TEST(error_1000_fails_every_chunk)
{
	open_filled("error=1000,delay=0");
	for (uint32_t block = 0; block < BLOCKS; block++) {
		assert_int_equal(sim_issue_block(&s, 0, block), BLOCK);
		assert_int_equal(sim_next(&s, 0).status, KVL_ERR_WIRE);
		assert_true(sim_arrived(&s, block) < BLOCK);
		kvli_wire_sim.reopen(sim_lane(&s, 0));
	}
	sim_link_close(&s);
}

/* ------------------------------------------------------------------------------------------------- fences */

static void fence_lane(const char *sim)
{
	struct kvli_completion done;

	open_filled(sim);
	for (uint32_t block = 0; block < 2 * WINDOW; block++)
		assert_int_equal(sim_issue_block(&s, block % 2, block), BLOCK);
	assert_ok(kvli_wire_sim.fence(sim_lane(&s, 0), KVL_ERR_TIMED_OUT));
	for (uint32_t i = 0; i < WINDOW; i++) {
		assert_int_equal(sim_poll(&s, 0, &done), 1);
		assert_int_equal(done.cookie, 2 * i);
		assert_int_equal(done.status, KVL_ERR_TIMED_OUT);
		assert_int_equal(sim_arrived(&s, 2 * i), 0);
	}
	for (uint32_t i = 0; i < WINDOW; i++) {
		done = sim_next(&s, 1);
		assert_int_equal(done.cookie, 2 * i + 1);
		assert_int_equal(done.status, 0);
		assert_int_equal(sim_arrived(&s, 2 * i + 1), BLOCK);
	}
	assert_int_equal(sim_issue_block(&s, 0, 100), BLOCK);
	assert_int_equal(sim_next(&s, 0).cookie, 100);
	for (uint32_t i = 0; i < WINDOW; i++)
		assert_int_equal(sim_arrived(&s, 2 * i), 0);
	sim_link_close(&s);
}

TEST(fence_ends_one_lane)
{
	fence_lane("delay=30");
	fence_lane("delay=30,reorder=0");
}

/* ------------------------------------------------------------------------------------------ notifications */

static void check_notif(const struct kvli_notif *notif, uint32_t lane, const void *data, size_t len)
{
	assert_int_equal(notif->pub.len, len);
	assert_int_equal(notif->pub.lane, lane);
	assert_memory_equal(notif->pub.data, data, len);
	assert_string_equal(notif->pub.peer, "sim-a");
	assert_memory_equal(notif->pub.incarnation, s.a.host.self.incarnation, KVL_INCARNATION);
}

TEST(notify_waits_for_room)
{
	static const char zero[3] = { 0, 1, 0 };

	open_filled("");
	s.b.room = 2;
	assert_ok(sim_notify(&s, 1, zero, sizeof(zero)));
	assert_ok(sim_notify(&s, 3, NULL, 0));
	assert_int_equal(sim_notify(&s, 0, "late", 4), KVL_ERR_AGAIN);
	assert_int_equal(sim_notify(&s, 2, "late", 4), KVL_ERR_AGAIN);
	assert_int_equal(s.b.n_notifs, 2);
	assert_int_equal(s.a.kicks, 0);
	s.b.room = 4;
	kvli_wire_sim.resume(s.b.wire);
	assert_int_equal(s.a.kicks, 1);
	kvli_wire_sim.resume(s.b.wire);
	assert_int_equal(s.a.kicks, 1);
	assert_ok(sim_notify(&s, 0, "late", 4));
	assert_int_equal(s.b.n_notifs, 3);
	check_notif(s.b.notif[0], 1, zero, sizeof(zero));
	check_notif(s.b.notif[1], 3, "", 0);
	check_notif(s.b.notif[2], 0, "late", 4);
	sim_link_close(&s);
}

/* Room that comes inside deliver() itself, after the refusal was settled, must wake the sender too. */
TEST(notify_room_during_the_refusal)
{
	open_filled("");
	s.b.room = 0;
	s.b.resumes_inside = 1;
	assert_int_equal(sim_notify(&s, 0, "x", 1), KVL_ERR_AGAIN);
	assert_int_equal(s.a.kicks, 1);
	sim_link_close(&s);
}

/* ------------------------------------------------------------------------------------------- a peer that
 * goes */

TEST(closing_loses_the_peer)
{
	struct kvli_completion done;
	struct kvli_conn *second = NULL;

	open_filled("");
	assert_ok(sim_connect(&s.a, &s.b, &second));
	for (uint32_t block = 0; block < WINDOW; block++)
		assert_int_equal(sim_issue_block(&s, 0, block), BLOCK);
	kvli_wire_sim.close(s.b.wire);
	s.b.wire = NULL;
	assert_int_equal(s.a.lost, 2);
	for (uint32_t block = 0; block < WINDOW; block++) {
		done = sim_next(&s, 0);
		assert_int_equal(done.cookie, block);
		assert_int_equal(done.status, KVL_ERR_PEER_LOST);
	}
	assert_int_equal(bytes_not(s.b.data, MEMORY, 0), 0);
	assert_int_equal(sim_notify(&s, 0, "x", 1), KVL_ERR_PEER_LOST);
	assert_int_equal(s.b.n_notifs, 0);
	kvli_wire_sim.disconnect(second);
	sim_link_close(&s);
	assert_int_equal(s.a.lost, 2);
}

/* Chunks in flight of a connection that goes; the other one, in the same queue, goes on. */
TEST(disconnect_forgets_what_is_in_flight)
{
	struct kvli_segment segment;
	struct kvli_cursor cursor = { .segment = &segment, .n = 1 };
	struct kvli_conn *second = NULL;
	const char *path;
	int provider;

	open_filled("reorder=0,delay=9");
	assert_ok(sim_connect(&s.a, &s.b, &second));
	segment = sim_segment(&s, 0, BLOCK);
	assert_int_equal(kvli_wire_sim.issue(kvli_wire_sim.lane(second, 0), KVL_WRITE, &cursor, BLOCK, 77,
					     &path, &provider),
			 BLOCK);
	assert_int_equal(sim_issue_block(&s, 0, 1), BLOCK);
	kvli_wire_sim.disconnect(second);
	assert_int_equal(sim_next(&s, 0).cookie, 1);
	assert_int_equal(sim_arrived(&s, 1), BLOCK);
	assert_int_equal(sim_arrived(&s, 0), 0);
	assert_int_equal(s.a.lost, 0);
	sim_link_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(storms_end),
		cmocka_unit_test(storms_have_their_share),
		cmocka_unit_test(errors_are_told_and_the_rest_is_exact),
		cmocka_unit_test(error_1000_fails_every_chunk),
		cmocka_unit_test(fence_ends_one_lane),
		cmocka_unit_test(notify_waits_for_room),
		cmocka_unit_test(notify_room_during_the_refusal),
		cmocka_unit_test(closing_loses_the_peer),
		cmocka_unit_test(disconnect_forgets_what_is_in_flight),
	};

	return TESTING_RUN(tests, 30);
}
