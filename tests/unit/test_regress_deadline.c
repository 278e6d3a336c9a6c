/* SPDX-License-Identifier: Apache-2.0 */
/* A deadline ends its request, whatever a peer that stands still has begun. */
#include "testing_raw.h"

#include <string.h>

#define LEN   (64 * KIB)
#define LIMIT (200 * MS)

/* An agent, and a target that takes what is sent and answers nothing. */
struct still {
	struct raw_target raw;
	kvl_agent_t agent;
	kvl_peer_t peer;
	struct buffer local;
	struct kvl_desc from, to;
};

static void still_open(struct still *s, struct kvl_config *config)
{
	const uint64_t addr = 0x10000;

	config->local_paths = "slot";
	raw_target_open(&s->raw, &addr, 1, LEN);
	assert_ok(kvl_agent_open("agent", config, &s->agent));
	buffer_open(&s->local, s->agent, BUFFER_ALLOC, LEN, 0);
	s->peer = raw_target_connect(&s->raw, s->agent);
	s->from = desc_of(s->local.data, 64);
	s->to = (struct kvl_desc){ .addr = addr, .len = 64 };
}

static void still_close(struct still *s)
{
	assert_ok(kvl_agent_close(s->agent, SECOND));
	raw_target_close(&s->raw);
}

static void in_time(kvl_agent_t agent, kvl_xfer_t xfer, uint64_t start)
{
	assert_int_equal(kvl_xfer_wait(agent, xfer, 3 * SECOND), KVL_ERR_TIMED_OUT);
	assert_in_range(kvl_now() - start, LIMIT, LIMIT + SECOND);
}

/* The target is inside the copy of the operation, and does not come out of it. */
TEST(deadline_passes_while_the_target_stands_inside_a_copy)
{
	struct kvl_xfer_opts opts = { .size = sizeof(opts), .lane = KVL_LANE(0), .deadline_ns = LIMIT };
	struct kvl_config config;
	struct still s;

	kvl_config_init(&config);
	still_open(&s, &config);
	word64_exchange_seq_sys(&segment_lane(s.raw.segment, 0)->serving, 1);
	for (int i = 0; i < 2; i++) {
		uint64_t start = kvl_now();
		kvl_xfer_t xfer;

		if (i == 0)
			assert_ok(kvl_write(s.agent, s.peer, &s.from, &s.to, 1, &opts, &xfer));
		else
			assert_ok(kvl_read(s.agent, s.peer, &s.from, &s.to, 1, &opts, &xfer));
		in_time(s.agent, xfer, start);
		assert_ok(kvl_xfer_release(s.agent, xfer));
	}
	still_close(&s);
}

/* One completion list for all lanes holds nobody past its deadline. */
TEST(deadline_passes_behind_an_older_request_in_global_order)
{
	struct kvl_xfer_opts opts = { .size = sizeof(opts), .deadline_ns = LIMIT };
	struct kvl_xfer_opts longer = { .size = sizeof(longer), .deadline_ns = PATIENCE };
	kvl_xfer_t older, younger;
	struct kvl_config config;
	struct still s;
	kvl_peer_t self;
	uint64_t start;
	struct kvl_desc to;

	kvl_config_init(&config);
	config.retire_order = KVL_RETIRE_GLOBAL;
	still_open(&s, &config);
	self = connect_to(s.agent, s.agent);
	to = desc_of(s.local.data + 64, 64);
	start = kvl_now();
	assert_ok(kvl_write(s.agent, s.peer, &s.from, &s.to, 1, &longer, &older));
	assert_ok(kvl_write(s.agent, self, &s.from, &to, 1, &opts, &younger));
	in_time(s.agent, younger, start);
	assert_int_equal(kvl_xfer_poll(s.agent, older), KVL_PENDING);
	still_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deadline_passes_while_the_target_stands_inside_a_copy),
		cmocka_unit_test(deadline_passes_behind_an_older_request_in_global_order),
	};

	return TESTING_RUN(tests, 30);
}
