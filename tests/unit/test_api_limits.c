/* SPDX-License-Identifier: Apache-2.0 */
/* Every limit that is set reaches the engine: shown by kvl_agent_limits() and by what the engine does. */
#include "testing.h"

#include <stdlib.h>
#include <string.h>

#define LEN (256 * KIB)

struct bench {
	struct duo duo;
	struct buffer local, remote;
	struct kvl_desc from, to;
};

static void bench_open(struct bench *b, const struct kvl_config *config)
{
	duo_open(&b->duo, config);
	buffer_open(&b->local, b->duo.a, BUFFER_ALLOC, LEN, 0);
	buffer_open(&b->remote, b->duo.b, BUFFER_ALLOC, LEN, 0);
	duo_connect(&b->duo);
	b->from = desc_of(b->local.data, LEN);
	b->to = desc_of(b->remote.data, LEN);
}

/* No workers, and nothing of LEN bytes ends inside its post. */
static struct kvl_config driven_config(void)
{
	struct kvl_config config;

	kvl_config_init(&config);
	config.workers = KVL_NO_WORKERS;
	config.small_bytes = 4096;
	config.chunk_bytes = 16 * KIB;
	config.window = 1;
	return config;
}

static struct kvl_limits limits_of(kvl_agent_t agent)
{
	struct kvl_limits limits = { .size = sizeof(limits) };

	assert_ok(kvl_agent_limits(agent, &limits));
	return limits;
}

static kvl_xfer_t request(struct bench *b, uint64_t len, const struct kvl_xfer_opts *opts)
{
	struct kvl_desc from = desc_of(b->local.data, len), to = desc_of(b->remote.data, len);
	kvl_list_t lists[2];
	kvl_xfer_t xfer = 0;

	assert_ok(kvl_list_create(b->duo.a, KVL_LOCAL, &from, 1, &lists[0]));
	assert_ok(kvl_list_create(b->duo.a, b->duo.ab, &to, 1, &lists[1]));
	assert_ok(kvl_xfer_prepare(b->duo.a, KVL_WRITE, lists[0], lists[1], opts, &xfer));
	assert_ok(kvl_list_destroy(b->duo.a, lists[0]));
	assert_ok(kvl_list_destroy(b->duo.a, lists[1]));
	return xfer;
}

static struct kvl_report report_of(struct bench *b, kvl_xfer_t xfer)
{
	struct kvl_report report = { .size = sizeof(report) };

	assert_ok(kvl_xfer_report(b->duo.a, xfer, &report));
	return report;
}

static struct kvl_report run(struct bench *b, kvl_xfer_t xfer)
{
	struct kvl_report report;

	assert_ok(kvl_xfer_post(b->duo.a, xfer, NULL));
	assert_int_equal(duo_wait(&b->duo, xfer), 0);
	report = report_of(b, xfer);
	assert_ok(kvl_xfer_release(b->duo.a, xfer));
	return report;
}

TEST(limits_defaults)
{
	struct kvl_limits limits;
	struct duo duo;

	duo_open(&duo, NULL);
	limits = limits_of(duo.a);
	assert_string_equal(limits.wire, "local");
	assert_int_equal(limits.workers, 1);
	assert_int_equal(limits.lanes, 4);
	assert_int_equal(limits.latency_lanes, 1);
	assert_int_equal(limits.queue_depth, 1024);
	assert_int_equal(limits.max_requests, 16384);
	assert_int_equal(limits.max_regions, 65536);
	assert_int_equal(limits.max_peers, 1024);
	assert_int_equal(limits.max_region_bytes, 1ull << 56);
	assert_int_equal(limits.small_bytes, 65536);
	assert_int_equal(limits.chunk_bytes, 262144);
	assert_int_equal(limits.window, 16);
	assert_int_equal(limits.ring_bytes, 65536);
	assert_int_equal(limits.notif_max_bytes, MIB);
	assert_int_equal(limits.notif_queue_bytes, 64 * MIB);
	assert_int_equal(limits.deadline_ms, 30000);
	assert_int_equal(limits.connect_timeout_ms, 5000);
	assert_int_equal(limits.retire_order, KVL_RETIRE_LANE);
	duo_close(&duo);
}

TEST(limits_queue_depth)
{
	struct kvl_xfer_opts opts = { .size = sizeof(opts), .lane = KVL_LANE(2) };
	struct kvl_config config = driven_config();
	kvl_xfer_t xfer[3];
	struct bench b;

	config.queue_depth = 2;
	bench_open(&b, &config);
	assert_int_equal(limits_of(b.duo.a).queue_depth, 2);
	for (size_t i = 0; i < 3; i++)
		xfer[i] = request(&b, LEN, &opts);
	assert_ok(kvl_xfer_post(b.duo.a, xfer[0], NULL));
	assert_ok(kvl_xfer_post(b.duo.a, xfer[1], NULL));
	assert_int_equal(kvl_xfer_post(b.duo.a, xfer[2], NULL), KVL_ERR_AGAIN);
	assert_int_equal(kvl_xfer_poll(b.duo.a, xfer[2]), KVL_ERR_NOT_POSTED);
	assert_int_equal(duo_wait(&b.duo, xfer[0]), 0);
	assert_ok(kvl_xfer_post(b.duo.a, xfer[2], NULL));
	assert_int_equal(duo_wait(&b.duo, xfer[2]), 0);
	duo_close(&b.duo);
}

TEST(limits_max_requests)
{
	struct kvl_config config = driven_config();
	kvl_list_t lists[2];
	kvl_xfer_t xfer[5] = { 0 };
	struct bench b;

	config.max_requests = 4;
	bench_open(&b, &config);
	assert_int_equal(limits_of(b.duo.a).max_requests, 4);
	for (size_t i = 0; i < 4; i++)
		xfer[i] = request(&b, 1, NULL);
	assert_ok(kvl_list_create(b.duo.a, KVL_LOCAL, &b.from, 1, &lists[0]));
	assert_ok(kvl_list_create(b.duo.a, b.duo.ab, &b.to, 1, &lists[1]));
	assert_int_equal(kvl_xfer_prepare(b.duo.a, KVL_WRITE, lists[0], lists[1], NULL, &xfer[4]),
			 KVL_ERR_AGAIN);
	assert_int_equal(kvl_write(b.duo.a, b.duo.ab, &b.from, &b.to, 1, NULL, &xfer[4]), KVL_ERR_AGAIN);
	assert_int_equal(xfer[4], 0);
	assert_ok(kvl_xfer_release(b.duo.a, xfer[1]));
	assert_ok(kvl_xfer_prepare(b.duo.a, KVL_WRITE, lists[0], lists[1], NULL, &xfer[4]));
	run(&b, xfer[4]);
	duo_close(&b.duo);
}

TEST(limits_max_regions)
{
	static unsigned char memory[3];
	struct kvl_config config;
	struct kvl_mem mem[3];
	kvl_agent_t agent;
	kvl_mr_t mr[3];
	void *addr = NULL;

	kvl_config_init(&config);
	config.max_regions = 2;
	assert_ok(kvl_agent_open("regions", &config, &agent));
	assert_int_equal(limits_of(agent).max_regions, 2);
	for (size_t i = 0; i < 3; i++)
		mem[i] = memory_of(&memory[i], 1, 0);
	assert_refused_at(kvl_mem_register(agent, mem, 3, mr), KVL_ERR_LIMIT, 2);
	assert_message("max_regions");
	assert_ok(kvl_mem_register(agent, mem, 2, mr));
	assert_ok(kvl_mem_register(agent, mem, 2, mr)); /* a repeat needs no slot */
	assert_refused(kvl_mem_alloc(agent, 1, 0, &addr, &mr[2]), KVL_ERR_LIMIT);
	assert_ok(kvl_mem_deregister(agent, (kvl_mr_t[]){ mr[0], mr[0] }, 2));
	assert_ok(kvl_mem_register(agent, &mem[2], 1, &mr[2]));
	assert_ok(kvl_agent_close(agent, SECOND));
}

TEST(limits_max_peers)
{
	struct kvl_limits limits;
	struct kvl_config config;
	kvl_agent_t hub, leaf[3];
	kvl_peer_t peer[3] = { 0 };
	size_t len;
	void *bytes;

	kvl_config_init(&config);
	config.max_peers = 2;
	assert_ok(kvl_agent_open("hub", &config, &hub));
	limits = limits_of(hub);
	assert_int_equal(limits.max_peers, 2);
	for (size_t i = 0; i < 3; i++)
		assert_ok(kvl_agent_open("leaf", NULL, &leaf[i]));
	peer[0] = connect_to(hub, leaf[0]);
	peer[1] = connect_to(hub, leaf[1]);
	bytes = metadata_of(leaf[2], &len);
	assert_refused(kvl_peer_connect(hub, bytes, len, 0, &peer[2]), KVL_ERR_LIMIT);
	assert_message("max_peers");
	assert_ok(kvl_peer_close(hub, peer[0]));
	assert_ok(kvl_peer_connect(hub, bytes, len, 0, &peer[2]));
	free(bytes);
	assert_ok(kvl_agent_close(hub, SECOND));
	for (size_t i = 0; i < 3; i++)
		assert_ok(kvl_agent_close(leaf[i], SECOND));
}

TEST(limits_lanes)
{
	struct kvl_xfer_opts opts = { .size = sizeof(opts) };
	struct kvl_config config = driven_config();
	kvl_list_t lists[2];
	kvl_xfer_t xfer = 0;
	struct bench b;

	config.lanes = 6;
	config.latency_lanes = 2;
	bench_open(&b, &config);
	for (uint32_t i = 0; i < 6; i++) {
		opts.lane = KVL_LANE(i);
		assert_int_equal(run(&b, request(&b, 64, &opts)).lane, i);
	}
	assert_ok(kvl_list_create(b.duo.a, KVL_LOCAL, &b.from, 1, &lists[0]));
	assert_ok(kvl_list_create(b.duo.a, b.duo.ab, &b.to, 1, &lists[1]));
	opts.lane = KVL_LANE(6);
	assert_refused(kvl_xfer_prepare(b.duo.a, KVL_WRITE, lists[0], lists[1], &opts, &xfer),
		       KVL_ERR_INVALID);
	assert_refused(kvl_notify(b.duo.a, b.duo.ab, "x", 1, &opts), KVL_ERR_INVALID);
	opts.lane = 5;
	assert_refused(kvl_xfer_prepare(b.duo.a, KVL_WRITE, lists[0], lists[1], &opts, &xfer),
		       KVL_ERR_INVALID);
	opts.lane = KVL_LANE_LATENCY;
	assert_in_range(run(&b, request(&b, LEN, &opts)).lane, 0, 1);
	opts.lane = KVL_LANE_BULK;
	assert_in_range(run(&b, request(&b, 1, &opts)).lane, 2, 5);
	duo_close(&b.duo);
}

/* small_bytes decides the class of a request that names none. */
TEST(limits_small_bytes)
{
	struct kvl_config config = driven_config();
	struct bench b;

	config.small_bytes = 1000;
	config.lanes = 3;
	bench_open(&b, &config);
	assert_int_equal(limits_of(b.duo.a).small_bytes, 1000);
	assert_int_equal(run(&b, request(&b, 1, NULL)).lane, 0);
	assert_int_equal(run(&b, request(&b, 1000, NULL)).lane, 0);
	assert_in_range(run(&b, request(&b, 1001, NULL)).lane, 1, 2);
	assert_in_range(run(&b, request(&b, LEN, NULL)).lane, 1, 2);
	duo_close(&b.duo);
}

TEST(limits_chunk_bytes)
{
	static const uint64_t chunk[] = { 4096, 64 * KIB, LEN };

	for (size_t i = 0; i < COUNT(chunk); i++) {
		struct kvl_config config = driven_config();
		struct kvl_report report;
		struct bench b;

		config.chunk_bytes = chunk[i];
		bench_open(&b, &config);
		report = run(&b, request(&b, LEN, NULL));
		assert_int_equal(report.chunks, LEN / chunk[i]);
		assert_int_equal(report.pieces, 1);
		duo_close(&b.duo);
	}
}

/* One pass of progress hands at most a window of chunks to one lane. */
TEST(limits_window)
{
	struct kvl_config config = driven_config();
	struct kvl_report report;
	struct bench b;
	kvl_xfer_t xfer;

	config.chunk_bytes = 4096;
	config.window = 2;
	bench_open(&b, &config);
	assert_int_equal(limits_of(b.duo.a).window, 2);
	xfer = request(&b, LEN, NULL);
	assert_ok(kvl_xfer_post(b.duo.a, xfer, NULL));
	report = report_of(&b, xfer);
	assert_true(report.status == KVL_PENDING && report.bytes <= 2 * 4096);
	assert_int_equal(duo_wait(&b.duo, xfer), 0);
	duo_close(&b.duo);
}

TEST(limits_notif_max_bytes)
{
	struct kvl_config config = driven_config();
	unsigned char *data = calloc(1, 2 * MIB + 1);
	struct kvl_notif *notif;
	struct bench b;

	assert_non_null(data);
	config.notif_max_bytes = 2 * MIB;
	bench_open(&b, &config);
	assert_refused(kvl_notify(b.duo.a, b.duo.ab, data, 2 * MIB + 1, NULL), KVL_ERR_LIMIT);
	bytes_fill(data, 2 * MIB, 1, 0, 1);
	assert_ok(kvl_notify(b.duo.a, b.duo.ab, data, 2 * MIB, NULL));
	notif = duo_notif(&b.duo, b.duo.b);
	assert_non_null(notif);
	assert_int_equal(notif->len, 2 * MIB);
	assert_int_equal(bytes_wrong(notif->data, 2 * MIB, 1, 0, 1), 0);
	kvl_notif_free(notif);
	duo_close(&b.duo);
	free(data);
}

/* A deadline that passes ends the request although nobody posts or drives anything: a poll is one load. */
TEST(limits_deadline)
{
	struct kvl_post longer = { .size = sizeof(longer), .deadline_ns = PATIENCE };
	struct kvl_config config = driven_config();
	struct bench b;
	kvl_xfer_t xfer;
	uint64_t start;
	int code;

	config.deadline_ms = 20;
	bench_open(&b, &config);
	assert_int_equal(limits_of(b.duo.a).deadline_ms, 20);
	xfer = request(&b, LEN, NULL);
	start = kvl_now();
	assert_ok(kvl_xfer_post(b.duo.a, xfer, NULL));
	while ((code = kvl_xfer_poll(b.duo.a, xfer)) == KVL_PENDING)
		assert_true(kvl_now() - start < PATIENCE);
	assert_int_equal(code, KVL_ERR_TIMED_OUT);
	assert_in_range(kvl_now() - start, 20 * MS, 2 * SECOND);
	assert_true(report_of(&b, xfer).bytes < LEN);
	/* The lane is open again, and the request can be posted again. */
	assert_ok(kvl_xfer_post(b.duo.a, xfer, &longer));
	assert_int_equal(duo_wait(&b.duo, xfer), 0);
	duo_close(&b.duo);
}

TEST(limits_connect_timeout)
{
	struct kvl_config config = driven_config();
	kvl_agent_t deaf, agent;
	kvl_peer_t peer = 0;
	size_t len;
	void *bytes;
	uint64_t start;
	int code;

	assert_ok(kvl_agent_open("deaf", &config, &deaf)); /* no one makes its progress */
	config.connect_timeout_ms = 50;
	assert_ok(kvl_agent_open("caller", &config, &agent));
	bytes = metadata_of(deaf, &len);
	start = kvl_now();
	code = kvl_peer_connect(agent, bytes, len, 0, &peer);
	print_message("connect to an agent that no one drives: %s\n", kvl_error_name(code));
	assert_true(code == KVL_ERR_TIMED_OUT || code == 0);
	if (code)
		assert_in_range(kvl_now() - start, 50 * MS, 2 * SECOND);
	free(bytes);
	assert_ok(kvl_agent_close(agent, SECOND));
	assert_ok(kvl_agent_close(deaf, SECOND));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limits_defaults),     cmocka_unit_test(limits_queue_depth),
		cmocka_unit_test(limits_max_requests), cmocka_unit_test(limits_max_regions),
		cmocka_unit_test(limits_max_peers),    cmocka_unit_test(limits_lanes),
		cmocka_unit_test(limits_small_bytes),  cmocka_unit_test(limits_chunk_bytes),
		cmocka_unit_test(limits_window),       cmocka_unit_test(limits_notif_max_bytes),
		cmocka_unit_test(limits_deadline),     cmocka_unit_test(limits_connect_timeout),
	};

	return TESTING_RUN(tests, 30);
}
