/* SPDX-License-Identifier: Apache-2.0 */
/* Calls about an object while another thread ends its life: the answers are about it, or "stale"; never a crash. */
#include "testing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define BYSTANDERS 3
#define LEN        (16 * KIB)

struct scene {
	struct duo duo;
	struct buffer local, remote;
	atomic_ulong handle; /* that the bystanders ask about */
	atomic_int stop;
	pthread_t thread[BYSTANDERS];
};

static void scene_open(struct scene *s, void *(*bystander)(void *))
{
	memset(s, 0, sizeof(*s));
	duo_open(&s->duo, NULL);
	buffer_open(&s->local, s->duo.a, BUFFER_ALLOC, LEN, 0);
	buffer_open(&s->remote, s->duo.b, BUFFER_ALLOC, LEN, 0);
	duo_connect(&s->duo);
	atomic_store(&s->handle, s->duo.ab);
	for (int i = 0; i < BYSTANDERS; i++)
		must(pthread_create(&s->thread[i], NULL, bystander, s) == 0);
}

static void scene_close(struct scene *s)
{
	atomic_store(&s->stop, 1);
	for (int i = 0; i < BYSTANDERS; i++)
		pthread_join(s->thread[i], NULL);
	duo_close(&s->duo);
}

/* A request that is prepared, pending, ended or gone. Its handle is that of a peer before the first one. */
static void about_request(int code)
{
	must(code == 0 || code == KVL_PENDING || code == KVL_ERR_STALE || code == KVL_ERR_INVALID ||
	     code == KVL_ERR_NOT_POSTED || code == KVL_ERR_BUSY || code == KVL_ERR_CANCELED);
}

static void *request_bystander(void *arg)
{
	struct scene *s = arg;

	while (!atomic_load(&s->stop)) {
		struct kvl_report report = { .size = sizeof(report) };
		kvl_xfer_t xfer = atomic_load(&s->handle);

		/* Most often the one that looks at everything the request has. */
		for (int i = 0; i < 16; i++)
			about_request(kvl_xfer_report(s->duo.a, atomic_load(&s->handle), &report));
		about_request(kvl_xfer_poll(s->duo.a, xfer));
		about_request(kvl_xfer_stamp(s->duo.a, xfer, KVL_STAMP_START, 1));
		about_request(kvl_xfer_stamp(s->duo.a, xfer, KVL_STAMP_END, 1));
		about_request(kvl_xfer_wait(s->duo.a, xfer, 0));
	}
	return NULL;
}

/* What the owner does with a request is not disturbed by those who look at it. */
static void request_life(struct scene *s, uint64_t len)
{
	struct kvl_desc local = desc_of(s->local.data, len), remote = desc_of(s->remote.data, len);
	kvl_list_t lists[2];
	kvl_xfer_t xfer;

	assert_ok(kvl_list_create(s->duo.a, KVL_LOCAL, &local, len ? 1 : 0, &lists[0]));
	assert_ok(kvl_list_create(s->duo.a, s->duo.ab, &remote, len ? 1 : 0, &lists[1]));
	assert_ok(kvl_xfer_prepare(s->duo.a, KVL_WRITE, lists[0], lists[1], NULL, &xfer));
	atomic_store(&s->handle, xfer);
	for (int i = 0; i < 2; i++) {
		assert_ok(kvl_xfer_post(s->duo.a, xfer, NULL));
		assert_int_equal(kvl_xfer_wait(s->duo.a, xfer, PATIENCE), 0);
	}
	assert_ok(kvl_xfer_release(s->duo.a, xfer));
	assert_ok(kvl_list_destroy(s->duo.a, lists[0]));
	assert_ok(kvl_list_destroy(s->duo.a, lists[1]));
}

TEST(bystanders_of_a_request_that_is_released)
{
	struct scene s;

	scene_open(&s, request_bystander);
	for (size_t i = 0; i < testing_rounds(50000); i++)
		request_life(&s, i % 2 ? LEN : 0);
	scene_close(&s);
}

static void *peer_bystander(void *arg)
{
	struct scene *s = arg;

	while (!atomic_load(&s->stop)) {
		struct kvl_peer_info info = { .size = sizeof(info) };
		kvl_peer_t peer = atomic_load(&s->handle);
		struct kvl_desc desc = desc_of(s->remote.data, LEN);
		kvl_list_t list;
		void *addr;
		int code;

		code = kvl_peer_info(s->duo.a, peer, &info);
		must(code == 0 || code == KVL_ERR_STALE);
		code = kvl_peer_map(s->duo.a, peer, desc.addr, LEN, &addr);
		must(code == 0 || code == KVL_ERR_STALE || code == KVL_ERR_RANGE ||
		     code == KVL_ERR_PEER_LOST);
		code = kvl_list_create(s->duo.a, peer, &desc, 1, &list);
		must(code == 0 || code == KVL_ERR_STALE || code == KVL_ERR_RANGE ||
		     code == KVL_ERR_PEER_LOST);
		if (code == 0)
			must_ok(kvl_list_destroy(s->duo.a, list));
	}
	return NULL;
}

TEST(bystanders_of_a_peer_that_is_updated)
{
	struct scene s;

	scene_open(&s, peer_bystander);
	for (size_t i = 0; i < testing_rounds(300); i++) {
		struct buffer extra;

		buffer_open(&extra, s.duo.b, BUFFER_ALLOC, LEN, 0);
		connect_update(s.duo.a, s.duo.ab, s.duo.b);
		buffer_close(&extra);
		connect_update(s.duo.a, s.duo.ab, s.duo.b);
	}
	scene_close(&s);
}

TEST(bystanders_of_a_peer_that_is_closed)
{
	struct scene s;

	scene_open(&s, peer_bystander);
	for (size_t i = 0; i < testing_rounds(300); i++) {
		assert_ok(kvl_peer_close(s.duo.a, s.duo.ab));
		s.duo.ab = connect_to(s.duo.a, s.duo.b);
		atomic_store(&s.handle, s.duo.ab);
	}
	scene_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bystanders_of_a_request_that_is_released),
		cmocka_unit_test(bystanders_of_a_peer_that_is_updated),
		cmocka_unit_test(bystanders_of_a_peer_that_is_closed),
	};

	return TESTING_RUN(tests, 40);
}
