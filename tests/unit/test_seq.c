/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "shared/seq.h"

TEST(distance_wraps)
{
	assert_int_equal(seq_distance(7, 7), 0);
	assert_int_equal(seq_distance(3, 10), 7);
	assert_int_equal(seq_distance(0xffffffff, 0), 1);
	assert_int_equal(seq_distance(0xfffffff0, 0x10), 0x20);
	assert_int_equal(seq_distance(0, 0xffffffff), 0xffffffff);
}

TEST(before_wraps)
{
	assert_true(seq_before(1, 2));
	assert_false(seq_before(2, 2));
	assert_false(seq_before(3, 2));
	assert_true(seq_before(0xffffffff, 0));
	assert_false(seq_before(0, 0xffffffff));
	assert_true(seq_before(0x7fffffff, 0x80000000));
}

/* Right up to 2^31 - 1 apart, from any place. */
TEST(before_holds_to_half_the_range)
{
	static const uint32_t at[] = { 0, 1, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff };

	for (size_t i = 0; i < COUNT(at); i++) {
		assert_true(seq_before(at[i], at[i] + 0x7fffffff));
		assert_false(seq_before(at[i] + 0x7fffffff, at[i]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(distance_wraps),
		cmocka_unit_test(before_wraps),
		cmocka_unit_test(before_holds_to_half_the_range),
	};

	return TESTING_RUN(tests, 10);
}
