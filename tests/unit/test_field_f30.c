/* SPDX-License-Identifier: Apache-2.0 */
/* F30: a notification of any size up to the limit is delivered whole; a longer one is refused at the call. */
#include "testing.h"

#include <stdlib.h>
#include <string.h>

static void size_once(struct duo *duo, const unsigned char *data, uint64_t len)
{
	struct kvl_peer_info info = { .size = sizeof(info) };
	struct kvl_notif *notif;

	assert_ok(kvl_notify(duo->a, duo->ab, data, len, NULL));
	notif = duo_notif(duo, duo->b);
	assert_non_null(notif);
	assert_int_equal(notif->len, len);
	assert_int_equal((uintptr_t)notif->data % 8, 0);
	if (len)
		assert_memory_equal(notif->data, data, len);
	assert_string_equal(notif->peer, "duo-a");
	assert_ok(kvl_peer_info(duo->b, duo->ba, &info));
	assert_memory_equal(notif->incarnation, info.incarnation, KVL_INCARNATION);
	kvl_notif_free(notif);
}

static void sizes(uint32_t workers, uint32_t ring_bytes)
{
	static const uint64_t size[] = { 0,    1,    7,    8,    9,        255,          256,     257, 1024,
					 1025, 4095, 4096, 4097, 64 * KIB, 64 * KIB + 1, MIB - 1, MIB };
	unsigned char *data = malloc(MIB);
	struct kvl_config config;
	struct duo duo;

	assert_non_null(data);
	kvl_config_init(&config);
	config.workers = workers;
	config.ring_bytes = ring_bytes;
	duo_open(&duo, &config);
	duo_connect(&duo);
	for (size_t i = 0; i < COUNT(size); i++) {
		bytes_fill(data, size[i], 9, 0, i);
		size_once(&duo, data, size[i]);
		memset(data, 0, size[i]); /* binary: nothing but zero bytes */
		size_once(&duo, data, size[i]);
	}
	assert_true(duo_quiet(&duo, duo.b));
	duo_close(&duo);
	free(data);
}

TEST(f30_every_size)
{
	sizes(1, 0);
}

TEST(f30_every_size_without_worker)
{
	sizes(KVL_NO_WORKERS, 0);
}

TEST(f30_every_size_through_the_smallest_ring)
{
	sizes(1, 4096);
	sizes(KVL_NO_WORKERS, 4096);
}

TEST(f30_longer_than_the_limit_is_refused)
{
	struct kvl_xfer_opts opts = { .size = sizeof(opts), .flags = KVL_XFER_NOTIFY };
	struct kvl_post post = { .size = sizeof(post), .flags = KVL_POST_NOTIFY };
	struct kvl_limits limits = { .size = sizeof(limits) };
	unsigned char *data = calloc(1, MIB + 1);
	kvl_list_t local, remote;
	kvl_xfer_t xfer = 0;
	struct duo duo;

	assert_non_null(data);
	duo_open(&duo, NULL);
	duo_connect(&duo);
	assert_ok(kvl_agent_limits(duo.a, &limits));
	assert_int_equal(limits.notif_max_bytes, MIB);
	assert_refused(kvl_notify(duo.a, duo.ab, data, MIB + 1, NULL), KVL_ERR_LIMIT);
	assert_message("notif_max_bytes");
	opts.notif = data;
	opts.notif_len = MIB + 1;
	assert_ok(kvl_list_create(duo.a, KVL_LOCAL, NULL, 0, &local));
	assert_ok(kvl_list_create(duo.a, duo.ab, NULL, 0, &remote));
	assert_refused(kvl_xfer_prepare(duo.a, KVL_WRITE, local, remote, &opts, &xfer), KVL_ERR_LIMIT);
	assert_int_equal(xfer, 0);
	assert_ok(kvl_xfer_prepare(duo.a, KVL_WRITE, local, remote, NULL, &xfer));
	post.notif = data;
	post.notif_len = MIB + 1;
	assert_refused(kvl_xfer_post(duo.a, xfer, &post), KVL_ERR_LIMIT);
	assert_int_equal(kvl_xfer_poll(duo.a, xfer), KVL_ERR_NOT_POSTED);
	assert_true(duo_quiet(&duo, duo.b));
	duo_close(&duo);
	free(data);
}

/* -------------------------------------------------------------------------------------- many, mixed */

#define LANES 4u

struct header {
	uint64_t serial, lane, len; /* of the whole notification */
};

struct mixed {
	struct duo duo;
	unsigned char *data;
	uint64_t random, serial[LANES], expected[LANES];
	size_t sent, taken;
};

/* Mostly short, now and then long. */
static uint64_t mixed_len(struct mixed *m)
{
	uint64_t shift = random_range(&m->random, 0, 99) ? 10 : 16;

	return sizeof(struct header) + random_next(&m->random) % (1ull << random_range(&m->random, 1, shift));
}

static int mixed_send(struct mixed *m, uint64_t len, uint32_t lane)
{
	struct kvl_xfer_opts opts = { .size = sizeof(opts), .lane = KVL_LANE(lane) };
	struct header header = { m->serial[lane], lane, len };
	int code;

	memcpy(m->data, &header, sizeof(header));
	bytes_fill(m->data + sizeof(header), len - sizeof(header), lane, 0, header.serial);
	code = kvl_notify(m->duo.a, m->duo.ab, m->data, len, &opts);
	if (code == KVL_ERR_AGAIN)
		return 0;
	assert_ok(code);
	m->serial[lane]++;
	m->sent++;
	return 1;
}

static void mixed_take(struct mixed *m)
{
	struct kvl_notif *notif;

	while (kvl_notif_next(m->duo.b, &notif) == 0) {
		const unsigned char *data = notif->data;
		struct header header;

		assert_true(notif->len >= sizeof(header));
		memcpy(&header, data, sizeof(header));
		assert_int_equal(header.len, notif->len);
		assert_true(header.lane < LANES);
		assert_int_equal(header.lane, notif->lane);
		assert_int_equal(header.serial, m->expected[header.lane]++);
		assert_int_equal(bytes_wrong(data + sizeof(header), header.len - sizeof(header), header.lane,
					     0, header.serial),
				 0);
		kvl_notif_free(notif);
		m->taken++;
	}
}

TEST(f30_100000_of_mixed_size)
{
	struct mixed m = { .random = 30, .data = malloc(128 * KIB) };
	size_t count = testing_rounds(100000);
	uint64_t deadline = kvl_now() + 2 * PATIENCE, len = 0;
	uint32_t lane = 0;

	assert_non_null(m.data);
	duo_open(&m.duo, NULL);
	duo_connect(&m.duo);
	while (m.taken < count) {
		assert_true(kvl_now() < deadline);
		for (int burst = 0; burst < 64 && m.sent < count; burst++) {
			if (len == 0) {
				len = mixed_len(&m);
				lane = (uint32_t)random_range(&m.random, 0, LANES - 1);
			}
			if (!mixed_send(&m, len, lane))
				break;
			len = 0;
		}
		ignored(kvl_agent_wait(m.duo.b, MS));
		mixed_take(&m);
	}
	assert_int_equal(m.sent, count);
	assert_int_equal(m.taken, count);
	assert_true(duo_quiet(&m.duo, m.duo.b));
	duo_close(&m.duo);
	free(m.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(f30_every_size),
		cmocka_unit_test(f30_every_size_without_worker),
		cmocka_unit_test(f30_every_size_through_the_smallest_ring),
		cmocka_unit_test(f30_longer_than_the_limit_is_refused),
		cmocka_unit_test(f30_100000_of_mixed_size),
	};

	return TESTING_RUN(tests, 60);
}
