/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory as the shared words see it: every thread has a store buffer, and what lies in it reaches memory later,
 * in any order but for two rules: stores to one word keep their order, and an ORDERED (release) store waits for
 * all earlier ones. That is weaker than x86, which keeps all stores in order. A thread's own loads look at
 * memory only, so a model keeps private copies of the words it writes.
 *
 * A successful read-modify-write first drains its thread's buffer, then acts on memory at once. A failed
 * compare-and-swap is a load: it drains nothing. An acquire load is a plain read of mem[]; the weak form, a later
 * load that happens before it, is written out by the mutants that need it.
 *
 * The including model defines WORDS and THREADS and runs one memory(t) for each thread that stores.
 */
#define DEPTH 5
#define PLAIN 0
#define ORDERED 1

typedef stores {
	byte n;
	byte word[DEPTH];
	byte value[DEPTH];
	bool ordered[DEPTH]
}

byte mem[WORDS];
stores buf[THREADS];

#define drained(t) (buf[t].n == 0)
#define passes(t, i, j) (buf[t].word[i] != buf[t].word[j])
#define may_drain_1(t) (buf[t].n > 1 && !buf[t].ordered[1] && passes(t, 1, 0))
#define may_drain_2(t) (buf[t].n > 2 && !buf[t].ordered[2] && passes(t, 2, 0) && passes(t, 2, 1))
#define may_drain_3(t) (buf[t].n > 3 && !buf[t].ordered[3] && passes(t, 3, 0) && passes(t, 3, 1) && passes(t, 3, 2))

inline put(t, w, v, how)
{
	atomic {
		buf[t].n < DEPTH;
		buf[t].word[buf[t].n] = w;
		buf[t].value[buf[t].n] = v;
		buf[t].ordered[buf[t].n] = how;
		buf[t].n++
	}
}

/* Unused places are zero, so that equal memories are equal states. */
inline drain(t, first)
{
	mem[buf[t].word[first]] = buf[t].value[first];
	at = first;
	do
	:: at + 1 < buf[t].n ->
		buf[t].word[at] = buf[t].word[at + 1];
		buf[t].value[at] = buf[t].value[at + 1];
		buf[t].ordered[at] = buf[t].ordered[at + 1];
		at++
	:: else -> break
	od;
	buf[t].n--;
	buf[t].word[at] = 0;
	buf[t].value[at] = 0;
	buf[t].ordered[at] = false;
	at = 0
}

proctype memory(byte t)
{
	byte at = 0;
end:
	do
	:: d_step { !drained(t) -> drain(t, 0) }
	:: d_step { may_drain_1(t) -> drain(t, 1) }
	:: d_step { may_drain_2(t) -> drain(t, 2) }
	:: d_step { may_drain_3(t) -> drain(t, 3) }
	od
}
