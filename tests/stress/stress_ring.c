/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of random length and content through a small ring between two threads, across the 32-bit wrap. */
#include "stress.h"

#include "shared/ring.h"

#define SIZE   1024u
#define START  (0u - 64 * SIZE)
#define FRAMES 300000u

static struct ring_words words;
static uint8_t *data;
static uint32_t frames;

static uint32_t frame_len(uint64_t *state)
{
	uint32_t shape = stress_below(state, 8);

	if (shape == 0)
		return ring_max_payload(SIZE);
	return stress_below(state, shape < 6 ? 64 : ring_max_payload(SIZE) + 1);
}

/* Both sides draw lengths and bytes from the same seed. */
static void *producer(void *arg)
{
	struct ring_producer p = { &words, data, SIZE, START, START };
	uint64_t state = 1;

	for (uint32_t i = 0; i < frames; i++) {
		uint32_t len = frame_len(&state), at;
		uint8_t key = (uint8_t)stress_random(&state);
		void *payload;
		int rc;

		while ((rc = ring_reserve(&p, len, &at, &payload)) == RING_AGAIN)
			sched_yield();
		stress_assert(rc == 0);
		for (uint32_t k = 0; k < len; k++)
			((uint8_t *)payload)[k] = (uint8_t)(key + k);
		ring_commit(&p, at, (struct ring_frame){ len, 1, (uint16_t)i, ~(uint64_t)i });
	}
	return arg;
}

static void *consumer(void *arg)
{
	struct ring_consumer c = { &words, data, SIZE, START, START };
	uint64_t state = 1;

	for (uint32_t i = 0; i < frames; i++) {
		uint32_t len = frame_len(&state);
		uint8_t key = (uint8_t)stress_random(&state);
		struct ring_frame frame;
		const void *payload;
		int rc;

		while ((rc = ring_peek(&c, &frame, &payload)) == RING_AGAIN)
			sched_yield();
		stress_assert(rc == 0);
		stress_assert(frame.len == len && frame.type == 1 && frame.flags == (uint16_t)i);
		stress_assert(frame.arg == ~(uint64_t)i);
		for (uint32_t k = 0; k < len; k++)
			stress_assert(((const uint8_t *)payload)[k] == (uint8_t)(key + k));
		ring_consume(&c, &frame);
	}
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t a, b;

	frames = stress_begin(argc, argv, FRAMES);
	data = malloc(SIZE);
	stress_assert(data != NULL);
	words.head.v = words.tail.v = START;
	a = stress_start(producer, NULL);
	b = stress_start(consumer, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	stress_assert(words.head.v == words.tail.v);
	printf("%u frames, indices from %#x to %#x\n", frames, START, words.head.v);
	free(data);
	return 0;
}
