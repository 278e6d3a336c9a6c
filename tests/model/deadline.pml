/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Edge E13: the timer of deadlines (src/agent/deadline.c) runs while anything is pending. Two posts, and a timer
 * that stops when a look at the records finds nothing.
 *
 *	post   record = PENDING; exchange(ticking, 1) == 0 -> start the timer
 *	timer  nothing pending: stop; exchange(ticking, 0); look again, and go on as a post does if there is
 *
 * Shown: no request stays pending with the timer stopped.
 *
 * mutant LOOKED_AT: a post writes ticking only where a load showed 0
 * mutant ARM_EARLY: a post starts the timer before its record is pending
 * mutant NO_SECOND_LOOK: the timer does not look again after it has cleared ticking
 * mutant CLEARED_PLAIN: the timer clears ticking by a plain store
 * mutant STOPPED_LATE: the timer is stopped after ticking is cleared
 */
#define THREADS 3
#define POSTS 2
#define TIMER 2

#define RECORD 0 /* POSTS words: 0, PENDING, ENDED */
#define TICKING 2
#define WORDS 3

#define PENDING 1
#define ENDED 2

#include "buffer.pml"

bool running; /* the kernel's timer */

inline arm(me)
{
#ifdef LOOKED_AT
	if
	:: mem[TICKING] -> was = 1
	:: else -> atomic { drained(me) -> was = mem[TICKING]; mem[TICKING] = 1 }
	fi;
#else
	atomic { drained(me) -> was = mem[TICKING]; mem[TICKING] = 1 }; /* E13 */
#endif
	if
	:: was == 0 -> running = true
	:: else
	fi
}

proctype post(byte me)
{
	byte was;

#ifdef ARM_EARLY
	arm(me);
#endif
	put(me, RECORD + me, PENDING, ORDERED);
#ifndef ARM_EARLY
	arm(me)
#endif
}

/* Ends what is past its deadline, which anything may be; whether something is still pending. */
inline scan()
{
	pending = false;
	at = 0;
	do
	:: at < POSTS ->
		if
		:: mem[RECORD + at] == PENDING -> mem[RECORD + at] = ENDED; pending = true
		:: mem[RECORD + at] == PENDING -> pending = true
		:: mem[RECORD + at] != PENDING
		fi;
		at++
	:: else -> break
	od;
	at = 0
}

proctype timer()
{
	bool pending;
	byte at, was;
end:
	do
	:: running ->
		scan();
		if
		:: pending
		:: else ->
#ifndef STOPPED_LATE
			running = false;
#endif
#ifdef CLEARED_PLAIN
			put(TIMER, TICKING, 0, PLAIN);
#else
			atomic { drained(TIMER) -> mem[TICKING] = 0 }; /* E13 */
#endif
#ifdef STOPPED_LATE
			running = false;
#endif
#ifndef NO_SECOND_LOOK
			scan();
			if
			:: pending -> arm(TIMER)
			:: else
			fi
#endif
		fi
	od
}

init
{
	atomic {
		run memory(0);
		run memory(1);
		run memory(TIMER);
		run post(0);
		run post(1);
		run timer()
	};
	timeout -> assert(mem[RECORD] == ENDED && mem[RECORD + 1] == ENDED)
}
