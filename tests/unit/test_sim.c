/* SPDX-License-Identifier: Apache-2.0 */
/* The sim wire by its table of calls: options, identity, order, determinism, and bytes. Faults:
 * test_sim_faults.c. */
#include "testing_sim.h"

#include <string.h>

static struct sim_link s;

/* ------------------------------------------------------------------------------------------------ options */

static void refuse_option(const char *sim, const char *key, const char *value, const char *allowed)
{
	struct kvli_wire_host host = { .self = sim_identity("sim-refused") };
	struct kvl_config config = sim_config(sim);
	struct kvli_wire *wire = NULL;

	assert_refused(kvli_wire_sim.open(&host, &config, &wire), KVL_ERR_OPTION);
	assert_null(wire);
	assert_message(key);
	assert_message(value);
	assert_message(allowed);
}

TEST(options_refused_by_name)
{
	refuse_option("sede=1", "sede", "sede", "seed, delay, again, error and reorder");
	refuse_option("seed=1,", "sim", "comma", "key=value");
	refuse_option(",seed=1", "sim", "", "seed, delay");
	refuse_option("seed", "seed", "\"\"", "0 to 2^64 - 1");
	refuse_option("seed=", "seed", "\"\"", "0 to 2^64 - 1");
	refuse_option("seed=18446744073709551616", "seed", "18446744073709551616", "0 to 2^64 - 1");
	refuse_option("delay=-1", "delay", "-1", "0 to 1000000");
	refuse_option("delay=1000001", "delay", "1000001", "0 to 1000000");
	refuse_option("delay= 1", "delay", " 1", "0 to 1000000");
	refuse_option("again=101", "again", "101", "0 to 100 percent");
	refuse_option("delay=3,error=1001", "error", "1001", "0 to 1000 per mille");
	refuse_option("reorder=2", "reorder", "2", "0 or 1");
	refuse_option("reorder=1x", "reorder", "1x", "0 or 1");
	refuse_option("again=1,seed=2,again=3", "again", "3", "once");
}

TEST(options_taken)
{
	static const char *const good[] = {
		NULL,
		"",
		"seed=18446744073709551615",
		"delay=0",
		"reorder=0,error=1000,again=100,delay=1000000,seed=0",
	};
	struct sim_end end;

	for (size_t i = 0; i < COUNT(good); i++) {
		sim_end_open(&end, "sim-good", good[i]);
		sim_end_close(&end);
	}
}

/* ----------------------------------------------------------------------------------------------- identity */

TEST(connect_checks_who_answers)
{
	struct kvli_conn *conn = NULL;
	struct kvli_identity other;
	struct sim_end a, b, gone;

	sim_end_open(&a, "sim-a", "");
	sim_end_open(&b, "sim-b", "");
	sim_end_open(&gone, "sim-gone", "");
	sim_end_close(&gone);
	assert_refused(sim_connect(&a, &gone, &conn), KVL_ERR_STALE);
	other = b.host.self;
	memcpy(other.name, "sim-c", sizeof("sim-c"));
	assert_refused(
		kvli_wire_sim.connect(a.wire, &other, other.incarnation, KVL_INCARNATION, 0, &a, &conn),
		KVL_ERR_IDENTITY);
	other = sim_identity("sim-b");
	assert_refused(
		kvli_wire_sim.connect(a.wire, &other, b.host.self.incarnation, KVL_INCARNATION, 0, &a, &conn),
		KVL_ERR_IDENTITY);
	assert_refused(kvli_wire_sim.connect(a.wire, &other, other.incarnation, 15, 0, &a, &conn),
		       KVL_ERR_CORRUPT);
	assert_null(conn);
	assert_ok(sim_connect(&a, &a, &conn));
	kvli_wire_sim.disconnect(conn);
	sim_end_close(&a);
	sim_end_close(&b);
}

TEST(address_path_info)
{
	struct kvli_wire_info info;
	struct kvli_path_info path;
	uint8_t address[KVL_INCARNATION];
	uint32_t len = 15;

	sim_link_open(&s, "");
	assert_refused(kvli_wire_sim.address(s.a.wire, address, &len), KVL_ERR_LIMIT);
	assert_int_equal(len, KVL_INCARNATION);
	assert_ok(kvli_wire_sim.address(s.a.wire, address, &len));
	assert_memory_equal(address, s.a.host.self.incarnation, KVL_INCARNATION);
	kvli_wire_sim.path(s.conn, &path);
	assert_string_equal(path.path, "sim");
	assert_string_equal(path.reason, "");
	kvli_wire_sim.info(s.a.wire, &info);
	assert_int_equal(info.needs_poll, 1);
	assert_ptr_equal(s.remote.map, s.b.data);
	assert_int_equal(s.remote.map_len, MEMORY);
	sim_link_close(&s);
	assert_null(s.remote.map);
}

/* -------------------------------------------------------------------------------------------------- bytes */

TEST(bytes_move_at_completion)
{
	struct kvli_completion done;

	sim_link_open(&s, "delay=50");
	bytes_fill(s.a.data, MEMORY, 1, 0, 0);
	assert_int_equal(sim_issue(&s, 0, KVL_WRITE, 0, MEMORY, 9), MEMORY);
	assert_int_equal(bytes_not(s.b.data, MEMORY, 0), 0);
	while (sim_poll(&s, 0, &done) == 0)
		assert_int_equal(bytes_not(s.b.data, MEMORY, 0), 0);
	assert_int_equal(done.cookie, 9);
	assert_int_equal(done.status, 0);
	assert_int_equal(done.provider, 0);
	assert_int_equal(bytes_wrong(s.b.data, MEMORY, 1, 0, 0), 0);
	assert_int_equal(sim_poll(&s, 0, &done), 0);
	sim_link_close(&s);
}

/* n pieces of odd lengths, each of both sides at an own place; what lies between them is canary. */
#define PIECES 300u
#define STEP   700u

static void pieces_make(struct kvli_segment *segment)
{
	for (uint32_t i = 0; i < PIECES; i++)
		segment[i] = (struct kvli_segment){
			.local = (uintptr_t)s.a.data + i * STEP + i % 7,
			.remote = s.remote.base + (PIECES - 1 - i) * STEP + i % 5,
			.len = 1 + i * 2 % (STEP - 10),
			.region = &s.remote,
		};
}

/* In chunks of at most `max` bytes, so that pieces are cut and joined. Returns how many it took. */
static uint32_t pieces_issue(const struct kvli_segment *segment, enum kvl_op op, uint64_t max)
{
	struct kvli_cursor cursor = { .segment = segment, .n = PIECES };
	uint64_t total = 0, taken = 0;
	uint32_t chunks = 0;

	for (uint32_t i = 0; i < PIECES; i++)
		total += segment[i].len;
	while (cursor.at < cursor.n) {
		const char *path;
		int provider;
		int64_t n = kvli_wire_sim.issue(sim_lane(&s, 1), op, &cursor, max, chunks, &path, &provider);

		if (n == KVL_ERR_AGAIN) {
			assert_int_equal(sim_next(&s, 1).status, 0);
			continue;
		}
		assert_in_range(n, 1, max);
		taken += (uint64_t)n;
		chunks++;
	}
	assert_int_equal(taken, total);
	return chunks;
}

static void pieces_move(enum kvl_op op, uint64_t max)
{
	static struct kvli_segment segment[PIECES];
	static unsigned char model[MEMORY];
	unsigned char *from, *to;
	struct kvli_completion done;
	uint32_t idle = 0;

	sim_link_open(&s, "delay=3");
	from = op == KVL_WRITE ? s.a.data : s.b.data;
	to = op == KVL_WRITE ? s.b.data : s.a.data;
	bytes_fill(from, MEMORY, 1, 0, max);
	bytes_fill(to, MEMORY, 2, 0, max);
	memcpy(model, to, MEMORY);
	pieces_make(segment);
	for (uint32_t i = 0; i < PIECES; i++) {
		size_t local = segment[i].local - (uintptr_t)s.a.data,
		       remote = segment[i].remote - s.remote.base;

		memcpy(model + (op == KVL_WRITE ? remote : local), from + (op == KVL_WRITE ? local : remote),
		       segment[i].len);
	}
	assert_true(pieces_issue(segment, op, max) > 1);
	memset(segment, 0xff, sizeof(segment)); /* the wire keeps no pointer into the list */
	while (idle < 10)
		idle = sim_poll(&s, 1, &done) ? 0 : idle + 1;
	assert_memory_equal(to, model, MEMORY);
	assert_int_equal(bytes_wrong(from, MEMORY, 1, 0, max), 0);
	sim_link_close(&s);
}

TEST(pieces_are_cut_and_joined)
{
	static const uint64_t max[] = { 17, 512, 4096, MEMORY };

	for (size_t i = 0; i < COUNT(max); i++) {
		pieces_move(KVL_WRITE, max[i]);
		pieces_move(KVL_READ, max[i]);
	}
}

/* -------------------------------------------------------------------------------------------------- order */

/* Fills every window in turn; cookies count the issues over all lanes. */
static void order_issue(void)
{
	for (uint32_t i = 0; i < LANES * WINDOW; i++)
		assert_int_equal(sim_issue(&s, i % LANES, KVL_WRITE, i * 64, 64, i), 64);
	for (uint32_t i = 0; i < LANES; i++)
		assert_int_equal(sim_issue(&s, i, KVL_WRITE, 0, 64, 0), KVL_ERR_AGAIN);
}

/* How often a completion overtook one of another lane that was issued before it. */
static uint32_t order_count_overtaking(void)
{
	uint64_t next[LANES] = { 0, 1, 2, 3 };
	uint32_t overtaking = 0, seen = 0;
	struct kvli_completion done;

	for (uint32_t poll = 0; seen < LANES * WINDOW; poll++) {
		uint32_t lane = poll % LANES;

		assert_true(poll < 100000);
		if (sim_poll(&s, lane, &done) == 0)
			continue;
		assert_int_equal(done.status, 0);
		assert_int_equal(done.cookie, next[lane]);
		next[lane] += LANES;
		for (uint32_t i = 0; i < LANES; i++)
			overtaking += next[i] < done.cookie;
		seen++;
	}
	return overtaking;
}

TEST(lanes_are_fifo_and_overtake_each_other)
{
	sim_link_open(&s, "delay=20");
	order_issue();
	assert_true(order_count_overtaking() > WINDOW);
	sim_link_close(&s);
}

TEST(reorder_0_is_one_fifo)
{
	sim_link_open(&s, "delay=20,reorder=0");
	order_issue();
	assert_int_equal(order_count_overtaking(), 0);
	sim_link_close(&s);
}

/* -------------------------------------------------------------------------------------------- determinism */

static void hash_add(uint64_t *hash, uint64_t value)
{
	*hash = (*hash ^ value) * UINT64_C(0x100000001b3);
	*hash ^= *hash >> 29;
}

/* Traffic that reacts to what happens; the hash covers every answer and its tick, and all bytes at the end.
 */
static uint64_t history(const char *sim)
{
	uint64_t hash = 1, state = 5;
	struct kvli_completion done;

	sim_link_open(&s, sim);
	bytes_fill(s.a.data, MEMORY, 1, 0, 0);
	for (uint32_t i = 0; i < 4000; i++) {
		uint32_t lane = (uint32_t)random_range(&state, 0, LANES - 1);
		uint64_t len = random_range(&state, 1, 500);

		hash_add(&hash, (uint64_t)sim_issue(&s, lane, KVL_WRITE,
						    random_range(&state, 0, MEMORY - len), len, i));
		lane = i % LANES;
		if (sim_poll(&s, lane, &done) == 0)
			continue;
		hash_add(&hash, i * 1000003ull + done.cookie);
		hash_add(&hash, (uint64_t)done.status);
		if (done.status == KVL_ERR_WIRE) {
			kvli_wire_sim.fence(sim_lane(&s, lane), KVL_ERR_CANCELED);
			kvli_wire_sim.reopen(sim_lane(&s, lane));
		}
	}
	for (size_t i = 0; i < MEMORY; i++)
		hash_add(&hash, s.b.data[i]);
	sim_link_close(&s);
	return hash;
}

TEST(same_seed_same_history)
{
	static const char *const sim[] = { "seed=1,again=20,error=30", "seed=2,again=20,error=30",
					   "seed=1,again=20,error=30,reorder=0", "seed=1,again=20,error=31" };
	uint64_t hash[COUNT(sim)];

	for (size_t i = 0; i < COUNT(sim); i++) {
		hash[i] = history(sim[i]);
		assert_int_equal(history(sim[i]), hash[i]);
		for (size_t j = 0; j < i; j++)
			assert_int_not_equal(hash[i], hash[j]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_refused_by_name),
		cmocka_unit_test(options_taken),
		cmocka_unit_test(connect_checks_who_answers),
		cmocka_unit_test(address_path_info),
		cmocka_unit_test(bytes_move_at_completion),
		cmocka_unit_test(pieces_are_cut_and_joined),
		cmocka_unit_test(lanes_are_fifo_and_overtake_each_other),
		cmocka_unit_test(reorder_0_is_one_fifo),
		cmocka_unit_test(same_seed_same_history),
	};

	return TESTING_RUN(tests, 30);
}
