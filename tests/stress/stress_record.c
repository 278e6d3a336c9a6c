/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request slot that several threads post, re-post and release against each other, a driver that ends its
 * posts, and pollers with old handles. The plain fields belong to whoever the record says; the thread
 * sanitizer watches that.
 */
#include "stress.h"

#include "shared/layout.h"
#include "shared/record.h"

#define POSTS   60000u
#define POSTERS 3
#define POLLERS 1

static struct {
	struct word64 record;
	uint8_t pad[KVLI_LINE - sizeof(struct word64)];
	struct word32 posted; /* posts so far: the lane's tail */
	/* of the slot's owner */
	uint64_t key, *target;
} slot;

static struct word32 finished;
static uint32_t posts;

static int slot_claim(uint64_t seen, enum record_state state)
{
	return word64_cas_seq_sys(&slot.record, seen, record_with_state(seen, state, 0));
}

/* Posts with the handle of the life that was seen; 1 when it was ours to post. */
static int slot_post(uint64_t seen, uint64_t key, uint64_t *target, uint64_t *pending)
{
	*pending = record_make(record_life(seen), record_post(seen) + 1, RECORD_PENDING, 0);
	if (!slot_claim(seen, RECORD_POSTING))
		return 0;
	slot.key = key;
	slot.target = target;
	word64_store_release_sys(&slot.record, *pending); /* E5 */
	word32_add_seq_sys(&slot.posted, 1);              /* E3 */
	return 1;
}

static int error_of(uint64_t key)
{
	return key % 3 ? 0 : -(int)(key % 4000);
}

/*
 * From the end on the target is the poster's again. Somebody else may have posted or released the slot by the
 * time it is looked at: that too proves the end. 1 when it was seen itself.
 */
static int slot_wait(uint64_t pending, uint64_t key)
{
	for (;;) {
		uint64_t now = record_observe(&slot.record); /* E5 */

		if (now == pending) {
			sched_yield();
			continue;
		}
		if (now >> RECORD_POST_SHIFT != pending >> RECORD_POST_SHIFT)
			return 0;
		if (record_state(now) == RECORD_ENDED)
			stress_assert(record_error(now) == error_of(key));
		return 1;
	}
}

static void *poster(void *arg)
{
	uint64_t state = (uint64_t)(uintptr_t)arg, target, pending, seen_ends = 0;

	while (word32_load_acquire_sys(&slot.posted) < posts) {
		uint64_t seen = record_observe(&slot.record), key = stress_random(&state);
		enum record_state now = record_state(seen);

		if (now != RECORD_PREPARED && now != RECORD_ENDED) {
			sched_yield();
		} else if (stress_below(&state, 8) == 0) {
			/* release: the next life */
			word64_cas_seq_sys(&slot.record, seen,
					   record_make(record_life(seen) + 1, 0, RECORD_PREPARED, 0));
		} else if (slot_post(seen, key, &target, &pending)) {
			seen_ends += (uint64_t)slot_wait(pending, key);
			stress_assert(target == ~key);
			target = 0;
		}
	}
	word32_add_seq_sys(&finished, 1);
	return (void *)(uintptr_t)seen_ends;
}

static void *driver(void *arg)
{
	uint32_t done = 0;

	for (;;) {
		uint64_t pending;

		if (done == word32_load_acquire_sys(&slot.posted)) {
			if (word32_load_acquire_sys(&finished) == POSTERS &&
			    done == word32_load_acquire_sys(&slot.posted))
				return arg;
			sched_yield();
			continue;
		}
		done++;
		pending = record_observe(&slot.record);
		stress_assert(record_state(pending) == RECORD_PENDING);
		*slot.target = ~slot.key;
		record_publish(&slot.record, pending, error_of(slot.key));
	}
}

/* Generations only grow, and one that has ended does not become pending again. */
static void *poller(void *arg)
{
	uint64_t last = record_observe(&slot.record);

	while (word32_load_acquire_sys(&finished) < POSTERS) {
		uint64_t now = record_observe(&slot.record);

		stress_assert(record_life(now) >= record_life(last));
		if (record_life(now) == record_life(last))
			stress_assert(record_post(now) >= record_post(last));
		if (now >> RECORD_POST_SHIFT == last >> RECORD_POST_SHIFT &&
		    record_state(last) == RECORD_ENDED)
			stress_assert(record_state(now) != RECORD_PENDING);
		last = now;
	}
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread[POSTERS + POLLERS + 1];
	uint64_t seen_ends = 0;

	posts = stress_begin(argc, argv, POSTS);
	slot.record.v = record_make(5, 0, RECORD_PREPARED, 0);
	for (uintptr_t i = 0; i < POSTERS; i++)
		thread[i] = stress_start(poster, (void *)(i + 1));
	for (int i = 0; i < POLLERS; i++)
		thread[POSTERS + i] = stress_start(poller, NULL);
	thread[POSTERS + POLLERS] = stress_start(driver, NULL);
	for (int i = 0; i < POSTERS + POLLERS + 1; i++) {
		void *result;

		pthread_join(thread[i], &result);
		if (i < POSTERS)
			seen_ends += (uintptr_t)result;
	}
	printf("%u posts, %lu ends seen by their posters, %lu lives\n", slot.posted.v,
	       (unsigned long)seen_ends, (unsigned long)record_life(slot.record.v) - 4);
	stress_assert(seen_ends > 0);
	return 0;
}
