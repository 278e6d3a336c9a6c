/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control/metadata.h"

#define ROOM       8192
#define REGION_MAX 24

/* -------------------------------------------------------------------------------------------------- names */

TEST(test_names)
{
	static const char *const good[] = { "a", "A-b_c.9", "...", "..a", "-", "prefill-0.rank7" };
	static const char *const bad[] = { "", ".", "..", "a/b", "a b", "\xc3\xa9", "a\n", "a:b", "../x" };
	char longest[KVL_NAME_MAX + 1];

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(kvli_name_valid(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(kvli_name_valid(bad[i]));
	assert_false(kvli_name_valid(NULL));
	memset(longest, 'n', sizeof(longest));
	longest[KVL_NAME_MAX] = '\0';
	assert_false(kvli_name_valid(longest));
	longest[KVL_NAME_MAX - 1] = '\0';
	assert_true(kvli_name_valid(longest));
}

/* -------------------------------------------------------------------------------------------------- codec */

/* Two regions that use every field; region is the caller's array of two. */
static struct kvli_md sample(struct kvli_md_region *region)
{
	struct kvli_md md = { .name = "decode-1", .wire = "local", .address_len = 3, .n_regions = 2 };

	for (size_t i = 0; i < sizeof(md.incarnation); i++)
		md.incarnation[i] = (uint8_t)(0xa0 + i);
	memcpy(md.address, "\x00\xff\x2f", 3);
	region[0] = (struct kvli_md_region){
		.slot = 3, .rights = KVL_REMOTE_READ, .generation = 1, .base = 0x7f00, .len = 1, .device = 0
	};
	region[1] = (struct kvli_md_region){ .slot = 300,
					     .rights = KVL_REMOTE_ALL,
					     .generation = 300,
					     .base = UINT64_MAX - 5,
					     .len = 5,
					     .device = 2,
					     .mappable = 1 };
	md.region = region;
	return md;
}

/* The bytes of sample(): the format is shared with other versions of the library, so they must not change. */
static const uint8_t golden[] = {
	'K',  'V',  'L',  'M',  1,    0,                               /* magic, version */
	0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7,                /* incarnation */
	0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf,                /* incarnation */
	8,    'd',  'e',  'c',  'o',  'd',  'e',  '-',  '1',           /* name at 22 */
	5,    'l',  'o',  'c',  'a',  'l',                             /* wire at 31 */
	3,    0,    0xff, '/',                                         /* address at 37 */
	2,                                                             /* regions at 41 */
	3,    1,    1,    0x80, 0xfe, 1,    1,    0,                   /* region 0 at 42 */
	0xa9, 2,    7,    0xac, 2,                                     /* region 1 at 50 */
	0xfa, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 5, 2, /* base at 55, length, device */
};

#define AT_VERSION 4
#define AT_NAME    22
#define AT_WIRE    31
#define AT_ADDRESS 37
#define AT_COUNT   41
#define AT_REGION  42

TEST(test_golden)
{
	struct kvli_md_region region[2];
	struct kvli_md md = sample(region), out;
	uint8_t bytes[ROOM];
	size_t len = sizeof(bytes);

	assert_ok(kvli_md_encode(&md, bytes, &len));
	assert_int_equal(len, sizeof(golden));
	assert_memory_equal(bytes, golden, sizeof(golden));
	assert_ok(kvli_md_decode(golden, sizeof(golden), &out));
	assert_string_equal(out.name, "decode-1");
	assert_string_equal(out.wire, "local");
	assert_memory_equal(out.incarnation, md.incarnation, sizeof(out.incarnation));
	assert_int_equal(out.address_len, 3);
	assert_memory_equal(out.address, md.address, sizeof(out.address));
	assert_int_equal(out.n_regions, 2);
	assert_memory_equal(out.region, region, sizeof(region));
	kvli_md_fini(&out);
	assert_null(out.region);
	kvli_md_fini(&out);
	kvli_md_fini(NULL);
}

TEST(test_room)
{
	struct kvli_md_region region[2];
	struct kvli_md md = sample(region);
	uint8_t bytes[sizeof(golden) + 1];
	size_t len = 0;

	assert_refused(kvli_md_encode(&md, NULL, &len), KVL_ERR_LIMIT);
	assert_int_equal(len, sizeof(golden));
	for (size_t room = 0; room < sizeof(golden); room++) {
		memset(bytes, 0x5a, sizeof(bytes));
		len = room;
		assert_refused(kvli_md_encode(&md, bytes, &len), KVL_ERR_LIMIT);
		assert_int_equal(len, sizeof(golden));
		for (size_t i = room; i < sizeof(bytes); i++)
			assert_int_equal(bytes[i], 0x5a);
	}
	len = sizeof(golden);
	assert_ok(kvli_md_encode(&md, bytes, &len));
}

/* As many regions as the default allows, with the largest numbers that a real agent comes by. */
TEST(test_size)
{
	enum {
		N = 65536
	};
	struct kvli_md_region *region = calloc(N, sizeof(*region));
	struct kvli_md md = {
		.name = "n", .wire = "local", .address_len = 100, .n_regions = N, .region = region
	};
	size_t len = 0, fixed = 0;

	assert_non_null(region);
	for (uint32_t i = 0; i < N; i++)
		region[i] = (struct kvli_md_region){ .slot = i * 16,
						     .rights = KVL_REMOTE_ALL,
						     .generation = UINT32_MAX,
						     .base = (UINT64_C(1) << 47) - (UINT64_C(1) << 41),
						     .len = UINT64_C(1) << 41,
						     .device = 127,
						     .mappable = 1 };
	assert_refused(kvli_md_encode(&md, NULL, &len), KVL_ERR_LIMIT);
	md.n_regions = 0;
	memset(md.name, 'n', sizeof(md.name) - 1);
	assert_refused(kvli_md_encode(&md, NULL, &fixed), KVL_ERR_LIMIT);
	assert_true(len <= (size_t)N * REGION_MAX + 200);
	assert_true(fixed <= 200);
	free(region);
}

static void refused(const void *bytes, size_t len, int code, const char *rule)
{
	struct kvl_error_detail d;
	struct kvli_md out, before;

	memset(&out, 0x77, sizeof(out));
	memcpy(&before, &out, sizeof(out));
	assert_refused(kvli_md_decode(bytes, len, &out), code);
	assert_memory_equal(&out, &before, sizeof(out));
	kvl_error_detail(&d);
	assert_int_equal(d.code, code);
	assert_string_equal(d.rule, rule);
}

TEST(test_truncated)
{
	struct kvl_error_detail d;

	for (size_t len = 0; len < sizeof(golden); len++) {
		/* A copy of exactly that length, so that the address checker sees one byte too many. */
		uint8_t *bytes = malloc(len ? len : 1);
		struct kvli_md out;

		assert_non_null(bytes);
		memcpy(bytes, golden, len);
		assert_refused(kvli_md_decode(bytes, len, &out), KVL_ERR_CORRUPT);
		kvl_error_detail(&d);
		assert_non_null(strstr(d.message, "metadata, "));
		free(bytes);
	}
	refused(NULL, 0, KVL_ERR_CORRUPT, "the bytes end early");
}

/* golden with n bytes at one place replaced by others, as many or not. */
static void refused_patch(size_t at, size_t n, const char *with, size_t m, int code, const char *rule)
{
	uint8_t *bytes = malloc(sizeof(golden) + m);

	assert_non_null(bytes);
	memcpy(bytes, golden, at);
	memcpy(bytes + at, with, m);
	memcpy(bytes + at + m, golden + at + n, sizeof(golden) - at - n);
	refused(bytes, sizeof(golden) - n + m, code, rule);
	free(bytes);
}

#define NAME_RULE "a name is 1 to 63 of [A-Za-z0-9._-]"
#define WIRE_RULE "a wire is 1 to 15 of [A-Za-z0-9._-]"
#define SLOT_RULE "slots ascend, each once, below 1048576"

TEST(test_refused_head)
{
	char longest[130] = "";

	memset(longest, 'x', sizeof(longest));
	refused_patch(0, 1, "k", 1, KVL_ERR_CORRUPT, "metadata starts with KVLM");
	refused_patch(AT_VERSION, 2, "\2\0", 2, KVL_ERR_VERSION, "both sides speak the same version");
	refused_patch(AT_VERSION, 2, "\1\1", 2, KVL_ERR_VERSION, "both sides speak the same version");
	refused_patch(AT_VERSION, 2, "\0\0", 2, KVL_ERR_VERSION, "both sides speak the same version");
	refused_patch(AT_NAME, 9, "\0", 1, KVL_ERR_CORRUPT, NAME_RULE);
	refused_patch(AT_NAME, 9, "\1.", 2, KVL_ERR_CORRUPT, NAME_RULE);
	refused_patch(AT_NAME, 9, "\2..", 3, KVL_ERR_CORRUPT, NAME_RULE);
	refused_patch(AT_NAME, 9, "\3a/b", 4, KVL_ERR_CORRUPT, NAME_RULE);
	refused_patch(AT_NAME, 9, "\3a\0b", 4, KVL_ERR_CORRUPT, NAME_RULE);
	longest[0] = 64;
	refused_patch(AT_NAME, 9, longest, 65, KVL_ERR_CORRUPT, NAME_RULE);
	refused_patch(AT_WIRE, 6, "\0", 1, KVL_ERR_CORRUPT, WIRE_RULE);
	refused_patch(AT_WIRE, 6, "\2a\n", 3, KVL_ERR_CORRUPT, WIRE_RULE);
	longest[0] = 16;
	refused_patch(AT_WIRE, 6, longest, 17, KVL_ERR_CORRUPT, WIRE_RULE);
	longest[0] = (char)0x81;
	longest[1] = 1;
	refused_patch(AT_ADDRESS, 4, longest, 130, KVL_ERR_CORRUPT, "an address has at most 128 bytes");
	refused_patch(AT_ADDRESS, 1, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", 10, KVL_ERR_CORRUPT,
		      "an address has at most 128 bytes");
}

TEST(test_refused_regions)
{
	struct kvl_error_detail d;

	refused_patch(AT_COUNT, 1, "\x80\0", 2, KVL_ERR_CORRUPT, "a varint has its shortest form");
	/* More regions than the bytes can hold, up to a count whose array would not fit in memory. */
	refused_patch(AT_COUNT, 1, "\6", 1, KVL_ERR_CORRUPT, "the regions counted are there");
	refused_patch(AT_COUNT, 1, "\x80\x80\x40", 3, KVL_ERR_CORRUPT, "the regions counted are there");
	refused_patch(AT_COUNT, 1, "\x81\x80\x40", 3, KVL_ERR_CORRUPT, "there are at most 1048576 regions");
	refused_patch(AT_COUNT, 1, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", 10, KVL_ERR_CORRUPT,
		      "there are at most 1048576 regions");
	refused_patch(AT_COUNT, 1, "\1", 1, KVL_ERR_CORRUPT, "nothing follows the regions");
	refused_patch(AT_COUNT, 1, "\3", 1, KVL_ERR_CORRUPT, "the bytes end early");
	refused_patch(sizeof(golden), 0, "\0", 1, KVL_ERR_CORRUPT, "nothing follows the regions");
	refused_patch(AT_REGION, 1, "\x80\x80\x40", 3, KVL_ERR_CORRUPT, SLOT_RULE);
	refused_patch(AT_REGION + 1, 1, "\x08", 1, KVL_ERR_CORRUPT, "flags are read, write, mappable");
	refused_patch(AT_REGION + 6, 1, "\0", 1, KVL_ERR_CORRUPT, "length >= 1");
	kvl_error_detail(&d);
	assert_int_equal(d.entry, 0);
	refused_patch(AT_REGION + 7, 1, "\x80\x80\x80\x80\x10", 5, KVL_ERR_CORRUPT,
		      "a device fits in 32 bits");
	/* Of region 1: the same slot again, a slot past the end, one byte past the address space. */
	refused_patch(AT_REGION + 8, 2, "\0", 1, KVL_ERR_CORRUPT, SLOT_RULE);
	kvl_error_detail(&d);
	assert_int_equal(d.entry, 1);
	refused_patch(AT_REGION + 8, 2, "\xfd\xff\x3f", 3, KVL_ERR_CORRUPT, SLOT_RULE);
	refused_patch(sizeof(golden) - 2, 1, "\6", 1, KVL_ERR_CORRUPT, "base + length does not wrap");
}

static void refused_encode(const struct kvli_md *md, size_t entry)
{
	struct kvl_error_detail d;
	uint8_t bytes[ROOM];
	size_t len = sizeof(bytes);

	assert_refused(kvli_md_encode(md, bytes, &len), KVL_ERR_INVALID);
	assert_int_equal(len, sizeof(bytes));
	kvl_error_detail(&d);
	assert_true(d.entry == entry);
	assert_int_not_equal(d.rule[0], 0);
}

/* What a decoder would refuse is not made. */
TEST(test_refused_encode)
{
	struct kvli_md_region region[2];
	struct kvli_md md;

#define REFUSE(change, at)               \
	do {                             \
		md = sample(region);     \
		change;                  \
		refused_encode(&md, at); \
	} while (0)
	REFUSE(md.name[0] = '/', KVL_NO_ENTRY);
	REFUSE(md.name[0] = '\0', KVL_NO_ENTRY);
	REFUSE(memset(md.name, 'n', sizeof(md.name)), KVL_NO_ENTRY);
	REFUSE(md.wire[0] = '\0', KVL_NO_ENTRY);
	REFUSE(memset(md.wire, 'w', sizeof(md.wire)), KVL_NO_ENTRY);
	REFUSE(md.address_len = KVLI_MD_ADDRESS_MAX + 1, KVL_NO_ENTRY);
	REFUSE(region[0].len = 0, 0);
	REFUSE(region[1].len = 6, 1);
	REFUSE(region[0].rights = KVL_LOCAL_ONLY, 0);
	REFUSE(region[1].mappable = 2, 1);
	REFUSE(region[1].slot = region[0].slot, 1);
	REFUSE(region[0].slot = region[1].slot + 1, 1);
	REFUSE(region[1].slot = KVLI_MD_SLOTS, 1);
#undef REFUSE
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_size),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_refused_head),
		cmocka_unit_test(test_refused_regions),
		cmocka_unit_test(test_refused_encode),
	};

	return TESTING_RUN(tests, 60);
}
