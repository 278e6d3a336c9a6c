/* SPDX-License-Identifier: Apache-2.0 */
/* Regions on the sim wire: lives, rights, ranges, and revoke() as a fence. */
#include "testing_sim.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

static struct sim_link s;

static void open_filled(const char *sim)
{
	sim_link_open(&s, sim);
	sim_fill(&s);
}

static void refuse_block(uint32_t block, int status)
{
	struct kvli_completion done;

	assert_int_equal(sim_issue_block(&s, 2, block), BLOCK);
	done = sim_next(&s, 2);
	assert_int_equal(done.status, status);
	assert_int_equal(done.cookie, block);
	assert_int_equal(sim_arrived(&s, block), 0);
}

TEST(regions_have_lives_and_rights)
{
	open_filled("");
	assert_int_equal(sim_issue_block(&s, 2, 1), BLOCK);
	assert_ok(kvli_wire_sim.revoke(s.b.wire, SLOT, 0));
	assert_int_equal(sim_next(&s, 2).status, KVL_ERR_STALE);
	assert_int_equal(sim_arrived(&s, 1), 0);
	refuse_block(2, KVL_ERR_STALE);
	sim_end_expose(&s.b, LIFE + 1, KVL_REMOTE_ALL);
	refuse_block(3, KVL_ERR_STALE);
	s.remote.generation = LIFE + 1;
	assert_int_equal(sim_issue_block(&s, 2, 4), BLOCK);
	assert_int_equal(sim_next(&s, 2).status, 0);
	assert_int_equal(sim_arrived(&s, 4), BLOCK);
	sim_end_expose(&s.b, LIFE + 1, KVL_REMOTE_READ);
	refuse_block(5, KVL_ERR_RIGHTS);
	s.remote.slot = UINT32_MAX;
	refuse_block(6, KVL_ERR_STALE);
	assert_ok(kvli_wire_sim.revoke(s.b.wire, UINT32_MAX, 0));
	assert_ok(kvli_wire_sim.import(s.conn, &s.remote, 1, 0));
	assert_null(s.remote.map);
	sim_link_close(&s);
}

TEST(range_is_checked_by_the_target)
{
	static const struct {
		int64_t at;
		uint64_t len;
	} bad[] = {
		{ -1, 1 }, { -1, 2 }, { MEMORY, 1 }, { MEMORY - 1, 2 }, { 1, MEMORY }, { 0, UINT64_MAX }
	};

	open_filled("");
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct kvli_segment segment[2] = { sim_segment(&s, 0, 1),
						   sim_segment(&s, (uint64_t)bad[i].at, bad[i].len) };
		struct kvli_cursor cursor = { .segment = segment, .n = 2 };
		const char *path;
		int provider;

		segment[1].local = segment[0].local;
		assert_ok(kvli_wire_sim.issue(sim_lane(&s, 0), KVL_WRITE, &cursor, MEMORY * 2, i, &path,
					      &provider));
		assert_int_equal(sim_next(&s, 0).status, KVL_ERR_RANGE);
	}
	assert_int_equal(bytes_not(s.b.data, MEMORY, 0), 0); /* nor the good piece beside the bad one */
	sim_link_close(&s);
}

/* A second thread writes the region over and over; after revoke() the memory is the owner's alone. */
static atomic_int writer_stop, writer_moved;

static void *writer_main(void *unused)
{
	struct kvli_completion done;
	uint32_t block = 0;

	while (!atomic_load(&writer_stop)) {
		struct kvli_segment segment = sim_segment(&s, 0, MEMORY);
		struct kvli_cursor cursor = { .segment = &segment, .n = 1 };
		const char *path;
		int provider;

		kvli_wire_sim.issue(sim_lane(&s, 3), KVL_WRITE, &cursor, MEMORY, block, &path, &provider);
		if (kvli_wire_sim.poll(sim_lane(&s, 3), &done, 1) == 1) {
			must(done.status == 0 || done.status == KVL_ERR_STALE);
			atomic_fetch_add(&writer_moved, 1);
		}
	}
	return unused;
}

static void writer_await(int more)
{
	int until = atomic_load(&writer_moved) + more;

	while (atomic_load(&writer_moved) < until)
		sched_yield();
}

TEST(revoke_is_a_fence)
{
	pthread_t thread;

	open_filled("delay=2");
	memset(s.a.data, 7, MEMORY);
	assert_int_equal(pthread_create(&thread, NULL, writer_main, NULL), 0);
	for (uint32_t round = 0; round < testing_rounds(60); round++) {
		sim_end_expose(&s.b, LIFE, KVL_REMOTE_ALL);
		writer_await(2);
		assert_ok(kvli_wire_sim.revoke(s.b.wire, SLOT, SECOND));
		memset(s.b.data, 9, MEMORY); /* a race for the thread sanitizer, were it no fence */
		writer_await(2);
		assert_int_equal(bytes_not(s.b.data, MEMORY, 9), 0);
	}
	atomic_store(&writer_stop, 1);
	pthread_join(thread, NULL);
	sim_link_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(regions_have_lives_and_rights),
		cmocka_unit_test(range_is_checked_by_the_target),
		cmocka_unit_test(revoke_is_a_fence),
	};

	return TESTING_RUN(tests, 30);
}
