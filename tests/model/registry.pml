/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Edge E11: who may be inside an agent when it is closed (src/agent/registry.c). Store, then look, on both sides.
 *
 *	call   add(users, 1); open == my handle? use the agent; add(users, -1)
 *	close  compare-and-swap(open, handle, 0); wait until users == 0; free the agent
 *
 * Shown: nobody uses a freed agent, what a call wrote is out before it is freed, and close ends.
 *
 * mutant LOOK_FIRST: a call looks at open before it counts itself
 * mutant COUNT_PLAIN: a call counts itself by a plain store
 * mutant LEAVE_RELAXED: a call leaves by a plain store: its own stores may come after it
 * mutant CLOSE_PLAIN: close withdraws the handle by a plain store
 * mutant CLOSE_LATE: close looks at users before it withdraws the handle
 * mutant NO_WAIT: close does not wait for calls
 */
#define THREADS 3
#define CALLS 2
#define CLOSER 2

#define USERS 0 /* a word for each call: plain stores then need no own copy; close looks at all of them */
#define OPEN 2
#define STATE 3 /* CALLS words of the agent's memory */
#define WORDS 5

#define FREED 99

#include "buffer.pml"

bool freed;

inline count_me()
{
#ifdef COUNT_PLAIN
	put(me, USERS + me, 1, PLAIN);
#else
	atomic { drained(me) -> mem[USERS + me] = 1 }; /* E11 */
#endif
}

proctype call(byte me)
{
	bool open;

#ifdef LOOK_FIRST
	open = mem[OPEN];
	count_me();
#else
	count_me();
	open = mem[OPEN]; /* E11 */
#endif
	if
	:: open ->
		assert(!freed);
		put(me, STATE + me, 1, PLAIN);
		assert(!freed)
	:: else
	fi;
#ifdef LEAVE_RELAXED
	put(me, USERS + me, 0, PLAIN)
#else
	atomic { drained(me) -> mem[USERS + me] = 0 } /* E11 */
#endif
}

inline withdraw()
{
#ifdef CLOSE_PLAIN
	put(CLOSER, OPEN, false, PLAIN);
#else
	atomic { drained(CLOSER) -> mem[OPEN] = false }; /* E11 */
#endif
}

inline wait_calls()
{
#ifdef NO_WAIT
	skip
#else
	mem[USERS] == 0; /* E11 */
	mem[USERS + 1] == 0
#endif
}

proctype closer()
{
#ifdef CLOSE_LATE
	wait_calls();
	withdraw();
#else
	withdraw();
	wait_calls();
#endif
	freed = true;
	put(CLOSER, STATE, FREED, PLAIN);
	put(CLOSER, STATE + 1, FREED, PLAIN)
}

init
{
	atomic {
		mem[OPEN] = true;
		run memory(0);
		run memory(1);
		run memory(CLOSER);
		run call(0);
		run call(1);
		run closer()
	};
	timeout -> assert(freed && mem[STATE] == FREED && mem[STATE + 1] == FREED)
}
