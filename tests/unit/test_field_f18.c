/* SPDX-License-Identifier: Apache-2.0 */
/* F18: a request of far more pieces than the queue is deep is posted without waiting, and all of it arrives.
 */
#include "testing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIECE 8192u

struct shape {
	size_t pieces;
	uint64_t stride;
	uint32_t queue_depth;
	uint32_t workers;
	enum buffer_kind kind;
};

struct scattered {
	struct duo duo;
	struct buffer local, remote;
	struct kvl_run from, to;
};

static void scattered_open(struct scattered *s, const struct shape *shape)
{
	struct kvl_config config;

	kvl_config_init(&config);
	config.queue_depth = shape->queue_depth;
	config.workers = shape->workers;
	config.window = 1;
	duo_open(&s->duo, &config);
	buffer_open(&s->local, s->duo.a, shape->kind, shape->pieces * shape->stride, 0);
	buffer_open(&s->remote, s->duo.b, shape->kind, shape->pieces * shape->stride, 0);
	duo_connect(&s->duo);
	s->from = (struct kvl_run){ buffer_addr(&s->local), PIECE, shape->stride, shape->pieces, 0, 0 };
	s->to = (struct kvl_run){ buffer_addr(&s->remote), PIECE, shape->stride, shape->pieces, 0, 0 };
	for (size_t i = 0; i < shape->pieces; i++)
		bytes_fill(s->local.data + i * shape->stride, PIECE, 8, i * PIECE, 1);
}

static kvl_xfer_t scattered_prepare(struct scattered *s)
{
	kvl_list_t local, remote;
	kvl_xfer_t xfer;

	assert_ok(kvl_list_create_runs(s->duo.a, KVL_LOCAL, &s->from, 1, &local));
	assert_ok(kvl_list_create_runs(s->duo.a, s->duo.ab, &s->to, 1, &remote));
	assert_ok(kvl_xfer_prepare(s->duo.a, KVL_WRITE, local, remote, NULL, &xfer));
	return xfer;
}

static void scattered_check(const struct scattered *s, kvl_xfer_t xfer)
{
	struct kvl_report report = { .size = sizeof(report) };

	for (size_t i = 0; i < s->to.count; i++) {
		const unsigned char *piece = s->remote.data + i * s->to.stride;

		assert_int_equal(bytes_wrong(piece, PIECE, 8, i * PIECE, 1), 0);
		if (s->to.stride >= PIECE + 64) /* canaries: memory that was never written is zero */
			assert_int_equal(bytes_not(piece + PIECE, 64, 0), 0);
	}
	assert_ok(kvl_xfer_report(s->duo.a, xfer, &report));
	assert_int_equal(report.bytes, s->to.count * PIECE);
	assert_int_equal(report.descriptors, s->to.count);
}

struct poller {
	kvl_agent_t agent;
	kvl_xfer_t xfer;
	atomic_int stop;
};

static void *poller_main(void *arg)
{
	struct poller *poller = arg;

	while (!atomic_load(&poller->stop)) {
		must(kvl_xfer_poll(poller->agent, poller->xfer) != KVL_ERR_STALE);
		ignored(kvl_progress(poller->agent));
	}
	return NULL;
}

/* The time that matters is the post's: it may not wait for a queue to drain. */
static void post_all(const struct shape *shape)
{
	struct scattered s;
	struct poller poller;
	pthread_t thread;
	uint64_t start;

	scattered_open(&s, shape);
	poller = (struct poller){ .agent = s.duo.a, .xfer = scattered_prepare(&s) };
	assert_int_equal(pthread_create(&thread, NULL, poller_main, &poller), 0);
	start = kvl_now();
	assert_ok(kvl_xfer_post(s.duo.a, poller.xfer, NULL));
	print_message("post of %zu pieces: %llu us\n", shape->pieces,
		      (unsigned long long)(kvl_now() - start) / 1000);
	assert_int_equal(duo_wait(&s.duo, poller.xfer), 0);
	atomic_store(&poller.stop, 1);
	pthread_join(thread, NULL);
	scattered_check(&s, poller.xfer);
	assert_ok(kvl_xfer_release(s.duo.a, poller.xfer));
	duo_close(&s.duo);
	buffer_free(&s.local);
	buffer_free(&s.remote);
}

TEST(f18_96_pieces_far_apart_with_worker)
{
	post_all(&(struct shape){ 96, 6 * MIB, 16, 1, BUFFER_ALLOC });
}

TEST(f18_96_pieces_far_apart_without_worker)
{
	post_all(&(struct shape){ 96, 6 * MIB, 16, KVL_NO_WORKERS, BUFFER_ALLOC });
}

TEST(f18_10000_pieces_with_worker)
{
	post_all(&(struct shape){ testing_rounds(10000), PIECE + 64, 4, 1, BUFFER_ALLOC });
}

TEST(f18_10000_pieces_without_worker)
{
	post_all(&(struct shape){ testing_rounds(10000), PIECE + 64, 4, KVL_NO_WORKERS, BUFFER_ALLOC });
}

TEST(f18_10000_pieces_of_plain_memory)
{
	post_all(&(struct shape){ testing_rounds(10000), PIECE + 64, 4, 1, BUFFER_PLAIN });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(f18_96_pieces_far_apart_with_worker),
		cmocka_unit_test(f18_96_pieces_far_apart_without_worker),
		cmocka_unit_test(f18_10000_pieces_with_worker),
		cmocka_unit_test(f18_10000_pieces_without_worker),
		cmocka_unit_test(f18_10000_pieces_of_plain_memory),
	};

	return TESTING_RUN(tests, 40);
}
