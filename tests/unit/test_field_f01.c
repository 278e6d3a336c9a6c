/* SPDX-License-Identifier: Apache-2.0 */
/* F01: one bad entry in a long list is refused before a byte moves, and named with the rule it broke. */
#include "testing.h"

#include <stdlib.h>
#include <string.h>

#define ENTRIES 1000u
#define BAD     613u
#define LEN     (16 * KIB)
#define REGION  (64 * MIB)

struct case_state {
	struct duo duo;
	struct buffer local, remote;
	struct kvl_desc good[2][ENTRIES]; /* local, remote */
};

static struct case_state s;

static void case_open(void)
{
	duo_open(&s.duo, NULL);
	buffer_open(&s.local, s.duo.a, BUFFER_ALLOC, REGION, 0);
	buffer_open(&s.remote, s.duo.b, BUFFER_ALLOC, REGION, 0);
	duo_connect(&s.duo);
	for (size_t i = 0; i < ENTRIES; i++) {
		s.good[0][i] = desc_of(s.local.data + i * 4 * LEN, LEN);
		s.good[1][i] = desc_of(s.remote.data + i * 4 * LEN, LEN);
	}
	memset(s.local.data, 1, REGION);
}

static void case_close(void)
{
	duo_close(&s.duo);
}

/* The list of runs that says the same as the descriptors, so that BAD is one piece of one run. */
static void refuse_runs(kvl_peer_t peer, const struct kvl_desc *desc, int code, size_t entry)
{
	static struct kvl_run run[ENTRIES - 1];
	kvl_list_t list = 0;

	/* Entries 0 and 1 are one run, so that pieces and runs are numbered differently. */
	run[0] = (struct kvl_run){ desc[0].addr, LEN, desc[1].addr - desc[0].addr, 2, desc[0].device, 0 };
	for (size_t i = 2; i < ENTRIES; i++)
		run[i - 1] = (struct kvl_run){ desc[i].addr, desc[i].len, 0, 1, desc[i].device, 0 };
	assert_refused_at(kvl_list_create_runs(s.duo.a, peer, run, ENTRIES - 1, &list), code, entry);
	assert_int_equal(list, 0);
}

static void refuse_calls(const struct kvl_desc *local, const struct kvl_desc *remote, int code)
{
	kvl_xfer_t xfer = 0;

	assert_refused_at(kvl_write(s.duo.a, s.duo.ab, local, remote, ENTRIES, NULL, &xfer), code, BAD);
	assert_refused_at(kvl_read(s.duo.a, s.duo.ab, local, remote, ENTRIES, NULL, &xfer), code, BAD);
	assert_int_equal(xfer, 0);
}

/* The bad entry once in the local list and once in the remote one, by every way to bring a list. */
static void refuse_everywhere(int (*spoil)(const struct buffer *buffer, struct kvl_desc *bad),
			      const char *rule)
{
	case_open();
	for (int remote = 0; remote < 2; remote++) {
		kvl_peer_t owner = remote ? s.duo.ab : KVL_LOCAL;
		struct kvl_desc list[ENTRIES];
		kvl_list_t handle = 0;
		int code;

		memcpy(list, s.good[remote], sizeof(list));
		code = spoil(remote ? &s.remote : &s.local, &list[BAD]);
		assert_refused_at(kvl_list_create(s.duo.a, owner, list, ENTRIES, &handle), code, BAD);
		assert_int_equal(handle, 0);
		assert_rule(rule);
		assert_message("613");
		refuse_runs(owner, list, code, BAD);
		refuse_calls(remote ? s.good[0] : list, remote ? list : s.good[1], code);
	}
	assert_int_equal(bytes_not(s.remote.data, REGION, 0), 0);
	assert_int_equal(bytes_not(s.local.data, REGION, 1), 0);
	case_close();
}

static int spoil_outside(const struct buffer *buffer, struct kvl_desc *bad)
{
	/* Between the null page and anything the loader maps. */
	bad->addr = 0x10000;
	(void)buffer;
	return KVL_ERR_RANGE;
}

static int spoil_end(const struct buffer *buffer, struct kvl_desc *bad)
{
	bad->addr = buffer_addr(buffer) + buffer->len - LEN + 1;
	return KVL_ERR_RANGE;
}

static int spoil_device(const struct buffer *buffer, struct kvl_desc *bad)
{
	bad->device = KVL_GPU(2);
	(void)buffer;
	return KVL_ERR_RANGE;
}

static int spoil_wrap(const struct buffer *buffer, struct kvl_desc *bad)
{
	bad->len = UINT64_MAX - bad->addr + 2;
	(void)buffer;
	return KVL_ERR_RANGE;
}

TEST(f01_a_entry_outside)
{
	refuse_everywhere(spoil_outside, "region");
}

TEST(f01_b_entry_one_byte_past_the_end)
{
	refuse_everywhere(spoil_end, "end");
}

TEST(f01_c_entry_of_another_device)
{
	refuse_everywhere(spoil_device, "device");
}

TEST(f01_d_entry_that_wraps_around)
{
	refuse_everywhere(spoil_wrap, "wrap");
}

/* A block table names its bad index the same way. */
TEST(f01_block_table_index_outside)
{
	uint32_t index[ENTRIES];
	kvl_list_t list = 0;

	case_open();
	for (uint32_t i = 0; i < ENTRIES; i++)
		index[i] = ENTRIES - i;
	index[BAD] = REGION / LEN;
	assert_refused_at(kvl_list_create_blocks(s.duo.a, s.duo.ab, buffer_addr(&s.remote), LEN, index,
						 ENTRIES, KVL_HOST, &list),
			  KVL_ERR_RANGE, BAD);
	index[BAD] = UINT32_MAX;
	assert_refused_at(kvl_list_create_blocks(s.duo.a, KVL_LOCAL, buffer_addr(&s.local), LEN, index,
						 ENTRIES, KVL_HOST, &list),
			  KVL_ERR_RANGE, BAD);
	index[BAD] = REGION / LEN - 1;
	assert_ok(kvl_list_create_blocks(s.duo.a, s.duo.ab, buffer_addr(&s.remote), LEN, index, ENTRIES,
					 KVL_HOST, &list));
	case_close();
}

/* The refusals left a working pair: the good list moves whole. */
TEST(f01_good_list_still_moves)
{
	struct kvl_report report = { .size = sizeof(report) };
	struct kvl_desc list[ENTRIES];
	kvl_list_t handle = 0;

	case_open();
	memcpy(list, s.good[1], sizeof(list));
	spoil_end(&s.remote, &list[BAD]);
	assert_refused_at(kvl_list_create(s.duo.a, s.duo.ab, list, ENTRIES, &handle), KVL_ERR_RANGE, BAD);
	assert_int_equal(duo_move(&s.duo, KVL_WRITE, &s.local, s.good[0], &s.remote, s.good[1], ENTRIES, 1,
				  NULL, &report),
			 0);
	assert_int_equal(report.bytes, ENTRIES * LEN);
	case_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(f01_a_entry_outside),
		cmocka_unit_test(f01_b_entry_one_byte_past_the_end),
		cmocka_unit_test(f01_c_entry_of_another_device),
		cmocka_unit_test(f01_d_entry_that_wraps_around),
		cmocka_unit_test(f01_block_table_index_outside),
		cmocka_unit_test(f01_good_list_still_moves),
	};

	return TESTING_RUN(tests, 30);
}
