/* SPDX-License-Identifier: Apache-2.0 */
/* A close lets every waiter go and gives everything back; a refused publish takes nothing away. */
#include "testing.h"
#include "testing_process.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void wait_until_back(size_t (*count)(void), size_t before)
{
	uint64_t start = kvl_now();

	while (count() > before)
		assert_true(kvl_now() - start < 5 * SECOND);
}

static void folder_make(char *path, size_t room)
{
	const char *base = getenv("TMPDIR");

	assert_in_range(snprintf(path, room, "%s/kvlane-test-XXXXXX", base ? base : P_tmpdir), 1, room - 1);
	assert_non_null(mkdtemp(path));
}

/* ---------------------------------------------------------------------------------------- a blocked caller */

struct waiter {
	pthread_t thread;
	kvl_agent_t agent;
	const char *dir;
	atomic_int tid, back;
	int code;
};

static void waiter_start(struct waiter *w, void *(*body)(void *))
{
	assert_int_equal(pthread_create(&w->thread, NULL, body, w), 0);
	while (atomic_load(&w->tid) == 0)
		sched_yield();
}

static void *find_main(void *arg)
{
	struct waiter *w = arg;
	kvl_peer_t peer = 0;

	atomic_store(&w->tid, gettid());
	w->code = kvl_peer_find(w->agent, w->dir, "nobody", KVL_FOREVER, &peer);
	atomic_store(&w->back, 1);
	return NULL;
}

TEST(find_returns_when_its_agent_is_closed)
{
	char dir[64];
	struct waiter w = { .dir = dir };
	uint64_t start;

	folder_make(dir, sizeof(dir));
	assert_ok(kvl_agent_open("finder", NULL, &w.agent));
	waiter_start(&w, find_main);
	process_wait_asleep(atomic_load(&w.tid));
	assert_ok(kvl_agent_close(w.agent, SECOND));
	start = kvl_now();
	while (!atomic_load(&w.back))
		assert_true(kvl_now() - start < 2 * SECOND);
	pthread_join(w.thread, NULL);
	assert_true(w.code == KVL_ERR_CLOSED || w.code == KVL_ERR_STALE);
	assert_int_equal(rmdir(dir), 0);
}

static void *poll_main(void *arg)
{
	struct waiter *w = arg;
	struct kvl_end end;

	atomic_store(&w->tid, gettid());
	w->code = kvl_poll_many(w->agent, &end, 1, KVL_FOREVER);
	return NULL;
}

/* So many that they do not all get away before the close looks at its clock. */
#define WAITERS 8

/* Opens, has threads wait inside, closes with no time to spare. Returns what the close said. */
static int close_at_once(kvl_agent_t other)
{
	struct kvl_peer_info info = { .size = sizeof(info) };
	struct waiter w[WAITERS] = { 0 };
	kvl_agent_t agent;
	kvl_peer_t peer;
	uint64_t start;
	int code;

	assert_ok(kvl_agent_open("closed", NULL, &agent));
	peer = connect_to(other, agent);
	for (size_t i = 0; i < WAITERS; i++) {
		w[i].agent = agent;
		waiter_start(&w[i], poll_main);
	}
	for (size_t i = 0; i < WAITERS; i++)
		process_wait_asleep(atomic_load(&w[i].tid));
	code = kvl_agent_close(agent, 0);
	for (size_t i = 0; i < WAITERS; i++)
		pthread_join(w[i].thread, NULL);
	assert_refused(kvl_agent_close(agent, 0), KVL_ERR_STALE);
	start = kvl_now();
	do {
		assert_ok(kvl_peer_info(other, peer, &info));
		assert_true(kvl_now() - start < 5 * SECOND);
	} while (info.connected);
	assert_ok(kvl_peer_close(other, peer));
	return code;
}

TEST(close_in_no_time_gives_everything_back)
{
	size_t rounds = testing_rounds(20), late = 0, descriptors, threads;
	kvl_agent_t other;

	assert_ok(kvl_agent_open("other", NULL, &other));
	descriptors = process_descriptors();
	threads = process_threads();
	for (size_t i = 0; i < rounds; i++)
		late += close_at_once(other) == KVL_ERR_TIMED_OUT;
	print_message("%zu of %zu closes were too late for the threads inside\n", late, rounds);
	wait_until_back(process_descriptors, descriptors);
	wait_until_back(process_threads, threads);
	assert_ok(kvl_agent_close(other, SECOND));
}

TEST(publish_refused_elsewhere_keeps_the_first_entry)
{
	char dir[64], nowhere[96];
	kvl_agent_t agent;
	void *bytes = NULL;
	size_t len;

	folder_make(dir, sizeof(dir));
	snprintf(nowhere, sizeof(nowhere), "%s/no-such-folder", dir);
	assert_ok(kvl_agent_open("published", NULL, &agent));
	assert_ok(kvl_publish(agent, dir));
	assert_true(kvl_publish(agent, nowhere) < 0);
	assert_ok(kvl_lookup(dir, "published", 0, &bytes, &len));
	free(bytes);
	assert_ok(kvl_agent_close(agent, SECOND));
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(close_in_no_time_gives_everything_back),
		cmocka_unit_test(publish_refused_elsewhere_keeps_the_first_entry),
		cmocka_unit_test(find_returns_when_its_agent_is_closed),
	};

	return TESTING_RUN(tests, 30);
}
