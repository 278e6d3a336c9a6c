/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of two lists, whole or by index arrays: what must match, what is merged, what is named. */
#include "testing.h"

#include <string.h>

#define BLOCK  1024u
#define BLOCKS 64u

struct pools {
	struct duo duo;
	struct buffer local, remote;
	kvl_list_t local_list, remote_list; /* BLOCKS entries of BLOCK bytes; the last one is shorter */
};

static void pools_open(struct pools *p)
{
	struct kvl_run run[2] = { { 0, BLOCK, BLOCK, BLOCKS - 1, 0, 0 }, { 0, BLOCK - 1, 0, 1, 0, 0 } };

	duo_open(&p->duo, NULL);
	buffer_open(&p->local, p->duo.a, BUFFER_ALLOC, BLOCKS * BLOCK, 0);
	buffer_open(&p->remote, p->duo.b, BUFFER_ALLOC, BLOCKS * BLOCK, 0);
	duo_connect(&p->duo);
	run[0].addr = buffer_addr(&p->local);
	run[1].addr = run[0].addr + (BLOCKS - 1) * BLOCK;
	assert_ok(kvl_list_create_runs(p->duo.a, KVL_LOCAL, run, 2, &p->local_list));
	run[0].addr = buffer_addr(&p->remote);
	run[1].addr = run[0].addr + (BLOCKS - 1) * BLOCK;
	assert_ok(kvl_list_create_runs(p->duo.a, p->duo.ab, run, 2, &p->remote_list));
}

/* One request by index; every byte of the destination is compared with a model. */
static struct kvl_report move_indexed(struct pools *p, enum kvl_op op, const uint32_t *local,
				      const uint32_t *remote, size_t n, const struct kvl_xfer_opts *opts,
				      uint64_t epoch)
{
	struct kvl_report report = { .size = sizeof(report) };
	struct buffer *from = op == KVL_WRITE ? &p->local : &p->remote;
	struct buffer *to = op == KVL_WRITE ? &p->remote : &p->local;
	unsigned char model[BLOCKS * BLOCK];
	kvl_xfer_t xfer;

	bytes_fill(from->data, sizeof(model), 1, 0, epoch);
	bytes_fill(to->data, sizeof(model), 2, 0, epoch);
	memcpy(model, to->data, sizeof(model));
	for (size_t i = 0; i < n; i++) {
		uint32_t source = op == KVL_WRITE ? local[i] : remote[i];
		uint32_t target = op == KVL_WRITE ? remote[i] : local[i];

		memcpy(model + target * BLOCK, from->data + source * BLOCK, BLOCK - (target == BLOCKS - 1));
	}
	assert_ok(kvl_xfer_prepare_indexed(p->duo.a, op, p->local_list, local, p->remote_list, remote, n,
					   opts, &xfer));
	assert_ok(kvl_xfer_post(p->duo.a, xfer, NULL));
	assert_int_equal(duo_wait(&p->duo, xfer), 0);
	assert_memory_equal(to->data, model, sizeof(model));
	assert_ok(kvl_xfer_report(p->duo.a, xfer, &report));
	assert_int_equal(report.descriptors, n);
	assert_ok(kvl_xfer_release(p->duo.a, xfer));
	return report;
}

TEST(indexed_random_block_ids)
{
	uint64_t random = 7;
	struct pools p;

	pools_open(&p);
	for (size_t round = 0; round < testing_rounds(300); round++) {
		uint32_t local[BLOCKS], remote[BLOCKS];
		size_t n = random_range(&random, 0, BLOCKS - 1);

		random_shuffle(local, BLOCKS - 1, &random);
		random_shuffle(remote, BLOCKS - 1, &random);
		move_indexed(&p, round % 2 ? KVL_READ : KVL_WRITE, local, remote, n, NULL, round);
	}
	duo_close(&p.duo);
}

/* The arrays are not kept: they may be overwritten between prepare and post. */
TEST(indexed_arrays_are_not_kept)
{
	uint32_t local[2] = { 1, 2 }, remote[2] = { 5, 3 };
	struct pools p;
	kvl_xfer_t xfer;

	pools_open(&p);
	bytes_fill(p.local.data, BLOCKS * BLOCK, 1, 0, 1);
	assert_ok(kvl_xfer_prepare_indexed(p.duo.a, KVL_WRITE, p.local_list, local, p.remote_list, remote, 2,
					   NULL, &xfer));
	memset(local, 0xff, sizeof(local));
	memset(remote, 0xff, sizeof(remote));
	assert_ok(kvl_xfer_post(p.duo.a, xfer, NULL));
	assert_int_equal(duo_wait(&p.duo, xfer), 0);
	assert_int_equal(bytes_wrong(p.remote.data + 5 * BLOCK, BLOCK, 1, BLOCK, 1), 0);
	assert_int_equal(bytes_wrong(p.remote.data + 3 * BLOCK, BLOCK, 1, 2 * BLOCK, 1), 0);
	assert_int_equal(bytes_not(p.remote.data + 4 * BLOCK, BLOCK, 0), 0);
	duo_close(&p.duo);
}

static void refuse(struct pools *p, uint32_t local, uint32_t remote, int code, size_t at)
{
	uint32_t locals[5] = { 0, 1, 2, 3, 4 }, remotes[5] = { 4, 3, 2, 1, 0 };
	kvl_xfer_t xfer = 0;

	locals[at] = local;
	remotes[at] = remote;
	assert_refused_at(kvl_xfer_prepare_indexed(p->duo.a, KVL_WRITE, p->local_list, locals, p->remote_list,
						   remotes, 5, NULL, &xfer),
			  code, at);
	assert_int_equal(xfer, 0);
}

TEST(indexed_bad_entries_are_named)
{
	struct pools p;
	uint32_t index = 0;
	kvl_xfer_t xfer = 0;

	pools_open(&p);
	refuse(&p, BLOCKS, 0, KVL_ERR_INVALID, 3);
	refuse(&p, 0, BLOCKS, KVL_ERR_INVALID, 4);
	refuse(&p, UINT32_MAX, 0, KVL_ERR_INVALID, 0);
	refuse(&p, BLOCKS - 1, 0, KVL_ERR_MISMATCH, 2);
	refuse(&p, 0, BLOCKS - 1, KVL_ERR_MISMATCH, 1);
	assert_refused(kvl_xfer_prepare_indexed(p.duo.a, KVL_WRITE, p.local_list, NULL, p.remote_list, &index,
						1, NULL, &xfer),
		       KVL_ERR_INVALID);
	assert_refused(kvl_xfer_prepare_indexed(p.duo.a, KVL_WRITE, p.local_list, &index, p.remote_list, NULL,
						1, NULL, &xfer),
		       KVL_ERR_INVALID);
	assert_int_equal(xfer, 0);
	duo_close(&p.duo);
}

static void refuse_lists(struct pools *p, kvl_list_t local, kvl_list_t remote)
{
	uint32_t index = 0;
	kvl_xfer_t xfer = 0;

	assert_refused(kvl_xfer_prepare(p->duo.a, KVL_WRITE, local, remote, NULL, &xfer), KVL_ERR_INVALID);
	assert_refused(kvl_xfer_prepare(p->duo.a, KVL_READ, local, remote, NULL, &xfer), KVL_ERR_INVALID);
	assert_refused(
		kvl_xfer_prepare_indexed(p->duo.a, KVL_WRITE, local, &index, remote, &index, 1, NULL, &xfer),
		KVL_ERR_INVALID);
	assert_int_equal(xfer, 0);
}

TEST(prepare_refuses_swapped_and_foreign_lists)
{
	struct pools p;

	pools_open(&p);
	refuse_lists(&p, p.remote_list, p.local_list);
	refuse_lists(&p, p.local_list, p.local_list);
	refuse_lists(&p, p.remote_list, p.remote_list);
	duo_close(&p.duo);
}

TEST(prepare_refuses_bad_options)
{
	struct kvl_xfer_opts opts = { .size = sizeof(opts), .flags = KVL_XFER_NOTIFY, .notif_len = 1 };
	struct pools p;
	kvl_xfer_t xfer = 0;

	pools_open(&p);
	assert_refused(kvl_xfer_prepare(p.duo.a, (enum kvl_op)3, p.local_list, p.remote_list, NULL, &xfer),
		       KVL_ERR_INVALID);
	assert_refused(kvl_xfer_prepare(p.duo.a, (enum kvl_op)0, p.local_list, p.remote_list, NULL, &xfer),
		       KVL_ERR_INVALID);
	assert_refused(kvl_xfer_prepare(p.duo.a, KVL_WRITE, p.local_list, p.remote_list, &opts, &xfer),
		       KVL_ERR_INVALID); /* a notification of no bytes has length 0 */
	opts = (struct kvl_xfer_opts){ .size = sizeof(opts), .flags = 0x80 };
	assert_refused(kvl_xfer_prepare(p.duo.a, KVL_WRITE, p.local_list, p.remote_list, &opts, &xfer),
		       KVL_ERR_INVALID);
	opts = (struct kvl_xfer_opts){ .size = sizeof(opts), .path = (enum kvl_path)7 };
	assert_refused(kvl_xfer_prepare(p.duo.a, KVL_WRITE, p.local_list, p.remote_list, &opts, &xfer),
		       KVL_ERR_INVALID);
	opts = (struct kvl_xfer_opts){ .size = 0 };
	assert_refused(kvl_xfer_prepare(p.duo.a, KVL_WRITE, p.local_list, p.remote_list, &opts, &xfer),
		       KVL_ERR_INVALID);
	assert_int_equal(xfer, 0);
	opts = (struct kvl_xfer_opts){ .size = sizeof(opts), .path = KVL_PATH_DIRECT };
	assert_ok(kvl_xfer_prepare(p.duo.a, KVL_WRITE, p.local_list, p.remote_list, &opts, &xfer));
	duo_close(&p.duo);
}

/* Neighbours on both sides are one piece; KVL_XFER_NO_MERGE keeps them apart. */
TEST(merge_of_neighbours)
{
	static const uint32_t row[8] = { 8, 9, 10, 11, 20, 21, 40, 41 };
	static const uint32_t other[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
	static const uint32_t apart[8] = { 0, 2, 4, 6, 8, 10, 12, 14 };
	struct kvl_xfer_opts keep = { .size = sizeof(keep), .flags = KVL_XFER_NO_MERGE };
	struct pools p;

	pools_open(&p);
	assert_int_equal(move_indexed(&p, KVL_WRITE, row, other, 8, NULL, 1).pieces, 3);
	assert_int_equal(move_indexed(&p, KVL_READ, row, other, 8, NULL, 2).pieces, 3);
	assert_int_equal(move_indexed(&p, KVL_WRITE, row, row, 8, NULL, 3).pieces, 3);
	assert_int_equal(move_indexed(&p, KVL_WRITE, other, other, 8, NULL, 4).pieces, 1);
	assert_int_equal(move_indexed(&p, KVL_WRITE, other, apart, 8, NULL, 5).pieces, 8);
	assert_int_equal(move_indexed(&p, KVL_WRITE, other, other, 8, &keep, 6).pieces, 8);
	assert_int_equal(move_indexed(&p, KVL_READ, row, other, 8, &keep, 7).pieces, 8);
	duo_close(&p.duo);
}

TEST(merge_of_whole_lists)
{
	struct kvl_report report = { .size = sizeof(report) };
	struct kvl_desc from[16], to[16];
	struct pools p;

	pools_open(&p);
	for (size_t i = 0; i < 16; i++) {
		from[i] = desc_of(p.local.data + i * 100, 100);
		to[i] = desc_of(p.remote.data + i * 100 + (i >= 10), 100);
	}
	assert_int_equal(duo_move(&p.duo, KVL_WRITE, &p.local, from, &p.remote, to, 16, 1, NULL, &report), 0);
	assert_int_equal(report.pieces, 2);
	assert_int_equal(report.descriptors, 16);
	duo_close(&p.duo);
}

/* Touching regions are neighbours too, if at all, only with the right bytes. */
TEST(merge_keeps_regions_apart_or_right)
{
	static unsigned char memory[2 * BLOCK];
	struct kvl_mem mem[2] = { memory_of(memory, BLOCK, 0), memory_of(memory + BLOCK, BLOCK, 0) };
	struct kvl_desc from[2], to[2] = { desc_of(memory, BLOCK), desc_of(memory + BLOCK, BLOCK) };
	struct pools p;
	kvl_mr_t mr[2];
	kvl_xfer_t xfer;

	pools_open(&p);
	assert_ok(kvl_mem_register(p.duo.b, mem, 2, mr));
	duo_update(&p.duo);
	from[0] = desc_of(p.local.data, BLOCK);
	from[1] = desc_of(p.local.data + BLOCK, BLOCK);
	bytes_fill(p.local.data, 2 * BLOCK, 3, 0, 1);
	assert_ok(kvl_write(p.duo.a, p.duo.ab, from, to, 2, NULL, &xfer));
	assert_int_equal(duo_wait(&p.duo, xfer), 0);
	assert_int_equal(bytes_wrong(memory, sizeof(memory), 3, 0, 1), 0);
	duo_close(&p.duo);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(indexed_random_block_ids),
		cmocka_unit_test(indexed_arrays_are_not_kept),
		cmocka_unit_test(indexed_bad_entries_are_named),
		cmocka_unit_test(prepare_refuses_swapped_and_foreign_lists),
		cmocka_unit_test(prepare_refuses_bad_options),
		cmocka_unit_test(merge_of_neighbours),
		cmocka_unit_test(merge_of_whole_lists),
		cmocka_unit_test(merge_keeps_regions_apart_or_right),
	};

	return TESTING_RUN(tests, 30);
}
