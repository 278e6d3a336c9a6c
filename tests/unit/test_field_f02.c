/* SPDX-License-Identifier: Apache-2.0 */
/* F02: an entry across two touching regions is refused whole; success never has a short count. */
#include "testing.h"

#include <stdlib.h>
#include <string.h>

#define PART  (1 * MIB)
#define BLOCK (64 * KIB)

struct halves {
	struct duo duo;
	unsigned char *memory[2]; /* of a, of b: two regions of PART each, touching */
	kvl_mr_t mr[2][2];
};

static void halves_open(struct halves *h)
{
	duo_open(&h->duo, NULL);
	for (int side = 0; side < 2; side++) {
		struct kvl_mem mem[2];

		h->memory[side] = malloc(2 * PART);
		assert_non_null(h->memory[side]);
		mem[0] = memory_of(h->memory[side], PART, 0);
		mem[1] = memory_of(h->memory[side] + PART, PART, 0);
		assert_ok(kvl_mem_register(side ? h->duo.b : h->duo.a, mem, 2, h->mr[side]));
	}
	duo_connect(&h->duo);
	memset(h->memory[0], 'a', 2 * PART);
	memset(h->memory[1], 'b', 2 * PART);
}

static void halves_close(struct halves *h)
{
	duo_close(&h->duo);
	free(h->memory[0]);
	free(h->memory[1]);
}

static struct kvl_desc seam(const struct halves *h, int side, uint64_t before)
{
	return desc_of(h->memory[side] + PART - before, BLOCK);
}

static void refuse_list(struct halves *h, int side, uint64_t before)
{
	kvl_peer_t owner = side ? h->duo.ab : KVL_LOCAL;
	struct kvl_desc first = desc_of(h->memory[side], BLOCK),
			desc[3] = { first, seam(h, side, before), first };
	struct kvl_run run = { desc[1].addr - BLOCK, BLOCK, BLOCK, 3, 0, 0 };
	uint32_t index[3] = { 0, 1, 2 };
	kvl_list_t list = 0;

	assert_refused_at(kvl_list_create(h->duo.a, owner, desc, 3, &list), KVL_ERR_RANGE, 1);
	assert_refused_at(kvl_list_create_runs(h->duo.a, owner, &run, 1, &list), KVL_ERR_RANGE, 1);
	assert_refused_at(kvl_list_create_blocks(h->duo.a, owner, run.addr, BLOCK, index, 3, 0, &list),
			  KVL_ERR_RANGE, 1);
	assert_int_equal(list, 0);
}

TEST(f02_list_across_the_seam)
{
	static const uint64_t before[] = { 1, BLOCK / 2, BLOCK - 1 };
	struct halves h;

	halves_open(&h);
	for (size_t i = 0; i < COUNT(before); i++)
		for (int side = 0; side < 2; side++)
			refuse_list(&h, side, before[i]);
	halves_close(&h);
}

TEST(f02_request_across_the_seam_moves_nothing)
{
	struct halves h;
	kvl_xfer_t xfer = 0;

	halves_open(&h);
	for (int side = 0; side < 2; side++) {
		struct kvl_desc local[2] = { desc_of(h.memory[0], BLOCK), desc_of(h.memory[0], BLOCK) };
		struct kvl_desc remote[2] = { desc_of(h.memory[1], BLOCK), desc_of(h.memory[1], BLOCK) };

		*(side ? &remote[1] : &local[1]) = seam(&h, side, BLOCK / 2);
		assert_refused_at(kvl_write(h.duo.a, h.duo.ab, local, remote, 2, NULL, &xfer), KVL_ERR_RANGE,
				  1);
		assert_refused_at(kvl_read(h.duo.a, h.duo.ab, local, remote, 2, NULL, &xfer), KVL_ERR_RANGE,
				  1);
	}
	assert_int_equal(bytes_not(h.memory[0], 2 * PART, 'a'), 0);
	assert_int_equal(bytes_not(h.memory[1], 2 * PART, 'b'), 0);
	halves_close(&h);
}

/* Blocks up to and from the seam: all 32 arrive and the counters say so, merged over the seam or not. */
TEST(f02_blocks_on_both_sides_are_counted_whole)
{
	enum {
		BLOCKS = 2 * PART / BLOCK
	};
	struct kvl_report report = { .size = sizeof(report) };
	struct kvl_desc local[BLOCKS], remote[BLOCKS];
	struct halves h;
	kvl_xfer_t xfer;

	halves_open(&h);
	for (size_t i = 0; i < BLOCKS; i++) {
		local[i] = desc_of(h.memory[0] + i * BLOCK, BLOCK);
		remote[i] = desc_of(h.memory[1] + i * BLOCK, BLOCK);
	}
	bytes_fill(h.memory[0], 2 * PART, 5, 0, 1);
	assert_ok(kvl_write(h.duo.a, h.duo.ab, local, remote, BLOCKS, NULL, &xfer));
	assert_int_equal(duo_wait(&h.duo, xfer), 0);
	assert_int_equal(bytes_wrong(h.memory[1], 2 * PART, 5, 0, 1), 0);
	assert_ok(kvl_xfer_report(h.duo.a, xfer, &report));
	assert_int_equal(report.bytes, 2 * PART);
	assert_int_equal(report.total_bytes, 2 * PART);
	assert_int_equal(report.descriptors, BLOCKS);
	assert_ok(kvl_xfer_release(h.duo.a, xfer));
	halves_close(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(f02_list_across_the_seam),
		cmocka_unit_test(f02_request_across_the_seam_moves_nothing),
		cmocka_unit_test(f02_blocks_on_both_sides_are_counted_whole),
	};

	return TESTING_RUN(tests, 30);
}
