/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Edge E7: the copy fence of the local wire (src/wire/local). Store, then look, on both sides: of a copy and a
 * withdrawal that cross, at least one sees the other.
 *
 *	initiator  exchange(busy, odd); generation == the one I know? copy; busy = even
 *	owner      exchange(generation, next); for each lane: while busy is odd and unchanged, wait
 *
 * Two lanes, two copies each; the owner withdraws the region once and then uses its memory for itself.
 *
 * Shown: after the fence no copy of the old generation runs and none of its bytes land, although the owner does
 * not wait for a copy that was begun after the one it found.
 *
 * mutant BUSY_PLAIN: busy becomes odd by a plain store
 * mutant CHECK_EARLY: the generation is looked at before busy is odd
 * mutant GENERATION_PLAIN: the generation is changed by a plain store
 * mutant DONE_PLAIN: busy becomes even by a plain store: the copy may land after it
 * mutant LOOK_EARLY: the owner looks at the lanes before it changes the generation
 * mutant NO_WAIT: the owner does not wait
 */
#define THREADS 3
#define LANES 2
#define OWNER 2
#define COPIES 2

#define BUSY 0 /* LANES words */
#define GENERATION 2
#define DATA 3 /* LANES words: each lane copies to a place of its own */
#define WORDS 5

#include "buffer.pml"

#define OLD 0
#define NEW 1
#define COPY 1
#define OWN 9

bool fenced;

#ifdef DONE_PLAIN
#define DONE PLAIN
#else
#define DONE ORDERED
#endif

proctype lane(byte me)
{
	byte copies, busy, seen;

	do
	:: copies < COPIES ->
		copies++;
		busy++;
#ifdef CHECK_EARLY
		seen = mem[GENERATION];
#endif
#ifdef BUSY_PLAIN
		put(me, BUSY + me, busy, PLAIN);
#else
		atomic { drained(me) -> mem[BUSY + me] = busy };
#endif
#ifndef CHECK_EARLY
		seen = mem[GENERATION];
#endif
		if
		:: seen == OLD ->
			assert(!fenced);
			put(me, DATA + me, COPY, PLAIN);
			assert(!fenced)
		:: else
		fi;
		busy++;
		put(me, BUSY + me, busy, DONE)
	:: else -> break
	od
}

inline lane_wait(l)
{
	seen = mem[BUSY + l];
	if
	:: seen % 2 ->
		mem[BUSY + l] != seen /* a next copy, begun later, sees the new generation */
	:: else
	fi
}

inline withdraw()
{
#ifdef GENERATION_PLAIN
	put(OWNER, GENERATION, NEW, PLAIN);
#else
	atomic { drained(OWNER) -> mem[GENERATION] = NEW };
#endif
}

proctype owner()
{
	byte seen;

#ifndef LOOK_EARLY
	withdraw();
#endif
#ifndef NO_WAIT
	lane_wait(0);
	lane_wait(1);
#endif
#ifdef LOOK_EARLY
	withdraw();
#endif
	fenced = true;
	put(OWNER, DATA, OWN, PLAIN);
	put(OWNER, DATA + 1, OWN, PLAIN)
}

init
{
	atomic {
		run memory(0);
		run memory(1);
		run memory(OWNER);
		run lane(0);
		run lane(1);
		run owner()
	};
	timeout -> assert(fenced && mem[DATA] == OWN && mem[DATA + 1] == OWN)
}
