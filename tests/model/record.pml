/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Edge E5: the terminal record (src/shared/record.h). One slot, two users of it and the driver of its lane.
 *
 * The first user posts and re-posts with a handle of life 0. The other releases the slot as soon as it is
 * allowed to, from which moment the first one's handle is stale, and posts in life 1.
 *
 * Shown: an end is seen only after the data; what the caller then does with the memory, and what it writes to the
 * slot for the next post, is not disturbed; a stale handle is refused; a release never meets a post half-way;
 * every post ends.
 *
 * mutant PUBLISH_RELAXED: the end is published by a plain store
 * mutant PUBLISH_EARLY: the end is published before the data is written
 * mutant OBSERVE_RELAXED: data is loaded before the record is
 * mutant NO_LIFE: poll does not compare the life
 * mutant TOUCH_AFTER: the driver clears the slot after it has published
 * mutant PENDING_RELAXED: the slot is handed to the lane by plain stores
 * mutant RELEASE_BLIND: release is a load and a store, not a compare-and-swap
 */
#define THREADS 3
#define RIVAL 1
#define DRIVER 2

#define DATA 0 /* a word for each life: lives use different memory */
#define SLOT 2
#define RECORD 3
#define TAIL 4
#define WORDS 5

#define POSTS 2 /* by the first user */

#define PREPARED 0
#define POSTING 1
#define PENDING 2
#define ENDED 3
#define make(life, state) ((life) * 4 + (state))
#define life_of(r) ((r) / 4)
#define state_of(r) ((r) % 4)
#define is_free(r) (state_of(r) == PREPARED || state_of(r) == ENDED)

#include "buffer.pml"

byte posts;   /* of all users: the lane's tickets */
byte ends;    /* published */
byte tag[4];  /* what post n wrote to the slot; tag[0] is not used */
bool posting; /* somebody is inside post */

#ifdef PUBLISH_RELAXED
#define PUBLISH PLAIN
#else
#define PUBLISH ORDERED
#endif
#ifdef PENDING_RELAXED
#define HAND_OVER PLAIN
#else
#define HAND_OVER ORDERED
#endif

/* Goes to `stale` when the handle's life is over. */
inline post()
{
	seen = mem[RECORD];
	if
	:: life_of(seen) != life -> goto stale
	:: else
	fi;
	if
	:: atomic { drained(me) && mem[RECORD] == seen ->
		mem[RECORD] = make(life, POSTING);
		assert(!posting);
		posting = true;
		posts++;
		mine = posts;
		tag[mine] = 10 + mine }
	:: atomic { mem[RECORD] != seen -> goto stale }
	fi;
	put(me, SLOT, 10 + mine, PLAIN);
	atomic { posting = false; put(me, RECORD, make(life, PENDING), HAND_OVER) };
	put(me, TAIL, mine, HAND_OVER)
}

/* Blocks like a loop of polls. */
inline poll_end()
{
#ifdef OBSERVE_RELAXED
	early = mem[DATA + life];
#endif
#ifdef NO_LIFE
	atomic { state_of(mem[RECORD]) == ENDED -> seen = mem[RECORD] };
#else
	atomic { life_of(mem[RECORD]) != life || state_of(mem[RECORD]) == ENDED -> seen = mem[RECORD] };
	if
	:: life_of(seen) != life -> goto stale
	:: else
	fi;
#endif
	assert(life_of(seen) == life);
#ifdef OBSERVE_RELAXED
	assert(early == tag[mine]);
#else
	assert(mem[DATA + life] == tag[mine]);
#endif
	put(me, DATA + life, 1, PLAIN) /* the memory is the caller's again */
}

proctype user(byte me; byte life; byte n)
{
	byte seen, mine;
#ifdef OBSERVE_RELAXED
	byte early;
#endif
	do
	:: n > 0 ->
		post();
		poll_end();
		n--
	:: else -> break
	od;
stale:
	skip
}

proctype rival()
{
	byte seen;

	atomic { is_free(mem[RECORD]) -> seen = mem[RECORD] }; /* BUSY until then */
#ifdef RELEASE_BLIND
	atomic { assert(!posting && state_of(mem[RECORD]) != PENDING); mem[RECORD] = make(1, PREPARED) };
	run user(RIVAL, 1, 1)
#else
	if
	:: atomic { drained(RIVAL) && mem[RECORD] == seen ->
		assert(!posting);
		mem[RECORD] = make(1, PREPARED);
		run user(RIVAL, 1, 1) }
	:: mem[RECORD] != seen -> skip /* refused */
	fi
#endif
}

proctype driver()
{
	byte n, pending;
end:
	do
	:: mem[TAIL] > n ->
		n++;
		assert(mem[SLOT] == tag[n]);
		pending = mem[RECORD];
		assert(state_of(pending) == PENDING);
#ifdef PUBLISH_EARLY
		put(DRIVER, RECORD, pending + 1, PUBLISH);
		put(DRIVER, DATA + life_of(pending), tag[n], PLAIN);
#else
		put(DRIVER, DATA + life_of(pending), tag[n], PLAIN);
		put(DRIVER, RECORD, pending + 1, PUBLISH); /* E5: PENDING becomes ENDED */
#endif
		ends++;
#ifdef TOUCH_AFTER
		put(DRIVER, SLOT, 0, PLAIN);
#endif
		pending = 0
	od
}

init
{
	atomic {
		run memory(0);
		run memory(RIVAL);
		run memory(DRIVER);
		run user(0, 0, POSTS);
		run rival();
		run driver()
	};
	timeout -> assert(ends == posts && state_of(mem[RECORD]) != PENDING)
}
