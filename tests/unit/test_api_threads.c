/* SPDX-License-Identifier: Apache-2.0 */
/* Any call from any thread: four at once on one agent, each end and each notification goes to one of them. */
#include "testing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 4
#define LEN     (16 * KIB)

struct crew {
	struct duo duo;
	struct buffer local, remote; /* LEN for each thread */
	size_t rounds;
	atomic_uint_least64_t posted, taken, notified;
	atomic_uchar *seen; /* by serial: how often its end or notification was taken */
};

struct member {
	struct crew *crew;
	size_t index;
};

static void crew_open(struct crew *c, size_t rounds)
{
	memset(c, 0, sizeof(*c));
	c->rounds = rounds;
	c->seen = calloc(THREADS * rounds + 1, sizeof(*c->seen));
	assert_non_null(c->seen);
	duo_open(&c->duo, NULL);
	buffer_open(&c->local, c->duo.a, BUFFER_ALLOC, THREADS * LEN, 0);
	buffer_open(&c->remote, c->duo.b, BUFFER_ALLOC, THREADS * LEN, 0);
	duo_connect(&c->duo);
}

static void crew_close(struct crew *c)
{
	for (size_t i = 1; i <= atomic_load(&c->posted); i++)
		assert_int_equal(atomic_load(&c->seen[i]), 1);
	duo_close(&c->duo);
	free(c->seen);
}

static void crew_run(struct crew *c, void *(*body)(void *))
{
	struct member member[THREADS];
	pthread_t thread[THREADS];

	for (size_t i = 0; i < THREADS; i++) {
		member[i] = (struct member){ c, i };
		assert_int_equal(pthread_create(&thread[i], NULL, body, &member[i]), 0);
	}
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
}

/* Each thread its own requests, on lanes that all share. */
static void *wait_main(void *arg)
{
	struct member *m = arg;
	struct crew *c = m->crew;
	struct kvl_desc from = desc_of(c->local.data + m->index * LEN, LEN);
	struct kvl_desc to = desc_of(c->remote.data + m->index * LEN, LEN);

	for (size_t i = 0; i < c->rounds; i++) {
		struct kvl_xfer_opts opts = { .size = sizeof(opts), .lane = KVL_LANE(i % 4) };
		kvl_xfer_t xfer;

		bytes_fill(c->local.data + m->index * LEN, LEN, m->index, 0, i);
		must_ok(kvl_write(c->duo.a, c->duo.ab, &from, &to, 1, &opts, &xfer));
		must(kvl_xfer_wait(c->duo.a, xfer, PATIENCE) == 0);
		must(bytes_wrong(c->remote.data + m->index * LEN, LEN, m->index, 0, i) == 0);
		must_ok(kvl_xfer_release(c->duo.a, xfer));
	}
	return NULL;
}

TEST(threads_wait_each_for_its_own)
{
	struct crew c;

	crew_open(&c, testing_rounds(1000));
	crew_run(&c, wait_main);
	crew_close(&c);
}

/* 0 when the lane is full just now. */
static int crew_post(struct crew *c, uint32_t lane, uint64_t serial)
{
	struct kvl_xfer_opts opts = { .size = sizeof(opts),
				      .lane = KVL_LANE(lane),
				      .user = (void *)(uintptr_t)serial };
	struct kvl_desc from = desc_of(c->local.data, 64), to = desc_of(c->remote.data + lane * 64, 64);
	kvl_xfer_t xfer;
	int code = kvl_write(c->duo.a, c->duo.ab, &from, &to, 1, &opts, &xfer);

	if (code == KVL_ERR_AGAIN)
		return 0;
	must_ok(code);
	atomic_fetch_add(&c->posted, 1);
	return 1;
}

/* Posts and takes; an end may be anybody's. */
static void *poll_main(void *arg)
{
	struct member *m = arg;
	struct crew *c = m->crew;
	uint64_t limit = kvl_now() + 2 * PATIENCE;
	size_t i = 0;

	while (atomic_load(&c->taken) < THREADS * c->rounds) {
		struct kvl_end end[5];
		int64_t n;

		must(kvl_now() < limit);
		for (int burst = 0; burst < 3 && i < c->rounds; burst++)
			i += (size_t)crew_post(c, (uint32_t)(i % 4), m->index * c->rounds + i + 1);
		n = must_ok(kvl_poll_many(c->duo.a, end, COUNT(end), MS));
		for (int64_t k = 0; k < n; k++) {
			must(end[k].status == 0);
			must(atomic_fetch_add(&c->seen[(uintptr_t)end[k].user], 1) == 0);
			must_ok(kvl_xfer_release(c->duo.a, end[k].xfer));
		}
		atomic_fetch_add(&c->taken, (uint64_t)n);
	}
	return NULL;
}

TEST(threads_take_each_end_once)
{
	struct crew c;

	crew_open(&c, testing_rounds(2000));
	crew_run(&c, poll_main);
	assert_int_equal(atomic_load(&c.taken), THREADS * c.rounds);
	crew_close(&c);
}

/* Two send, two take. */
static void *notif_main(void *arg)
{
	struct member *m = arg;
	struct crew *c = m->crew;
	uint64_t total = 2 * c->rounds, limit = kvl_now() + 2 * PATIENCE;

	for (size_t i = 0; m->index < 2 && i < c->rounds; i++) {
		uint64_t serial = atomic_fetch_add(&c->posted, 1) + 1;
		struct kvl_xfer_opts opts = { .size = sizeof(opts), .lane = KVL_LANE(i % 4) };
		int code;

		while ((code = kvl_notify(c->duo.a, c->duo.ab, &serial, sizeof(serial), &opts)) ==
		       KVL_ERR_AGAIN)
			must(kvl_now() < limit);
		must_ok(code);
	}
	while (m->index >= 2 && atomic_load(&c->notified) < total) {
		struct kvl_notif *notif;
		uint64_t serial;

		must(kvl_now() < limit);
		if (kvl_notif_next(c->duo.b, &notif) == KVL_ERR_AGAIN) {
			ignored(kvl_agent_wait(c->duo.b, MS));
			continue;
		}
		must(notif->len == sizeof(serial));
		memcpy(&serial, notif->data, sizeof(serial));
		must(serial >= 1 && serial <= total);
		must(atomic_fetch_add(&c->seen[serial], 1) == 0);
		kvl_notif_free(notif);
		atomic_fetch_add(&c->notified, 1);
	}
	return NULL;
}

TEST(threads_take_each_notification_once)
{
	struct crew c;

	crew_open(&c, testing_rounds(5000));
	crew_run(&c, notif_main);
	assert_int_equal(atomic_load(&c.notified), 2 * c.rounds);
	crew_close(&c);
}

/* All kinds of calls at once, on objects of their own. */
static void *mixed_main(void *arg)
{
	struct member *m = arg;
	struct crew *c = m->crew;
	unsigned char *memory = c->local.data + m->index * LEN;
	struct kvl_desc to = desc_of(c->remote.data + m->index * LEN, 256);

	for (size_t i = 0; i < c->rounds; i++) {
		unsigned char own[256];
		struct kvl_mem mem = memory_of(own, sizeof(own), 0);
		struct kvl_desc from = desc_of(own, sizeof(own)), other = desc_of(memory, sizeof(own));
		struct kvl_limits limits = { .size = sizeof(limits) };
		struct kvl_error_detail detail;
		kvl_list_t local, remote, bad = 0;
		kvl_xfer_t xfer;
		kvl_mr_t mr;

		bytes_fill(own, sizeof(own), m->index, 0, i);
		must_ok(kvl_mem_register(c->duo.a, &mem, 1, &mr));
		must_ok(kvl_list_create(c->duo.a, KVL_LOCAL, &from, 1, &local));
		must_ok(kvl_list_create(c->duo.a, c->duo.ab, &to, 1, &remote));
		must_ok(kvl_xfer_prepare(c->duo.a, KVL_WRITE, local, remote, NULL, &xfer));
		must_ok(kvl_list_destroy(c->duo.a, local));
		must_ok(kvl_xfer_post(c->duo.a, xfer, NULL));
		must_ok(kvl_agent_limits(c->duo.a, &limits));
		from.len++;
		must(kvl_list_create(c->duo.a, KVL_LOCAL, &from, 1, &bad) == KVL_ERR_RANGE);
		must(kvl_xfer_wait(c->duo.a, xfer, PATIENCE) == 0);
		must(bytes_wrong((void *)(uintptr_t)to.addr, to.len, m->index, 0, i) == 0);
		kvl_error_detail(&detail);
		must(detail.code == KVL_ERR_RANGE && detail.entry == 0);
		must_ok(kvl_xfer_release(c->duo.a, xfer));
		must_ok(kvl_mem_deregister(c->duo.a, &mr, 1));
		must_ok(kvl_read(c->duo.a, c->duo.ab, &other, &to, 1, NULL, &xfer));
		must(kvl_xfer_wait(c->duo.a, xfer, PATIENCE) == 0);
		must(memcmp(memory, (void *)(uintptr_t)to.addr, to.len) == 0);
		must_ok(kvl_xfer_release(c->duo.a, xfer));
		must_ok(kvl_list_destroy(c->duo.a, remote));
	}
	return NULL;
}

TEST(threads_all_kinds_of_calls)
{
	struct crew c;

	crew_open(&c, testing_rounds(500));
	crew_run(&c, mixed_main);
	crew_close(&c);
}

/* Cancel, poll and release of one request race: each answer is one of the legal ones, and one release wins.
 */
struct contest {
	struct crew *crew;
	kvl_xfer_t xfer;
	pthread_barrier_t *barrier;
	atomic_int released;
};

static void *contest_main(void *arg)
{
	struct contest *t = arg;
	uint64_t limit = kvl_now() + PATIENCE;
	int code;

	pthread_barrier_wait(t->barrier);
	code = kvl_xfer_cancel(t->crew->duo.a, t->xfer);
	must(code == 0 || code == KVL_ERR_STALE);
	for (;;) {
		code = kvl_xfer_poll(t->crew->duo.a, t->xfer);
		must(code == 0 || code == KVL_PENDING || code == KVL_ERR_CANCELED || code == KVL_ERR_STALE);
		code = kvl_xfer_release(t->crew->duo.a, t->xfer);
		must(code == 0 || code == KVL_ERR_BUSY || code == KVL_ERR_STALE);
		if (code != KVL_ERR_BUSY)
			break;
		must(kvl_now() < limit);
	}
	atomic_fetch_add(&t->released, code == 0);
	return NULL;
}

TEST(threads_race_for_one_request)
{
	struct crew c;
	struct kvl_desc from, to;

	crew_open(&c, 0);
	from = desc_of(c.local.data, c.local.len);
	to = desc_of(c.remote.data, c.remote.len);
	for (size_t i = 0; i < testing_rounds(300); i++) {
		pthread_t thread[THREADS];
		pthread_barrier_t barrier;
		struct contest contest = { .crew = &c, .barrier = &barrier };

		pthread_barrier_init(&barrier, NULL, THREADS);
		assert_ok(kvl_write(c.duo.a, c.duo.ab, &from, &to, 1, NULL, &contest.xfer));
		for (size_t k = 0; k < THREADS; k++)
			assert_int_equal(pthread_create(&thread[k], NULL, contest_main, &contest), 0);
		for (size_t k = 0; k < THREADS; k++)
			pthread_join(thread[k], NULL);
		pthread_barrier_destroy(&barrier);
		assert_int_equal(atomic_load(&contest.released), 1);
	}
	crew_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_wait_each_for_its_own),
		cmocka_unit_test(threads_take_each_end_once),
		cmocka_unit_test(threads_take_each_notification_once),
		cmocka_unit_test(threads_all_kinds_of_calls),
		cmocka_unit_test(threads_race_for_one_request),
	};

	return TESTING_RUN(tests, 60);
}
