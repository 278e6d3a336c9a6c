/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a request: what each call answers in each state. */
#include "testing.h"

#include <string.h>

#define LEN (64 * KIB)

/* Nobody makes progress but the test, and nothing of LEN bytes ends inside its post: states can be held. */
struct fixture {
	struct duo duo;
	struct buffer local, remote;
	kvl_list_t local_list, remote_list;
};

static void fixture_open(struct fixture *f, uint32_t workers)
{
	struct kvl_desc local, remote;
	struct kvl_config config;

	kvl_config_init(&config);
	config.workers = workers;
	config.small_bytes = 4096;
	config.chunk_bytes = 4096;
	config.window = 2;
	duo_open(&f->duo, &config);
	buffer_open(&f->local, f->duo.a, BUFFER_ALLOC, LEN, 0);
	buffer_open(&f->remote, f->duo.b, BUFFER_ALLOC, LEN, 0);
	duo_connect(&f->duo);
	local = desc_of(f->local.data, LEN);
	remote = desc_of(f->remote.data, LEN);
	assert_ok(kvl_list_create(f->duo.a, KVL_LOCAL, &local, 1, &f->local_list));
	assert_ok(kvl_list_create(f->duo.a, f->duo.ab, &remote, 1, &f->remote_list));
}

static kvl_xfer_t prepare(struct fixture *f, const struct kvl_xfer_opts *opts)
{
	kvl_xfer_t xfer = 0;

	assert_ok(kvl_xfer_prepare(f->duo.a, KVL_WRITE, f->local_list, f->remote_list, opts, &xfer));
	assert_int_not_equal(xfer, 0);
	return xfer;
}

static void release_is_final(struct fixture *f, kvl_xfer_t xfer)
{
	assert_ok(kvl_xfer_release(f->duo.a, xfer));
	assert_refused(kvl_xfer_release(f->duo.a, xfer), KVL_ERR_STALE);
	assert_refused(kvl_xfer_post(f->duo.a, xfer, NULL), KVL_ERR_STALE);
	assert_int_equal(kvl_xfer_poll(f->duo.a, xfer), KVL_ERR_STALE);
	assert_int_equal(kvl_xfer_wait(f->duo.a, xfer, 0), KVL_ERR_STALE);
	assert_refused(kvl_xfer_cancel(f->duo.a, xfer), KVL_ERR_STALE);
}

TEST(requests_prepared)
{
	struct kvl_report report = { .size = sizeof(report) };
	struct fixture f;
	kvl_xfer_t xfer;

	fixture_open(&f, KVL_NO_WORKERS);
	xfer = prepare(&f, NULL);
	assert_int_equal(kvl_xfer_poll(f.duo.a, xfer), KVL_ERR_NOT_POSTED);
	assert_int_equal(kvl_xfer_wait(f.duo.a, xfer, 0), KVL_ERR_NOT_POSTED);
	assert_int_equal(kvl_xfer_wait(f.duo.a, xfer, PATIENCE), KVL_ERR_NOT_POSTED);
	assert_refused(kvl_xfer_cancel(f.duo.a, xfer), KVL_ERR_NOT_POSTED);
	assert_ok(kvl_xfer_report(f.duo.a, xfer, &report));
	assert_int_equal(report.status, KVL_ERR_NOT_POSTED);
	assert_int_equal(report.bytes, 0);
	assert_int_equal(report.total_bytes, LEN);
	assert_int_equal(report.post_ns, 0);
	release_is_final(&f, xfer);
	assert_int_equal(bytes_not(f.remote.data, LEN, 0), 0);
	duo_close(&f.duo);
}

TEST(requests_pending)
{
	struct fixture f;
	kvl_xfer_t xfer;

	fixture_open(&f, KVL_NO_WORKERS);
	xfer = prepare(&f, NULL);
	assert_ok(kvl_xfer_post(f.duo.a, xfer, NULL));
	for (int i = 0; i < 3; i++) {
		assert_int_equal(kvl_xfer_poll(f.duo.a, xfer), KVL_PENDING);
		assert_refused(kvl_xfer_release(f.duo.a, xfer), KVL_ERR_BUSY);
		assert_refused(kvl_xfer_post(f.duo.a, xfer, NULL), KVL_ERR_BUSY);
		assert_refused(kvl_xfer_stamp(f.duo.a, xfer, KVL_STAMP_END, 0), KVL_ERR_BUSY);
		assert_refused_at(kvl_mem_deregister(f.duo.a, &f.local.mr, 1), KVL_ERR_BUSY, 0);
	}
	/* After all the refusals the handle is as good as before. */
	assert_int_equal(duo_wait(&f.duo, xfer), 0);
	assert_int_equal(kvl_xfer_poll(f.duo.a, xfer), 0);
	assert_int_equal(kvl_xfer_wait(f.duo.a, xfer, 0), 0);
	release_is_final(&f, xfer);
	duo_close(&f.duo);
}

TEST(requests_cancel)
{
	struct kvl_report report = { .size = sizeof(report) };
	struct fixture f;
	kvl_xfer_t xfer;
	int code;

	fixture_open(&f, KVL_NO_WORKERS);
	xfer = prepare(&f, NULL);
	memset(f.local.data, 1, LEN);
	assert_ok(kvl_xfer_post(f.duo.a, xfer, NULL));
	assert_ok(kvl_xfer_cancel(f.duo.a, xfer));
	assert_true(kvl_xfer_cancel(f.duo.a, xfer) == 0); /* again is no error */
	code = duo_wait(&f.duo, xfer);
	assert_int_equal(code, KVL_ERR_CANCELED);
	assert_ok(kvl_xfer_report(f.duo.a, xfer, &report));
	assert_true(report.bytes < LEN);
	assert_int_equal(bytes_not(f.remote.data + report.bytes, LEN - report.bytes, 0), 0);
	/* Ended: a late cancel changes nothing, and the request can be posted again. */
	assert_ok(kvl_xfer_cancel(f.duo.a, xfer));
	assert_int_equal(kvl_xfer_poll(f.duo.a, xfer), KVL_ERR_CANCELED);
	assert_ok(kvl_xfer_post(f.duo.a, xfer, NULL));
	assert_int_equal(duo_wait(&f.duo, xfer), 0);
	assert_int_equal(bytes_not(f.remote.data, LEN, 1), 0);
	release_is_final(&f, xfer);
	duo_close(&f.duo);
}

/* A cancelled request in the middle of a lane: its neighbours end well and in order. */
TEST(requests_cancel_in_a_queue)
{
	struct kvl_xfer_opts opts = { .size = sizeof(opts), .lane = KVL_LANE(1) };
	struct fixture f;
	struct kvl_end end[3];
	kvl_xfer_t xfer[3];
	int64_t n = 0;

	fixture_open(&f, KVL_NO_WORKERS);
	for (size_t i = 0; i < 3; i++) {
		xfer[i] = prepare(&f, &opts);
		assert_ok(kvl_xfer_post(f.duo.a, xfer[i], NULL));
	}
	assert_ok(kvl_xfer_cancel(f.duo.a, xfer[1]));
	assert_int_equal(duo_wait(&f.duo, xfer[2]), 0);
	n = assert_ok(kvl_poll_many(f.duo.a, end, 3, 0));
	assert_int_equal(n, 3);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(end[i].xfer, xfer[i]);
	assert_int_equal(end[0].status, 0);
	assert_int_equal(end[1].status, KVL_ERR_CANCELED);
	assert_int_equal(end[2].status, 0);
	duo_close(&f.duo);
}

/* After the end of a cancelled READ its memory is the caller's: nothing is written there any more. */
TEST(requests_cancel_gives_the_memory_back)
{
	struct kvl_desc local, remote;
	struct fixture f;
	kvl_xfer_t xfer;

	fixture_open(&f, 1);
	memset(f.remote.data, 2, LEN);
	local = desc_of(f.local.data, LEN);
	remote = desc_of(f.remote.data, LEN);
	for (size_t i = 0; i < testing_rounds(500); i++) {
		int code;

		assert_ok(kvl_read(f.duo.a, f.duo.ab, &local, &remote, 1, NULL, &xfer));
		assert_ok(kvl_xfer_cancel(f.duo.a, xfer));
		code = duo_wait(&f.duo, xfer);
		memset(f.local.data, 9, LEN);
		assert_true(code == 0 || code == KVL_ERR_CANCELED);
		assert_ok(kvl_xfer_release(f.duo.a, xfer));
		assert_int_equal(bytes_not(f.local.data, LEN, 9), 0);
	}
	duo_close(&f.duo);
}

/* Driven by nobody, so that only the deadline can end it. */
static int poll_out(struct fixture *f, kvl_xfer_t xfer)
{
	uint64_t limit = kvl_now() + PATIENCE;
	int code;

	while ((code = kvl_xfer_poll(f->duo.a, xfer)) == KVL_PENDING)
		assert_true(kvl_now() < limit);
	return code;
}

TEST(requests_deadline_of_prepare_and_post)
{
	struct kvl_xfer_opts opts = { .size = sizeof(opts), .deadline_ns = MS };
	struct kvl_post longer = { .size = sizeof(longer), .deadline_ns = 10 * SECOND };
	struct kvl_post shorter = { .size = sizeof(shorter), .deadline_ns = 1 };
	struct fixture f;
	kvl_xfer_t xfer;

	fixture_open(&f, KVL_NO_WORKERS);
	xfer = prepare(&f, &opts);
	assert_ok(kvl_xfer_post(f.duo.a, xfer, NULL));
	assert_int_equal(poll_out(&f, xfer), KVL_ERR_TIMED_OUT);
	assert_ok(kvl_xfer_post(f.duo.a, xfer, &longer));
	assert_int_equal(duo_wait(&f.duo, xfer), 0);
	assert_ok(kvl_xfer_post(f.duo.a, xfer, &shorter));
	assert_int_equal(poll_out(&f, xfer), KVL_ERR_TIMED_OUT);
	assert_ok(kvl_xfer_post(f.duo.a, xfer, NULL)); /* 0: as prepared */
	assert_int_equal(poll_out(&f, xfer), KVL_ERR_TIMED_OUT);
	release_is_final(&f, xfer);
	duo_close(&f.duo);
}

TEST(requests_wait_times_out)
{
	struct fixture f;
	kvl_xfer_t xfer;
	uint64_t start;

	fixture_open(&f, 1);
	xfer = prepare(&f, NULL);
	start = kvl_now();
	/* No post: an event that never comes is the notification. */
	assert_int_equal(kvl_agent_wait(f.duo.a, 30 * MS), 0);
	assert_in_range(kvl_now() - start, 30 * MS, 5 * SECOND);
	assert_int_equal(kvl_xfer_poll(f.duo.a, xfer), KVL_ERR_NOT_POSTED);
	duo_close(&f.duo);
}

/* Posted thousands of times, each time with new bytes and a new notification. */
TEST(requests_posted_again_and_again)
{
	struct fixture f;
	kvl_xfer_t xfer;

	fixture_open(&f, 1);
	xfer = prepare(&f, NULL);
	for (uint64_t epoch = 0; epoch < testing_rounds(500); epoch++) {
		struct kvl_post post = { .size = sizeof(post),
					 .flags = KVL_POST_NOTIFY,
					 .notif = &epoch,
					 .notif_len = sizeof(epoch) };
		struct kvl_notif *notif;

		bytes_fill(f.local.data, LEN, 1, 0, epoch);
		assert_ok(kvl_xfer_post(f.duo.a, xfer, &post));
		notif = duo_notif(&f.duo, f.duo.b);
		assert_non_null(notif);
		/* The notification comes after the data, whether or not the sender knows of the end. */
		assert_int_equal(bytes_wrong(f.remote.data, LEN, 1, 0, epoch), 0);
		assert_memory_equal(notif->data, &epoch, sizeof(epoch));
		kvl_notif_free(notif);
		assert_int_equal(duo_wait(&f.duo, xfer), 0);
	}
	release_is_final(&f, xfer);
	duo_close(&f.duo);
}

/* With one slot every request is the next life of the last one: its handle is another, the old one stale. */
TEST(requests_lives_of_one_slot)
{
	struct kvl_config config;
	struct kvl_desc local, remote;
	struct fixture f;
	kvl_xfer_t xfer, old = 0;

	kvl_config_init(&config);
	config.max_requests = 1;
	duo_open(&f.duo, &config);
	buffer_open(&f.local, f.duo.a, BUFFER_ALLOC, LEN, 0);
	buffer_open(&f.remote, f.duo.b, BUFFER_ALLOC, LEN, 0);
	duo_connect(&f.duo);
	local = desc_of(f.local.data, LEN);
	remote = desc_of(f.remote.data, LEN);
	for (size_t i = 0; i < testing_rounds(300); i++) {
		assert_ok(kvl_write(f.duo.a, f.duo.ab, &local, &remote, 1, NULL, &xfer));
		assert_int_not_equal(xfer, old);
		if (old) {
			assert_int_equal(kvl_xfer_poll(f.duo.a, old), KVL_ERR_STALE);
			assert_refused(kvl_xfer_cancel(f.duo.a, old), KVL_ERR_STALE);
			assert_refused(kvl_xfer_release(f.duo.a, old), KVL_ERR_STALE);
		}
		assert_int_equal(duo_wait(&f.duo, xfer), 0);
		assert_ok(kvl_xfer_release(f.duo.a, xfer));
		old = xfer;
	}
	duo_close(&f.duo);
}

TEST(requests_bad_post)
{
	struct kvl_post post = { .size = sizeof(post), .flags = KVL_POST_NOTIFY, .notif_len = 1 };
	struct fixture f;
	kvl_xfer_t xfer;

	fixture_open(&f, KVL_NO_WORKERS);
	xfer = prepare(&f, NULL);
	assert_refused(kvl_xfer_post(f.duo.a, xfer, &post), KVL_ERR_INVALID);
	post = (struct kvl_post){ .size = sizeof(post), .flags = KVL_POST_NOTIFY | KVL_POST_NO_NOTIFY };
	assert_refused(kvl_xfer_post(f.duo.a, xfer, &post), KVL_ERR_INVALID);
	post = (struct kvl_post){ .size = sizeof(post), .flags = 0x40 };
	assert_refused(kvl_xfer_post(f.duo.a, xfer, &post), KVL_ERR_INVALID);
	post = (struct kvl_post){ .size = 0 };
	assert_refused(kvl_xfer_post(f.duo.a, xfer, &post), KVL_ERR_INVALID);
	assert_int_equal(kvl_xfer_poll(f.duo.a, xfer), KVL_ERR_NOT_POSTED);
	assert_ok(kvl_xfer_post(f.duo.a, xfer, NULL));
	assert_int_equal(duo_wait(&f.duo, xfer), 0);
	duo_close(&f.duo);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_prepared),
		cmocka_unit_test(requests_pending),
		cmocka_unit_test(requests_cancel),
		cmocka_unit_test(requests_cancel_in_a_queue),
		cmocka_unit_test(requests_cancel_gives_the_memory_back),
		cmocka_unit_test(requests_deadline_of_prepare_and_post),
		cmocka_unit_test(requests_wait_times_out),
		cmocka_unit_test(requests_posted_again_and_again),
		cmocka_unit_test(requests_lives_of_one_slot),
		cmocka_unit_test(requests_bad_post),
	};

	return TESTING_RUN(tests, 30);
}
