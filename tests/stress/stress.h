/* SPDX-License-Identifier: Apache-2.0 */
/* What the stress programs share: a watchdog, a seeded generator, checks that end the program, round counts.
 */
#ifndef STRESS_H
#define STRESS_H

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define stress_assert(condition) ((condition) ? (void)0 : stress_fail(__FILE__, __LINE__, #condition))

static inline void stress_fail(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: %s\n", file, line, what);
	_Exit(1);
}

/* Rounds: the first argument, else `normal`. A program that hangs, on a lost wake-up say, is killed. */
static inline uint32_t stress_begin(int argc, char **argv, uint32_t normal)
{
	alarm(100);
	return argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : normal;
}

/* xorshift64*, by Vigna; state is not 0. */
static inline uint64_t stress_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(0x2545f4914f6cdd1d);
}

static inline uint32_t stress_below(uint64_t *state, uint32_t n)
{
	return (uint32_t)((stress_random(state) >> 32) * n >> 32);
}

static inline pthread_t stress_start(void *(*run)(void *), void *arg)
{
	pthread_t thread;

	stress_assert(pthread_create(&thread, NULL, run, arg) == 0);
	return thread;
}

#endif
