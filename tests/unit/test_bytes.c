/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "base/bytes.h"

TEST(test_varint)
{
	static const struct {
		uint64_t value;
		size_t len;
	} cases[] = { { 0, 1 },          { 127, 1 },      { 128, 2 },        { 16383, 2 },
		      { 16384, 3 },      { 1u << 21, 4 }, { UINT32_MAX, 5 }, { UINT64_MAX >> 1, 9 },
		      { UINT64_MAX, 10 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t bytes[KVLI_VARINT_MAX];
		struct kvli_writer w;
		struct kvli_reader r;

		kvli_writer_init(&w, bytes, sizeof(bytes));
		kvli_put_varint(&w, cases[i].value);
		assert_int_equal(w.len, cases[i].len);
		kvli_reader_init(&r, bytes, w.len);
		assert_true(kvli_get_varint(&r) == cases[i].value);
		assert_null(r.broken);
		assert_int_equal(kvli_reader_left(&r), 0);
		kvli_reader_init(&r, bytes, w.len - 1);
		assert_true(kvli_get_varint(&r) == 0);
		assert_string_equal(r.broken, "the bytes end early");
	}
}

TEST(test_varint_refused)
{
	static const uint8_t longer[] = { 0x80, 0x00 }, longer_too[] = { 0xff, 0x80, 0x00 };
	static const uint8_t wide[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02 };
	static const uint8_t endless[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
					   0xff, 0xff, 0xff, 0xff, 0xff, 0x01 };
	struct kvli_reader r;

	kvli_reader_init(&r, longer, sizeof(longer));
	assert_true(kvli_get_varint(&r) == 0);
	assert_string_equal(r.broken, "a varint has its shortest form");
	kvli_reader_init(&r, longer_too, sizeof(longer_too));
	assert_true(kvli_get_varint(&r) == 0);
	assert_string_equal(r.broken, "a varint has its shortest form");
	assert_int_equal(kvli_reader_offset(&r), 0);
	kvli_reader_init(&r, wide, sizeof(wide));
	assert_true(kvli_get_varint(&r) == 0);
	assert_string_equal(r.broken, "a varint fits in 64 bits");
	kvli_reader_init(&r, endless, sizeof(endless));
	assert_true(kvli_get_varint(&r) == 0);
	assert_string_equal(r.broken, "a varint fits in 64 bits");
}

TEST(test_cursor)
{
	static const uint8_t expected[] = {
		0x12, 0x02, 0x01, 0x04, 0x03, 0x02, 0x01, 8, 7, 6, 5, 4, 3, 2, 1
	};
	uint8_t bytes[sizeof(expected)];
	struct kvli_writer w;
	struct kvli_reader r;

	kvli_writer_init(&w, bytes, sizeof(bytes));
	kvli_put_u8(&w, 0x12);
	kvli_put_u16(&w, 0x0102);
	kvli_put_u32(&w, 0x01020304);
	kvli_put_u64(&w, UINT64_C(0x0102030405060708));
	assert_false(kvli_writer_short(&w));
	assert_memory_equal(bytes, expected, sizeof(expected));
	kvli_put_u8(&w, 1);
	assert_true(kvli_writer_short(&w));
	assert_int_equal(w.len, sizeof(bytes) + 1);

	kvli_reader_init(&r, bytes, sizeof(bytes));
	assert_int_equal(kvli_get_u8(&r), 0x12);
	assert_int_equal(kvli_get_u16(&r), 0x0102);
	assert_int_equal(kvli_get_u32(&r), 0x01020304);
	assert_true(kvli_get_u64(&r) == UINT64_C(0x0102030405060708));
	assert_null(r.broken);
	assert_int_equal(kvli_get_u16(&r), 0);
	assert_non_null(r.broken);
	/* Failed once, failed for good. */
	kvli_reader_init(&r, bytes, 3);
	assert_int_equal(kvli_get_u32(&r), 0);
	assert_int_equal(kvli_get_u8(&r), 0);
	assert_null(kvli_get_bytes(&r, 1));
	assert_int_equal(kvli_reader_offset(&r), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_varint),
		cmocka_unit_test(test_varint_refused),
		cmocka_unit_test(test_cursor),
	};

	return TESTING_RUN(tests, 60);
}
