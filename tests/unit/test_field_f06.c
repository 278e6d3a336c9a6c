/* SPDX-License-Identifier: Apache-2.0 */
/* F06: a repeat, a sub-range, a superset and a partial overlap differ, also when two threads race for them.
 */
#include "testing.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 4096u
#define LEN  (16 * PAGE)

static unsigned char memory[4 * LEN] __attribute__((aligned(4096)));

static void overlap(kvl_agent_t agent, uint64_t at, uint64_t len, const char *rule)
{
	struct kvl_mem mem = memory_of(memory + at, len, 0);
	kvl_mr_t mr = 0;

	assert_refused_at(kvl_mem_register(agent, &mem, 1, &mr), KVL_ERR_OVERLAP, 0);
	assert_int_equal(mr, 0);
	assert_rule(rule);
}

/* Whatever a test did is undone: the whole memory can be one region, and nothing of it is one already. */
static void nothing_left(kvl_agent_t agent)
{
	struct kvl_mem mem = memory_of(memory, sizeof(memory), KVL_REMOTE_READ);
	kvl_mr_t mr;

	assert_ok(kvl_mem_register(agent, &mem, 1, &mr));
	assert_ok(kvl_mem_deregister(agent, &mr, 1));
}

TEST(f06_each_overlap_has_its_own_answer)
{
	struct kvl_mem mem = memory_of(memory + LEN, LEN, 0);
	kvl_agent_t agent;
	kvl_mr_t mr, again;

	assert_ok(kvl_agent_open("overlap", NULL, &agent));
	assert_ok(kvl_mem_register(agent, &mem, 1, &mr));
	assert_ok(kvl_mem_register(agent, &mem, 1, &again));
	assert_int_equal(mr, again);
	overlap(agent, LEN + PAGE, LEN, "partial");
	overlap(agent, LEN - PAGE, LEN, "partial");
	overlap(agent, 2 * LEN - 1, LEN, "partial");
	overlap(agent, 1, LEN, "partial");
	overlap(agent, LEN + PAGE, PAGE, "sub-range");
	overlap(agent, LEN, LEN - 1, "sub-range");
	overlap(agent, LEN + 1, LEN - 1, "sub-range");
	overlap(agent, LEN - 1, LEN + 2, "superset");
	overlap(agent, LEN, LEN + 1, "superset");
	overlap(agent, LEN - 1, LEN + 1, "superset");
	mem.rights = KVL_REMOTE_READ;
	assert_refused_at(kvl_mem_register(agent, &mem, 1, &again), KVL_ERR_RIGHTS, 0);
	assert_ok(kvl_mem_deregister(agent, (kvl_mr_t[]){ mr, mr }, 2));
	nothing_left(agent);
	assert_ok(kvl_agent_close(agent, SECOND));
}

/* Touching is not overlapping; overlapping inside one list is found too, and undoes the list. */
TEST(f06_neighbours_and_overlap_inside_a_list)
{
	struct kvl_mem mem[3] = { memory_of(memory, LEN, 0), memory_of(memory + 2 * LEN, LEN, 0),
				  memory_of(memory + LEN, LEN, 0) };
	kvl_agent_t agent;
	kvl_mr_t mr[3];

	assert_ok(kvl_agent_open("overlap", NULL, &agent));
	assert_ok(kvl_mem_register(agent, mem, 3, mr));
	assert_ok(kvl_mem_deregister(agent, mr, 3));
	mem[2].len++;
	assert_refused_at(kvl_mem_register(agent, mem, 3, mr), KVL_ERR_OVERLAP, 2);
	nothing_left(agent);
	assert_ok(kvl_agent_close(agent, SECOND));
}

/* KVL_REMOTE_ALL spelled out and 0 are the same rights. */
TEST(f06_default_rights_are_a_repeat)
{
	struct kvl_mem zero = memory_of(memory, LEN, 0), all = memory_of(memory, LEN, KVL_REMOTE_ALL);
	kvl_agent_t agent;
	kvl_mr_t mr, again;

	assert_ok(kvl_agent_open("overlap", NULL, &agent));
	assert_ok(kvl_mem_register(agent, &zero, 1, &mr));
	assert_ok(kvl_mem_register(agent, &all, 1, &again));
	assert_int_equal(mr, again);
	assert_ok(kvl_agent_close(agent, SECOND));
}

/* ------------------------------------------------------------------------------------------------- races */

struct racer {
	kvl_agent_t agent;
	pthread_barrier_t *barrier;
	size_t rounds;
	int index;
	int result[2]; /* of both, by index; shared through the barrier */
	kvl_mr_t mr[2];
	struct racer *other;
};

/* What thread `index` registers in a round of this kind. */
static struct kvl_mem race_range(size_t round, int index)
{
	switch (round % 4) {
	case 0: /* the same */
		return memory_of(memory, LEN, 0);
	case 1: /* half of it common */
		return memory_of(memory + (index ? LEN / 2 : 0), LEN, 0);
	case 2: /* one inside the other */
		return index ? memory_of(memory, LEN, 0) : memory_of(memory + PAGE, PAGE, 0);
	default: /* the same range, other rights */
		return memory_of(memory, LEN, index ? KVL_REMOTE_READ : KVL_REMOTE_ALL);
	}
}

static void race_judge(size_t round, const int result[2], const kvl_mr_t mr[2])
{
	if (round % 4 == 0) {
		must(result[0] == 0 && result[1] == 0 && mr[0] == mr[1]);
		return;
	}
	must((result[0] == 0) + (result[1] == 0) == 1);
	must(result[result[0] == 0] == (round % 4 == 3 ? KVL_ERR_RIGHTS : KVL_ERR_OVERLAP));
}

static void *race_main(void *arg)
{
	struct racer *me = arg;

	for (size_t round = 0; round < me->rounds; round++) {
		struct kvl_mem mem = race_range(round, me->index);
		kvl_mr_t mr = 0;

		pthread_barrier_wait(me->barrier);
		me->result[me->index] = kvl_mem_register(me->agent, &mem, 1, &mr);
		me->mr[me->index] = mr;
		pthread_barrier_wait(me->barrier);
		if (me->index == 0)
			race_judge(round, (int[]){ me->result[0], me->other->result[1] },
				   (kvl_mr_t[]){ me->mr[0], me->other->mr[1] });
		pthread_barrier_wait(me->barrier);
		if (mr)
			must_ok(kvl_mem_deregister(me->agent, &mr, 1));
	}
	return NULL;
}

TEST(f06_racing_threads_see_one_legal_outcome)
{
	pthread_barrier_t barrier;
	struct racer racer[2];
	pthread_t thread[2];
	kvl_agent_t agent;

	memset(racer, 0, sizeof(racer));
	assert_ok(kvl_agent_open("race", NULL, &agent));
	pthread_barrier_init(&barrier, NULL, 2);
	for (int i = 0; i < 2; i++) {
		racer[i] = (struct racer){ .agent = agent,
					   .barrier = &barrier,
					   .rounds = testing_rounds(10000),
					   .index = i,
					   .other = &racer[!i] };
		assert_int_equal(pthread_create(&thread[i], NULL, race_main, &racer[i]), 0);
	}
	pthread_join(thread[0], NULL);
	pthread_join(thread[1], NULL);
	pthread_barrier_destroy(&barrier);
	nothing_left(agent);
	assert_ok(kvl_agent_close(agent, SECOND));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(f06_each_overlap_has_its_own_answer),
		cmocka_unit_test(f06_neighbours_and_overlap_inside_a_list),
		cmocka_unit_test(f06_default_rights_are_a_repeat),
		cmocka_unit_test(f06_racing_threads_see_one_legal_outcome),
	};

	return TESTING_RUN(tests, 40);
}
