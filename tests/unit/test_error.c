/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"

/* clang-format off */
/* Spelt out, not taken from the list: programs compare and print these numbers for ever. */
static const struct {
	int code;
	enum kvl_scope scope;
	const char *name;
} known[] = {
	{ -1, KVL_SCOPE_CALL, "KVL_ERR_AGAIN" },
	{ -2, KVL_SCOPE_CALL, "KVL_ERR_INVALID" },
	{ -3, KVL_SCOPE_CALL, "KVL_ERR_OPTION" },
	{ -4, KVL_SCOPE_CALL, "KVL_ERR_RANGE" },
	{ -5, KVL_SCOPE_CALL, "KVL_ERR_MISMATCH" },
	{ -6, KVL_SCOPE_CALL, "KVL_ERR_RIGHTS" },
	{ -7, KVL_SCOPE_CALL, "KVL_ERR_OVERLAP" },
	{ -8, KVL_SCOPE_CALL, "KVL_ERR_STALE" },
	{ -9, KVL_SCOPE_CALL, "KVL_ERR_BUSY" },
	{ -10, KVL_SCOPE_CALL, "KVL_ERR_LIMIT" },
	{ -11, KVL_SCOPE_CALL, "KVL_ERR_NOMEM" },
	{ -12, KVL_SCOPE_CALL, "KVL_ERR_EXISTS" },
	{ -13, KVL_SCOPE_CALL, "KVL_ERR_NOT_FOUND" },
	{ -14, KVL_SCOPE_CALL, "KVL_ERR_UNSUPPORTED" },
	{ -15, KVL_SCOPE_CALL, "KVL_ERR_CORRUPT" },
	{ -16, KVL_SCOPE_CALL, "KVL_ERR_VERSION" },
	{ -17, KVL_SCOPE_CALL, "KVL_ERR_IDENTITY" },
	{ -18, KVL_SCOPE_CALL, "KVL_ERR_PERMISSION" },
	{ -19, KVL_SCOPE_CALL, "KVL_ERR_SYSTEM" },
	{ -20, KVL_SCOPE_CALL, "KVL_ERR_NOT_POSTED" },
	{ -21, KVL_SCOPE_OPERATION, "KVL_ERR_TIMED_OUT" },
	{ -22, KVL_SCOPE_OPERATION, "KVL_ERR_CANCELED" },
	{ -23, KVL_SCOPE_OPERATION, "KVL_ERR_FLUSHED" },
	{ -24, KVL_SCOPE_LANE, "KVL_ERR_WIRE" },
	{ -25, KVL_SCOPE_PEER, "KVL_ERR_PEER_LOST" },
	{ -26, KVL_SCOPE_AGENT, "KVL_ERR_CLOSED" },
	{ -27, KVL_SCOPE_AGENT, "KVL_ERR_FATAL" },
	{ 0, KVL_SCOPE_CALL, "KVL_OK" },
	{ 1, KVL_SCOPE_CALL, "KVL_PENDING" },
};
/* clang-format on */

TEST(test_names)
{
	for (size_t i = 0; i < COUNT(known); i++) {
		assert_string_equal(kvl_error_name(known[i].code), known[i].name);
		assert_int_equal(kvl_error_scope(known[i].code), known[i].scope);
		assert_true(strlen(kvl_error_text(known[i].code)) > 3);
		assert_string_not_equal(kvl_error_text(known[i].code), "unknown error");
	}
	assert_string_equal(kvl_error_text(KVL_ERR_RANGE), "not inside one registered region");
}

TEST(test_unknown)
{
	static const int codes[] = { -28, -1000, 2, INT32_MIN, INT32_MAX };

	for (size_t i = 0; i < COUNT(codes); i++) {
		assert_string_equal(kvl_error_name(codes[i]), "unknown error");
		assert_string_equal(kvl_error_text(codes[i]), "unknown error");
	}
}

TEST(test_detail)
{
	struct kvl_error_detail d;

	assert_int_equal(
		kvli_fail(KVL_ERR_RANGE, 613, EFAULT, "end <= region end", "entry %d ends at %#x", 613, 4096),
		KVL_ERR_RANGE);
	kvl_error_detail(&d);
	assert_int_equal(d.code, KVL_ERR_RANGE);
	assert_int_equal(d.system, EFAULT);
	assert_int_equal(d.entry, 613);
	assert_string_equal(d.rule, "end <= region end");
	assert_string_equal(d.message, "entry 613 ends at 0x1000: Bad address");
	kvl_error_detail(NULL);
}

TEST(test_detail_moved)
{
	struct kvl_error_detail d;

	kvli_fail(KVL_ERR_OVERLAP, KVL_NO_ENTRY, 0, "sub-range", "inside another");
	assert_int_equal(kvli_fail_at(KVL_ERR_OVERLAP, 7), KVL_ERR_OVERLAP);
	kvl_error_detail(&d);
	assert_int_equal(d.entry, 7);
	assert_string_equal(d.rule, "sub-range");
	assert_string_equal(d.message, "inside another");

	/* A code that nobody has described must not wear the words of the failure before it. */
	assert_int_equal(kvli_fail_at(KVL_ERR_STALE, 9), KVL_ERR_STALE);
	kvl_error_detail(&d);
	assert_int_equal(d.code, KVL_ERR_STALE);
	assert_int_equal(d.entry, 9);
	assert_string_equal(d.rule, "");
	assert_string_equal(d.message, kvl_error_text(KVL_ERR_STALE));
}

TEST(test_detail_long)
{
	struct kvl_error_detail d;
	char text[1000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	kvli_fail(KVL_ERR_LIMIT, 0, 0, text, "%s", text);
	kvl_error_detail(&d);
	assert_int_equal(strlen(d.rule), sizeof(d.rule) - 1);
	assert_int_equal(strlen(d.message), sizeof(d.message) - 1);
}

static void *detail_of_new_thread(void *arg)
{
	struct kvl_error_detail *d = arg;

	kvl_error_detail(&d[0]);
	kvli_fail(KVL_ERR_BUSY, 3, 0, "theirs", "theirs");
	kvl_error_detail(&d[1]);
	return NULL;
}

TEST(test_detail_per_thread)
{
	struct kvl_error_detail mine, theirs[2];
	pthread_t thread;

	kvli_fail(KVL_ERR_RIGHTS, 1, 0, "mine", "mine");
	assert_int_equal(pthread_create(&thread, NULL, detail_of_new_thread, theirs), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	kvl_error_detail(&mine);
	assert_string_equal(mine.rule, "mine");
	assert_int_equal(theirs[0].code, 0);
	assert_true(theirs[0].entry == KVL_NO_ENTRY);
	assert_string_equal(theirs[1].rule, "theirs");
}

TEST(test_clock)
{
	uint64_t before = kvli_now(), now = kvl_now(), after = kvli_now();
	struct timespec t;

	assert_true(before <= now && now <= after);
	assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &t), 0);
	/* The documented clock, not another one: both were read within the watchdog's minute. */
	assert_true((uint64_t)t.tv_sec * KVLI_NS_PER_S - now + KVLI_NS_PER_S < 61 * KVLI_NS_PER_S);
	assert_true(kvli_deadline(0) >= after);
	assert_true(kvli_deadline(UINT64_MAX) == UINT64_MAX);
	assert_true(kvli_deadline(UINT64_MAX - 1) == UINT64_MAX);
}

TEST(test_random)
{
	uint8_t a[4096] = { 0 }, b[sizeof(a)] = { 0 };
	size_t zeros = 0;

	assert_ok(kvli_random_bytes(a, sizeof(a) - 1));
	assert_ok(kvli_random_bytes(b, sizeof(b) - 1));
	assert_ok(kvli_random_bytes(a, 0));
	assert_memory_not_equal(a, b, sizeof(a) - 1);
	assert_int_equal(a[sizeof(a) - 1], 0);
	for (size_t i = 0; i < sizeof(a); i++)
		zeros += a[i] == 0;
	/* 16 are expected; 100 in 4095 random bytes happen once in 10^40 runs. */
	assert_true(zeros < 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),       cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_detail),      cmocka_unit_test(test_detail_moved),
		cmocka_unit_test(test_detail_long), cmocka_unit_test(test_detail_per_thread),
		cmocka_unit_test(test_clock),       cmocka_unit_test(test_random),
	};

	return TESTING_RUN(tests, 60);
}
