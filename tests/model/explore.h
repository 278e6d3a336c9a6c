/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exhaustive scheduler: runs a scenario's threads as coroutines under every sequentially consistent schedule
 * of at most `preemptions` preemptions. Threads switch where they touch a shared word (shared/word.h built
 * with KVLI_MODEL), before and after each store. A switch away from a thread that waits is not a preemption.
 *
 * It judges safety, and lost wake-ups: when every thread that has not ended waits, and what they wait on has
 * not changed since they looked, nothing will ever happen again. Weak orders are for the spin models.
 */
#ifndef EXPLORE_H
#define EXPLORE_H

#include <stddef.h>

#define EXPLORE_THREADS 4

struct explore_scenario {
	const char *name;
	int n_threads;
	int preemptions; /* bound of one schedule */
	int max_steps;   /* schedules that reach it are cut and counted, not judged further */
	void (*reset)(void);
	void (*check)(void); /* after every step */
	void (*end)(void);   /* when all threads have returned */
	void (*thread[EXPLORE_THREADS])(void);
	/* What waits watch: all that the threads share. */
	const void *shared;
	size_t shared_len;
};

/* Prints schedules and cuts, and exits 1 at the first violation or when every schedule was cut. */
void explore_run(const struct explore_scenario *scenario);

/* A number below n; every one is tried. From threads. */
int explore_choose(int n);

/* A loop that waits: look() before it reads what it waits for, wait() when it did not find it. From threads.
 */
void explore_look(void);
void explore_wait(void);

void explore_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#define explore_assert(condition) \
	((condition) ? (void)0 : explore_fail("%s:%d: %s", __FILE__, __LINE__, #condition))

#endif
