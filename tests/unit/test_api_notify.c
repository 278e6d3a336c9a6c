/* SPDX-License-Identifier: Apache-2.0 */
/* Notifications beyond F30: order after data, back-pressure, ownership, and what carries them. */
#include "testing.h"

#include <stdlib.h>
#include <string.h>

#define LEN (64 * KIB)

struct fixture {
	struct duo duo;
	struct buffer local, remote;
};

static void fixture_open(struct fixture *f, struct kvl_config *config)
{
	duo_open(&f->duo, config);
	buffer_open(&f->local, f->duo.a, BUFFER_ALLOC, LEN, 0);
	buffer_open(&f->remote, f->duo.b, BUFFER_ALLOC, LEN, 0);
	duo_connect(&f->duo);
}

/* A pair that has sent nothing says so; NULL data of no bytes is a notification. */
TEST(notify_empty_and_none)
{
	struct kvl_notif *notif = NULL;
	struct fixture f;

	fixture_open(&f, NULL);
	assert_int_equal(kvl_notif_next(f.duo.b, &notif), KVL_ERR_AGAIN);
	assert_null(notif);
	assert_ok(kvl_notify(f.duo.a, f.duo.ab, NULL, 0, NULL));
	notif = duo_notif(&f.duo, f.duo.b);
	assert_non_null(notif);
	assert_int_equal(notif->len, 0);
	kvl_notif_free(notif);
	kvl_notif_free(NULL);
	assert_refused(kvl_notify(f.duo.a, f.duo.ab, NULL, 1, NULL), KVL_ERR_INVALID);
	assert_refused(kvl_notif_next(f.duo.b, NULL), KVL_ERR_INVALID);
	duo_close(&f.duo);
}

/* They belong to the caller: they outlive the agent and each other. */
TEST(notify_taken_ones_belong_to_the_caller)
{
	struct kvl_notif *notif[3];
	struct fixture f;

	fixture_open(&f, NULL);
	for (uint64_t i = 0; i < 3; i++) {
		bytes_fill(f.local.data, LEN, i, 0, 1);
		assert_ok(kvl_notify(f.duo.a, f.duo.ab, f.local.data, LEN, NULL));
		memset(f.local.data, 0, LEN); /* copied */
	}
	for (size_t i = 0; i < 3; i++)
		notif[i] = duo_notif(&f.duo, f.duo.b);
	duo_close(&f.duo);
	for (size_t i = 3; i-- > 0;) {
		assert_non_null(notif[i]);
		assert_int_equal(bytes_wrong(notif[i]->data, LEN, i, 0, 1), 0);
		kvl_notif_free(notif[i]);
	}
}

/* One that is alone comes after the data of earlier posts of its lane. */
TEST(notify_after_the_data_of_its_lane)
{
	struct kvl_xfer_opts opts = { .size = sizeof(opts), .lane = KVL_LANE(1) };
	struct kvl_desc from, to;
	struct fixture f;

	fixture_open(&f, NULL);
	from = desc_of(f.local.data, LEN);
	to = desc_of(f.remote.data, LEN);
	for (uint64_t epoch = 0; epoch < testing_rounds(300); epoch++) {
		struct kvl_notif *notif;
		kvl_xfer_t xfer;

		bytes_fill(f.local.data, LEN, 1, 0, epoch);
		assert_ok(kvl_write(f.duo.a, f.duo.ab, &from, &to, 1, &opts, &xfer));
		assert_ok(kvl_notify(f.duo.a, f.duo.ab, &epoch, sizeof(epoch), &opts));
		notif = duo_notif(&f.duo, f.duo.b);
		assert_non_null(notif);
		assert_int_equal(bytes_wrong(f.remote.data, LEN, 1, 0, epoch), 0);
		assert_memory_equal(notif->data, &epoch, sizeof(epoch));
		assert_int_equal(notif->lane, 1);
		kvl_notif_free(notif);
		assert_int_equal(duo_wait(&f.duo, xfer), 0);
		assert_ok(kvl_xfer_release(f.duo.a, xfer));
	}
	duo_close(&f.duo);
}

/* A long one on a bulk lane does not hold up a short one on the latency lane. */
TEST(notify_lanes_are_independent)
{
	struct kvl_xfer_opts bulk = { .size = sizeof(bulk), .lane = KVL_LANE(1) };
	struct kvl_xfer_opts small = { .size = sizeof(small), .lane = KVL_LANE(0) };
	unsigned char *data = calloc(1, MIB);
	struct kvl_config config;
	struct kvl_notif *notif;
	struct fixture f;

	assert_non_null(data);
	kvl_config_init(&config);
	config.workers = KVL_NO_WORKERS;
	config.ring_bytes = 4096;
	fixture_open(&f, &config);
	assert_ok(kvl_notify(f.duo.a, f.duo.ab, data, MIB, &bulk));
	assert_ok(kvl_notify(f.duo.a, f.duo.ab, "small", 5, &small));
	notif = duo_notif(&f.duo, f.duo.b);
	assert_non_null(notif);
	assert_int_equal(notif->len, 5);
	kvl_notif_free(notif);
	notif = duo_notif(&f.duo, f.duo.b);
	assert_non_null(notif);
	assert_int_equal(notif->len, MIB);
	kvl_notif_free(notif);
	duo_close(&f.duo);
	free(data);
}

/*
 * The receiver takes nothing: senders wait at notif_queue_bytes, memory stays bounded, and all arrives when
 * it reads again.
 */
TEST(notify_back_pressure)
{
	enum {
		PIECE = 64 * KIB,
		ROOM = 1 * MIB
	};
	struct kvl_xfer_opts opts = { .size = sizeof(opts), .lane = KVL_LANE(1) };
	unsigned char *data = malloc(PIECE);
	struct kvl_config config;
	struct fixture f;
	uint64_t sent = 0, taken = 0, last = kvl_now();

	assert_non_null(data);
	kvl_config_init(&config);
	config.workers = KVL_NO_WORKERS;
	config.queue_depth = 4;
	config.notif_queue_bytes = ROOM;
	fixture_open(&f, &config);
	while (kvl_now() - last < 100 * MS) {
		int code;

		memset(data, (int)sent, PIECE);
		code = kvl_notify(f.duo.a, f.duo.ab, data, PIECE, &opts);
		assert_true(code == 0 || code == KVL_ERR_AGAIN);
		sent += code == 0;
		last = code == 0 ? kvl_now() : last;
		duo_drive(&f.duo);
		assert_true(sent * PIECE <= 4 * ROOM);
	}
	assert_true(sent * PIECE >= ROOM / 2);
	while (taken < sent) {
		struct kvl_notif *notif = duo_notif(&f.duo, f.duo.b);

		assert_non_null(notif);
		assert_int_equal(notif->len, PIECE);
		assert_int_equal(bytes_not(notif->data, PIECE, (unsigned char)taken), 0);
		kvl_notif_free(notif);
		taken++;
	}
	assert_true(duo_quiet(&f.duo, f.duo.b));
	print_message("%llu KiB were on the way with %u KiB of room\n",
		      (unsigned long long)sent * PIECE / KIB, (unsigned)(ROOM / KIB));
	duo_close(&f.duo);
	free(data);
}

/* It releases itself: no slot is left in use after any number of them. */
TEST(notify_holds_no_slot)
{
	struct kvl_config config;
	struct fixture f;

	kvl_config_init(&config);
	config.max_requests = 2;
	fixture_open(&f, &config);
	for (size_t i = 0; i < testing_rounds(500); i++) {
		struct kvl_notif *notif;
		uint64_t limit = kvl_now() + PATIENCE;
		int code;

		while ((code = kvl_notify(f.duo.a, f.duo.ab, &i, sizeof(i), NULL)) == KVL_ERR_AGAIN)
			assert_true(kvl_now() < limit);
		assert_ok(code);
		notif = duo_notif(&f.duo, f.duo.b);
		assert_non_null(notif);
		assert_memory_equal(notif->data, &i, sizeof(i));
		kvl_notif_free(notif);
	}
	duo_close(&f.duo);
}

/* Its own ends are not listed: there is no handle to name. */
TEST(notify_is_no_end)
{
	struct kvl_notif *notif;
	struct fixture f;
	struct kvl_end end;

	fixture_open(&f, NULL);
	assert_ok(kvl_notify(f.duo.a, f.duo.ab, "x", 1, NULL));
	notif = duo_notif(&f.duo, f.duo.b);
	assert_non_null(notif);
	kvl_notif_free(notif);
	assert_true(duo_quiet(&f.duo, f.duo.b));
	assert_int_equal(kvl_poll_many(f.duo.a, &end, 1, 0), 0);
	duo_close(&f.duo);
}

/* What did not end well is not announced. */
TEST(notify_not_sent_for_a_failed_request)
{
	struct kvl_xfer_opts opts = {
		.size = sizeof(opts), .flags = KVL_XFER_NOTIFY, .notif = "never", .notif_len = 5
	};
	struct kvl_config config;
	struct kvl_desc from, to;
	struct fixture f;
	kvl_xfer_t xfer;

	kvl_config_init(&config);
	config.workers = KVL_NO_WORKERS;
	config.small_bytes = 4096;
	config.chunk_bytes = 4096;
	config.window = 1;
	fixture_open(&f, &config);
	from = desc_of(f.local.data, LEN);
	to = desc_of(f.remote.data, LEN);
	assert_ok(kvl_write(f.duo.a, f.duo.ab, &from, &to, 1, &opts, &xfer));
	assert_int_equal(kvl_xfer_poll(f.duo.a, xfer), KVL_PENDING);
	assert_ok(kvl_xfer_cancel(f.duo.a, xfer));
	assert_int_equal(duo_wait(&f.duo, xfer), KVL_ERR_CANCELED);
	assert_true(duo_quiet(&f.duo, f.duo.b));
	duo_close(&f.duo);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(notify_empty_and_none),
		cmocka_unit_test(notify_taken_ones_belong_to_the_caller),
		cmocka_unit_test(notify_after_the_data_of_its_lane),
		cmocka_unit_test(notify_lanes_are_independent),
		cmocka_unit_test(notify_back_pressure),
		cmocka_unit_test(notify_holds_no_slot),
		cmocka_unit_test(notify_is_no_end),
		cmocka_unit_test(notify_not_sent_for_a_failed_request),
	};

	return TESTING_RUN(tests, 30);
}
