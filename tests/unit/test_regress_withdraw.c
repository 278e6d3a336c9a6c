/* SPDX-License-Identifier: Apache-2.0 */
/* Withdrawn memory is left alone, and the withdrawal tells the truth about peers that are inside a copy. */
#include "testing_raw.h"

#include <poll.h>
#include <string.h>

#define LEN (256 * KIB)

static const char *const paths[] = { "map,copy,slot", "copy,slot", "slot" };

struct retracted {
	kvl_agent_t owner, user;
	kvl_peer_t peer;
	struct buffer local, remote;
};

/* The user has no worker: what it posts waits until it is driven. */
static void retracted_open(struct retracted *r, const char *allowed)
{
	struct kvl_config config;

	kvl_config_init(&config);
	config.local_paths = allowed;
	config.workers = KVL_NO_WORKERS;
	config.small_bytes = 4096;
	assert_ok(kvl_agent_open("owner", NULL, &r->owner));
	assert_ok(kvl_agent_open("user", &config, &r->user));
	buffer_open(&r->local, r->user, BUFFER_ALLOC, LEN, 0);
	buffer_open(&r->remote, r->owner, strncmp(allowed, "map", 3) ? BUFFER_PLAIN : BUFFER_FD, LEN, 0);
	r->peer = connect_to(r->user, r->owner);
	memset(r->local.data, 1, LEN);
	memset(r->remote.data, 2, LEN);
}

static void retracted_close(struct retracted *r)
{
	assert_ok(kvl_agent_close(r->user, SECOND));
	assert_ok(kvl_agent_close(r->owner, SECOND));
	buffer_free(&r->remote);
}

TEST(request_of_a_retracted_region_ends_stale_and_moves_nothing)
{
	for (size_t i = 0; i < 2 * COUNT(paths); i++) {
		struct kvl_report report = { .size = sizeof(report) };
		struct kvl_desc local, remote;
		struct retracted r;
		kvl_xfer_t xfer;

		retracted_open(&r, paths[i / 2]);
		local = desc_of(r.local.data, LEN);
		remote = desc_of(r.remote.data, LEN);
		if (i % 2)
			assert_ok(kvl_read(r.user, r.peer, &local, &remote, 1, NULL, &xfer));
		else
			assert_ok(kvl_write(r.user, r.peer, &local, &remote, 1, NULL, &xfer));
		assert_ok(kvl_mem_deregister(r.owner, &r.remote.mr, 1));
		connect_update(r.user, r.peer, r.owner);
		assert_int_equal(kvl_xfer_wait(r.user, xfer, PATIENCE), KVL_ERR_STALE);
		assert_ok(kvl_xfer_report(r.user, xfer, &report));
		assert_int_equal(report.bytes, 0);
		assert_int_equal(bytes_not(r.local.data, LEN, 1), 0);
		assert_int_equal(bytes_not(r.remote.data, LEN, 2), 0);
		retracted_close(&r);
	}
}

#define REGIONS 5

/* The owner of some regions, the first registered twice, and a peer inside a copy of lane 0. */
struct owner {
	kvl_agent_t agent;
	struct raw_initiator raw;
	unsigned char memory[REGIONS][64];
	kvl_mr_t mr[REGIONS];
};

static void owner_open(struct owner *o)
{
	struct kvl_mem mem[REGIONS];

	for (size_t i = 0; i < REGIONS; i++)
		mem[i] = memory_of(o->memory[i], sizeof(o->memory[i]), 0);
	assert_ok(kvl_agent_open("owner", NULL, &o->agent));
	assert_ok(kvl_mem_register(o->agent, mem, REGIONS, o->mr));
	assert_ok(kvl_mem_register(o->agent, mem, 1, o->mr));
	raw_initiator_open_to(&o->raw, o->agent, 2, 4096);
	raw_initiator_busy(&o->raw, 0, 1);
}

static void owner_close(struct owner *o)
{
	raw_initiator_close(&o->raw);
	assert_ok(kvl_agent_close(o->agent, SECOND));
}

/* Also: the time is that of the call, however many regions it names. */
TEST(deregister_called_again_drops_each_count_once)
{
	struct owner o;
	uint64_t start;

	owner_open(&o);
	start = kvl_now();
	assert_refused(kvl_mem_deregister(o.agent, o.mr, REGIONS), KVL_ERR_TIMED_OUT);
	assert_true(kvl_now() - start < 1500 * MS);
	raw_initiator_busy(&o.raw, 0, 2);
	assert_ok(kvl_mem_deregister(o.agent, o.mr, REGIONS));
	assert_ok(kvl_mem_deregister(o.agent, o.mr, 1)); /* the second registration is still there */
	assert_refused(kvl_mem_deregister(o.agent, o.mr, 1), KVL_ERR_STALE);
	owner_close(&o);
}

/* The connection is given up for what one lane said; its other lane copies on all the same. */
TEST(deregister_waits_for_a_copy_of_a_connection_that_broke)
{
	struct owner o;
	struct pollfd p;

	owner_open(&o);
	raw_initiator_corrupt(&o.raw, 1);
	p = (struct pollfd){ .fd = o.raw.sock, .events = POLLIN };
	poll(&p, 1, 500); /* the target hangs up, if it does */
	assert_refused(kvl_mem_deregister(o.agent, &o.mr[1], 1), KVL_ERR_TIMED_OUT);
	raw_initiator_busy(&o.raw, 0, 2);
	assert_ok(kvl_mem_deregister(o.agent, &o.mr[1], 1));
	owner_close(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(request_of_a_retracted_region_ends_stale_and_moves_nothing),
		cmocka_unit_test(deregister_called_again_drops_each_count_once),
		cmocka_unit_test(deregister_waits_for_a_copy_of_a_connection_that_broke),
	};

	return TESTING_RUN(tests, 30);
}
