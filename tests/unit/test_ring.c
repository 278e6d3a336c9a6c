/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <string.h>

#include "shared/ring.h"

#define SIZE 256u

static struct ring_words words;
static uint8_t data[SIZE];
static struct ring_producer p;
static struct ring_consumer c;

static void ring_at(uint32_t index)
{
	memset(&words, 0, sizeof(words));
	memset(data, 0xee, sizeof(data));
	words.tail.v = words.head.v = index;
	p = (struct ring_producer){ &words, data, SIZE, index, index };
	c = (struct ring_consumer){ &words, data, SIZE, index, index };
}

/* Indices at every place of the ring, before, across and after the 32-bit wrap. */
static uint32_t place(uint32_t i)
{
	return 0u - 2 * SIZE + i * RING_GRAIN;
}

#define PLACES (4 * SIZE / RING_GRAIN)

static int push(uint32_t len, uint8_t key)
{
	uint32_t at = 0;
	void *payload = NULL;
	int rc = ring_reserve(&p, len, &at, &payload);

	if (rc)
		return rc;
	assert_in_range((uintptr_t)payload, (uintptr_t)data + RING_GRAIN, (uintptr_t)data + SIZE - len);
	memset(payload, key, len);
	ring_commit(&p, at, (struct ring_frame){ len, 7, key, ~(uint64_t)key });
	return 0;
}

static void take(uint32_t len, uint8_t key)
{
	struct ring_frame frame;
	const void *payload = NULL;

	assert_int_equal(ring_peek(&c, &frame, &payload), 0);
	assert_int_equal(frame.len, len);
	assert_int_equal(frame.type, 7);
	assert_int_equal(frame.flags, key);
	assert_int_equal(frame.arg, ~(uint64_t)key);
	assert_int_equal(bytes_not(payload, len, key), 0);
	ring_consume(&c, &frame);
}

static int peek(void)
{
	struct ring_frame frame;
	const void *payload;

	return ring_peek(&c, &frame, &payload);
}

/* Puts a header where the consumer looks next and moves tail behind `bytes` of it. */
static void forge(uint32_t len, uint16_t type, uint32_t bytes)
{
	struct ring_frame frame = { len, type, 0, 0 };

	memcpy(data + (c.head & (SIZE - 1)), &frame, sizeof(frame));
	words.tail.v = c.head + bytes;
}

TEST(lengths_round_up_to_the_grain)
{
	assert_int_equal(ring_need(0), RING_GRAIN);
	assert_int_equal(ring_need(1), 2 * RING_GRAIN);
	assert_int_equal(ring_need(RING_GRAIN), 2 * RING_GRAIN);
	assert_int_equal(ring_need(RING_GRAIN + 1), 3 * RING_GRAIN);
}

TEST(empty_ring_says_again)
{
	ring_at(place(0));
	assert_int_equal(peek(), RING_AGAIN);
	assert_int_equal(push(5, 1), 0);
	take(5, 1);
	assert_int_equal(peek(), RING_AGAIN);
	assert_int_equal(words.head.v, words.tail.v);
}

TEST(reservation_without_commit_is_forgotten)
{
	uint32_t at;
	void *payload;

	ring_at(place(3));
	assert_int_equal(ring_reserve(&p, 40, &at, &payload), 0);
	assert_int_equal(peek(), RING_AGAIN);
	assert_int_equal(push(3, 2), 0);
	take(3, 2);
}

TEST(max_payload_fits_an_empty_ring_at_every_index)
{
	uint32_t max = ring_max_payload(SIZE);

	for (uint32_t i = 0; i < PLACES; i++) {
		ring_at(place(i));
		assert_true(ring_room(&p) >= (int64_t)max);
		assert_int_equal(push(max, (uint8_t)i), 0);
		take(max, (uint8_t)i);
		assert_int_equal(peek(), RING_AGAIN);
	}
}

/* What ring_room says can be reserved, and not a byte more; whatever is in the ring, wherever it stands. */
TEST(room_is_exact)
{
	for (uint32_t i = 0; i < PLACES; i++)
		for (uint32_t used = 0; used <= SIZE; used += RING_GRAIN) {
			struct ring_producer before;
			uint32_t at;
			void *payload;
			int64_t room;

			ring_at(place(i));
			p.tail += used;
			words.tail.v += used;
			before = p;
			room = ring_room(&p);
			assert_true(room >= 0 && room < SIZE);
			if (room)
				assert_int_equal(ring_reserve(&p, (uint32_t)room, &at, &payload), 0);
			p = before;
			assert_int_equal(ring_reserve(&p, (uint32_t)room + 1, &at, &payload), RING_AGAIN);
		}
}

TEST(ring_fills_to_the_last_grain)
{
	for (uint32_t i = 0; i < PLACES; i++) {
		ring_at(place(i));
		for (uint32_t k = 0; k < SIZE / RING_GRAIN; k++)
			assert_int_equal(push(0, (uint8_t)k), 0);
		assert_int_equal(push(0, 99), RING_AGAIN);
		assert_int_equal(ring_room(&p), 0);
		assert_int_equal(words.tail.v - words.head.v, SIZE);
		for (uint32_t k = 0; k < SIZE / RING_GRAIN; k++)
			take(0, (uint8_t)k);
		assert_int_equal(push(0, 99), 0);
	}
}

TEST(frame_that_ends_with_the_ring_needs_no_pad)
{
	ring_at(0u - 4 * RING_GRAIN);
	assert_int_equal(push(3 * RING_GRAIN, 1), 0);
	assert_int_equal(words.tail.v, 0);
	assert_int_equal(push(1, 2), 0);
	take(3 * RING_GRAIN, 1);
	take(1, 2);
}

TEST(frame_that_would_wrap_starts_over_after_a_pad)
{
	for (uint32_t left = 1; left < 4; left++) {
		ring_at(0u - left * RING_GRAIN);
		assert_int_equal(push(4 * RING_GRAIN - 3, 9), 0);
		assert_int_equal(words.tail.v, 5 * RING_GRAIN);
		take(4 * RING_GRAIN - 3, 9);
		assert_int_equal(words.head.v, words.tail.v);
	}
}

/* The pad's bytes come back only with the frame behind it; until then they count as used. */
TEST(pad_is_given_back_with_its_frame)
{
	struct ring_frame frame;
	const void *payload;
	uint32_t start = 0u - RING_GRAIN;

	ring_at(start);
	assert_int_equal(push(RING_GRAIN, 4), 0);
	assert_int_equal(ring_peek(&c, &frame, &payload), 0);
	assert_int_equal(words.head.v, start);
	ring_consume(&c, &frame);
	assert_int_equal(words.head.v, words.tail.v);
}

TEST(pad_is_counted_when_room_is_asked_for)
{
	ring_at(0u - 2 * RING_GRAIN);
	words.head.v = p.head_seen = c.head =
		0u - SIZE + 2 * RING_GRAIN; /* 2 grains to the end, 2 at the start */
	assert_int_equal(push(2 * RING_GRAIN, 1), RING_AGAIN);
	assert_int_equal(ring_room(&p), RING_GRAIN);
	assert_int_equal(push(RING_GRAIN, 1), 0);
}

TEST(many_laps_across_the_wrap)
{
	uint64_t state = 11;
	uint32_t laps = (uint32_t)testing_rounds(20000);

	ring_at(0u - 100 * SIZE);
	for (uint32_t i = 0; i < laps; i++) {
		uint32_t len[8], n = 0;

		while (n < COUNT(len)) {
			len[n] = (uint32_t)random_range(&state, 0, ring_max_payload(SIZE));
			if (push(len[n], (uint8_t)(i + n)) == RING_AGAIN)
				break;
			n++;
		}
		for (uint32_t k = 0; k < n; k++)
			take(len[k], (uint8_t)(i + k));
	}
	assert_int_equal(words.head.v, words.tail.v);
}

TEST(tail_out_of_bounds_is_corrupt)
{
	static const uint32_t bad[] = { SIZE + RING_GRAIN, 1, RING_GRAIN - 1, 0x80000000, 0u - RING_GRAIN };

	for (size_t i = 0; i < COUNT(bad); i++) {
		ring_at(place(1));
		words.tail.v = c.head + bad[i];
		assert_int_equal(peek(), RING_CORRUPT);
		assert_int_equal(peek(), RING_CORRUPT);
	}
}

TEST(head_out_of_bounds_is_corrupt_and_stays_so)
{
	static const uint32_t bad[] = { RING_GRAIN, 0u - SIZE - RING_GRAIN, 1, 0x80000000 };
	uint32_t at;
	void *payload;

	for (size_t i = 0; i < COUNT(bad); i++) {
		ring_at(place(1));
		for (uint32_t k = 0; k < SIZE / RING_GRAIN; k++)
			assert_int_equal(push(0, 0), 0);
		words.head.v = p.tail + bad[i];
		for (int again = 0; again < 3; again++) {
			assert_int_equal(ring_reserve(&p, 0, &at, &payload), RING_CORRUPT);
			assert_int_equal(ring_room(&p), RING_CORRUPT);
		}
	}
}

TEST(header_that_lies_is_corrupt)
{
	static const struct {
		uint32_t len, bytes, from_end;
	} bad[] = {
		{ RING_GRAIN, RING_GRAIN, SIZE },                   /* longer than what was published */
		{ 2 * RING_GRAIN, 4 * RING_GRAIN, 2 * RING_GRAIN }, /* across the end */
		{ SIZE, SIZE, SIZE },
		{ 0xffffffff, SIZE, SIZE }, /* rounds up to 0 */
		{ 0xfffffff0, SIZE, SIZE },
	};

	for (size_t i = 0; i < COUNT(bad); i++) {
		ring_at(0u - bad[i].from_end);
		forge(bad[i].len, 7, bad[i].bytes);
		assert_int_equal(peek(), RING_CORRUPT);
	}
}

/* A peer that only ever pads must not keep the consumer inside one call. */
TEST(second_pad_in_a_row_is_corrupt)
{
	ring_at(0);
	for (uint32_t i = 0; i < 2; i++)
		memcpy(data + i * RING_GRAIN, &(struct ring_frame){ 0, RING_PAD, 0, 0 }, RING_GRAIN);
	words.tail.v = 3 * RING_GRAIN;
	assert_int_equal(peek(), RING_CORRUPT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lengths_round_up_to_the_grain),
		cmocka_unit_test(empty_ring_says_again),
		cmocka_unit_test(reservation_without_commit_is_forgotten),
		cmocka_unit_test(max_payload_fits_an_empty_ring_at_every_index),
		cmocka_unit_test(room_is_exact),
		cmocka_unit_test(ring_fills_to_the_last_grain),
		cmocka_unit_test(frame_that_ends_with_the_ring_needs_no_pad),
		cmocka_unit_test(frame_that_would_wrap_starts_over_after_a_pad),
		cmocka_unit_test(pad_is_given_back_with_its_frame),
		cmocka_unit_test(pad_is_counted_when_room_is_asked_for),
		cmocka_unit_test(many_laps_across_the_wrap),
		cmocka_unit_test(tail_out_of_bounds_is_corrupt),
		cmocka_unit_test(head_out_of_bounds_is_corrupt_and_stays_so),
		cmocka_unit_test(header_that_lies_is_corrupt),
		cmocka_unit_test(second_pad_in_a_row_is_corrupt),
	};

	return TESTING_RUN(tests, 20);
}
