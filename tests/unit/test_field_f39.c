/* SPDX-License-Identifier: Apache-2.0 */
/* F39: an agent closes in any state, twice, from both ends at once, and leaves nothing behind. */
#include "testing.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEN      (64 * KIB)
#define REQUESTS 8u

/* ----------------------------------------------------------------------------------------- what is left */

static size_t entries_of(const char *path, const char *word)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	size_t n = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)) != NULL)
		n += strstr(entry->d_name, word) != NULL;
	closedir(dir);
	return n;
}

/* Lines of a file with kvlane's objects in it, those with `but` left out. */
static size_t lines_of(const char *path, const char *but)
{
	FILE *file = fopen(path, "r");
	char line[512];
	size_t n = 0;

	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file))
		n += strstr(line, "kvl") != NULL && strstr(line, but) == NULL;
	fclose(file);
	return n;
}

struct left {
	size_t fds, threads, shm, sockets, maps;
};

/*
 * Other processes come and go meanwhile: of what the whole system has, only names that the library would have
 * to give are counted. Abstract sockets (with an '@') end with their descriptors.
 */
static struct left left_now(void)
{
	return (struct left){ entries_of("/proc/self/fd", ""), entries_of("/proc/self/task", ""),
			      entries_of("/dev/shm", "kvl"), lines_of("/proc/net/unix", "@"),
			      lines_of("/proc/self/maps", "\n\n") };
}

/* A joined thread stays in /proc for a moment longer: what is asserted is that the counts get there. */
static void nothing_left(const struct left *before)
{
	struct left after = left_now();

	for (uint64_t limit = kvl_now() + 2 * SECOND;
	     memcmp(&after, before, sizeof(after)) && kvl_now() < limit;)
		after = left_now();
	assert_int_equal(after.fds, before->fds);
	assert_int_equal(after.threads, before->threads);
	assert_int_equal(after.shm, before->shm);
	assert_int_equal(after.sockets, before->sockets);
	assert_int_equal(after.maps, before->maps);
}

/* What the first agent of a process starts for good, a sanitizer's thread say, is not a leftover. */
static int first_agent(void **unused)
{
	kvl_agent_t agent;

	(void)unused;
	must_ok(kvl_agent_open("first", NULL, &agent));
	must_ok(kvl_agent_close(agent, SECOND));
	return 0;
}

/* ------------------------------------------------------------------------------------------- all at once */

struct scene {
	struct duo duo;
	struct buffer local, remote;
	unsigned char plain[LEN];
	kvl_mr_t plain_mr;
	kvl_list_t lists[2]; /* of the last request */
	kvl_xfer_t xfer[REQUESTS];
};

static void scene_post(struct scene *s, size_t i)
{
	struct kvl_desc local = desc_of(s->local.data + i * LEN, LEN),
			remote = desc_of(s->remote.data + i * LEN, LEN);

	assert_ok(kvl_list_create(s->duo.a, KVL_LOCAL, &local, 1, &s->lists[0]));
	assert_ok(kvl_list_create(s->duo.a, s->duo.ab, &remote, 1, &s->lists[1]));
	assert_ok(kvl_xfer_prepare(s->duo.a, i % 2 ? KVL_READ : KVL_WRITE, s->lists[0], s->lists[1], NULL,
				   &s->xfer[i]));
	assert_ok(kvl_xfer_post(s->duo.a, s->xfer[i], NULL));
}

/* Registrations, loaded peers, prepared lists, requests ended and in flight, unread notifications. */
static void scene_open(struct scene *s, uint32_t workers)
{
	struct kvl_config config;
	struct kvl_mem mem = memory_of(s->plain, LEN, 0);

	kvl_config_init(&config);
	config.workers = workers;
	config.chunk_bytes = 4096;
	config.window = 1;
	duo_open(&s->duo, &config);
	buffer_open(&s->local, s->duo.a, BUFFER_ALLOC, REQUESTS * LEN, 0);
	buffer_open(&s->remote, s->duo.b, BUFFER_ALLOC, REQUESTS * LEN, 0);
	assert_ok(kvl_mem_register(s->duo.a, &mem, 1, &s->plain_mr));
	duo_connect(&s->duo);
	for (size_t i = 0; i < REQUESTS; i++)
		scene_post(s, i);
	for (int i = 0; i < 10; i++) {
		assert_ok(kvl_notify(s->duo.a, s->duo.ab, "unread", 6, NULL));
		assert_ok(kvl_notify(s->duo.b, s->duo.ba, "unread", 6, NULL));
	}
}

static void handles_are_stale(const struct scene *s)
{
	struct kvl_limits limits = { .size = sizeof(limits) };
	struct kvl_end end;
	struct kvl_notif *notif;

	assert_refused(kvl_agent_close(s->duo.a, SECOND), KVL_ERR_STALE);
	assert_refused(kvl_agent_limits(s->duo.a, &limits), KVL_ERR_STALE);
	assert_refused(kvl_xfer_post(s->duo.a, s->xfer[0], NULL), KVL_ERR_STALE);
	assert_int_equal(kvl_xfer_poll(s->duo.a, s->xfer[0]), KVL_ERR_STALE);
	assert_refused(kvl_list_destroy(s->duo.a, s->lists[0]), KVL_ERR_STALE);
	assert_refused(kvl_mem_deregister(s->duo.a, &s->local.mr, 1), KVL_ERR_STALE);
	assert_int_equal(kvl_poll_many(s->duo.a, &end, 1, 0), KVL_ERR_STALE);
	assert_int_equal(kvl_notif_next(s->duo.a, &notif), KVL_ERR_STALE);
	assert_int_equal(kvl_agent_wait(s->duo.a, 0), KVL_ERR_STALE);
	assert_int_equal(kvl_progress(s->duo.a), KVL_ERR_STALE);
	assert_int_equal(kvl_agent_fd(s->duo.a), KVL_ERR_STALE);
}

static void close_timed(kvl_agent_t agent)
{
	uint64_t start = kvl_now();

	assert_ok(kvl_agent_close(agent, 5 * SECOND));
	assert_true(kvl_now() - start < 2 * SECOND);
}

static void close_with_everything(uint32_t workers)
{
	static struct scene s;
	struct left before = left_now();

	for (size_t i = 0; i < testing_rounds(20); i++) {
		scene_open(&s, workers);
		close_timed(s.duo.a);
		handles_are_stale(&s);
		close_timed(s.duo.b);
		assert_refused(kvl_agent_close(s.duo.b, SECOND), KVL_ERR_STALE);
	}
	nothing_left(&before);
}

TEST(f39_with_everything_still_there)
{
	close_with_everything(1);
}

TEST(f39_with_everything_still_there_without_worker)
{
	close_with_everything(KVL_NO_WORKERS);
}

TEST(f39_fresh_agent)
{
	struct left before = left_now();
	kvl_agent_t agent;

	for (size_t i = 0; i < testing_rounds(50); i++) {
		assert_ok(kvl_agent_open("fresh", NULL, &agent));
		close_timed(agent);
	}
	nothing_left(&before);
}

/* --------------------------------------------------------------------------------------- threads inside */

enum inside {
	INSIDE_POLL,
	INSIDE_WAIT,
	INSIDE_XFER_WAIT,
	INSIDE_PROGRESS,
	INSIDE_KINDS
};

struct insider {
	kvl_agent_t agent;
	kvl_xfer_t xfer;
	enum inside where;
	pthread_barrier_t *barrier;
};

static int inside_call(const struct insider *me)
{
	struct kvl_end end[4];

	switch (me->where) {
	case INSIDE_POLL:
		return kvl_poll_many(me->agent, end, COUNT(end), PATIENCE);
	case INSIDE_WAIT:
		return kvl_agent_wait(me->agent, PATIENCE);
	case INSIDE_XFER_WAIT:
		return kvl_xfer_wait(me->agent, me->xfer, PATIENCE);
	default:
		return kvl_progress(me->agent);
	}
}

/* Calls until the agent is gone. The only answers then are "closed" and "stale". */
static void *insider_main(void *arg)
{
	const struct insider *me = arg;
	uint64_t limit = kvl_now() + PATIENCE;
	int code;

	pthread_barrier_wait(me->barrier);
	do {
		code = inside_call(me);
		must(kvl_now() < limit);
	} while (code >= 0);
	must(code == KVL_ERR_STALE || code == KVL_ERR_CLOSED);
	return NULL;
}

TEST(f39_with_threads_inside)
{
	static struct scene s;
	struct left before = left_now();

	for (size_t round = 0; round < testing_rounds(50); round++) {
		struct insider insider[INSIDE_KINDS];
		pthread_t thread[INSIDE_KINDS];
		pthread_barrier_t barrier;

		scene_open(&s, round % 2 ? 1 : KVL_NO_WORKERS);
		pthread_barrier_init(&barrier, NULL, INSIDE_KINDS + 1);
		for (int i = 0; i < INSIDE_KINDS; i++) {
			insider[i] =
				(struct insider){ s.duo.a, s.xfer[REQUESTS - 1], (enum inside)i, &barrier };
			assert_int_equal(pthread_create(&thread[i], NULL, insider_main, &insider[i]), 0);
		}
		pthread_barrier_wait(&barrier);
		close_timed(s.duo.a);
		for (int i = 0; i < INSIDE_KINDS; i++)
			pthread_join(thread[i], NULL);
		pthread_barrier_destroy(&barrier);
		close_timed(s.duo.b);
	}
	nothing_left(&before);
}

struct closer {
	kvl_agent_t agent;
	pthread_barrier_t *barrier;
	int code;
};

static void *closer_main(void *arg)
{
	struct closer *closer = arg;

	pthread_barrier_wait(closer->barrier);
	closer->code = kvl_agent_close(closer->agent, 5 * SECOND);
	return NULL;
}

static void close_together(struct closer closer[2])
{
	pthread_barrier_t barrier;
	pthread_t thread[2];

	pthread_barrier_init(&barrier, NULL, 2);
	for (int i = 0; i < 2; i++) {
		closer[i].barrier = &barrier;
		assert_int_equal(pthread_create(&thread[i], NULL, closer_main, &closer[i]), 0);
	}
	pthread_join(thread[0], NULL);
	pthread_join(thread[1], NULL);
	pthread_barrier_destroy(&barrier);
}

TEST(f39_both_ends_at_the_same_moment)
{
	static struct scene s;
	struct left before = left_now();

	for (size_t i = 0; i < testing_rounds(50); i++) {
		struct closer closer[2];

		scene_open(&s, i % 2 ? 1 : KVL_NO_WORKERS);
		closer[0].agent = s.duo.a;
		closer[1].agent = s.duo.b;
		close_together(closer);
		assert_int_equal(closer[0].code, 0);
		assert_int_equal(closer[1].code, 0);
	}
	nothing_left(&before);
}

TEST(f39_one_end_twice_at_the_same_moment)
{
	static struct scene s;
	struct left before = left_now();

	for (size_t i = 0; i < testing_rounds(50); i++) {
		struct closer closer[2];

		scene_open(&s, i % 2 ? 1 : KVL_NO_WORKERS);
		closer[0].agent = closer[1].agent = s.duo.a;
		close_together(closer);
		assert_int_equal(closer[0].code + closer[1].code, KVL_ERR_STALE);
		assert_true(closer[0].code == 0 || closer[1].code == 0);
		close_timed(s.duo.b);
	}
	nothing_left(&before);
}

/* ------------------------------------------------------------------------------------ exit without close */

static void leaver(int sock, void *arg)
{
	static struct scene s;

	scene_open(&s, 1);
	sock_put(sock, "open", 4);
	exit(*(int *)arg);
}

TEST(f39_exit_without_close)
{
	struct left before = left_now();

	for (int code = 0; code < 3; code++) {
		struct other other;
		char word[4];
		int status;

		other_start(&other, leaver, &code);
		sock_get(other.sock, word, 4, 4);
		status = other_end(&other);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), code);
	}
	nothing_left(&before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(f39_exit_without_close),
		cmocka_unit_test(f39_fresh_agent),
		cmocka_unit_test(f39_with_everything_still_there),
		cmocka_unit_test(f39_with_everything_still_there_without_worker),
		cmocka_unit_test(f39_with_threads_inside),
		cmocka_unit_test(f39_both_ends_at_the_same_moment),
		cmocka_unit_test(f39_one_end_twice_at_the_same_moment),
	};

	testing_begin(60);
	return testing_end(cmocka_run_group_tests_name(__FILE__, tests, first_agent, NULL));
}
