/* SPDX-License-Identifier: Apache-2.0 */
/* F53: starts fast and small with nothing but loopback; options in any order; bad ones refused by name. */
#include "testing.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ------------------------------------------------------------------------------------------ time, memory */

static uint64_t resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long size, pages;

	must(file != NULL);
	must(fscanf(file, "%lu %lu", &size, &pages) == 2);
	fclose(file);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* In a process and a network of its own, where not even loopback is up. */
static void starter(int sock, void *arg)
{
	static unsigned char from[64 * KIB], to[64 * KIB];
	struct kvl_mem mem[2] = { memory_of(from, sizeof(from), 0), memory_of(to, sizeof(to), 0) };
	struct kvl_desc local = desc_of(from, sizeof(from)), remote = desc_of(to, sizeof(to));
	int alone = unshare(CLONE_NEWNET) == 0;
	uint64_t rss = resident_bytes(), start = kvl_now(), opened, moved;
	kvl_agent_t agent;
	kvl_peer_t peer;
	kvl_xfer_t xfer;
	kvl_mr_t mr[2];

	must_ok(kvl_agent_open("starter", NULL, &agent));
	opened = kvl_now();
	must_ok(kvl_mem_register(agent, mem, 2, mr));
	sock_put_agent(sock, agent);
	peer = sock_get_agent(sock, agent);
	bytes_fill(from, sizeof(from), 1, 0, 1);
	must_ok(kvl_write(agent, peer, &local, &remote, 1, NULL, &xfer));
	must(kvl_xfer_wait(agent, xfer, PATIENCE) == 0);
	moved = kvl_now();
	must(bytes_wrong(to, sizeof(to), 1, 0, 1) == 0);
	rss = resident_bytes() - rss;
	must_ok(kvl_agent_close(agent, SECOND));
	printf("open %llu us, open to first transfer %llu us, %llu KiB more resident%s\n",
	       (unsigned long long)(opened - start) / 1000, (unsigned long long)(moved - start) / 1000,
	       (unsigned long long)rss / 1024, alone ? ", in an empty network namespace" : "");
	fflush(stdout);
	must(opened - start < SECOND && moved - start < SECOND);
	must(rss < 50 * MIB);
	(void)arg;
}

TEST(f53_starts_fast_and_small)
{
	unsigned char bytes[8 * KIB];
	struct other other;
	size_t len;

	other_start(&other, starter, NULL);
	len = sock_get(other.sock, bytes, sizeof(bytes), 0);
	sock_put(other.sock, bytes, len); /* its own metadata: loopback */
	assert_int_equal(other_end(&other), 0);
}

/* ---------------------------------------------------------------------------------------------- options */

struct option {
	const char *name, *value;
};

/* Some depend on each other: latency_lanes < lanes holds only of the whole. */
static const struct option options[] = {
	{ "wire", "local" },
	{ "local_paths", "copy,slot" },
	{ "workers", "0" },
	{ "lanes", "8" },
	{ "latency_lanes", "7" },
	{ "queue_depth", "16" },
	{ "max_requests", "100" },
	{ "max_regions", "200" },
	{ "max_peers", "3" },
	{ "max_region_bytes", "1g" },
	{ "small_bytes", "1k" },
	{ "chunk_bytes", "64k" },
	{ "window", "5" },
	{ "ring_bytes", "128k" },
	{ "notif_max_bytes", "2m" },
	{ "notif_queue_bytes", "8m" },
	{ "deadline_ms", "1234" },
	{ "connect_timeout_ms", "77" },
	{ "retire_order", "global" },
};

static const struct option bad[] = {
	{ "no_such_option", "1" },
	{ "", "1" },
	{ "Workers", "1" },
	{ "workers ", "1" },
	{ "workers", "" },
	{ "workers", "x" },
	{ "workers", "-1" },
	{ "workers", "1x" },
	{ "lanes", "65" },
	{ "queue_depth", "100" },
	{ "queue_depth", "1" },
	{ "queue_depth", "131072" },
	{ "max_requests", "2m" },
	{ "chunk_bytes", "4095" },
	{ "chunk_bytes", "2g" },
	{ "window", "1025" },
	{ "ring_bytes", "100000" },
	{ "ring_bytes", "2048" },
	{ "notif_max_bytes", "1k" },
	{ "notif_max_bytes", "2g" },
	{ "retire_order", "any" },
	{ "wire", "pigeon" },
	{ "local_paths", "map,fly" },
	{ "local_paths", "" },
	{ "sim", "seed" },
	{ "deadline_ms", "99999999999999999999" },
};

/* The answer names the option, and the value when the option is a known one. */
static void refuse_option(struct kvl_config *config, const struct option *option)
{
	struct kvl_option_info info;
	int known = 0;

	for (size_t i = 0; kvl_option_info(i, &info) == 0; i++)
		known |= strcmp(info.name, option->name) == 0;
	assert_refused(kvl_config_set(config, option->name, option->value), KVL_ERR_OPTION);
	assert_message(option->name);
	if (known)
		assert_message(option->value);
}

static void limits_check(const struct kvl_limits *limits)
{
	assert_string_equal(limits->wire, "local");
	assert_int_equal(limits->workers, 0);
	assert_int_equal(limits->lanes, 8);
	assert_int_equal(limits->latency_lanes, 7);
	assert_int_equal(limits->queue_depth, 16);
	assert_int_equal(limits->max_requests, 100);
	assert_int_equal(limits->max_regions, 200);
	assert_int_equal(limits->max_peers, 3);
	assert_int_equal(limits->max_region_bytes, 1ull << 30);
	assert_int_equal(limits->small_bytes, 1024);
	assert_int_equal(limits->chunk_bytes, 64 * KIB);
	assert_int_equal(limits->window, 5);
	assert_int_equal(limits->ring_bytes, 128 * KIB);
	assert_int_equal(limits->notif_max_bytes, 2 * MIB);
	assert_int_equal(limits->notif_queue_bytes, 8 * MIB);
	assert_int_equal(limits->deadline_ms, 1234);
	assert_int_equal(limits->connect_timeout_ms, 77);
	assert_int_equal(limits->retire_order, KVL_RETIRE_GLOBAL);
}

TEST(f53_options_in_any_order)
{
	uint64_t random = 53;

	for (size_t round = 0; round < testing_rounds(200); round++) {
		struct kvl_limits limits = { .size = sizeof(limits) };
		uint32_t order[COUNT(options)];
		struct kvl_config config;
		kvl_agent_t agent;

		kvl_config_init(&config);
		random_shuffle(order, COUNT(options), &random);
		for (size_t i = 0; i < COUNT(options); i++) {
			const struct option *option = &options[order[i]];

			/* A refused option in between changes nothing. */
			refuse_option(&config, &bad[random_next(&random) % COUNT(bad)]);
			assert_ok(kvl_config_set(&config, option->name, option->value));
		}
		assert_ok(kvl_agent_open("options", &config, &agent));
		kvl_config_fini(&config);
		assert_ok(kvl_agent_limits(agent, &limits));
		limits_check(&limits);
		assert_ok(kvl_agent_close(agent, SECOND));
	}
}

TEST(f53_every_bad_option_is_refused_by_name)
{
	struct kvl_config config;

	kvl_config_init(&config);
	for (size_t i = 0; i < COUNT(bad); i++)
		refuse_option(&config, &bad[i]);
	kvl_config_fini(&config);
}

static void refuse_open(const struct kvl_config *config, const char *name)
{
	kvl_agent_t agent = 0;

	assert_refused(kvl_agent_open("options", config, &agent), KVL_ERR_OPTION);
	assert_message(name);
	assert_int_equal(agent, 0);
}

/* The same rules hold for the struct, and for what only the whole can break. */
TEST(f53_bad_struct_is_refused_at_open)
{
	struct kvl_config config;
	kvl_agent_t agent = 0;

	kvl_config_init(&config);
	config.lanes = 65;
	refuse_open(&config, "lanes");
	config.lanes = 3;
	config.latency_lanes = 3;
	refuse_open(&config, "latency_lanes");
	kvl_config_init(&config);
	config.queue_depth = 3;
	refuse_open(&config, "queue_depth");
	kvl_config_init(&config);
	config.wire = "pigeon";
	refuse_open(&config, "wire");
	kvl_config_init(&config);
	config.retire_order = (enum kvl_retire_order)9;
	refuse_open(&config, "retire_order");
	kvl_config_init(&config);
	config.local_paths = "map;copy";
	refuse_open(&config, "local_paths");
	kvl_config_init(&config);
	config.lanes = 1;
	config.latency_lanes = 1;
	assert_ok(kvl_agent_open("options", &config, &agent));
	assert_ok(kvl_agent_close(agent, SECOND));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(f53_starts_fast_and_small),
		cmocka_unit_test(f53_options_in_any_order),
		cmocka_unit_test(f53_every_bad_option_is_refused_by_name),
		cmocka_unit_test(f53_bad_struct_is_refused_at_open),
	};

	return TESTING_RUN(tests, 40);
}
