/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One end of a ring against a peer that writes anything anywhere in the shared memory. Whatever it finds, an
 * end stays inside the ring, returns in bounded time, and gives what breaks the invariant the name
 * RING_CORRUPT. The memory lies in allocations of its exact size, for the address sanitizer; the checks here
 * stand alone.
 */
#include "stress.h"

#include "shared/ring.h"

#define ROUNDS 200000u
#define BURST  32u

static struct ring_words *words;
static uint8_t *data;
static uint32_t size;
static uint64_t state = 7;
static uint32_t n_ok, n_again, n_corrupt;

static void count(int64_t rc)
{
	stress_assert(rc >= 0 || rc == RING_AGAIN || rc == RING_CORRUPT);
	n_ok += rc >= 0;
	n_again += rc == RING_AGAIN;
	n_corrupt += rc == RING_CORRUPT;
}

static void ring_open(void)
{
	size = 64u << stress_below(&state, 5);
	words = calloc(1, sizeof(*words));
	data = malloc(size);
	stress_assert(words && data);
	for (uint32_t i = 0; i < size; i++)
		data[i] = (uint8_t)stress_random(&state);
}

static void ring_close(void)
{
	free(words);
	free(data);
}

/* An index near the honest one, on or off the grain, or any. */
static uint32_t index_bad(uint32_t honest)
{
	switch (stress_below(&state, 4)) {
	case 0:
		return (uint32_t)stress_random(&state);
	case 1:
		return honest + stress_below(&state, 2 * size) - size;
	default:
		return honest + RING_GRAIN * (stress_below(&state, size / 8) - size / 16);
	}
}

/* A header that may pass: mostly small lengths, often pads. */
static void header_bad(uint32_t index)
{
	uint32_t huge = 0u - 1 - stress_below(&state, 2 * RING_GRAIN); /* wraps when it is rounded up */
	struct ring_frame frame = {
		.len = stress_below(&state, 8) ? stress_below(&state, size / 2) : huge,
		.type = (uint16_t)stress_below(&state, 3),
	};

	memcpy(data + (index & (size - 1) & ~(RING_GRAIN - 1)), &frame, sizeof(frame));
}

/* What an end has accepted from the other side. */
static void indices_check(uint32_t head, uint32_t tail)
{
	stress_assert(head % RING_GRAIN == 0 && tail % RING_GRAIN == 0 && seq_distance(head, tail) <= size);
}

static void payload_check(const uint8_t *payload, uint32_t len)
{
	uint32_t sum = 0;

	stress_assert(payload >= data + RING_GRAIN && payload <= data + size && len <= size);
	stress_assert(len <= (uint32_t)(data + size - payload));
	for (uint32_t i = 0; i < len; i++)
		sum += payload[i];
	stress_assert(sum <= 255 * len);
}

static void consumer_round(void)
{
	uint32_t start = (uint32_t)stress_random(&state) & ~(RING_GRAIN - 1);
	struct ring_consumer c = { words, data, size, start, start };

	for (uint32_t i = 0; i < BURST; i++) {
		struct ring_frame frame;
		const void *payload = NULL;
		int rc;

		header_bad(c.head + RING_GRAIN * stress_below(&state, 3));
		words->tail.v = index_bad(c.head);
		rc = ring_peek(&c, &frame, &payload);
		count(rc);
		if (rc != RING_CORRUPT)
			indices_check(c.head, c.tail_seen);
		if (rc)
			continue;
		payload_check(payload, frame.len);
		header_bad(c.head); /* the peer changes the header that was judged */
		ring_consume(&c, &frame);
	}
}

static void producer_round(void)
{
	uint32_t start = (uint32_t)stress_random(&state) & ~(RING_GRAIN - 1);
	struct ring_producer p = { words, data, size, start, start };

	for (uint32_t i = 0; i < BURST; i++) {
		uint32_t len = stress_below(&state, ring_max_payload(size) + 1), at = 0;
		void *payload = NULL;
		int64_t rc;

		words->head.v = index_bad(p.tail);
		rc = ring_room(&p);
		count(rc);
		indices_check(p.head_seen, p.tail);
		stress_assert(rc < (int64_t)size);
		words->head.v = index_bad(p.tail);
		rc = ring_reserve(&p, len, &at, &payload);
		count(rc);
		indices_check(p.head_seen, p.tail);
		if (rc)
			continue;
		payload_check(payload, len);
		memset(payload, 0x5a, len);
		ring_commit(&p, at, (struct ring_frame){ len, 1, 0, 0 });
		indices_check(p.head_seen, p.tail);
	}
}

int main(int argc, char **argv)
{
	uint32_t rounds = stress_begin(argc, argv, ROUNDS) / BURST;

	for (uint32_t i = 0; i < rounds; i++) {
		ring_open();
		consumer_round();
		producer_round();
		ring_close();
	}
	printf("%u taken, %u again, %u corrupt\n", n_ok, n_again, n_corrupt);
	stress_assert(n_ok && n_again && n_corrupt);
	return 0;
}
