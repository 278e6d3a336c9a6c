/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Edges E10 and E12: something is filled in, then a word that only grows says so: the number of request slots in
 * use (src/xfer/request.c) and the address of the record table (src/agent/registry.c). One writer at a time,
 * readers that only look.
 *
 * Shown: who sees the word sees what was filled in before it, for the first value and for the one after.
 *
 * mutant PUBLISH_RELAXED: the word is written by a plain store
 * mutant PUBLISH_EARLY: the word is written before the rest
 * mutant OBSERVE_RELAXED: the rest is loaded before the word is
 */
#define THREADS 1
#define WRITER 0

#define ITEMS 2
#define ITEM 0 /* ITEMS words */
#define WORD 2 /* items below it are filled in */
#define WORDS 3

#include "buffer.pml"

#ifdef PUBLISH_RELAXED
#define PUBLISH PLAIN
#else
#define PUBLISH ORDERED
#endif

byte looks;

proctype writer()
{
	byte n;

	do
	:: n < ITEMS ->
#ifdef PUBLISH_EARLY
		put(WRITER, WORD, n + 1, PUBLISH);
#endif
		put(WRITER, ITEM + n, 10 + n, PLAIN);
#ifndef PUBLISH_EARLY
		put(WRITER, WORD, n + 1, PUBLISH); /* E10, E12 */
#endif
		n++
	:: else -> break
	od
}

proctype reader()
{
	byte n, at;
#ifdef OBSERVE_RELAXED
	byte early[ITEMS];

	early[0] = mem[ITEM];
	early[1] = mem[ITEM + 1];
#endif
	n = mem[WORD]; /* E10, E12 */
	do
	:: at < n ->
#ifdef OBSERVE_RELAXED
		assert(early[at] == 10 + at);
#else
		assert(mem[ITEM + at] == 10 + at);
#endif
		at++
	:: else -> break
	od;
	looks++
}

init
{
	atomic {
		run memory(WRITER);
		run writer();
		run reader();
		run reader()
	};
	timeout -> assert(mem[WORD] == ITEMS && looks == 2)
}
