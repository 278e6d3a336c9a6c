/* SPDX-License-Identifier: Apache-2.0 */
/* F19: with a full queue a post is refused with "try again" or completes exactly once; nothing is lost. */
#include "testing.h"

#include <string.h>

#define DEPTH    8u
#define REQUESTS 40u /* more than the queues of all lanes hold, so that a burst can fill one */

struct burst {
	struct duo duo;
	struct buffer local, remote;
	kvl_xfer_t xfer[REQUESTS];
	uint64_t serial[REQUESTS]; /* of the latest post */
	uint64_t len;
	size_t tried, posted, refused, ended;
	uint64_t notified; /* the serial that must come next */
};

static void burst_open(struct burst *b, uint32_t workers, uint64_t len)
{
	struct kvl_config config;

	memset(b, 0, sizeof(*b));
	kvl_config_init(&config);
	config.queue_depth = DEPTH;
	config.workers = workers;
	config.chunk_bytes = 4096;
	config.small_bytes = 4096;
	duo_open(&b->duo, &config);
	b->len = len;
	buffer_open(&b->local, b->duo.a, BUFFER_ALLOC, REQUESTS * len, 0);
	buffer_open(&b->remote, b->duo.b, BUFFER_ALLOC, REQUESTS * len, 0);
	duo_connect(&b->duo);
}

static void burst_prepare(struct burst *b)
{
	for (size_t i = 0; i < REQUESTS; i++) {
		struct kvl_desc local = desc_of(b->local.data + i * b->len, b->len);
		struct kvl_desc remote = desc_of(b->remote.data + i * b->len, b->len);
		struct kvl_xfer_opts opts = { .size = sizeof(opts),
					      .lane = KVL_LANE(1),
					      .user = &b->serial[i] };
		kvl_list_t lists[2];

		assert_ok(kvl_list_create(b->duo.a, KVL_LOCAL, &local, 1, &lists[0]));
		assert_ok(kvl_list_create(b->duo.a, b->duo.ab, &remote, 1, &lists[1]));
		assert_ok(kvl_xfer_prepare(b->duo.a, KVL_WRITE, lists[0], lists[1], &opts, &b->xfer[i]));
	}
}

/* Posts every request that is not pending; a refused one stays as it was. */
static void burst_post(struct burst *b, size_t target)
{
	for (size_t i = 0; i < REQUESTS && b->posted < target; i++) {
		uint64_t serial = b->posted + 1;
		struct kvl_post post = { .size = sizeof(post),
					 .flags = KVL_POST_NOTIFY,
					 .notif = &serial,
					 .notif_len = sizeof(serial) };
		int code;

		if (b->serial[i])
			continue;
		bytes_fill(b->local.data + i * b->len, b->len, i, 0, serial);
		code = kvl_xfer_post(b->duo.a, b->xfer[i], &post);
		b->tried++;
		if (code == KVL_ERR_AGAIN) {
			b->refused++;
			continue;
		}
		assert_ok(code);
		b->serial[i] = serial;
		b->posted++;
	}
}

static void burst_take_ends(struct burst *b)
{
	struct kvl_end end[16];
	int64_t n = assert_ok(kvl_poll_many(b->duo.a, end, COUNT(end), 0));

	for (int64_t k = 0; k < n; k++) {
		uint64_t *serial = end[k].user;
		size_t i = (size_t)(serial - b->serial);

		assert_true(i < REQUESTS);
		assert_int_equal(end[k].xfer, b->xfer[i]);
		assert_int_equal(end[k].status, 0);
		/* One lane: ends come in the order of the posts, and each only once. */
		assert_int_equal(*serial, b->ended + 1);
		assert_int_equal(bytes_wrong(b->remote.data + i * b->len, b->len, i, 0, *serial), 0);
		*serial = 0;
		b->ended++;
	}
}

static void burst_take_notifs(struct burst *b)
{
	struct kvl_notif *notif;

	while (kvl_notif_next(b->duo.b, &notif) == 0) {
		uint64_t serial;

		assert_int_equal(notif->len, sizeof(serial));
		memcpy(&serial, notif->data, sizeof(serial));
		assert_int_equal(serial, ++b->notified);
		kvl_notif_free(notif);
	}
}

static void burst_run(struct burst *b, size_t target)
{
	uint64_t deadline = kvl_now() + PATIENCE;

	burst_prepare(b);
	while (b->ended < target || b->notified < target) {
		assert_true(kvl_now() < deadline);
		burst_post(b, target);
		duo_drive(&b->duo);
		burst_take_ends(b);
		burst_take_notifs(b);
	}
	print_message("%zu posts: %zu taken, %zu refused, %zu ended\n", b->tried, b->posted, b->refused,
		      b->ended);
	assert_int_equal(b->posted, target);
	assert_int_equal(b->ended + b->refused, b->tried);
	duo_quiet(&b->duo, b->duo.b);
	duo_close(&b->duo);
}

TEST(f19_small_requests_with_worker)
{
	struct burst b;

	burst_open(&b, 1, 64);
	burst_run(&b, testing_rounds(10000));
}

TEST(f19_small_requests_without_worker)
{
	struct burst b;

	burst_open(&b, KVL_NO_WORKERS, 64);
	burst_run(&b, testing_rounds(10000));
}

/* Long ones can not end inside the post: the first burst takes the depth and refuses the rest. */
TEST(f19_full_queue_refuses_and_loses_nothing)
{
	struct burst b;
	uint64_t deadline;

	burst_open(&b, KVL_NO_WORKERS, 64 * KIB);
	burst_prepare(&b);
	burst_post(&b, REQUESTS);
	assert_int_equal(b.posted, DEPTH);
	assert_int_equal(b.refused, REQUESTS - DEPTH);
	for (deadline = kvl_now() + PATIENCE; b.ended < DEPTH || b.notified < DEPTH;) {
		assert_true(kvl_now() < deadline);
		duo_drive(&b.duo);
		burst_take_ends(&b);
		burst_take_notifs(&b);
	}
	assert_true(duo_quiet(&b.duo, b.duo.b));
	assert_int_equal(b.ended, DEPTH);
	duo_close(&b.duo);
}

TEST(f19_long_requests_with_worker)
{
	struct burst b;

	burst_open(&b, 1, 64 * KIB);
	burst_run(&b, testing_rounds(2000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(f19_small_requests_with_worker),
		cmocka_unit_test(f19_small_requests_without_worker),
		cmocka_unit_test(f19_full_queue_refuses_and_loses_nothing),
		cmocka_unit_test(f19_long_requests_with_worker),
	};

	return TESTING_RUN(tests, 60);
}
