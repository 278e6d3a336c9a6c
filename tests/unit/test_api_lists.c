/* SPDX-License-Identifier: Apache-2.0 */
/* Prepared lists: plain, runs and block tables, every rule of each, with the entry that broke it. */
#include "testing.h"

#include <string.h>

#define LEN (64 * KIB)

struct fixture {
	struct duo duo;
	struct buffer local, remote;
};

static void fixture_open(struct fixture *f)
{
	duo_open(&f->duo, NULL);
	buffer_open(&f->local, f->duo.a, BUFFER_ALLOC, LEN, 0);
	buffer_open(&f->remote, f->duo.b, BUFFER_ALLOC, LEN, 0);
	duo_connect(&f->duo);
}

static void entries(struct fixture *f, kvl_list_t list, int64_t n)
{
	assert_int_equal(kvl_list_entries(f->duo.a, list), n);
	assert_ok(kvl_list_destroy(f->duo.a, list));
	assert_refused(kvl_list_entries(f->duo.a, list), KVL_ERR_STALE);
	assert_refused(kvl_list_destroy(f->duo.a, list), KVL_ERR_STALE);
}

TEST(lists_count_their_entries)
{
	struct fixture f;
	struct kvl_desc desc[3];
	struct kvl_run run[2];
	uint32_t index[5] = { 15, 0, 3, 3, 1 };
	kvl_list_t list;

	fixture_open(&f);
	for (size_t i = 0; i < 3; i++)
		desc[i] = desc_of(f.local.data + i, LEN - i);
	run[0] = (struct kvl_run){ buffer_addr(&f.local), 100, 200, 7, 0, 0 };
	run[1] = (struct kvl_run){ buffer_addr(&f.local), 1, 0, 1, 0, 0 };
	assert_ok(kvl_list_create(f.duo.a, KVL_LOCAL, desc, 3, &list));
	entries(&f, list, 3);
	assert_ok(kvl_list_create(f.duo.a, KVL_LOCAL, NULL, 0, &list));
	entries(&f, list, 0);
	assert_ok(kvl_list_create_runs(f.duo.a, KVL_LOCAL, run, 2, &list));
	entries(&f, list, 8);
	assert_ok(kvl_list_create_runs(f.duo.a, f.duo.ab, NULL, 0, &list));
	entries(&f, list, 0);
	assert_ok(
		kvl_list_create_blocks(f.duo.a, f.duo.ab, buffer_addr(&f.remote), 4096, index, 5, 0, &list));
	entries(&f, list, 5);
	assert_ok(kvl_list_create_blocks(f.duo.a, f.duo.ab, buffer_addr(&f.remote), 4096, NULL, 0, 0, &list));
	entries(&f, list, 0);
	duo_close(&f.duo);
}

TEST(lists_refuse_bad_arguments)
{
	struct fixture f;
	struct kvl_desc desc;
	kvl_list_t list = 0;

	fixture_open(&f);
	desc = desc_of(f.local.data, 1);
	assert_refused(kvl_list_create(f.duo.a, KVL_LOCAL, NULL, 1, &list), KVL_ERR_INVALID);
	assert_refused(kvl_list_create(f.duo.a, KVL_LOCAL, &desc, 1, NULL), KVL_ERR_INVALID);
	assert_refused(kvl_list_create_runs(f.duo.a, KVL_LOCAL, NULL, 1, &list), KVL_ERR_INVALID);
	assert_refused(kvl_list_create_blocks(f.duo.a, KVL_LOCAL, desc.addr, 1, NULL, 1, 0, &list),
		       KVL_ERR_INVALID);
	desc.reserved = 1;
	assert_refused_at(kvl_list_create(f.duo.a, KVL_LOCAL, &desc, 1, &list), KVL_ERR_INVALID, 0);
	assert_int_equal(list, 0);
	duo_close(&f.duo);
}

/* Entries of runs are numbered piece by piece. */
TEST(lists_runs_name_the_piece)
{
	struct fixture f;
	struct kvl_run run[3];
	kvl_list_t list = 0;
	uint64_t base;

	fixture_open(&f);
	base = buffer_addr(&f.remote);
	run[0] = (struct kvl_run){ base, 64, 64, 10, 0, 0 };
	run[1] = (struct kvl_run){ base + LEN - 10 * 100, 100, 100, 10, 0, 0 };
	run[2] = run[0];
	assert_ok(kvl_list_create_runs(f.duo.a, f.duo.ab, run, 3, &list));
	assert_ok(kvl_list_destroy(f.duo.a, list));
	list = 0;
	run[1].addr++; /* its last piece ends one byte past */
	assert_refused_at(kvl_list_create_runs(f.duo.a, f.duo.ab, run, 3, &list), KVL_ERR_RANGE, 19);
	run[1].addr -= 1;
	run[1].stride = 101; /* the tenth piece again */
	assert_refused_at(kvl_list_create_runs(f.duo.a, f.duo.ab, run, 3, &list), KVL_ERR_RANGE, 19);
	run[1].stride = 550; /* pieces at 0, 550, then past the end */
	assert_refused_at(kvl_list_create_runs(f.duo.a, f.duo.ab, run, 3, &list), KVL_ERR_RANGE, 12);
	run[1].stride = 99; /* less than len */
	/* What is wrong with a run as such names the run. */
	assert_refused_at(kvl_list_create_runs(f.duo.a, f.duo.ab, run, 3, &list), KVL_ERR_INVALID, 1);
	assert_rule("stride");
	run[1].stride = 100;
	run[1].count = 0;
	assert_refused_at(kvl_list_create_runs(f.duo.a, f.duo.ab, run, 3, &list), KVL_ERR_INVALID, 1);
	assert_rule("count");
	run[1].count = 10;
	run[1].reserved = 1;
	assert_refused(kvl_list_create_runs(f.duo.a, f.duo.ab, run, 3, &list), KVL_ERR_INVALID);
	assert_int_equal(list, 0);
	duo_close(&f.duo);
}

/* Arithmetic that overflows 64 bits must not come out as a small number. */
TEST(lists_runs_do_not_wrap)
{
	struct fixture f;
	struct kvl_run run;
	kvl_list_t list = 0;

	fixture_open(&f);
	run = (struct kvl_run){ buffer_addr(&f.remote), 1, 1ull << 63, 3, 0, 0 };
	assert_refused_at(kvl_list_create_runs(f.duo.a, f.duo.ab, &run, 1, &list), KVL_ERR_RANGE, 0);
	run.stride = UINT64_MAX;
	assert_refused_at(kvl_list_create_runs(f.duo.a, f.duo.ab, &run, 1, &list), KVL_ERR_RANGE, 0);
	run = (struct kvl_run){ buffer_addr(&f.remote), 1, 1, UINT64_MAX, 0, 0 };
	assert_true(kvl_list_create_runs(f.duo.a, f.duo.ab, &run, 1, &list) < 0);
	run = (struct kvl_run){ buffer_addr(&f.remote), 1ull << 62, 1ull << 62, 4, 0, 0 };
	assert_refused_at(kvl_list_create_runs(f.duo.a, f.duo.ab, &run, 1, &list), KVL_ERR_RANGE, 0);
	run = (struct kvl_run){ UINT64_MAX, 1, 0, 1, 0, 0 };
	assert_refused_at(kvl_list_create_runs(f.duo.a, f.duo.ab, &run, 1, &list), KVL_ERR_RANGE, 0);
	assert_int_equal(list, 0);
	duo_close(&f.duo);
}

TEST(lists_blocks_name_the_index)
{
	struct fixture f;
	uint32_t index[3] = { 0, 15, 7 };
	kvl_list_t list = 0;
	uint64_t base;

	fixture_open(&f);
	base = buffer_addr(&f.local);
	assert_ok(kvl_list_create_blocks(f.duo.a, KVL_LOCAL, base, 4096, index, 3, 0, &list));
	assert_ok(kvl_list_destroy(f.duo.a, list));
	list = 0;
	index[1] = 16;
	assert_refused_at(kvl_list_create_blocks(f.duo.a, KVL_LOCAL, base, 4096, index, 3, 0, &list),
			  KVL_ERR_RANGE, 1);
	index[1] = 1;
	assert_refused_at(kvl_list_create_blocks(f.duo.a, KVL_LOCAL, base, 1ull << 63, index, 3, 0, &list),
			  KVL_ERR_RANGE, 0);
	assert_refused_at(kvl_list_create_blocks(f.duo.a, KVL_LOCAL, base - 1, 4096, index, 3, 0, &list),
			  KVL_ERR_RANGE, 0);
	/* base below the region is fine as long as no named block is. */
	index[0] = 1;
	assert_ok(kvl_list_create_blocks(f.duo.a, KVL_LOCAL, base - 4096, 4096, index, 3, 0, &list));
	assert_ok(kvl_list_destroy(f.duo.a, list));
	duo_close(&f.duo);
}

/* Runs and block tables say the same as the descriptors they stand for. */
TEST(lists_all_forms_move_the_same_bytes)
{
	enum {
		N = 13,
		BLOCK = 1024
	};
	static const uint32_t index[N] = { 3, 1, 60, 22, 21, 20, 19, 0, 63, 40, 41, 42, 7 };
	struct kvl_run run = { 0, BLOCK, BLOCK, N, 0, 0 };
	struct kvl_desc desc[N];
	struct fixture f;
	kvl_list_t from[3], to[3];

	fixture_open(&f);
	for (size_t i = 0; i < N; i++)
		desc[i] = desc_of(f.remote.data + index[i] * BLOCK, BLOCK);
	run.addr = buffer_addr(&f.local);
	assert_ok(kvl_list_create_runs(f.duo.a, KVL_LOCAL, &run, 1, &from[0]));
	for (size_t i = 0; i < N; i++)
		desc[i] = desc_of(f.local.data + i * BLOCK, BLOCK);
	assert_ok(kvl_list_create(f.duo.a, KVL_LOCAL, desc, N, &from[1]));
	from[2] = from[0];
	for (size_t i = 0; i < N; i++)
		desc[i] = desc_of(f.remote.data + index[i] * BLOCK, BLOCK);
	assert_ok(kvl_list_create(f.duo.a, f.duo.ab, desc, N, &to[0]));
	assert_ok(kvl_list_create_blocks(f.duo.a, f.duo.ab, buffer_addr(&f.remote), BLOCK, index, N, 0,
					 &to[1]));
	to[2] = to[1];
	for (uint64_t way = 0; way < 3; way++) {
		kvl_xfer_t xfer;

		bytes_fill(f.local.data, LEN, 1, 0, way);
		memset(f.remote.data, 0, LEN);
		assert_ok(kvl_xfer_prepare(f.duo.a, KVL_WRITE, from[way], to[way], NULL, &xfer));
		assert_ok(kvl_xfer_post(f.duo.a, xfer, NULL));
		assert_int_equal(duo_wait(&f.duo, xfer), 0);
		for (size_t i = 0; i < N; i++)
			assert_int_equal(
				bytes_wrong(f.remote.data + index[i] * BLOCK, BLOCK, 1, i * BLOCK, way), 0);
		assert_int_equal(bytes_not(f.remote.data + 2 * BLOCK, BLOCK, 0), 0);
		assert_ok(kvl_xfer_release(f.duo.a, xfer));
	}
	duo_close(&f.duo);
}

/* The handle ends at once; requests made from it keep what they need. */
TEST(lists_destroyed_under_a_request)
{
	struct kvl_desc from, to;
	kvl_list_t lists[2];
	struct fixture f;
	kvl_xfer_t xfer;

	fixture_open(&f);
	from = desc_of(f.local.data, LEN);
	to = desc_of(f.remote.data, LEN);
	assert_ok(kvl_list_create(f.duo.a, KVL_LOCAL, &from, 1, &lists[0]));
	assert_ok(kvl_list_create(f.duo.a, f.duo.ab, &to, 1, &lists[1]));
	assert_ok(kvl_xfer_prepare(f.duo.a, KVL_WRITE, lists[0], lists[1], NULL, &xfer));
	assert_ok(kvl_list_destroy(f.duo.a, lists[0]));
	assert_ok(kvl_list_destroy(f.duo.a, lists[1]));
	for (uint64_t epoch = 0; epoch < 5; epoch++) {
		bytes_fill(f.local.data, LEN, 1, 0, epoch);
		assert_ok(kvl_xfer_post(f.duo.a, xfer, NULL));
		assert_int_equal(duo_wait(&f.duo, xfer), 0);
		assert_int_equal(bytes_wrong(f.remote.data, LEN, 1, 0, epoch), 0);
	}
	duo_close(&f.duo);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_count_their_entries),
		cmocka_unit_test(lists_refuse_bad_arguments),
		cmocka_unit_test(lists_runs_name_the_piece),
		cmocka_unit_test(lists_runs_do_not_wrap),
		cmocka_unit_test(lists_blocks_name_the_index),
		cmocka_unit_test(lists_all_forms_move_the_same_bytes),
		cmocka_unit_test(lists_destroyed_under_a_request),
	};

	return TESTING_RUN(tests, 20);
}
