/* SPDX-License-Identifier: Apache-2.0 */
/* F07: a region above the limit is refused with the limit's name; what is advertised is reachable to the end.
 */
#include "testing.h"

#include <stdlib.h>
#include <string.h>

#define LIMIT (1 * MIB)

static void limited_open(struct duo *duo)
{
	struct kvl_config config;

	kvl_config_init(&config);
	config.max_region_bytes = LIMIT;
	duo_open(duo, &config);
}

TEST(f07_longer_region_is_refused_by_name)
{
	struct kvl_limits limits = { .size = sizeof(limits) };
	unsigned char *memory = calloc(3, LIMIT);
	struct kvl_mem mem[2] = { memory_of(memory, 1, 0), memory_of(memory + 1, 3 * LIMIT - 1, 0) };
	struct duo duo;
	kvl_mr_t mr[2] = { 0, 0 };
	void *addr = NULL;

	assert_non_null(memory);
	limited_open(&duo);
	assert_ok(kvl_agent_limits(duo.a, &limits));
	assert_int_equal(limits.max_region_bytes, LIMIT);
	assert_refused_at(kvl_mem_register(duo.a, mem, 2, mr), KVL_ERR_LIMIT, 1);
	assert_message("max_region_bytes");
	mem[1].len = LIMIT + 1;
	assert_refused_at(kvl_mem_register(duo.a, mem, 2, mr), KVL_ERR_LIMIT, 1);
	assert_refused(kvl_mem_alloc(duo.a, LIMIT + 1, 0, &addr, &mr[0]), KVL_ERR_LIMIT);
	assert_message("max_region_bytes");
	assert_null(addr);
	mem[1].len = LIMIT;
	assert_ok(kvl_mem_register(duo.a, mem, 2, mr));
	duo_close(&duo);
	free(memory);
}

/* A refused registration is not advertised, not even the part below the limit. */
TEST(f07_refused_region_is_not_advertised)
{
	unsigned char *memory = calloc(3, LIMIT);
	struct kvl_mem mem = memory_of(memory, 3 * LIMIT, 0);
	struct kvl_peer_info info = { .size = sizeof(info) };
	struct kvl_desc first = desc_of(memory, 1);
	struct duo duo;
	kvl_mr_t mr;
	kvl_list_t list;

	assert_non_null(memory);
	limited_open(&duo);
	assert_refused_at(kvl_mem_register(duo.b, &mem, 1, &mr), KVL_ERR_LIMIT, 0);
	duo_connect(&duo);
	assert_ok(kvl_peer_info(duo.a, duo.ab, &info));
	assert_int_equal(info.regions, 0);
	assert_refused_at(kvl_list_create(duo.a, duo.ab, &first, 1, &list), KVL_ERR_RANGE, 0);
	duo_close(&duo);
	free(memory);
}

static void write_at(struct duo *duo, struct buffer *local, unsigned char *target, uint64_t len,
		     uint64_t epoch)
{
	struct kvl_desc from = desc_of(local->data, len), to = desc_of(target, len);
	kvl_xfer_t xfer;

	bytes_fill(local->data, len, 4, 0, epoch);
	assert_ok(kvl_write(duo->a, duo->ab, &from, &to, 1, NULL, &xfer));
	assert_int_equal(duo_wait(duo, xfer), 0);
	assert_int_equal(bytes_wrong(target, len, 4, 0, epoch), 0);
	assert_ok(kvl_xfer_release(duo->a, xfer));
}

/* Three regions of the limit, as a caller would split: first byte, last byte, all of each, none across. */
TEST(f07_every_advertised_byte_is_reachable)
{
	unsigned char *memory = calloc(3, LIMIT);
	struct kvl_mem mem[3];
	struct buffer local;
	struct kvl_desc across;
	struct duo duo;
	kvl_mr_t mr[3];
	kvl_list_t list;

	assert_non_null(memory);
	limited_open(&duo);
	buffer_open(&local, duo.a, BUFFER_ALLOC, LIMIT, 0);
	for (size_t i = 0; i < 3; i++)
		mem[i] = memory_of(memory + i * LIMIT, LIMIT, 0);
	assert_ok(kvl_mem_register(duo.b, mem, 3, mr));
	duo_connect(&duo);
	write_at(&duo, &local, memory, 1, 1);
	write_at(&duo, &local, memory + 3 * LIMIT - 1, 1, 2);
	for (size_t i = 0; i < 3; i++)
		write_at(&duo, &local, memory + i * LIMIT, LIMIT, 3 + i);
	across = desc_of(memory + LIMIT - 1, 2);
	assert_refused_at(kvl_list_create(duo.a, duo.ab, &across, 1, &list), KVL_ERR_RANGE, 0);
	across = desc_of(memory + 3 * LIMIT - 1, 2);
	assert_refused_at(kvl_list_create(duo.a, duo.ab, &across, 1, &list), KVL_ERR_RANGE, 0);
	duo_close(&duo);
	free(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(f07_longer_region_is_refused_by_name),
		cmocka_unit_test(f07_refused_region_is_not_advertised),
		cmocka_unit_test(f07_every_advertised_byte_is_reachable),
	};

	return TESTING_RUN(tests, 30);
}
