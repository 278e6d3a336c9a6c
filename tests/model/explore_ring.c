/* SPDX-License-Identifier: Apache-2.0 */
/* The real shared/ring.h: frames with and without payload in a ring of four grains, across the 32-bit wrap.
 */
#include "explore.h"

#include <string.h>

#include "shared/ring.h"

#define SIZE   64u
#define FRAMES 4u
#define START  (0u - 2 * RING_GRAIN)
#define GUARD  0xa5

static const uint32_t lengths[] = { 0, 3, RING_GRAIN };

static struct {
	struct ring_words words;
	uint8_t before[RING_GRAIN], data[SIZE], after[RING_GRAIN];
} shared;

static uint32_t sent[FRAMES], taken;

static uint8_t byte_of(uint32_t frame, uint32_t i)
{
	return (uint8_t)(16 * frame + i + 1);
}

static void ring_reset(void)
{
	memset(&shared, 0, sizeof(shared));
	memset(shared.before, GUARD, sizeof(shared.before));
	memset(shared.after, GUARD, sizeof(shared.after));
	shared.words.tail.v = shared.words.head.v = START;
	taken = 0;
}

static void ring_check(void)
{
	uint32_t used = seq_distance(shared.words.head.v, shared.words.tail.v);

	explore_assert(used <= SIZE && used % RING_GRAIN == 0);
	for (uint32_t i = 0; i < RING_GRAIN; i++)
		explore_assert(shared.before[i] == GUARD && shared.after[i] == GUARD);
}

static void ring_end(void)
{
	explore_assert(taken == FRAMES && shared.words.head.v == shared.words.tail.v);
}

static void producer_push(struct ring_producer *p, uint32_t frame, uint32_t len)
{
	uint32_t at = 0;
	void *payload = NULL;
	int rc;

	for (;;) {
		explore_look();
		rc = ring_reserve(p, len, &at, &payload);
		if (rc == 0)
			break;
		explore_assert(rc == RING_AGAIN);
		explore_wait();
	}
	for (uint32_t i = 0; i < len; i++)
		((uint8_t *)payload)[i] = byte_of(frame, i);
	ring_commit(p, at, (struct ring_frame){ len, 1, (uint16_t)frame, 0 });
}

static void producer(void)
{
	struct ring_producer p = { &shared.words, shared.data, SIZE, START, START };

	for (uint32_t i = 0; i < FRAMES; i++) {
		sent[i] = lengths[explore_choose(sizeof(lengths) / sizeof(lengths[0]))];
		producer_push(&p, i, sent[i]);
	}
}

static void consumer_take(struct ring_consumer *c, uint32_t frame)
{
	struct ring_frame f;
	const void *payload = NULL;
	int rc;

	for (;;) {
		explore_look();
		rc = ring_peek(c, &f, &payload);
		if (rc == 0)
			break;
		explore_assert(rc == RING_AGAIN);
		explore_wait();
	}
	kvli_model_point(); /* the payload is read later than its header */
	explore_assert(f.type == 1 && f.flags == frame && f.len == sent[frame]);
	for (uint32_t i = 0; i < f.len; i++)
		explore_assert(((const uint8_t *)payload)[i] == byte_of(frame, i));
	taken++;
	ring_consume(c, &f);
}

static void consumer(void)
{
	struct ring_consumer c = { &shared.words, shared.data, SIZE, START, START };

	for (uint32_t i = 0; i < FRAMES; i++)
		consumer_take(&c, i);
}

int main(void)
{
	static const struct explore_scenario ring = {
		.name = "ring",
		.n_threads = 2,
		.preemptions = 3,
		.max_steps = 200,
		.reset = ring_reset,
		.check = ring_check,
		.end = ring_end,
		.thread = { producer, consumer },
		.shared = &shared,
		.shared_len = sizeof(shared),
	};

	explore_run(&ring);
	return 0;
}
