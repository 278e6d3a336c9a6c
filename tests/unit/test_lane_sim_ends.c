/* SPDX-License-Identifier: Apache-2.0 */
/* Early ends over the sim wire: deadlines, cancels, withdrawn memory and a closed peer while chunks are in
 * flight. */
#include "testing.h"

#include <stdlib.h>
#include <string.h>

#define LANES  4u
#define PIECES 24u
#define LEN    (16 * KIB)
#define MEMORY (PIECES * LEN)

static struct {
	struct duo duo;
	struct buffer local, remote;
	kvl_xfer_t xfer[PIECES];
} s;

static void case_open(const char *sim)
{
	struct kvl_config config = {
		.size = sizeof(config),
		.wire = "sim",
		.sim = sim,
		.workers = KVL_NO_WORKERS,
		.lanes = LANES,
		.chunk_bytes = 4096,
	};

	duo_open(&s.duo, &config);
	buffer_open(&s.local, s.duo.a, BUFFER_PLAIN, MEMORY, 0);
	buffer_open(&s.remote, s.duo.b, BUFFER_PLAIN, MEMORY, 0);
	duo_connect(&s.duo);
	memset(s.local.data, 1, MEMORY);
}

static void case_close(void)
{
	buffer_close(&s.local);
	buffer_close(&s.remote);
	duo_close(&s.duo);
}

/* Writes piece i of the memory. */
static void post(uint32_t i, uint32_t lane, uint64_t deadline_ns)
{
	struct kvl_xfer_opts opts = { .size = sizeof(opts),
				      .lane = KVL_LANE(lane),
				      .deadline_ns = deadline_ns };
	struct kvl_desc local = desc_of(s.local.data + i * LEN, LEN),
			remote = desc_of(s.remote.data + i * LEN, LEN);

	assert_ok(kvl_write(s.duo.a, s.duo.ab, &local, &remote, 1, &opts, &s.xfer[i]));
}

static int end_of(uint32_t i)
{
	int code = duo_wait(&s.duo, s.xfer[i]);

	assert_ok(kvl_xfer_release(s.duo.a, s.xfer[i]));
	return code;
}

/* Bytes of piece i that are not what the source has. */
static size_t missing(uint32_t i)
{
	return bytes_not(s.remote.data + i * LEN, LEN, 1);
}

static int untouched(uint32_t i)
{
	return bytes_not(s.remote.data + i * LEN, LEN, 0) == 0;
}

/* Nobody drives, so nothing lands before the deadline; what was in flight never does, and the lane goes on. */
TEST(deadline_fences_what_is_in_flight)
{
	uint64_t until;

	case_open("delay=100000,seed=2");
	post(0, 1, 5 * MS);
	post(1, 1, 5 * MS);
	post(2, 2, 5 * MS);
	duo_drive(&s.duo);
	until = kvl_now() + PATIENCE;
	for (uint32_t i = 0; i < 3; i++)
		while (kvl_xfer_poll(s.duo.a, s.xfer[i]) == KVL_PENDING)
			assert_true(kvl_now() < until);
	for (uint32_t i = 0; i < 3; i++) {
		int code = end_of(i);

		assert_true(code == KVL_ERR_TIMED_OUT || (i == 1 && code == KVL_ERR_FLUSHED));
		assert_true(untouched(i));
	}
	post(3, 1, 100 * SECOND);
	assert_int_equal(end_of(3), 0);
	assert_int_equal(missing(3), 0);
	for (uint32_t i = 0; i < 3; i++)
		assert_true(untouched(i));
	case_close();
}

TEST(cancel_ends_one_request)
{
	case_open("delay=40");
	for (uint32_t i = 0; i < 3; i++)
		post(i, 1, 0);
	assert_ok(kvl_xfer_cancel(s.duo.a, s.xfer[1]));
	assert_int_equal(end_of(0), 0);
	assert_int_equal(missing(0), 0);
	assert_int_equal(end_of(1), KVL_ERR_CANCELED);
	assert_int_equal(end_of(2), 0);
	assert_int_equal(missing(2), 0);
	case_close();
}

/* The target takes its memory back: from then on it is the owner's alone, and the requests say so. */
TEST(deregister_ends_what_is_in_flight)
{
	uint32_t good = 0;

	case_open("delay=30");
	for (uint32_t i = 0; i < PIECES; i++)
		post(i, i % LANES, 0);
	while (missing(0))
		duo_drive(&s.duo);
	assert_ok(kvl_mem_deregister(s.duo.b, &s.remote.mr, 1));
	for (uint32_t i = 0; i < PIECES; i++)
		good += missing(i) == 0;
	memset(s.remote.data, 9, MEMORY);
	for (uint32_t i = 0; i < PIECES; i++) {
		int code = end_of(i);

		assert_true(code == 0 || code == KVL_ERR_STALE);
		good -= code == 0;
	}
	assert_int_equal(good, 0);
	assert_int_equal(bytes_not(s.remote.data, MEMORY, 9), 0);
	buffer_close(&s.local);
	free(s.remote.block);
	duo_close(&s.duo);
}

TEST(closed_peer_ends_everything)
{
	struct kvl_peer_info info = { .size = sizeof(info) };
	uint32_t good = 0;

	case_open("delay=30,again=20");
	for (uint32_t i = 0; i < PIECES; i++)
		post(i, i % LANES, 0);
	while (missing(0))
		duo_drive(&s.duo);
	assert_ok(kvl_agent_close(s.duo.b, 5 * SECOND));
	for (uint32_t i = 0; i < PIECES; i++) {
		int code = kvl_xfer_wait(s.duo.a, s.xfer[i], PATIENCE);

		assert_true(code == 0 || code == KVL_ERR_STALE || code == KVL_ERR_PEER_LOST);
		if (code == 0)
			assert_int_equal(missing(i), 0);
		good += code == 0;
	}
	assert_in_range(good, 1, PIECES - 1);
	assert_ok(kvl_peer_info(s.duo.a, s.duo.ab, &info));
	assert_int_equal(info.connected, 0);
	assert_refused(kvl_notify(s.duo.a, s.duo.ab, "x", 1, NULL), KVL_ERR_PEER_LOST);
	assert_ok(kvl_peer_close(s.duo.a, s.duo.ab));
	assert_ok(kvl_agent_close(s.duo.a, 5 * SECOND));
	free(s.remote.block);
	free(s.local.block);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deadline_fences_what_is_in_flight),
		cmocka_unit_test(cancel_ends_one_request),
		cmocka_unit_test(deregister_ends_what_is_in_flight),
		cmocka_unit_test(closed_peer_ends_everything),
	};

	return TESTING_RUN(tests, 60);
}
