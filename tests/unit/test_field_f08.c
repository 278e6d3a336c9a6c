/* SPDX-License-Identifier: Apache-2.0 */
/* F08: registration and deregistration of a list are all or nothing, and can be tried again. */
#include "testing.h"

#include <string.h>
#include <sys/mman.h>

#define REGIONS 8u
#define BAD     4u
#define PART    (64 * KIB)

struct eight {
	struct duo duo;
	unsigned char *memory;
	struct kvl_mem mem[REGIONS];
	kvl_mr_t mr[REGIONS];
};

static void eight_open(struct eight *e, const struct kvl_config *config)
{
	memset(e, 0, sizeof(*e));
	e->memory = mmap(NULL, REGIONS * PART, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(e->memory, MAP_FAILED);
	for (size_t i = 0; i < REGIONS; i++)
		e->mem[i] = memory_of(e->memory + i * PART, PART, 0);
	duo_open(&e->duo, config);
}

static void eight_close(struct eight *e)
{
	duo_close(&e->duo);
	munmap(e->memory, REGIONS * PART);
}

static uint32_t regions_seen(struct eight *e)
{
	struct kvl_peer_info info = { .size = sizeof(info) };

	assert_ok(kvl_peer_info(e->duo.b, e->duo.ba, &info));
	return info.regions;
}

/* The good seven, with rights that would clash with leftovers of the refused list. */
static void register_seven(struct eight *e)
{
	struct kvl_mem good[REGIONS - 1];

	memcpy(good, e->mem, BAD * sizeof(*good));
	memcpy(good + BAD, e->mem + BAD + 1, (REGIONS - 1 - BAD) * sizeof(*good));
	for (size_t i = 0; i < REGIONS - 1; i++)
		good[i].rights = KVL_REMOTE_READ;
	assert_ok(kvl_mem_register(e->duo.a, good, REGIONS - 1, e->mr));
}

static void refuse_and_retry(struct eight *e, int code)
{
	assert_refused_at(kvl_mem_register(e->duo.a, e->mem, REGIONS, e->mr), code, BAD);
	duo_connect(&e->duo);
	assert_int_equal(regions_seen(e), 0);
	register_seven(e);
	duo_update(&e->duo);
	assert_int_equal(regions_seen(e), REGIONS - 1);
}

TEST(f08_fifth_of_eight_is_unmapped)
{
	struct eight e;

	eight_open(&e, NULL);
	munmap(e.memory + BAD * PART, PART);
	refuse_and_retry(&e, KVL_ERR_INVALID);
	eight_close(&e);
}

/* Both ends are there: only a look at the whole range finds it. */
TEST(f08_fifth_of_eight_has_a_hole)
{
	struct eight e;

	eight_open(&e, NULL);
	munmap(e.memory + BAD * PART + 8 * KIB, 4 * KIB);
	refuse_and_retry(&e, KVL_ERR_INVALID);
	eight_close(&e);
}

TEST(f08_fifth_of_eight_has_a_bad_descriptor)
{
	struct eight e;

	eight_open(&e, NULL);
	e.mem[BAD].flags = KVL_MEM_FD;
	e.mem[BAD].fd = 1 << 20;
	refuse_and_retry(&e, KVL_ERR_INVALID);
	eight_close(&e);
}

TEST(f08_fifth_of_eight_is_on_a_gpu)
{
	struct eight e;

	eight_open(&e, NULL);
	e.mem[BAD].device = KVL_GPU(0);
	refuse_and_retry(&e, KVL_ERR_UNSUPPORTED);
	eight_close(&e);
}

TEST(f08_one_region_over_the_limit)
{
	struct kvl_config config;
	struct eight e;

	kvl_config_init(&config);
	config.max_regions = BAD;
	eight_open(&e, &config);
	assert_refused_at(kvl_mem_register(e.duo.a, e.mem, REGIONS, e.mr), KVL_ERR_LIMIT, BAD);
	assert_message("max_regions");
	assert_ok(kvl_mem_register(e.duo.a, e.mem, BAD, e.mr));
	assert_refused_at(kvl_mem_register(e.duo.a, e.mem + BAD, 1, e.mr), KVL_ERR_LIMIT, 0);
	assert_ok(kvl_mem_deregister(e.duo.a, e.mr, 1));
	eight_close(&e);
}

/* A deregister that names a bad handle drops nothing; the retry without it drops all. */
TEST(f08_failed_deregister_can_be_retried)
{
	struct eight e;
	kvl_mr_t list[REGIONS];

	eight_open(&e, NULL);
	assert_ok(kvl_mem_register(e.duo.a, e.mem, REGIONS, e.mr));
	duo_connect(&e.duo);
	memcpy(list, e.mr, sizeof(list));
	list[BAD] = 0;
	assert_refused_at(kvl_mem_deregister(e.duo.a, list, REGIONS), KVL_ERR_INVALID, BAD);
	duo_update(&e.duo);
	assert_int_equal(regions_seen(&e), REGIONS);
	assert_ok(kvl_mem_deregister(e.duo.a, e.mr, REGIONS));
	duo_update(&e.duo);
	assert_int_equal(regions_seen(&e), 0);
	register_seven(&e);
	eight_close(&e);
}

/* The injected failure: a posted request names the fifth. After its end the same call succeeds. */
TEST(f08_busy_deregister_can_be_retried)
{
	struct kvl_config config;
	struct buffer remote;
	struct kvl_desc from, to;
	struct eight e;
	kvl_xfer_t xfer;

	kvl_config_init(&config);
	config.workers = KVL_NO_WORKERS;
	config.small_bytes = 4096;
	eight_open(&e, &config);
	assert_ok(kvl_mem_register(e.duo.a, e.mem, REGIONS, e.mr));
	buffer_open(&remote, e.duo.b, BUFFER_ALLOC, PART, 0);
	duo_connect(&e.duo);
	from = desc_of(e.mem[BAD].addr, PART);
	to = desc_of(remote.data, PART);
	bytes_fill(e.mem[BAD].addr, PART, 6, 0, 1);
	assert_ok(kvl_write(e.duo.a, e.duo.ab, &from, &to, 1, NULL, &xfer));
	assert_int_equal(kvl_xfer_poll(e.duo.a, xfer), KVL_PENDING);
	assert_refused_at(kvl_mem_deregister(e.duo.a, e.mr, REGIONS), KVL_ERR_BUSY, BAD);
	assert_int_equal(duo_wait(&e.duo, xfer), 0);
	assert_int_equal(bytes_wrong(remote.data, PART, 6, 0, 1), 0);
	assert_ok(kvl_mem_deregister(e.duo.a, e.mr, REGIONS));
	register_seven(&e);
	eight_close(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(f08_fifth_of_eight_is_unmapped),
		cmocka_unit_test(f08_fifth_of_eight_has_a_hole),
		cmocka_unit_test(f08_fifth_of_eight_has_a_bad_descriptor),
		cmocka_unit_test(f08_fifth_of_eight_is_on_a_gpu),
		cmocka_unit_test(f08_one_region_over_the_limit),
		cmocka_unit_test(f08_failed_deregister_can_be_retried),
		cmocka_unit_test(f08_busy_deregister_can_be_retried),
	};

	return TESTING_RUN(tests, 30);
}
