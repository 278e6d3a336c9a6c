/* SPDX-License-Identifier: Apache-2.0 */
/* F12: lists and requests made before a peer was closed and connected again are stale in every call. */
#include "testing.h"

#include <stdlib.h>
#include <string.h>

#define LEN (16 * KIB)

struct before {
	struct duo duo;
	struct buffer local, remote;
	kvl_list_t local_list, remote_list;
	kvl_xfer_t xfer;
	kvl_peer_t peer;
};

static void before_open(struct before *f, const struct kvl_config *config)
{
	struct kvl_desc local, remote;

	memset(f, 0, sizeof(*f));
	duo_open(&f->duo, config);
	buffer_open(&f->local, f->duo.a, BUFFER_ALLOC, LEN, 0);
	buffer_open(&f->remote, f->duo.b, BUFFER_ALLOC, LEN, 0);
	duo_connect(&f->duo);
	local = desc_of(f->local.data, LEN);
	remote = desc_of(f->remote.data, LEN);
	assert_ok(kvl_list_create(f->duo.a, KVL_LOCAL, &local, 1, &f->local_list));
	assert_ok(kvl_list_create(f->duo.a, f->duo.ab, &remote, 1, &f->remote_list));
	assert_ok(kvl_xfer_prepare(f->duo.a, KVL_WRITE, f->local_list, f->remote_list, NULL, &f->xfer));
	f->peer = f->duo.ab;
}

static void peer_calls_are_stale(struct before *f)
{
	struct kvl_peer_info info = { .size = sizeof(info) };
	struct kvl_desc desc = desc_of(f->remote.data, 1), local = desc_of(f->local.data, 1);
	kvl_list_t list = 0;
	kvl_xfer_t xfer = 0;
	size_t len;
	void *bytes = metadata_of(f->duo.b, &len), *addr = NULL;

	assert_refused(kvl_peer_info(f->duo.a, f->peer, &info), KVL_ERR_STALE);
	assert_refused(kvl_peer_update(f->duo.a, f->peer, bytes, len), KVL_ERR_STALE);
	assert_refused(kvl_peer_map(f->duo.a, f->peer, desc.addr, 1, &addr), KVL_ERR_STALE);
	assert_refused(kvl_peer_close(f->duo.a, f->peer), KVL_ERR_STALE);
	assert_refused(kvl_notify(f->duo.a, f->peer, "x", 1, NULL), KVL_ERR_STALE);
	assert_refused(kvl_list_create(f->duo.a, f->peer, &desc, 1, &list), KVL_ERR_STALE);
	assert_refused(kvl_write(f->duo.a, f->peer, &local, &desc, 1, NULL, &xfer), KVL_ERR_STALE);
	free(bytes);
}

/* Every use is refused; the state may still be read, and what the handle holds given back, or that is stale
 * too. */
static void harmless(int64_t code)
{
	assert_true(code >= 0 || code == KVL_ERR_STALE || code == KVL_ERR_NOT_POSTED);
}

static void request_calls_are_stale(struct before *f)
{
	struct kvl_report report = { .size = sizeof(report) };
	kvl_xfer_t xfer = 0;
	uint32_t index = 0;

	assert_refused(kvl_xfer_post(f->duo.a, f->xfer, NULL), KVL_ERR_STALE);
	assert_refused(kvl_xfer_prepare(f->duo.a, KVL_WRITE, f->local_list, f->remote_list, NULL, &xfer),
		       KVL_ERR_STALE);
	assert_refused(kvl_xfer_prepare_indexed(f->duo.a, KVL_READ, f->local_list, &index, f->remote_list,
						&index, 1, NULL, &xfer),
		       KVL_ERR_STALE);
	assert_int_equal(xfer, 0);
	/* Never posted: none of these may say that it has ended well. */
	assert_true(kvl_xfer_poll(f->duo.a, f->xfer) < 0);
	assert_true(kvl_xfer_wait(f->duo.a, f->xfer, 0) < 0);
	assert_true(kvl_xfer_cancel(f->duo.a, f->xfer) < 0);
	harmless(kvl_xfer_report(f->duo.a, f->xfer, &report));
	harmless(kvl_list_entries(f->duo.a, f->remote_list));
}

static void give_back(struct before *f)
{
	harmless(kvl_xfer_release(f->duo.a, f->xfer));
	harmless(kvl_list_destroy(f->duo.a, f->remote_list));
	assert_refused(kvl_xfer_release(f->duo.a, f->xfer), KVL_ERR_STALE);
	assert_int_equal(kvl_xfer_poll(f->duo.a, f->xfer), KVL_ERR_STALE);
	assert_refused(kvl_list_destroy(f->duo.a, f->remote_list), KVL_ERR_STALE);
}

/* The local list belongs to no peer and lives on. */
static void new_life_works(struct before *f)
{
	struct kvl_desc local = desc_of(f->local.data, LEN), remote = desc_of(f->remote.data, LEN);

	assert_int_equal(kvl_list_entries(f->duo.a, f->local_list), 1);
	assert_int_equal(
		duo_move(&f->duo, KVL_WRITE, &f->local, &local, &f->remote, &remote, 1, 2, NULL, NULL), 0);
}

TEST(f12_everything_of_a_closed_peer_is_stale)
{
	struct before f;

	before_open(&f, NULL);
	memset(f.remote.data, 3, LEN);
	assert_ok(kvl_peer_close(f.duo.a, f.peer));
	peer_calls_are_stale(&f);
	request_calls_are_stale(&f);
	f.duo.ab = connect_to(f.duo.a, f.duo.b);
	assert_int_not_equal(f.duo.ab, f.peer);
	peer_calls_are_stale(&f);
	request_calls_are_stale(&f);
	assert_int_equal(bytes_not(f.remote.data, LEN, 3), 0);
	new_life_works(&f);
	give_back(&f);
	new_life_works(&f);
	duo_close(&f.duo);
}

/* Slots are used again by then: the new request is not reached through the old handle. */
TEST(f12_stale_after_many_lives)
{
	struct before f;

	before_open(&f, NULL);
	for (size_t i = 0; i < testing_rounds(200); i++) {
		assert_ok(kvl_peer_close(f.duo.a, f.duo.ab));
		f.duo.ab = connect_to(f.duo.a, f.duo.b);
	}
	new_life_works(&f);
	peer_calls_are_stale(&f);
	request_calls_are_stale(&f);
	give_back(&f);
	duo_close(&f.duo);
}

/* Pending when the peer is closed: it ends, is listed once, and is given back like any other. */
TEST(f12_pending_request_of_a_closed_peer)
{
	struct kvl_config config;
	struct kvl_end end[2];
	struct before f;
	int code;

	kvl_config_init(&config);
	config.workers = KVL_NO_WORKERS;
	config.small_bytes = 1024;
	config.chunk_bytes = 4096;
	config.window = 1;
	before_open(&f, &config);
	assert_ok(kvl_xfer_post(f.duo.a, f.xfer, NULL));
	assert_int_equal(kvl_xfer_poll(f.duo.a, f.xfer), KVL_PENDING);
	assert_ok(kvl_peer_close(f.duo.a, f.peer));
	code = duo_wait(&f.duo, f.xfer);
	assert_true(code == KVL_ERR_PEER_LOST || code == KVL_ERR_STALE);
	if (code == KVL_ERR_PEER_LOST) {
		assert_int_equal(kvl_poll_many(f.duo.a, end, 2, 0), 1);
		assert_int_equal(end[0].xfer, f.xfer);
		assert_int_equal(end[0].status, KVL_ERR_PEER_LOST);
	}
	assert_refused(kvl_xfer_post(f.duo.a, f.xfer, NULL), KVL_ERR_STALE);
	give_back(&f);
	assert_ok(kvl_mem_deregister(f.duo.a, &f.local.mr, 1)); /* nothing names it any more */
	duo_close(&f.duo);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(f12_everything_of_a_closed_peer_is_stale),
		cmocka_unit_test(f12_stale_after_many_lives),
		cmocka_unit_test(f12_pending_request_of_a_closed_peer),
	};

	return TESTING_RUN(tests, 30);
}
