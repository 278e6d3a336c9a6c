/* SPDX-License-Identifier: Apache-2.0 */
#include "testing_config.h"

#include <string.h>

#include "agent/config.h"
#include "agent/text.h"

/* clang-format off */
#define NUMBER(member, text, value, def) \
	{ #member, text, offsetof(struct kvl_config, member), sizeof(((struct kvl_config *)0)->member), \
	  value, def, NULL, NULL }
#define TEXT(member, text, def) \
	{ #member, text, offsetof(struct kvl_config, member), 0, 0, 0, text, def }
const struct option_row option_rows[] = {
	TEXT(wire, "sim", "local"),
	TEXT(local_paths, "slot,map", "map,copy,slot"),
	TEXT(sim, "seed=18446744073709551615,error=3", "seed=1,delay=8,again=0,error=0,reorder=1"),
	NUMBER(workers, "2", 2, 1),
	NUMBER(lanes, "64", 64, 4),
	NUMBER(latency_lanes, "2", 2, 1),
	NUMBER(queue_depth, "65536", 65536, 1024),
	NUMBER(max_requests, "1048576", 1048576, 16384),
	NUMBER(max_regions, "7", 7, 65536),
	NUMBER(max_peers, "65536", 65536, 1024),
	NUMBER(max_region_bytes, "3g", UINT64_C(3) << 30, UINT64_C(1) << 56),
	NUMBER(small_bytes, "8KiB", 8192, 65536),
	NUMBER(chunk_bytes, "1G", 1 << 30, 262144),
	NUMBER(window, "1024", 1024, 16),
	NUMBER(ring_bytes, "16m", 1 << 24, 65536),
	NUMBER(notif_max_bytes, "2m", 2 << 20, 1 << 20),
	NUMBER(notif_queue_bytes, "128MiB", 128 << 20, 64 << 20),
	NUMBER(deadline_ms, "1", 1, 30000),
	NUMBER(connect_timeout_ms, "60000", 60000, 5000),
	NUMBER(retire_order, "global", KVL_RETIRE_GLOBAL, KVL_RETIRE_LANE),
};
/* clang-format on */

const size_t option_rows_count = COUNT(option_rows);

static uint64_t number_of(const struct kvl_config *config, const struct option_row *row)
{
	const char *member = (const char *)config + row->offset;
	uint64_t wide;
	uint32_t narrow;

	if (row->width == sizeof(narrow)) {
		memcpy(&narrow, member, sizeof(narrow));
		return narrow;
	}
	assert_int_equal(row->width, sizeof(wide));
	memcpy(&wide, member, sizeof(wide));
	return wide;
}

static const char *string_of(const struct kvl_config *config, const struct option_row *row)
{
	const char *string;

	memcpy(&string, (const char *)config + row->offset, sizeof(string));
	return string;
}

void options_resolve_to(const struct kvl_config *config, size_t n)
{
	struct kvl_config out;

	assert_ok(kvli_config_resolve(config, &out));
	assert_int_equal(out.size, sizeof(out));
	for (size_t i = 0; i < COUNT(option_rows); i++) {
		const struct option_row *row = &option_rows[i];

		if (row->width == 0)
			assert_string_equal(string_of(&out, row), i < n ? row->string : row->string_def);
		else
			assert_int_equal(number_of(&out, row), i < n ? row->number : row->number_def);
	}
}

int options_teardown(void **state)
{
	(void)state;
	return kvli_text_alive() != 0;
}
