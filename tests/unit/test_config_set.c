/* SPDX-License-Identifier: Apache-2.0 */
/* Options from text, one by one. */
#include "testing_config.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
static const struct {
	const char *name, *value;
} bad[] = {
	{ "wire", "" },
	{ "wire", "fabric" },
	{ "wire", "Local" },
	{ "wire", "local " },
	{ "wire", "local,sim" },
	{ "wire", "auto|local" },
	{ "local_paths", "" },
	{ "local_paths", "map," },
	{ "local_paths", ",map" },
	{ "local_paths", "map,,copy" },
	{ "local_paths", "map,map" },
	{ "local_paths", "map copy" },
	{ "local_paths", "mapp" },
	{ "sim", "" },
	{ "sim", "seed" },
	{ "sim", "seed=" },
	{ "sim", "seed=x" },
	{ "sim", "seed=-1" },
	{ "sim", "seed=1,seed=2" },
	{ "sim", "seed=1," },
	{ "sim", "speed=1" },
	{ "sim", "seed=18446744073709551616" },
	{ "workers", "" },
	{ "workers", "-1" },
	{ "workers", "+1" },
	{ "workers", " 1" },
	{ "workers", "1 " },
	{ "workers", "0x1" },
	{ "workers", "1.5" },
	{ "workers", "1k" },
	{ "workers", "65" },
	{ "max_requests", "1k" },
	{ "max_requests", "1KiB" },
	{ "workers", "4294967295" },
	{ "workers", "4294967296" },
	{ "lanes", "0" },
	{ "lanes", "65" },
	{ "lanes", "lots" },
	{ "latency_lanes", "0" },
	{ "latency_lanes", "64" },
	{ "queue_depth", "0" },
	{ "queue_depth", "1" },
	{ "queue_depth", "3" },
	{ "queue_depth", "131072" },
	{ "max_requests", "0" },
	{ "max_requests", "1048577" },
	{ "max_requests", "18446744073709551617" },
	{ "max_regions", "0" },
	{ "max_regions", "1048577" },
	{ "max_peers", "0" },
	{ "max_peers", "65537" },
	{ "max_region_bytes", "0" },
	{ "max_region_bytes", "65p" },
	{ "max_region_bytes", "17179869184g" },
	{ "max_region_bytes", "17179869185g" },
	{ "max_region_bytes", "99999999999999999999999" },
	{ "max_region_bytes", "1kb" },
	{ "max_region_bytes", "1kk" },
	{ "max_region_bytes", "1 k" },
	{ "max_region_bytes", "k" },
	{ "max_region_bytes", "1e9" },
	{ "small_bytes", "0" },
	{ "small_bytes", "-1k" },
	{ "chunk_bytes", "4095" },
	{ "chunk_bytes", "1073741825" },
	{ "chunk_bytes", "2g" },
	{ "window", "0" },
	{ "window", "1025" },
	{ "ring_bytes", "2048" },
	{ "ring_bytes", "5000" },
	{ "ring_bytes", "32m" },
	{ "notif_max_bytes", "1048575" },
	{ "notif_max_bytes", "1025m" },
	{ "notif_queue_bytes", "1k" },
	{ "notif_queue_bytes", "2t" },
	{ "deadline_ms", "0" },
	{ "deadline_ms", "5s" },
	{ "deadline_ms", "31536000001" },
	{ "connect_timeout_ms", "0" },
	{ "connect_timeout_ms", "86400001" },
	{ "retire_order", "" },
	{ "retire_order", "0" },
	{ "retire_order", "lanes" },
	{ "retire_order", "lane|global" },
};
/* clang-format on */

TEST(test_set)
{
	struct kvl_config config;

	/* Backwards, so that latency_lanes 2 comes before lanes 64: the order of options does not matter. */
	kvl_config_init(&config);
	for (size_t i = option_rows_count; i-- > 0;)
		assert_ok(kvl_config_set(&config, option_rows[i].name, option_rows[i].text));
	options_resolve_to(&config, option_rows_count);
	kvl_config_fini(&config);
	assert_null(config.wire);
	assert_null(config.local_paths);
	assert_null(config.sim);
	kvl_config_fini(&config);
}

TEST(test_set_sizes)
{
	static const struct {
		const char *text;
		uint64_t value;
	} sizes[] = { { "1", 1 },
		      { "007", 7 },
		      { "2k", 2048 },
		      { "2K", 2048 },
		      { "2KiB", 2048 },
		      { "2kib", 2048 },
		      { "2m", 2 << 20 },
		      { "2MiB", 2 << 20 },
		      { "3g", UINT64_C(3) << 30 },
		      { "3GiB", UINT64_C(3) << 30 },
		      { "1t", UINT64_C(1) << 40 },
		      { "64p", UINT64_C(1) << 56 },
		      { "72057594037927936", UINT64_C(1) << 56 } };
	struct kvl_config config;

	kvl_config_init(&config);
	for (size_t i = 0; i < COUNT(sizes); i++) {
		assert_ok(kvl_config_set(&config, "max_region_bytes", sizes[i].text));
		assert_true(config.max_region_bytes == sizes[i].value);
	}
}

TEST(test_set_bad)
{
	struct kvl_config config, before;

	kvl_config_init(&config);
	for (size_t i = 0; i < option_rows_count; i++)
		assert_ok(kvl_config_set(&config, option_rows[i].name, option_rows[i].text));
	memcpy(&before, &config, sizeof(config));
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct kvl_error_detail detail;
		char quoted[80];

		if (kvl_config_set(&config, bad[i].name, bad[i].value) != KVL_ERR_OPTION)
			fail_msg("%s takes \"%s\"", bad[i].name, bad[i].value);
		kvl_error_detail(&detail);
		snprintf(quoted, sizeof(quoted), "%s: \"%s\"", bad[i].name, bad[i].value);
		assert_message(quoted);
		assert_message("allowed: ");
		assert_int_not_equal(detail.rule[0], 0);
		assert_memory_equal(&config, &before, sizeof(config));
	}
	options_resolve_to(&config, option_rows_count);
	kvl_config_fini(&config);
}

TEST(test_set_says_what_is_allowed)
{
	struct kvl_error_detail detail;
	struct kvl_config config;
	char value[300];

	kvl_config_init(&config);
#define WHY(name, text, part)                                                        \
	do {                                                                         \
		assert_refused(kvl_config_set(&config, name, text), KVL_ERR_OPTION); \
		assert_message(part);                                                \
	} while (0)
	WHY("lanes", "65", "allowed: 1 to 64");
	WHY("workers", "65", "allowed: 0 to 64");
	WHY("queue_depth", "3", "allowed: a power of two, 2 to 65536");
	WHY("ring_bytes", "3", "allowed: a power of two, 4k to 16m");
	WHY("max_region_bytes", "0", "allowed: 1 to 64p");
	WHY("wire", "verbs", "allowed: one of auto, local, sim");
	WHY("retire_order", "fifo", "allowed: one of lane, global");
	WHY("local_paths", "x", "map, copy, slot");
	WHY("sim", "x", "seed, delay, again, error, reorder");
	/* Neither a terminal's escapes nor a value of any length get into the message. */
	WHY("lanes", "1\033[2J", "\"1?[2J\"");
	memset(value, '7', sizeof(value) - 1);
	value[sizeof(value) - 1] = '\0';
	WHY("lanes", value, "allowed: 1 to 64");
	kvl_error_detail(&detail);
	assert_true(strlen(detail.message) < 120);
#undef WHY
}

TEST(test_unknown)
{
	static const struct {
		const char *name, *nearest;
	} names[] = { { "lnaes", "\"lanes\"" },
		      { "LANES", "\"lanes\"" },
		      { "queue-depth", "\"queue_depth\"" },
		      { "worker", "\"workers\"" },
		      { "max_region_byte", "\"max_region_bytes\"" },
		      { "retire", NULL },
		      { "", NULL },
		      { "xyzzy", NULL } };
	struct kvl_error_detail detail;
	struct kvl_config config;
	char name[500];

	kvl_config_init(&config);
	for (size_t i = 0; i < COUNT(names); i++) {
		assert_refused(kvl_config_set(&config, names[i].name, "1"), KVL_ERR_OPTION);
		assert_message(names[i].name);
		if (names[i].nearest)
			assert_message(names[i].nearest);
		kvl_error_detail(&detail);
		assert_int_equal(strstr(detail.message, "did you mean") != NULL, names[i].nearest != NULL);
	}
	memset(name, 'l', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_refused(kvl_config_set(&config, name, "1"), KVL_ERR_OPTION);
	assert_refused(kvl_config_set(&config, NULL, "1"), KVL_ERR_INVALID);
	assert_refused(kvl_config_set(&config, "lanes", NULL), KVL_ERR_INVALID);
	assert_refused(kvl_config_set(NULL, "lanes", "1"), KVL_ERR_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		OPTIONS_TEST(test_set),     OPTIONS_TEST(test_set_sizes),
		OPTIONS_TEST(test_set_bad), OPTIONS_TEST(test_set_says_what_is_allowed),
		OPTIONS_TEST(test_unknown),
	};

	return TESTING_RUN(tests, 60);
}
