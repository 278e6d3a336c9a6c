/* SPDX-License-Identifier: Apache-2.0 */
/* Handles that are 0, garbage, of another kind, of another agent or of an earlier life are never followed. */
#include "testing.h"

#include <stdlib.h>
#include <string.h>

#define LEN 4096u

struct all {
	struct duo duo;
	struct buffer local, remote;
	kvl_list_t local_list, remote_list;
	kvl_xfer_t xfer;
	void *metadata;
	size_t metadata_len;
};

static void all_open(struct all *h)
{
	struct kvl_desc local, remote;

	duo_open(&h->duo, NULL);
	buffer_open(&h->local, h->duo.a, BUFFER_ALLOC, LEN, 0);
	buffer_open(&h->remote, h->duo.b, BUFFER_ALLOC, LEN, 0);
	duo_connect(&h->duo);
	local = desc_of(h->local.data, LEN);
	remote = desc_of(h->remote.data, LEN);
	assert_ok(kvl_list_create(h->duo.a, KVL_LOCAL, &local, 1, &h->local_list));
	assert_ok(kvl_list_create(h->duo.a, h->duo.ab, &remote, 1, &h->remote_list));
	assert_ok(kvl_xfer_prepare(h->duo.a, KVL_WRITE, h->local_list, h->remote_list, NULL, &h->xfer));
	h->metadata = metadata_of(h->duo.b, &h->metadata_len);
}

static void all_close(struct all *h)
{
	struct kvl_desc local = desc_of(h->local.data, LEN), remote = desc_of(h->remote.data, LEN);

	/* After all the refusals everything still works. */
	assert_ok(kvl_xfer_post(h->duo.a, h->xfer, NULL));
	assert_int_equal(duo_wait(&h->duo, h->xfer), 0);
	assert_int_equal(
		duo_move(&h->duo, KVL_READ, &h->local, &local, &h->remote, &remote, 1, 9, NULL, NULL), 0);
	free(h->metadata);
	duo_close(&h->duo);
}

/* 0 stands for "either": of nonsense nothing more can be known than that it is not good. */
static void expect_at(int64_t got, int code, const char *call, int line)
{
	if (code ? got == code : got == KVL_ERR_INVALID || got == KVL_ERR_STALE)
		return;
	print_error("%s = %lld, expected %s\n", call, (long long)got,
		    code ? kvl_error_name(code) : "INVALID or STALE");
	_fail(__FILE__, line);
}

#define expect(call, code) expect_at((call), (code), #call, __LINE__)

/* All but kvl_xfer_poll(): one load, of the request's own word. */
static void as_agent(struct all *h, uint64_t handle, int code)
{
	struct kvl_limits limits = { .size = sizeof(limits) };
	struct kvl_desc desc = desc_of(h->local.data, 1);
	struct kvl_mem mem = memory_of(&desc, sizeof(desc), 0);
	struct kvl_notif *notif = NULL;
	struct kvl_end end;
	uint64_t out = 0;
	size_t len = 0;
	void *addr = NULL;

	expect(kvl_agent_close(handle, SECOND), code);
	expect(kvl_agent_limits(handle, &limits), code);
	expect(kvl_mem_register(handle, &mem, 1, &out), code);
	expect(kvl_mem_alloc(handle, 1, 0, &addr, &out), code);
	expect(kvl_mem_deregister(handle, &h->local.mr, 1), code);
	expect(kvl_agent_metadata(handle, NULL, &len), code);
	expect(kvl_peer_connect(handle, h->metadata, h->metadata_len, 0, &out), code);
	expect(kvl_publish(handle, "."), code);
	expect(kvl_list_create(handle, KVL_LOCAL, &desc, 1, &out), code);
	expect(kvl_xfer_prepare(handle, KVL_WRITE, h->local_list, h->remote_list, NULL, &out), code);
	expect(kvl_xfer_post(handle, h->xfer, NULL), code);
	expect(kvl_xfer_release(handle, h->xfer), code);
	expect(kvl_notify(handle, h->duo.ab, "x", 1, NULL), code);
	expect(kvl_notif_next(handle, &notif), code);
	expect(kvl_poll_many(handle, &end, 1, 0), code);
	expect(kvl_agent_wait(handle, 0), code);
	expect(kvl_progress(handle), code);
	expect(kvl_agent_fd(handle), code);
	assert_int_equal(out, 0);
}

static void as_mr(struct all *h, uint64_t handle, int code)
{
	expect(kvl_mem_deregister(h->duo.a, &handle, 1), code);
}

static void as_peer(struct all *h, uint64_t handle, int code)
{
	struct kvl_peer_info info = { .size = sizeof(info) };
	struct kvl_desc desc = desc_of(h->remote.data, 1), local = desc_of(h->local.data, 1);
	uint64_t out = 0;
	void *addr = NULL;

	expect(kvl_peer_info(h->duo.a, handle, &info), code);
	expect(kvl_peer_update(h->duo.a, handle, h->metadata, h->metadata_len), code);
	expect(kvl_peer_map(h->duo.a, handle, desc.addr, 1, &addr), code);
	expect(kvl_peer_close(h->duo.a, handle), code);
	expect(kvl_notify(h->duo.a, handle, "x", 1, NULL), code);
	expect(kvl_write(h->duo.a, handle, &local, &desc, 1, NULL, &out), code);
	if (handle != KVL_LOCAL)
		expect(kvl_list_create(h->duo.a, handle, &desc, 1, &out), code);
	assert_int_equal(out, 0);
}

static void as_list(struct all *h, uint64_t handle, int code)
{
	uint32_t index = 0;
	uint64_t out = 0;

	expect(kvl_list_entries(h->duo.a, handle), code);
	expect(kvl_list_destroy(h->duo.a, handle), code);
	expect(kvl_xfer_prepare(h->duo.a, KVL_WRITE, handle, h->remote_list, NULL, &out), code);
	expect(kvl_xfer_prepare(h->duo.a, KVL_WRITE, h->local_list, handle, NULL, &out), code);
	expect(kvl_xfer_prepare_indexed(h->duo.a, KVL_WRITE, handle, &index, h->remote_list, &index, 1, NULL,
					&out),
	       code);
	assert_int_equal(out, 0);
}

static void as_xfer(struct all *h, uint64_t handle, int code)
{
	struct kvl_report report = { .size = sizeof(report) };

	expect(kvl_xfer_post(h->duo.a, handle, NULL), code);
	expect(kvl_xfer_poll(h->duo.a, handle), code);
	expect(kvl_xfer_wait(h->duo.a, handle, 0), code);
	expect(kvl_xfer_cancel(h->duo.a, handle), code);
	expect(kvl_xfer_report(h->duo.a, handle, &report), code);
	expect(kvl_xfer_stamp(h->duo.a, handle, KVL_STAMP_START, 0), code);
	expect(kvl_xfer_release(h->duo.a, handle), code);
}

static void as_everything(struct all *h, uint64_t handle, int code)
{
	as_agent(h, handle, code);
	as_mr(h, handle, code);
	as_peer(h, handle, code);
	as_list(h, handle, code);
	as_xfer(h, handle, code);
}

TEST(handles_zero)
{
	struct all h;

	all_open(&h);
	as_everything(&h, 0, KVL_ERR_INVALID);
	all_close(&h);
}

TEST(handles_garbage)
{
	static const uint64_t fixed[] = { 1,          UINT64_MAX,  UINT64_MAX - 1,
					  1ull << 63, 0xffffffffu, 0x8000000000000001u };
	uint64_t random = 1;
	struct all h;

	all_open(&h);
	for (size_t i = 0; i < COUNT(fixed); i++)
		as_everything(&h, fixed[i], 0);
	for (size_t i = 0; i < testing_rounds(500); i++)
		as_everything(&h, random_next(&random), 0);
	all_close(&h);
}

/* A good handle with one bit changed: another index, generation or kind. */
TEST(handles_with_one_bit_changed)
{
	struct all h;

	all_open(&h);
	for (int bit = 0; bit < 64; bit++) {
		as_mr(&h, h.local.mr ^ (1ull << bit), 0);
		as_peer(&h, h.duo.ab ^ (1ull << bit), 0);
		as_xfer(&h, h.xfer ^ (1ull << bit), 0);
		/* Of two lists, one bit may be the way from one to the other. */
		if ((h.local_list ^ (1ull << bit)) != h.remote_list)
			as_list(&h, h.local_list ^ (1ull << bit), 0);
		if ((h.duo.a ^ (1ull << bit)) != h.duo.b)
			as_agent(&h, h.duo.a ^ (1ull << bit), 0);
	}
	all_close(&h);
}

TEST(handles_of_another_kind)
{
	uint64_t kinds[5];
	void (*const as[5])(struct all *, uint64_t, int) = { as_agent, as_mr, as_peer, as_list, as_xfer };
	struct all h;

	all_open(&h);
	kinds[0] = h.duo.a;
	kinds[1] = h.local.mr;
	kinds[2] = h.duo.ab;
	kinds[3] = h.local_list;
	kinds[4] = h.xfer;
	for (size_t i = 0; i < 5; i++)
		for (size_t k = 0; k < 5; k++)
			if (i != k)
				as[i](&h, kinds[k], KVL_ERR_INVALID);
	all_close(&h);
}

/* The other agent's objects, by their index, may exist here too: they must not be taken for them. */
TEST(handles_of_another_agent)
{
	struct kvl_desc desc;
	kvl_list_t list;
	kvl_xfer_t xfer, out = 0;
	kvl_mr_t mr;
	struct all h;

	all_open(&h);
	mr = h.remote.mr;
	desc = desc_of(h.remote.data, 1);
	assert_ok(kvl_list_create(h.duo.b, KVL_LOCAL, &desc, 1, &list));
	assert_ok(kvl_write(h.duo.b, h.duo.ba, NULL, NULL, 0, NULL, &xfer));
	assert_int_equal(kvl_xfer_wait(h.duo.b, xfer, PATIENCE), 0);
	expect(kvl_mem_deregister(h.duo.a, &mr, 1), 0);
	expect(kvl_peer_close(h.duo.a, h.duo.ba), 0);
	expect(kvl_list_entries(h.duo.a, list), 0);
	expect(kvl_xfer_prepare(h.duo.a, KVL_WRITE, list, h.remote_list, NULL, &out), 0);
	expect(kvl_xfer_poll(h.duo.a, xfer), 0);
	expect(kvl_xfer_release(h.duo.a, xfer), 0);
	assert_ok(kvl_xfer_release(h.duo.b, xfer));
	all_close(&h);
}

TEST(handles_of_an_earlier_life)
{
	struct kvl_desc local, remote;
	kvl_list_t list;
	kvl_xfer_t xfer;
	kvl_mr_t mr;
	struct kvl_mem mem;
	struct all h;

	all_open(&h);
	mem = memory_of(&local, 1, 0);
	local = desc_of(h.local.data, LEN);
	remote = desc_of(h.remote.data, LEN);
	assert_ok(kvl_list_create(h.duo.a, h.duo.ab, &remote, 1, &list));
	assert_ok(kvl_list_destroy(h.duo.a, list));
	assert_ok(kvl_write(h.duo.a, h.duo.ab, &local, &remote, 1, NULL, &xfer));
	assert_int_equal(duo_wait(&h.duo, xfer), 0);
	assert_ok(kvl_xfer_release(h.duo.a, xfer));
	assert_ok(kvl_mem_register(h.duo.a, &mem, 1, &mr));
	assert_ok(kvl_mem_deregister(h.duo.a, &mr, 1));
	for (size_t i = 0; i < testing_rounds(1000); i++) {
		kvl_list_t newer;

		as_list(&h, list, KVL_ERR_STALE);
		as_xfer(&h, xfer, KVL_ERR_STALE);
		as_mr(&h, mr, KVL_ERR_STALE);
		assert_ok(kvl_list_create(h.duo.a, h.duo.ab, &remote, 1, &newer));
		assert_int_not_equal(newer, list);
		assert_ok(kvl_list_destroy(h.duo.a, newer));
	}
	all_close(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(handles_zero),
		cmocka_unit_test(handles_garbage),
		cmocka_unit_test(handles_with_one_bit_changed),
		cmocka_unit_test(handles_of_another_kind),
		cmocka_unit_test(handles_of_another_agent),
		cmocka_unit_test(handles_of_an_earlier_life),
	};

	return TESTING_RUN(tests, 30);
}
