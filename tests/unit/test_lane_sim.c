/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes over the sim wire, mostly driven by one thread, so that a failure comes again with its seed. */
#include "testing_traffic.h"

#define SEEDS 6u

TEST(every_request_ends_once_in_its_lane)
{
	uint32_t overtaking = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct traffic_seen seen =
			traffic("delay=12,again=20", seed, KVL_NO_WORKERS, KVL_RETIRE_LANE);

		assert_int_equal(seen.failed + seen.flushed, 0);
		overtaking += seen.overtaking;
	}
	assert_true(overtaking > SEEDS * 10);
}

TEST(storms_only_slow_it_down)
{
	struct traffic_seen seen = traffic("delay=0,again=100", 1, KVL_NO_WORKERS, KVL_RETIRE_LANE);

	assert_int_equal(seen.failed + seen.flushed, 0);
}

TEST(an_error_flushes_what_is_behind_it)
{
	uint32_t failed = 0, flushed = 0, good_after[TRAFFIC_LANES] = { 0 };

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct traffic_seen seen =
			traffic("delay=6,again=10,error=25", seed, KVL_NO_WORKERS, KVL_RETIRE_LANE);

		failed += seen.failed;
		flushed += seen.flushed;
		for (uint32_t lane = 0; lane < TRAFFIC_LANES; lane++)
			good_after[lane] += seen.good_after_error[lane];
	}
	assert_true(failed > SEEDS);
	assert_true(flushed > failed);
	for (uint32_t lane = 0; lane < TRAFFIC_LANES; lane++)
		assert_true(good_after[lane] > 0);
}

TEST(global_order_ends_in_post_order)
{
	struct traffic_seen seen;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		seen = traffic("delay=12,again=20", seed, KVL_NO_WORKERS, KVL_RETIRE_GLOBAL);
		assert_int_equal(seen.overtaking, 0);
	}
	seen = traffic("delay=6,error=25", 3, KVL_NO_WORKERS, KVL_RETIRE_GLOBAL);
	assert_int_equal(seen.overtaking, 0);
	assert_true(seen.failed > 0);
}

TEST(one_wire_order_for_all_lanes)
{
	struct traffic_seen seen = traffic("delay=6,again=10,reorder=0", 4, KVL_NO_WORKERS, KVL_RETIRE_LANE);

	assert_int_equal(seen.failed, 0);
	seen = traffic("delay=6,error=25,reorder=0", 4, KVL_NO_WORKERS, KVL_RETIRE_LANE);
	assert_true(seen.failed > 0);
}

TEST(same_seed_same_history)
{
	struct traffic_seen seen[3];

	for (uint32_t i = 0; i < 3; i++)
		seen[i] = traffic("again=15,error=10", 7 + i / 2, KVL_NO_WORKERS, KVL_RETIRE_LANE);
	assert_int_equal(seen[1].hash, seen[0].hash);
	assert_int_not_equal(seen[2].hash, seen[0].hash);
}

TEST(workers_keep_every_promise)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		traffic("delay=12,again=20,error=5", seed, 2, KVL_RETIRE_LANE);
		traffic("delay=12,again=20", seed, 2, KVL_RETIRE_GLOBAL);
	}
}

/* ------------------------------------------------------------------------------------ a reader that is slow
 */

#define LETTERS    12u
#define LETTER_LEN (256 * KIB)

static void letters(uint32_t workers)
{
	static unsigned char letter[LETTER_LEN];
	struct kvl_config config = {
		.size = sizeof(config), .wire = "sim", .workers = workers, .notif_queue_bytes = MIB
	};
	struct kvl_notif *notif;
	struct duo duo;

	duo_open(&duo, &config);
	duo_connect(&duo);
	for (uint32_t i = 0; i < LETTERS; i++) {
		bytes_fill(letter, LETTER_LEN, i, 0, 0);
		assert_ok(kvl_notify(duo.a, duo.ab, letter, LETTER_LEN, NULL));
	}
	for (int i = 0; i < 1000; i++)
		duo_drive(&duo);
	for (uint32_t i = 0; i < LETTERS; i++) {
		notif = duo_notif(&duo, duo.b);
		assert_non_null(notif);
		assert_int_equal(notif->len, LETTER_LEN);
		assert_int_equal(bytes_wrong(notif->data, LETTER_LEN, i, 0, 0), 0);
		kvl_notif_free(notif);
	}
	assert_true(duo_quiet(&duo, duo.b));
	duo_close(&duo);
}

TEST(notifications_wait_for_the_reader)
{
	letters(KVL_NO_WORKERS);
	letters(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_request_ends_once_in_its_lane),
		cmocka_unit_test(storms_only_slow_it_down),
		cmocka_unit_test(an_error_flushes_what_is_behind_it),
		cmocka_unit_test(global_order_ends_in_post_order),
		cmocka_unit_test(one_wire_order_for_all_lanes),
		cmocka_unit_test(same_seed_same_history),
		cmocka_unit_test(workers_keep_every_promise),
		cmocka_unit_test(notifications_wait_for_the_reader),
	};

	return TESTING_RUN(tests, 60);
}
