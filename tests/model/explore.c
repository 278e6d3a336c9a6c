/* SPDX-License-Identifier: Apache-2.0 */
#include "explore.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "shared/word.h"

#define STACK      65536
#define MAX_DEPTH  1024
#define MAX_SHARED 4096
#define NOBODY     (-1)

struct coroutine {
	ucontext_t context;
	char stack[STACK];
	char looked_at[MAX_SHARED]; /* the shared state when its wait loop began to look */
	int done, waiting;
};

static const struct explore_scenario *scenario;
static struct coroutine thread[EXPLORE_THREADS];
static ucontext_t main_context;
static int current = NOBODY, steps, preempted, cut;

/* The choices of the present schedule, and how many there were at each place. */
static unsigned char choice[MAX_DEPTH], width[MAX_DEPTH];
static int depth, recorded;

void explore_fail(const char *format, ...)
{
	va_list list;

	printf("%s: violation: ", scenario->name);
	va_start(list, format);
	vprintf(format, list);
	va_end(list);
	printf("\n%s: thread %d, step %d, choices", scenario->name, current, steps);
	for (int i = 0; i < depth; i++)
		printf(" %d", choice[i]);
	printf("\n");
	exit(1);
}

static int pick(int n)
{
	if (n == 1)
		return 0;
	if (depth == MAX_DEPTH)
		explore_fail("more than %d choices in one schedule", MAX_DEPTH);
	if (depth == recorded) {
		choice[depth] = 0;
		recorded++;
	}
	width[depth] = (unsigned char)n;
	return choice[depth++];
}

/* Moves on to the next schedule; 0 when there is none. */
static int next_schedule(void)
{
	while (recorded > 0 && choice[recorded - 1] + 1 == width[recorded - 1])
		recorded--;
	if (recorded == 0)
		return 0;
	choice[recorded - 1]++;
	return 1;
}

static int enabled(int t)
{
	struct coroutine *c = &thread[t];

	return !c->done && !(c->waiting && memcmp(c->looked_at, scenario->shared, scenario->shared_len) == 0);
}

/* The thread that goes on, NOBODY when none can. A running thread comes first and costs nothing. */
static int schedule(int running)
{
	int candidate[EXPLORE_THREADS], n = 0, at;

	if (running != NOBODY && enabled(running))
		candidate[n++] = running;
	if (n == 0 || preempted < scenario->preemptions)
		for (int t = 0; t < scenario->n_threads; t++)
			if (t != running && enabled(t))
				candidate[n++] = t;
	if (n == 0)
		return NOBODY;
	at = pick(n);
	if (at && candidate[0] == running)
		preempted++;
	return candidate[at];
}

static void switch_to(int from, int to)
{
	ucontext_t *save = from == NOBODY ? &main_context : &thread[from].context;

	current = to;
	swapcontext(save, to == NOBODY ? &main_context : &thread[to].context);
}

static int all_done(void)
{
	for (int t = 0; t < scenario->n_threads; t++)
		if (!thread[t].done)
			return 0;
	return 1;
}

/* One step of the running thread is over. */
static void step(void)
{
	int self = current, next;

	scenario->check();
	if (++steps >= scenario->max_steps) {
		cut = 1;
		switch_to(self, NOBODY);
	}
	next = schedule(self);
	if (next == NOBODY && !all_done())
		explore_fail("every thread waits");
	if (next != self)
		switch_to(self, next);
}

void kvli_model_point(void)
{
	if (current != NOBODY)
		step();
}

int explore_choose(int n)
{
	return pick(n);
}

void explore_look(void)
{
	memcpy(thread[current].looked_at, scenario->shared, scenario->shared_len);
}

void explore_wait(void)
{
	struct coroutine *c = &thread[current];

	c->waiting = 1;
	step();
	c->waiting = 0;
}

static void thread_main(void)
{
	scenario->thread[current]();
	thread[current].done = 1;
	step();
}

static void start(void)
{
	scenario->reset();
	steps = preempted = cut = depth = 0;
	for (int t = 0; t < scenario->n_threads; t++) {
		struct coroutine *c = &thread[t];

		c->done = c->waiting = 0;
		getcontext(&c->context);
		c->context.uc_stack.ss_sp = c->stack;
		c->context.uc_stack.ss_size = sizeof(c->stack);
		c->context.uc_link = NULL;
		makecontext(&c->context, thread_main, 0);
	}
}

void explore_run(const struct explore_scenario *s)
{
	unsigned long schedules = 0, cuts = 0;

	scenario = s;
	recorded = 0;
	if (s->shared_len > MAX_SHARED || s->n_threads > EXPLORE_THREADS)
		explore_fail("scenario is too large");
	do {
		start();
		switch_to(NOBODY, schedule(NOBODY));
		schedules++;
		cuts += (unsigned long)cut;
		if (!cut)
			s->end();
	} while (next_schedule());
	printf("%s: %lu schedules of at most %d preemptions, %lu cut at %d steps\n", s->name, schedules,
	       s->preemptions, cuts, s->max_steps);
	if (cuts == schedules)
		explore_fail("every schedule was cut");
}
