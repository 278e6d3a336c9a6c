/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Edges E3, E4 and E6: a lane's tickets and its hand-over (src/lane/step.h). Two producers under a lock, a wire
 * that completes chunks in any order and calls the lane for each; whoever gets the lane drives it until nothing
 * moves, then leaves. Nobody polls: every step is owed to a call.
 *
 * Shown: at most one driver; a slot is read as its producer wrote it; tickets are published in order, each when
 * its chunk is done; at the end every ticket is published (no call is lost).
 *
 * mutant TAIL_RELAXED: a ticket is posted by a plain store
 * mutant TAIL_EARLY: a ticket is posted before its slot is filled
 * mutant HEAD_EARLY: a ticket is retired before its slot has been read for the last time
 * mutant RETIRE_OUTSTANDING: retire does not wait for the chunk
 * mutant RETIRE_ANY: whatever is done is published, in any order
 * mutant LEAVE_BLIND: the driver leaves without looking at whether it was called
 * mutant LEAVE_RELAXED: the lane is left by a plain store
 * mutant CALL_DROPPED: a caller who finds the lane driven goes away without a mark
 * mutant CALL_SEEN: a caller who finds another's mark only looks at it (no write: its ticket may still lie in
 *	its store buffer when the driver looks)
 * mutant DRIVE_BLIND: the lane is taken by a load and a store
 */
#define THREADS 3
#define WIRE 2

#define TICKETS 3
#define QUEUE 2

#define LANE_FREE 0
#define LANE_DRIVEN 1
#define LANE_CALLED 2

#define SLOT 0 /* QUEUE words */
#define TAIL 2
#define HEAD 3
#define ISSUE 4 /* for all that belongs to the driver */
#define DRIVE 5
#define LOCK 6
#define WORDS 7

#include "buffer.pml"

byte drivers;          /* threads that hold the lane */
byte owner[TICKETS];   /* what the producer of each ticket put into its slot */
bool flying[TICKETS];  /* the wire has the chunk */
bool done[TICKETS];
byte published;

#ifdef TAIL_RELAXED
#define POSTED PLAIN
#else
#define POSTED ORDERED
#endif

/* lane_drive_try() */
inline drive_try()
{
	got = false;
	do
#ifdef DRIVE_BLIND
	:: mem[DRIVE] == LANE_FREE -> atomic { drained(me) -> mem[DRIVE] = LANE_DRIVEN; drivers++; got = true }; break
#else
	:: atomic { drained(me) && mem[DRIVE] == LANE_FREE -> mem[DRIVE] = LANE_DRIVEN; drivers++; got = true; break }
#endif
	:: mem[DRIVE] != LANE_FREE ->
#ifdef CALL_DROPPED
		break
#else
		if
		:: atomic { drained(me) && mem[DRIVE] == LANE_DRIVEN -> mem[DRIVE] = LANE_CALLED; break }
		:: mem[DRIVE] != LANE_DRIVEN ->
			if
#ifdef CALL_SEEN
			:: mem[DRIVE] == LANE_CALLED -> break
#else
			:: drained(me) && mem[DRIVE] == LANE_CALLED -> break /* a swap of CALLED for CALLED */
#endif
			:: mem[DRIVE] != LANE_CALLED -> skip
			fi
		fi
#endif
	od
}

/* lane_issue() */
inline lane_issue()
{
	if
	:: issue != mem[TAIL] ->
		assert(mem[SLOT + issue % QUEUE] == owner[issue]);
		flying[issue] = true;
		issue++;
		put(me, ISSUE, issue, PLAIN);
		moved = true
	:: issue == mem[TAIL] -> skip
	fi
}

/* lane_retire() and its publish: `which` is the head ticket, if it may end */
inline lane_retire()
{
	which = head;
#ifdef RETIRE_ANY
	if
	:: head + 1 < issue && done[head + 1] -> which = head + 1
	:: true -> skip
	fi;
#endif
	if
#ifdef RETIRE_OUTSTANDING
	:: which < issue ->
#else
	:: which < issue && done[which] ->
#endif
#ifdef HEAD_EARLY
		put(me, HEAD, head + 1, ORDERED);
		assert(mem[SLOT + which % QUEUE] == owner[which]);
#else
		assert(mem[SLOT + which % QUEUE] == owner[which]);
		put(me, HEAD, head + 1, ORDERED);
#endif
		atomic { assert(done[which] && which == published); published++ };
		head++;
		moved = true
	:: which >= issue || !done[which] -> skip
	fi;
	which = 0
}

/* lane_drive_leave(): leaves the loop, or stays to look again */
inline drive_leave()
{
	if
#ifdef LEAVE_BLIND
	:: atomic { drained(me) -> mem[DRIVE] = LANE_FREE; drivers--; break }
#else
#ifdef LEAVE_RELAXED
	:: atomic { mem[DRIVE] == LANE_DRIVEN -> drivers--; put(me, DRIVE, LANE_FREE, PLAIN); break }
#else
	:: atomic { drained(me) && mem[DRIVE] == LANE_DRIVEN -> mem[DRIVE] = LANE_FREE; drivers--; break }
#endif
	:: atomic { drained(me) && mem[DRIVE] == LANE_CALLED -> mem[DRIVE] = LANE_DRIVEN }
#endif
	fi
}

inline call()
{
	drive_try();
	if
	:: got ->
		assert(drivers == 1);
		issue = mem[ISSUE];
		head = mem[HEAD];
		do
		:: true ->
			do
			:: true ->
				moved = false;
				lane_issue();
				lane_retire();
				if
				:: !moved -> break
				:: else
				fi
			od;
			drive_leave()
		od;
		issue = 0;
		head = 0;
		got = false
	:: else
	fi
}

proctype producer(byte me; byte posts)
{
	byte issue, head, tail, which;
	bool got, moved;

	do
	:: posts > 0 ->
		posts--;
		/* lane_reserve(), under the producers' lock; AGAIN until there is room */
		atomic { mem[LOCK] == 0 -> mem[LOCK] = 1 };
		tail = mem[TAIL];
		tail - mem[HEAD] < QUEUE;
		owner[tail] = 10 + tail;
#ifdef TAIL_EARLY
		put(me, TAIL, tail + 1, POSTED);
		put(me, SLOT + tail % QUEUE, 10 + tail, PLAIN);
#else
		put(me, SLOT + tail % QUEUE, 10 + tail, PLAIN);
		put(me, TAIL, tail + 1, POSTED);
#endif
		tail = 0;
		put(me, LOCK, 0, ORDERED);
		call()
	:: else -> break
	od
}

proctype wire()
{
	byte me = WIRE;
	byte issue, head, which, completions;
	bool got, moved;

	do
	:: completions < TICKETS ->
		completions++;
		if
		:: atomic { flying[0] && !done[0] -> done[0] = true }
		:: atomic { flying[1] && !done[1] -> done[1] = true }
		:: atomic { flying[2] && !done[2] -> done[2] = true }
		fi;
		call()
	:: else -> break
	od
}

init
{
	atomic {
		run memory(0);
		run memory(1);
		run memory(WIRE);
		run producer(0, 2);
		run producer(1, 1);
		run wire()
	};
	timeout -> assert(published == TICKETS && mem[DRIVE] == LANE_FREE)
}
