/* SPDX-License-Identifier: Apache-2.0 */
/* F54: without the CUDA part everything of the CPU works; GPU memory is refused with the reason. */
#include "testing.h"

#include <stdio.h>
#include <string.h>

TEST(f54_wires_say_what_is_missing)
{
	struct kvl_wire_info info;
	int local = 0;
	size_t i;

	for (i = 0; kvl_wire_info(i, &info) == 0; i++) {
		print_message("wire %s: %s\n", info.name, info.available ? "available" : info.reason);
		local += strcmp(info.name, "local") == 0 && info.available;
		assert_true(info.available || info.reason[0] != 0);
	}
	assert_int_equal(local, 1);
	assert_refused(kvl_wire_info(i, &info), KVL_ERR_NOT_FOUND);
	assert_refused(kvl_wire_info(SIZE_MAX, &info), KVL_ERR_NOT_FOUND);
}

TEST(f54_gpu_memory_is_refused_with_the_reason)
{
	static unsigned char byte[2];
	struct kvl_mem mem[2] = { memory_of(&byte[0], 1, 0), memory_of(&byte[1], 1, 0) };
	kvl_agent_t agent;
	kvl_mr_t mr[2] = { 0, 0 };

	assert_ok(kvl_agent_open("cpu", NULL, &agent));
	for (uint32_t gpu = 0; gpu < 3; gpu++) {
		mem[1].device = KVL_GPU(gpu);
		assert_refused_at(kvl_mem_register(agent, mem, 2, mr), KVL_ERR_UNSUPPORTED, 1);
		assert_message("CUDA");
	}
	mem[1].device = KVL_HOST;
	assert_ok(kvl_mem_register(agent, mem, 2, mr));
	assert_ok(kvl_agent_close(agent, SECOND));
}

TEST(f54_a_transfer_works)
{
	struct buffer local, remote;
	struct kvl_desc from, to;
	struct duo duo;

	duo_open(&duo, NULL);
	buffer_open(&local, duo.a, BUFFER_ALLOC, 100000, 0);
	buffer_open(&remote, duo.b, BUFFER_ALLOC, 100000, 0);
	duo_connect(&duo);
	from = desc_of(local.data, local.len);
	to = desc_of(remote.data, remote.len);
	assert_int_equal(duo_move(&duo, KVL_WRITE, &local, &from, &remote, &to, 1, 1, NULL, NULL), 0);
	assert_int_equal(duo_move(&duo, KVL_READ, &local, &from, &remote, &to, 1, 2, NULL, NULL), 0);
	duo_close(&duo);
}

/* Nothing of the GPU stack was loaded on the way. */
TEST(f54_no_gpu_library_is_loaded)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		assert_null(strstr(line, "libcuda"));
		assert_null(strstr(line, "libcudart"));
	}
	fclose(maps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(f54_wires_say_what_is_missing),
		cmocka_unit_test(f54_gpu_memory_is_refused_with_the_reason),
		cmocka_unit_test(f54_a_transfer_works),
		cmocka_unit_test(f54_no_gpu_library_is_loaded),
	};

	return TESTING_RUN(tests, 20);
}
