/* SPDX-License-Identifier: Apache-2.0 */
/* Ends: first in, first out within a lane, none across lanes, each taken exactly once. */
#include "testing.h"

#include <string.h>

#define BULK  (256 * KIB)
#define SMALL 64u
#define LANES 4u /* the default */

struct fixture {
	struct duo duo;
	struct buffer local, remote;
};

/* Small requests are below small_bytes, bulk ones take many passes of progress. */
static void fixture_open(struct fixture *f, uint32_t workers, enum kvl_retire_order order)
{
	struct kvl_config config;

	kvl_config_init(&config);
	config.workers = workers;
	config.retire_order = order;
	config.small_bytes = 4096;
	config.chunk_bytes = 4096;
	config.window = 1;
	duo_open(&f->duo, &config);
	buffer_open(&f->local, f->duo.a, BUFFER_ALLOC, BULK, 0);
	buffer_open(&f->remote, f->duo.b, BUFFER_ALLOC, LANES * BULK, 0);
	duo_connect(&f->duo);
}

/* To a place of the lane's own: between lanes there is no order that would say whose bytes win. */
static kvl_xfer_t write_on(struct fixture *f, uint32_t lane, uint64_t len, void *user)
{
	struct kvl_desc local = desc_of(f->local.data, len),
			remote = desc_of(f->remote.data + lane * BULK, len);
	struct kvl_xfer_opts opts = { .size = sizeof(opts), .lane = KVL_LANE(lane), .user = user };
	kvl_xfer_t xfer;

	assert_ok(kvl_write(f->duo.a, f->duo.ab, &local, &remote, 1, &opts, &xfer));
	return xfer;
}

static kvl_xfer_t take_one(struct fixture *f)
{
	uint64_t limit = kvl_now() + PATIENCE;
	struct kvl_end end;

	while (assert_ok(kvl_poll_many(f->duo.a, &end, 1, 0)) == 0) {
		assert_true(kvl_now() < limit);
		duo_drive(&f->duo);
	}
	assert_int_equal(end.status, 0);
	return end.xfer;
}

static void take_none(struct fixture *f)
{
	struct kvl_end end;

	assert_int_equal(kvl_poll_many(f->duo.a, &end, 1, 0), 0);
}

/* A bulk request first, a small one of the same lane behind it: the small one ends second. */
TEST(order_fifo_within_a_lane)
{
	struct fixture f;
	kvl_xfer_t xfer[4];

	fixture_open(&f, KVL_NO_WORKERS, KVL_RETIRE_LANE);
	for (size_t i = 0; i < 4; i++)
		xfer[i] = write_on(&f, 1, i % 2 ? SMALL : BULK, NULL);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(take_one(&f), xfer[i]);
		for (size_t k = i + 1; k < 4; k++)
			assert_true(kvl_xfer_poll(f.duo.a, xfer[k]) == KVL_PENDING || k == i + 1);
	}
	take_none(&f);
	duo_close(&f.duo);
}

/* The mission: a small request does not wait for older bulk on another lane. */
TEST(order_none_across_lanes)
{
	struct fixture f;
	kvl_xfer_t bulk, small;

	fixture_open(&f, KVL_NO_WORKERS, KVL_RETIRE_LANE);
	bulk = write_on(&f, 2, BULK, NULL);
	small = write_on(&f, 0, SMALL, NULL);
	assert_int_equal(take_one(&f), small);
	assert_int_equal(kvl_xfer_poll(f.duo.a, bulk), KVL_PENDING);
	assert_int_equal(take_one(&f), bulk);
	duo_close(&f.duo);
}

/* The arm to measure against: one completion list over all lanes. */
TEST(order_global_retirement_holds_the_small_one_back)
{
	struct fixture f;
	kvl_xfer_t bulk, small;

	fixture_open(&f, KVL_NO_WORKERS, KVL_RETIRE_GLOBAL);
	bulk = write_on(&f, 2, BULK, NULL);
	small = write_on(&f, 0, SMALL, NULL);
	assert_int_equal(kvl_xfer_poll(f.duo.a, small), KVL_PENDING);
	assert_int_equal(take_one(&f), bulk);
	assert_int_equal(take_one(&f), small);
	take_none(&f);
	duo_close(&f.duo);
}

/* Ends that poll or wait have shown are still listed, until the request is posted again or released. */
TEST(order_shown_ends_are_still_listed)
{
	struct fixture f;
	struct kvl_end end[4];
	kvl_xfer_t xfer[3];
	int user[3];

	fixture_open(&f, 1, KVL_RETIRE_LANE);
	for (size_t i = 0; i < 3; i++) {
		xfer[i] = write_on(&f, 0, SMALL, &user[i]);
		assert_int_equal(duo_wait(&f.duo, xfer[i]), 0);
		assert_int_equal(kvl_xfer_poll(f.duo.a, xfer[i]), 0);
	}
	assert_ok(kvl_xfer_release(f.duo.a, xfer[1]));
	assert_int_equal(kvl_poll_many(f.duo.a, end, 4, 0), 2);
	assert_int_equal(end[0].xfer, xfer[0]);
	assert_ptr_equal(end[0].user, &user[0]);
	assert_int_equal(end[1].xfer, xfer[2]);
	assert_ptr_equal(end[1].user, &user[2]);
	take_none(&f);
	/* Two ends of one request, the first never taken: only the second is listed. */
	for (int i = 0; i < 2; i++) {
		assert_ok(kvl_xfer_post(f.duo.a, xfer[0], NULL));
		assert_int_equal(duo_wait(&f.duo, xfer[0]), 0);
	}
	assert_int_equal(kvl_poll_many(f.duo.a, end, 4, 0), 1);
	assert_int_equal(end[0].xfer, xfer[0]);
	take_none(&f);
	duo_close(&f.duo);
}

TEST(order_poll_many_takes_up_to_max)
{
	struct fixture f;
	struct kvl_end end[16];
	kvl_xfer_t xfer[10];

	fixture_open(&f, 1, KVL_RETIRE_LANE);
	for (size_t i = 0; i < 10; i++)
		xfer[i] = write_on(&f, 1, SMALL, NULL);
	assert_int_equal(duo_wait(&f.duo, xfer[9]), 0);
	assert_int_equal(kvl_poll_many(f.duo.a, end, 4, PATIENCE), 4);
	assert_int_equal(kvl_poll_many(f.duo.a, end + 4, 12, PATIENCE), 6);
	for (size_t i = 0; i < 10; i++)
		assert_int_equal(end[i].xfer, xfer[i]);
	assert_int_equal(kvl_poll_many(f.duo.a, end, 0, 0), 0);
	assert_refused(kvl_poll_many(f.duo.a, NULL, 1, 0), KVL_ERR_INVALID);
	duo_close(&f.duo);
}

TEST(order_poll_many_times_out)
{
	struct fixture f;
	struct kvl_end end;
	uint64_t start = kvl_now();

	fixture_open(&f, 1, KVL_RETIRE_LANE);
	assert_int_equal(kvl_poll_many(f.duo.a, &end, 1, 20 * MS), 0);
	assert_in_range(kvl_now() - start, 20 * MS, 10 * SECOND);
	duo_close(&f.duo);
}

/* Many requests of all lanes and sizes: within each lane the order of the posts, each end once. */
static void many(uint32_t workers, enum kvl_retire_order order)
{
	enum {
		N = 256
	};
	size_t taken = 0, next[LANES] = { 0 }, posted[LANES] = { 0 };
	uint32_t lane[N];
	size_t place[N];
	uint64_t random = 3, limit = kvl_now() + PATIENCE;
	struct fixture f;

	fixture_open(&f, workers, order);
	for (size_t i = 0; i < N; i++) {
		lane[i] = (uint32_t)random_range(&random, 0, LANES - 1);
		place[i] = posted[lane[i]]++;
		write_on(&f, lane[i], random_range(&random, 0, 9) ? SMALL : BULK / 4, (void *)(uintptr_t)i);
	}
	while (taken < N) {
		struct kvl_end end[7];
		int64_t n = assert_ok(kvl_poll_many(f.duo.a, end, 7, f.duo.driven ? 0 : 10 * MS));

		assert_true(kvl_now() < limit);
		duo_drive(&f.duo);
		for (int64_t k = 0; k < n; k++) {
			size_t i = (size_t)(uintptr_t)end[k].user;

			assert_int_equal(end[k].status, 0);
			assert_int_equal(place[i], next[lane[i]]++);
			if (order == KVL_RETIRE_GLOBAL)
				assert_int_equal(i, taken + (size_t)k);
			assert_ok(kvl_xfer_release(f.duo.a, end[k].xfer));
		}
		taken += (size_t)n;
	}
	take_none(&f);
	duo_close(&f.duo);
}

TEST(order_many_on_all_lanes)
{
	many(1, KVL_RETIRE_LANE);
	many(KVL_NO_WORKERS, KVL_RETIRE_LANE);
}

TEST(order_many_with_global_retirement)
{
	many(1, KVL_RETIRE_GLOBAL);
	many(KVL_NO_WORKERS, KVL_RETIRE_GLOBAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(order_fifo_within_a_lane),
		cmocka_unit_test(order_none_across_lanes),
		cmocka_unit_test(order_global_retirement_holds_the_small_one_back),
		cmocka_unit_test(order_shown_ends_are_still_listed),
		cmocka_unit_test(order_poll_many_takes_up_to_max),
		cmocka_unit_test(order_poll_many_times_out),
		cmocka_unit_test(order_many_on_all_lanes),
		cmocka_unit_test(order_many_with_global_retirement),
	};

	return TESTING_RUN(tests, 30);
}
