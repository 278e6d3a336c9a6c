/* SPDX-License-Identifier: Apache-2.0 */
/* The report of a request: what was asked, what was done, by which way, and when. */
#include "testing.h"

#include <string.h>

#define LEN (64 * KIB)

struct fixture {
	struct duo duo;
	struct buffer local, remote;
	struct kvl_desc from[4], to[4];
};

static void fixture_open(struct fixture *f, uint32_t workers)
{
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
	for (size_t i = 0; i < 4; i++) {
		f->from[i] = desc_of(f->local.data + i * 12 * KIB, 10 * KIB);
		f->to[i] = desc_of(f->remote.data + i * 12 * KIB, 10 * KIB);
	}
}

static kvl_xfer_t post(struct fixture *f)
{
	struct kvl_xfer_opts opts = { .size = sizeof(opts), .lane = KVL_LANE(3) };
	kvl_xfer_t xfer;

	assert_ok(kvl_write(f->duo.a, f->duo.ab, f->from, f->to, 4, &opts, &xfer));
	return xfer;
}

static struct kvl_report report_of(struct fixture *f, kvl_xfer_t xfer)
{
	struct kvl_report report = { .size = sizeof(report) };

	assert_ok(kvl_xfer_report(f->duo.a, xfer, &report));
	assert_int_equal(report.size, sizeof(report));
	return report;
}

TEST(report_of_a_finished_request)
{
	struct kvl_report report;
	struct fixture f;
	kvl_xfer_t xfer;
	uint64_t before = kvl_now(), after;

	fixture_open(&f, 1);
	xfer = post(&f);
	assert_int_equal(duo_wait(&f.duo, xfer), 0);
	after = kvl_now();
	report = report_of(&f, xfer);
	assert_int_equal(report.status, 0);
	assert_int_equal(report.provider, 0);
	assert_int_equal(report.bytes, 40 * KIB);
	assert_int_equal(report.total_bytes, 40 * KIB);
	assert_int_equal(report.descriptors, 4);
	assert_int_equal(report.pieces, 4);
	assert_int_equal(report.chunks,
			 10); /* a chunk may hold the end of one piece and the start of the next */
	assert_int_equal(report.failed_entry, KVL_NO_ENTRY);
	assert_int_equal(report.lane, 3);
	assert_string_equal(report.path, "map");
	assert_true(report.reason[0] != 0);
	assert_true(before <= report.start_ns && report.start_ns == report.post_ns);
	assert_true(report.post_ns <= report.issue_ns && report.issue_ns <= report.wire_ns);
	assert_true(report.wire_ns <= report.end_ns && report.end_ns <= after);
	duo_close(&f.duo);
}

TEST(report_of_a_pending_request)
{
	struct kvl_report report;
	struct fixture f;
	kvl_xfer_t xfer;
	uint64_t bytes = 0;

	fixture_open(&f, KVL_NO_WORKERS);
	xfer = post(&f);
	report = report_of(&f, xfer);
	assert_int_equal(report.status, KVL_PENDING);
	assert_int_equal(report.total_bytes, 40 * KIB);
	assert_true(report.post_ns != 0);
	assert_int_equal(report.end_ns, 0);
	/* Progress shows, and never goes back. */
	while (kvl_xfer_poll(f.duo.a, xfer) == KVL_PENDING) {
		duo_drive(&f.duo);
		report = report_of(&f, xfer);
		assert_true(report.bytes >= bytes && report.bytes <= 40 * KIB);
		bytes = report.bytes;
	}
	assert_int_equal(report_of(&f, xfer).bytes, 40 * KIB);
	duo_close(&f.duo);
}

/* Tickets count the places of a lane; the report is of the latest post. */
TEST(report_is_of_the_latest_post)
{
	struct kvl_report first, again;
	struct fixture f;
	kvl_xfer_t xfer;

	fixture_open(&f, 1);
	xfer = post(&f);
	assert_int_equal(duo_wait(&f.duo, xfer), 0);
	first = report_of(&f, xfer);
	assert_ok(kvl_xfer_stamp(f.duo.a, xfer, KVL_STAMP_START, 1));
	assert_ok(kvl_xfer_stamp(f.duo.a, xfer, KVL_STAMP_END, 2));
	assert_ok(kvl_xfer_post(f.duo.a, xfer, NULL));
	assert_int_equal(duo_wait(&f.duo, xfer), 0);
	again = report_of(&f, xfer);
	assert_int_equal(again.ticket, first.ticket + 1);
	assert_int_equal(again.bytes, first.bytes);
	assert_int_equal(again.chunks, first.chunks);
	assert_true(again.post_ns >= first.end_ns);
	assert_int_equal(again.start_ns, again.post_ns);
	assert_true(again.end_ns >= again.post_ns);
	duo_close(&f.duo);
}

TEST(report_stamps)
{
	struct kvl_report report;
	struct fixture f;
	kvl_xfer_t xfer;
	uint64_t now;

	fixture_open(&f, 1);
	xfer = post(&f);
	assert_int_equal(duo_wait(&f.duo, xfer), 0);
	assert_ok(kvl_xfer_stamp(f.duo.a, xfer, KVL_STAMP_START, 12345));
	assert_ok(kvl_xfer_stamp(f.duo.a, xfer, KVL_STAMP_END, UINT64_MAX));
	report = report_of(&f, xfer);
	assert_int_equal(report.start_ns, 12345);
	assert_int_equal(report.end_ns, UINT64_MAX);
	now = kvl_now();
	assert_ok(kvl_xfer_stamp(f.duo.a, xfer, KVL_STAMP_START, 0));
	assert_ok(kvl_xfer_stamp(f.duo.a, xfer, KVL_STAMP_END, 0));
	report = report_of(&f, xfer);
	assert_true(report.start_ns >= now && report.end_ns >= report.start_ns);
	assert_refused(kvl_xfer_stamp(f.duo.a, xfer, (enum kvl_stamp)3, 0), KVL_ERR_INVALID);
	duo_close(&f.duo);
}

/* Stamped while it is on the way, by a caller who counts from an earlier event: the end leaves it alone. */
TEST(report_stamp_of_a_pending_request)
{
	struct fixture f;
	kvl_xfer_t xfer;

	fixture_open(&f, KVL_NO_WORKERS);
	xfer = post(&f);
	assert_ok(kvl_xfer_stamp(f.duo.a, xfer, KVL_STAMP_START, 777));
	assert_refused(kvl_xfer_stamp(f.duo.a, xfer, KVL_STAMP_END, 0), KVL_ERR_BUSY);
	assert_int_equal(report_of(&f, xfer).start_ns, 777);
	assert_int_equal(duo_wait(&f.duo, xfer), 0);
	assert_int_equal(report_of(&f, xfer).start_ns, 777);
	duo_close(&f.duo);
}

/* An older, shorter struct gets what it has room for, and not a byte more. */
TEST(report_of_an_older_caller)
{
	struct {
		struct kvl_report report;
		unsigned char canary[64];
	} room;
	struct fixture f;
	kvl_xfer_t xfer;

	fixture_open(&f, 1);
	xfer = post(&f);
	assert_int_equal(duo_wait(&f.duo, xfer), 0);
	memset(&room, 0x5a, sizeof(room));
	room.report.size = offsetof(struct kvl_report, descriptors);
	assert_ok(kvl_xfer_report(f.duo.a, xfer, &room.report));
	assert_int_equal(room.report.total_bytes, 40 * KIB);
	assert_int_equal(bytes_not(&room.report.descriptors, sizeof(room) - room.report.size, 0x5a), 0);
	room.report.size = 0;
	assert_refused(kvl_xfer_report(f.duo.a, xfer, &room.report), KVL_ERR_INVALID);
	assert_refused(kvl_xfer_report(f.duo.a, xfer, NULL), KVL_ERR_INVALID);
	duo_close(&f.duo);
}

/* kvl_now() is CLOCK_MONOTONIC: it never goes back, over threads' and processes' clocks alike. */
TEST(report_clock)
{
	uint64_t last = kvl_now();

	for (int i = 0; i < 10000; i++) {
		uint64_t now = kvl_now();

		assert_true(now >= last);
		last = now;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(report_of_a_finished_request),
		cmocka_unit_test(report_of_a_pending_request),
		cmocka_unit_test(report_is_of_the_latest_post),
		cmocka_unit_test(report_stamps),
		cmocka_unit_test(report_stamp_of_a_pending_request),
		cmocka_unit_test(report_of_an_older_caller),
		cmocka_unit_test(report_clock),
	};

	return TESTING_RUN(tests, 20);
}
