/* SPDX-License-Identifier: Apache-2.0 */
/* F03: empty, zero-length and unequal input is refused by the call that brings it; valid regions live on. */
#include "testing.h"

#include <string.h>

#define LEN (64 * KIB)

struct fixture {
	struct duo duo;
	struct buffer local, remote;
};

static void fixture_open(struct fixture *f)
{
	duo_open(&f->duo, NULL);
	buffer_open(&f->local, f->duo.a, BUFFER_ALLOC, LEN, 0);
	buffer_open(&f->remote, f->duo.b, BUFFER_ALLOC, LEN, 0);
	duo_connect(&f->duo);
}

static void fixture_move(struct fixture *f)
{
	struct kvl_desc local = desc_of(f->local.data, LEN), remote = desc_of(f->remote.data, LEN);

	assert_int_equal(
		duo_move(&f->duo, KVL_WRITE, &f->local, &local, &f->remote, &remote, 1, 3, NULL, NULL), 0);
}

static void refuse_second(struct fixture *f, struct kvl_mem bad, int code)
{
	static unsigned char around[2][64];
	struct kvl_mem mem[3] = { memory_of(around[0], 64, 0), bad, memory_of(around[1], 64, 0) };
	kvl_mr_t mr[3] = { 0, 0, 0 };

	assert_refused_at(kvl_mem_register(f->duo.a, mem, 3, mr), code, 1);
	assert_int_equal(mr[0] | mr[1] | mr[2], 0);
	/* All or none: the good neighbours were not left behind with other rights. */
	mem[0].rights = KVL_REMOTE_READ;
	mem[1] = mem[2];
	mem[1].rights = KVL_REMOTE_READ;
	assert_ok(kvl_mem_register(f->duo.a, mem, 2, mr));
	assert_ok(kvl_mem_deregister(f->duo.a, mr, 2));
}

TEST(f03_bad_regions_are_refused)
{
	static unsigned char byte;
	struct fixture f;
	void *addr = NULL;
	kvl_mr_t mr = 0;

	fixture_open(&f);
	refuse_second(&f, memory_of(&byte, 0, 0), KVL_ERR_INVALID);
	refuse_second(&f, memory_of(NULL, 64, 0), KVL_ERR_INVALID);
	refuse_second(&f, memory_of(NULL, 0, 0), KVL_ERR_INVALID);
	refuse_second(&f, memory_of(&byte, UINT64_MAX, 0), KVL_ERR_RANGE);
	refuse_second(&f, memory_of(&byte, 1, 0x80), KVL_ERR_INVALID);
	refuse_second(&f, memory_of(&byte, 1, KVL_LOCAL_ONLY | KVL_REMOTE_READ), KVL_ERR_INVALID);
	assert_refused(kvl_mem_alloc(f.duo.a, 0, 0, &addr, &mr), KVL_ERR_INVALID);
	assert_null(addr);
	duo_update(&f.duo);
	fixture_move(&f);
	duo_close(&f.duo);
}

TEST(f03_zero_length_entry)
{
	struct fixture f;
	struct kvl_desc good[3], bad[3];
	struct kvl_run run = { 0, 0, 16, 2, 0, 0 };
	uint32_t index = 0;
	kvl_list_t list = 0;
	kvl_xfer_t xfer = 0;

	fixture_open(&f);
	for (size_t i = 0; i < 3; i++) {
		good[i] = desc_of(f.local.data + i * 128, 64);
		bad[i] = desc_of(f.remote.data + i * 128, i == 2 ? 0 : 64);
	}
	assert_refused_at(kvl_list_create(f.duo.a, f.duo.ab, bad, 3, &list), KVL_ERR_INVALID, 2);
	assert_refused_at(kvl_write(f.duo.a, f.duo.ab, good, bad, 3, NULL, &xfer), KVL_ERR_INVALID, 2);
	run.addr = buffer_addr(&f.remote);
	assert_refused_at(kvl_list_create_runs(f.duo.a, f.duo.ab, &run, 1, &list), KVL_ERR_INVALID, 0);
	assert_refused(kvl_list_create_blocks(f.duo.a, f.duo.ab, run.addr, 0, &index, 1, 0, &list),
		       KVL_ERR_INVALID);
	fixture_move(&f);
	duo_close(&f.duo);
}

static kvl_list_t list_of(struct fixture *f, int remote, const uint64_t *len, size_t n)
{
	struct kvl_desc desc[4] = { { 0 } };
	kvl_list_t list = 0;

	for (size_t i = 0; i < n; i++)
		desc[i] = desc_of((remote ? f->remote.data : f->local.data) + i * 1024, len[i]);
	assert_ok(kvl_list_create(f->duo.a, remote ? f->duo.ab : KVL_LOCAL, desc, n, &list));
	return list;
}

TEST(f03_unequal_counts_and_lengths)
{
	static const uint64_t three[] = { 64, 128, 64 }, other[] = { 64, 128, 63 };
	struct fixture f;
	kvl_list_t local, remote, shorter, empty;
	kvl_xfer_t xfer = 0;

	fixture_open(&f);
	local = list_of(&f, 0, three, 3);
	remote = list_of(&f, 1, other, 3);
	shorter = list_of(&f, 1, three, 2);
	empty = list_of(&f, 1, three, 0);
	assert_refused_at(kvl_xfer_prepare(f.duo.a, KVL_WRITE, local, remote, NULL, &xfer), KVL_ERR_MISMATCH,
			  2);
	assert_refused(kvl_xfer_prepare(f.duo.a, KVL_WRITE, local, shorter, NULL, &xfer), KVL_ERR_MISMATCH);
	assert_message("3");
	assert_message("2");
	assert_refused(kvl_xfer_prepare(f.duo.a, KVL_READ, local, empty, NULL, &xfer), KVL_ERR_MISMATCH);
	assert_int_equal(xfer, 0);
	fixture_move(&f);
	duo_close(&f.duo);
}

/* The one meaning of an empty list: the request ends OK and carries its notification. */
static void empty_request(struct fixture *f, enum kvl_op op)
{
	static const uint64_t none[1];
	struct kvl_xfer_opts opts = {
		.size = sizeof(opts), .flags = KVL_XFER_NOTIFY, .notif = "x", .notif_len = 1
	};
	struct kvl_report report = { .size = sizeof(report) };
	struct kvl_notif *notif;
	kvl_xfer_t xfer = 0;

	assert_ok(
		kvl_xfer_prepare(f->duo.a, op, list_of(f, 0, none, 0), list_of(f, 1, none, 0), &opts, &xfer));
	assert_ok(kvl_xfer_post(f->duo.a, xfer, NULL));
	assert_int_equal(duo_wait(&f->duo, xfer), 0);
	assert_ok(kvl_xfer_report(f->duo.a, xfer, &report));
	assert_int_equal(report.bytes + report.total_bytes + report.descriptors + report.pieces, 0);
	assert_string_equal(report.path, "none");
	assert_int_equal(report.failed_entry, KVL_NO_ENTRY);
	assert_ok(kvl_xfer_release(f->duo.a, xfer));
	notif = duo_notif(&f->duo, f->duo.b);
	assert_non_null(notif);
	assert_int_equal(notif->len, 1);
	kvl_notif_free(notif);
	assert_true(duo_quiet(&f->duo, f->duo.b));
}

TEST(f03_empty_list_ends_ok_and_notifies)
{
	struct fixture f;
	kvl_xfer_t xfer = 0;

	fixture_open(&f);
	empty_request(&f, KVL_WRITE);
	empty_request(&f, KVL_READ);
	assert_ok(kvl_write(f.duo.a, f.duo.ab, NULL, NULL, 0, NULL, &xfer));
	assert_int_equal(duo_wait(&f.duo, xfer), 0);
	assert_ok(kvl_xfer_release(f.duo.a, xfer));
	duo_close(&f.duo);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(f03_bad_regions_are_refused),
		cmocka_unit_test(f03_zero_length_entry),
		cmocka_unit_test(f03_unequal_counts_and_lengths),
		cmocka_unit_test(f03_empty_list_ends_ok_and_notifies),
	};

	return TESTING_RUN(tests, 30);
}
