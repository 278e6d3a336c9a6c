/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "shared/record.h"

static void record_is(uint64_t r, uint64_t life, uint64_t post, enum record_state state, int error)
{
	assert_int_equal(record_life(r), life);
	assert_int_equal(record_post(r), post);
	assert_int_equal(record_state(r), state);
	assert_int_equal(record_error(r), error);
}

TEST(fields_at_their_limits)
{
	static const uint64_t lives[] = { 0, 1, RECORD_LIFE_MASK / 2, RECORD_LIFE_MASK };
	static const uint64_t posts[] = { 0, 1, RECORD_POST_MASK };
	static const int errors[] = { 0, -1, -4095 };

	for (size_t l = 0; l < COUNT(lives); l++)
		for (size_t p = 0; p < COUNT(posts); p++)
			for (int s = RECORD_FREE; s <= RECORD_ENDED; s++)
				for (size_t e = 0; e < COUNT(errors); e++)
					record_is(record_make(lives[l], posts[p], (enum record_state)s,
							      errors[e]),
						  lives[l], posts[p], (enum record_state)s, errors[e]);
}

/* A life or post one past its last is 0 again and spills into no other field. */
TEST(counts_wrap)
{
	record_is(record_make(RECORD_LIFE_MASK + 1, 0, RECORD_FREE, 0), 0, 0, RECORD_FREE, 0);
	record_is(record_make(9, RECORD_POST_MASK + 1, RECORD_PENDING, 0), 9, 0, RECORD_PENDING, 0);
	record_is(record_make(RECORD_LIFE_MASK + 3, RECORD_POST_MASK + 3, RECORD_ENDED, -5), 2, 2,
		  RECORD_ENDED, -5);
}

TEST(every_error_code_fits)
{
#define FITS(name, value, ...) \
	record_is(record_make(3, 4, RECORD_ENDED, KVL_ERR_##name), 3, 4, RECORD_ENDED, value);
	KVL_ERROR_LIST(FITS)
#undef FITS
}

TEST(generation_is_above_the_state)
{
	uint64_t pending = record_make(5, 6, RECORD_PENDING, 0);

	assert_int_equal(pending >> RECORD_POST_SHIFT,
			 record_make(5, 6, RECORD_ENDED, -9) >> RECORD_POST_SHIFT);
	assert_int_not_equal(pending >> RECORD_POST_SHIFT,
			     record_make(5, 7, RECORD_PENDING, 0) >> RECORD_POST_SHIFT);
	assert_int_not_equal(pending >> RECORD_POST_SHIFT,
			     record_make(6, 6, RECORD_PENDING, 0) >> RECORD_POST_SHIFT);
}

TEST(with_state_keeps_the_generation)
{
	uint64_t r = record_make(RECORD_LIFE_MASK, RECORD_POST_MASK, RECORD_PREPARED, 0);

	record_is(record_with_state(r, RECORD_ENDED, -4095), RECORD_LIFE_MASK, RECORD_POST_MASK, RECORD_ENDED,
		  -4095);
}

TEST(publish_ends_the_pending_post)
{
	uint64_t pending = record_make(77, 8, RECORD_PENDING, 0);
	struct word64 w = { pending };

	record_publish(&w, pending, KVL_ERR_CANCELED);
	record_is(record_observe(&w), 77, 8, RECORD_ENDED, KVL_ERR_CANCELED);
	record_publish(&w, pending, 0);
	record_is(record_observe(&w), 77, 8, RECORD_ENDED, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_at_their_limits),
		cmocka_unit_test(counts_wrap),
		cmocka_unit_test(every_error_code_fits),
		cmocka_unit_test(generation_is_above_the_state),
		cmocka_unit_test(with_state_keeps_the_generation),
		cmocka_unit_test(publish_ends_the_pending_post),
	};

	return TESTING_RUN(tests, 10);
}
