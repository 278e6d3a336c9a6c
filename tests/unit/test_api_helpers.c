/* SPDX-License-Identifier: Apache-2.0 */
/* The tests' own tools: an oracle that misses a wrong byte would let every other test pass. */
#include "testing.h"

#include <stdlib.h>
#include <string.h>

#define LEN 4099u

TEST(helpers_oracle_finds_one_wrong_bit)
{
	unsigned char data[LEN];

	for (size_t at = 0; at < 16; at++) {
		bytes_fill(data, LEN, 1, at, 1);
		assert_int_equal(bytes_wrong(data, LEN, 1, at, 1), 0);
		for (size_t i = 0; i < LEN; i += 97) {
			data[i] ^= (unsigned char)(1u << (i % 8));
			assert_int_equal(bytes_wrong(data, LEN, 1, at, 1), 1);
			data[i] ^= (unsigned char)(1u << (i % 8));
		}
	}
}

/* Of random bytes one in 256 agrees: data of another round, place or stream can not pass. */
TEST(helpers_oracle_finds_other_streams)
{
	unsigned char data[LEN];

	bytes_fill(data, LEN, 1, 0, 1);
	for (uint64_t i = 1; i < 100; i++) {
		assert_true(bytes_wrong(data, LEN, 1, 0, 1 + i) > LEN * 9 / 10);
		assert_true(bytes_wrong(data, LEN, 1 + i, 0, 1) > LEN * 9 / 10);
		assert_true(bytes_wrong(data, LEN, 1, i, 1) > LEN * 9 / 10);
		assert_true(bytes_wrong(data, LEN, 1, i << 40, 1) > LEN * 9 / 10);
	}
}

/* A piece of a stream is the same bytes however it is cut. */
TEST(helpers_oracle_is_a_stream)
{
	unsigned char whole[LEN], part[LEN];
	uint64_t random = 1;

	bytes_fill(whole, LEN, 7, 1000, 3);
	for (int i = 0; i < 200; i++) {
		size_t from = random_range(&random, 0, LEN - 1), n = random_range(&random, 1, LEN - from);

		bytes_fill(part, n, 7, 1000 + from, 3);
		assert_memory_equal(part, whole + from, n);
	}
}

static int by_addr(const void *a, const void *b)
{
	const struct kvl_desc *one = a, *two = b;

	return one->addr < two->addr ? -1 : 1;
}

TEST(helpers_scatter_is_disjoint_and_inside)
{
	enum {
		N = 300
	};
	static unsigned char memory[64 * KIB];
	struct buffer buffer = { .data = memory, .len = sizeof(memory) };
	uint64_t len[N], random = 2, touching = 0;
	struct kvl_desc desc[N];

	for (uint64_t seed = 0; seed < 50; seed++) {
		for (size_t i = 0; i < N; i++)
			len[i] = random_range(&random, 1, 200);
		buffer_scatter(&buffer, len, N, seed, desc);
		for (size_t i = 0; i < N; i++)
			assert_int_equal(desc[i].len, len[i]);
		qsort(desc, N, sizeof(*desc), by_addr);
		assert_true(desc[0].addr >= buffer_addr(&buffer));
		for (size_t i = 1; i < N; i++) {
			assert_true(desc[i - 1].addr + desc[i - 1].len <= desc[i].addr);
			touching += desc[i - 1].addr + desc[i - 1].len == desc[i].addr;
		}
		assert_true(desc[N - 1].addr + desc[N - 1].len <= buffer_addr(&buffer) + buffer.len);
	}
	assert_in_range(touching, 50, 50 * N / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(helpers_oracle_finds_one_wrong_bit),
		cmocka_unit_test(helpers_oracle_finds_other_streams),
		cmocka_unit_test(helpers_oracle_is_a_stream),
		cmocka_unit_test(helpers_scatter_is_disjoint_and_inside),
	};

	return TESTING_RUN(tests, 20);
}
