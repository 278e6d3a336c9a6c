/* SPDX-License-Identifier: Apache-2.0 */
/* F31: exactly one notification for each request that has one, also when the work ends inside the post. */
#include "testing.h"

#include <stdlib.h>
#include <string.h>

#define LEN 4096u

struct pairing {
	struct duo duo;
	struct buffer local, remote;
	const char *from; /* who the notifications come from */
};

static void pairing_open(struct pairing *p, uint32_t workers)
{
	struct kvl_config config;

	kvl_config_init(&config);
	config.workers = workers;
	duo_open(&p->duo, &config);
	buffer_open(&p->local, p->duo.a, BUFFER_ALLOC, LEN, 0);
	buffer_open(&p->remote, p->duo.b, BUFFER_ALLOC, LEN, 0);
	duo_connect(&p->duo);
	p->from = "duo-a";
}

/* To self: both ends are b, so that duo_* can drive and close as always. */
static void loopback_open(struct pairing *p)
{
	pairing_open(p, 1);
	assert_ok(kvl_agent_close(p->duo.a, SECOND));
	p->duo.a = p->duo.b;
	p->duo.ab = p->duo.ba = connect_to(p->duo.b, p->duo.b);
	p->from = "duo-b";
	buffer_open(&p->local, p->duo.b, BUFFER_ALLOC, LEN, 0);
}

static void take_one(struct pairing *p, const void *data, uint64_t len)
{
	struct kvl_notif *notif = duo_notif(&p->duo, p->duo.b);

	assert_non_null(notif);
	assert_int_equal(notif->len, len);
	if (len)
		assert_memory_equal(notif->data, data, len);
	assert_string_equal(notif->peer, p->from);
	kvl_notif_free(notif);
}

/* A request of `bytes` bytes (0: empty lists); data is there when the notification is. */
static void one_each(struct pairing *p, enum kvl_op op, uint64_t bytes, const void *data, uint64_t len)
{
	struct kvl_xfer_opts opts = {
		.size = sizeof(opts), .flags = KVL_XFER_NOTIFY, .notif = data, .notif_len = len
	};
	struct kvl_desc local = desc_of(p->local.data, bytes), remote = desc_of(p->remote.data, bytes);
	kvl_xfer_t xfer;

	memset(p->local.data, 5, LEN);
	memset(p->remote.data, op == KVL_WRITE ? 0 : 5, LEN);
	if (op == KVL_WRITE)
		assert_ok(kvl_write(p->duo.a, p->duo.ab, &local, &remote, bytes ? 1 : 0, &opts, &xfer));
	else
		assert_ok(kvl_read(p->duo.a, p->duo.ab, &local, &remote, bytes ? 1 : 0, &opts, &xfer));
	take_one(p, data, len);
	assert_int_equal(bytes_not(p->remote.data, bytes, 5), 0);
	assert_int_equal(duo_wait(&p->duo, xfer), 0);
	assert_ok(kvl_xfer_release(p->duo.a, xfer));
}

static void all_kinds(struct pairing *p)
{
	static const enum kvl_op op[] = { KVL_WRITE, KVL_READ };

	for (size_t i = 0; i < COUNT(op); i++) {
		one_each(p, op[i], 1, "one byte", 8);
		one_each(p, op[i], 1, "", 0);
		one_each(p, op[i], 0, "no entries", 10);
		one_each(p, op[i], 0, "", 0);
		one_each(p, op[i], LEN, "a page", 6);
	}
	assert_true(duo_quiet(&p->duo, p->duo.b));
}

TEST(f31_to_an_agent_of_this_process)
{
	struct pairing p;

	pairing_open(&p, 1);
	all_kinds(&p);
	duo_close(&p.duo);
}

TEST(f31_without_worker)
{
	struct pairing p;

	pairing_open(&p, KVL_NO_WORKERS);
	all_kinds(&p);
	duo_close(&p.duo);
}

TEST(f31_to_self)
{
	struct pairing p;

	loopback_open(&p);
	all_kinds(&p);
	assert_ok(kvl_agent_close(p.duo.b, 5 * SECOND));
}

/* Posted again and again: one notification a post, the one that the post names, or none when it says so. */
TEST(f31_one_for_each_post_again)
{
	struct kvl_xfer_opts opts = {
		.size = sizeof(opts), .flags = KVL_XFER_NOTIFY, .notif = "as prepared", .notif_len = 11
	};
	struct kvl_post renew = {
		.size = sizeof(renew), .flags = KVL_POST_NOTIFY, .notif = "new", .notif_len = 3
	};
	struct kvl_post none = { .size = sizeof(none), .flags = KVL_POST_NO_NOTIFY };
	const struct {
		const struct kvl_post *post;
		const char *expect;
	} step[] = { { NULL, "as prepared" }, { &renew, "new" }, { NULL, "new" }, { &none, NULL },
		     { NULL, NULL },          { &renew, "new" }, { NULL, "new" } };
	struct kvl_desc local, remote;
	struct pairing p;
	kvl_xfer_t xfer;

	pairing_open(&p, 1);
	local = desc_of(p.local.data, 1);
	remote = desc_of(p.remote.data, 1);
	assert_ok(kvl_write(p.duo.a, p.duo.ab, &local, &remote, 1, &opts, &xfer));
	assert_int_equal(duo_wait(&p.duo, xfer), 0);
	take_one(&p, "as prepared", 11);
	for (size_t i = 0; i < COUNT(step); i++) {
		assert_ok(kvl_xfer_post(p.duo.a, xfer, step[i].post));
		assert_int_equal(duo_wait(&p.duo, xfer), 0);
		if (step[i].expect)
			take_one(&p, step[i].expect, strlen(step[i].expect));
		assert_true(duo_quiet(&p.duo, p.duo.b));
	}
	assert_ok(kvl_xfer_release(p.duo.a, xfer));
	duo_close(&p.duo);
}

/* -------------------------------------------------------------------------------------- to another process
 */

static void receiver(int sock, void *arg)
{
	struct kvl_notif *notif;
	unsigned char *data;
	kvl_agent_t agent;
	void *addr;
	kvl_mr_t mr;

	must_ok(kvl_agent_open("receiver", NULL, &agent));
	must_ok(kvl_mem_alloc(agent, LEN, 0, &addr, &mr));
	sock_put(sock, &addr, sizeof(addr));
	sock_put_agent(sock, agent);
	data = addr;
	for (int i = 0; i < 2; i++) {
		must(kvl_agent_wait(agent, PATIENCE) == 1);
		must_ok(kvl_notif_next(agent, &notif));
		must(notif->len == 8 && memcmp(notif->data, i ? "no bytes" : "one byte", 8) == 0);
		must(data[0] == 77);
		kvl_notif_free(notif);
	}
	must(kvl_notif_next(agent, &notif) == KVL_ERR_AGAIN);
	must_ok(kvl_agent_close(agent, SECOND));
	(void)arg;
}

TEST(f31_to_another_process)
{
	struct kvl_xfer_opts opts = {
		.size = sizeof(opts), .flags = KVL_XFER_NOTIFY, .notif_len = 8, .lane = KVL_LANE(0)
	};
	unsigned char byte = 77;
	struct kvl_mem mem = memory_of(&byte, 1, 0);
	struct kvl_desc local = desc_of(&byte, 1), remote;
	struct other other;
	kvl_agent_t agent;
	kvl_peer_t peer;
	kvl_xfer_t xfer[2];
	kvl_mr_t mr;
	void *addr;

	other_start(&other, receiver, NULL);
	assert_ok(kvl_agent_open("sender", NULL, &agent));
	assert_ok(kvl_mem_register(agent, &mem, 1, &mr));
	sock_get(other.sock, &addr, sizeof(addr), sizeof(addr));
	peer = sock_get_agent(other.sock, agent);
	remote = desc_of(addr, 1);
	opts.notif = "one byte";
	assert_ok(kvl_write(agent, peer, &local, &remote, 1, &opts, &xfer[0]));
	opts.notif = "no bytes";
	assert_ok(kvl_write(agent, peer, NULL, NULL, 0, &opts, &xfer[1]));
	assert_int_equal(kvl_xfer_wait(agent, xfer[0], PATIENCE), 0);
	assert_int_equal(kvl_xfer_wait(agent, xfer[1], PATIENCE), 0);
	assert_int_equal(other_end(&other), 0);
	assert_ok(kvl_agent_close(agent, SECOND));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(f31_to_an_agent_of_this_process),
		cmocka_unit_test(f31_without_worker),
		cmocka_unit_test(f31_to_self),
		cmocka_unit_test(f31_one_for_each_post_again),
		cmocka_unit_test(f31_to_another_process),
	};

	return TESTING_RUN(tests, 30);
}
