/* SPDX-License-Identifier: Apache-2.0 */
/* From the struct that a caller fills to the options in force. */
#include "testing_config.h"

#include <pthread.h>
#include <string.h>

#include "agent/config.h"

TEST(test_table)
{
	struct kvl_option_info info;

	for (size_t i = 0; i < option_rows_count; i++) {
		struct kvl_config config;

		assert_ok(kvl_option_info(i, &info));
		assert_string_equal(info.name, option_rows[i].name);
		assert_true(strlen(info.help) > 5);
		/* The default as text is the default: a default that cannot be set would be a lie. */
		kvl_config_init(&config);
		assert_ok(kvl_config_set(&config, info.name, info.def));
		options_resolve_to(&config, 0);
		kvl_config_fini(&config);
	}
	/* An option without a row here has no test. */
	assert_refused(kvl_option_info(option_rows_count, &info), KVL_ERR_NOT_FOUND);
	assert_refused(kvl_option_info(SIZE_MAX, &info), KVL_ERR_NOT_FOUND);
	assert_refused(kvl_option_info(0, NULL), KVL_ERR_INVALID);
}

TEST(test_defaults)
{
	struct kvl_config config;

	memset(&config, 0xff, sizeof(config));
	kvl_config_init(&config);
	options_resolve_to(&config, 0);
	options_resolve_to(NULL, 0);
	kvl_config_fini(NULL);
}

/* 0 means default in the struct and no threads in text. */
TEST(test_workers)
{
	struct kvl_config config, out;

	kvl_config_init(&config);
	assert_ok(kvl_config_set(&config, "workers", "0"));
	assert_true(config.workers == KVL_NO_WORKERS);
	assert_ok(kvli_config_resolve(&config, &out));
	assert_int_equal(out.workers, 0);
	config.workers = 0;
	assert_ok(kvli_config_resolve(&config, &out));
	assert_int_equal(out.workers, 1);
	config.workers = 64;
	assert_ok(kvli_config_resolve(&config, &out));
	assert_int_equal(out.workers, 64);
}

TEST(test_strings)
{
	char value[] = "map,copy", mine[] = "slot";
	struct kvl_config config, out;

	kvl_config_init(&config);
	assert_ok(kvl_config_set(&config, "local_paths", value));
	memset(value, 'x', sizeof(value) - 1);
	assert_string_equal(config.local_paths, "map,copy");
	assert_ok(kvl_config_set(&config, "local_paths", "copy"));
	assert_string_equal(config.local_paths, "copy");
	kvl_config_fini(&config);
	/* A caller's own string lies beside ours, and is left alone by every call. */
	config.local_paths = mine;
	assert_ok(kvl_config_set(&config, "wire", "sim"));
	assert_ok(kvli_config_resolve(&config, &out));
	assert_ok(kvli_config_own(&out));
	kvl_config_fini(&config);
	assert_null(config.local_paths);
	assert_string_equal(mine, "slot");
	mine[0] = 'X';
	assert_string_equal(out.local_paths, "slot");
	assert_string_equal(out.wire, "sim");
	kvl_config_fini(&out);
}

static void *set_and_free(void *arg)
{
	struct kvl_config config;
	uintptr_t wrong = 0;

	for (int i = 0; i < 2000; i++) {
		kvl_config_init(&config);
		wrong |= kvl_config_set(&config, "wire", arg) != 0;
		wrong |= strcmp(config.wire, arg) != 0;
		kvl_config_fini(&config);
	}
	return (void *)wrong;
}

TEST(test_threads)
{
	char sim[] = "sim", local[] = "local";
	pthread_t thread[2];
	void *wrong;

	assert_int_equal(pthread_create(&thread[0], NULL, set_and_free, sim), 0);
	assert_int_equal(pthread_create(&thread[1], NULL, set_and_free, local), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pthread_join(thread[i], &wrong), 0);
		assert_null(wrong);
	}
}

static void refused_struct(const struct kvl_config *config, int code, const char *first, const char *second)
{
	struct kvl_config out, before;

	memset(&out, 0x5a, sizeof(out));
	memcpy(&before, &out, sizeof(out));
	assert_refused(kvli_config_resolve(config, &out), code);
	assert_memory_equal(&out, &before, sizeof(out));
	assert_message(first);
	assert_message(second);
}

TEST(test_struct_bad)
{
	struct kvl_config config;

#define REFUSE(member, value, shown, allowed)                                                   \
	do {                                                                                    \
		kvl_config_init(&config);                                                       \
		config.member = value;                                                          \
		refused_struct(&config, KVL_ERR_OPTION, #member ": " shown " is not", allowed); \
	} while (0)
	REFUSE(wire, "fabric", "\"fabric\"", "allowed: one of auto, local, sim");
	REFUSE(wire, "", "\"\"", "allowed: one of auto, local, sim");
	REFUSE(local_paths, "map,teleport", "\"map,teleport\"", "map, copy, slot");
	REFUSE(sim, "seed", "\"seed\"", "NAME=NUMBER");
	REFUSE(workers, 65, "\"65\"", "allowed: 0 to 64");
	REFUSE(workers, KVL_NO_WORKERS - 1, "\"4294967294\"", "allowed: 0 to 64");
	REFUSE(lanes, 65, "\"65\"", "allowed: 1 to 64");
	REFUSE(latency_lanes, 64, "\"64\"", "allowed: 1 to 63");
	REFUSE(queue_depth, 1000, "\"1000\"", "a power of two");
	REFUSE(max_requests, UINT32_MAX, "\"4294967295\"", "1 to 1048576");
	REFUSE(max_regions, 1048577, "\"1048577\"", "1 to 1048576");
	REFUSE(max_peers, 65537, "\"65537\"", "1 to 65536");
	REFUSE(max_region_bytes, (UINT64_C(1) << 56) + 1, "\"72057594037927937\"", "1 to 64p");
	REFUSE(small_bytes, UINT64_MAX, "\"18446744073709551615\"", "1 to 64p");
	REFUSE(chunk_bytes, 4095, "\"4095\"", "4k to 1g");
	REFUSE(window, 1025, "\"1025\"", "1 to 1024");
	REFUSE(ring_bytes, 4097, "\"4097\"", "a power of two, 4k to 16m");
	REFUSE(notif_max_bytes, 1, "\"1\"", "1m to 1g");
	REFUSE(notif_queue_bytes, 1, "\"1\"", "1m to 1t");
	REFUSE(deadline_ms, UINT64_MAX, "\"18446744073709551615\"", "1 to 31536000000");
	REFUSE(connect_timeout_ms, 86400001, "\"86400001\"", "1 to 86400000");
	REFUSE(retire_order, (enum kvl_retire_order)2, "\"2\"", "lane, global");
#undef REFUSE
}

TEST(test_struct_pairs)
{
	struct kvl_config config, out;

	kvl_config_init(&config);
	config.lanes = 1;
	assert_ok(kvli_config_resolve(&config, &out));
	assert_int_equal(out.latency_lanes, 1);
	config.lanes = 2;
	assert_ok(kvli_config_resolve(&config, &out));
	config.latency_lanes = 2;
	refused_struct(&config, KVL_ERR_OPTION, "latency_lanes: 2", "lanes 2");
	config.lanes = 1;
	refused_struct(&config, KVL_ERR_OPTION, "latency_lanes: 2", "lanes 1");
	config.lanes = 3;
	assert_ok(kvli_config_resolve(&config, &out));

	config.notif_max_bytes = 65 << 20;
	refused_struct(&config, KVL_ERR_OPTION, "notif_queue_bytes: 67108864", "notif_max_bytes 68157440");
	config.notif_queue_bytes = 65 << 20;
	assert_ok(kvli_config_resolve(&config, &out));
}

/* A program built against an older header has a shorter struct: what lies behind it is not ours to read. */
TEST(test_size_older)
{
	struct kvl_config config, out;

	memset(&config, 0xee, sizeof(config));
	memset(&config, 0, offsetof(struct kvl_config, window));
	config.size = offsetof(struct kvl_config, window);
	config.lanes = 8;
	config.chunk_bytes = 8192;
	assert_ok(kvli_config_resolve(&config, &out));
	assert_int_equal(out.size, sizeof(out));
	assert_int_equal(out.lanes, 8);
	assert_int_equal(out.chunk_bytes, 8192);
	assert_int_equal(out.window, 16);
	assert_int_equal(out.deadline_ms, 30000);
	assert_int_equal(out.retire_order, KVL_RETIRE_LANE);
	/* A size that ends inside a member does not hold that member. */
	config.size = offsetof(struct kvl_config, window) + 2;
	assert_ok(kvli_config_resolve(&config, &out));
	assert_int_equal(out.window, 16);

	assert_ok(kvl_config_set(&config, "lanes", "9"));
	assert_refused(kvl_config_set(&config, "window", "9"), KVL_ERR_OPTION);
	assert_message("window");
	assert_int_equal(config.window, 0xeeeeeeee);
	kvl_config_fini(&config);
}

TEST(test_size_newer)
{
	struct {
		struct kvl_config config;
		char later[64];
	} newer;
	struct kvl_config out;

	memset(&newer, 0, sizeof(newer));
	newer.config.size = sizeof(newer);
	newer.config.lanes = 9;
	assert_ok(kvli_config_resolve(&newer.config, &out));
	assert_int_equal(out.size, sizeof(out));
	assert_int_equal(out.lanes, 9);
	newer.later[63] = 1;
	refused_struct(&newer.config, KVL_ERR_OPTION, "does not know", "size");
}

TEST(test_size_bad)
{
	static const size_t sizes[] = { 0, 1, 8, 15, 4097, SIZE_MAX };
	struct kvl_config config;

	kvl_config_init(&config);
	for (size_t i = 0; i < COUNT(sizes); i++) {
		config.size = sizes[i];
		refused_struct(&config, KVL_ERR_INVALID, "size", "sizeof(struct kvl_config)");
		assert_refused(kvl_config_set(&config, "lanes", "2"), KVL_ERR_INVALID);
		assert_message("size");
		assert_refused(kvl_config_env(&config), KVL_ERR_INVALID);
		assert_refused(kvl_config_load(&config, "/nonexistent"), KVL_ERR_INVALID);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		OPTIONS_TEST(test_table),        OPTIONS_TEST(test_defaults),   OPTIONS_TEST(test_workers),
		OPTIONS_TEST(test_strings),      OPTIONS_TEST(test_threads),    OPTIONS_TEST(test_struct_bad),
		OPTIONS_TEST(test_struct_pairs), OPTIONS_TEST(test_size_older), OPTIONS_TEST(test_size_newer),
		OPTIONS_TEST(test_size_bad),
	};

	return TESTING_RUN(tests, 60);
}
