/* SPDX-License-Identifier: Apache-2.0 */
/* The error table, and the detail that each thread has for itself. */
#include "testing.h"

#include <pthread.h>
#include <string.h>

/* Values are fixed for ever: written out here, not taken from the header. */
static const struct {
	int code;
	const char *name;
	enum kvl_scope scope;
} table[] = {
	{ -1, "KVL_ERR_AGAIN", KVL_SCOPE_CALL },
	{ -2, "KVL_ERR_INVALID", KVL_SCOPE_CALL },
	{ -3, "KVL_ERR_OPTION", KVL_SCOPE_CALL },
	{ -4, "KVL_ERR_RANGE", KVL_SCOPE_CALL },
	{ -5, "KVL_ERR_MISMATCH", KVL_SCOPE_CALL },
	{ -6, "KVL_ERR_RIGHTS", KVL_SCOPE_CALL },
	{ -7, "KVL_ERR_OVERLAP", KVL_SCOPE_CALL },
	{ -8, "KVL_ERR_STALE", KVL_SCOPE_CALL },
	{ -9, "KVL_ERR_BUSY", KVL_SCOPE_CALL },
	{ -10, "KVL_ERR_LIMIT", KVL_SCOPE_CALL },
	{ -11, "KVL_ERR_NOMEM", KVL_SCOPE_CALL },
	{ -12, "KVL_ERR_EXISTS", KVL_SCOPE_CALL },
	{ -13, "KVL_ERR_NOT_FOUND", KVL_SCOPE_CALL },
	{ -14, "KVL_ERR_UNSUPPORTED", KVL_SCOPE_CALL },
	{ -15, "KVL_ERR_CORRUPT", KVL_SCOPE_CALL },
	{ -16, "KVL_ERR_VERSION", KVL_SCOPE_CALL },
	{ -17, "KVL_ERR_IDENTITY", KVL_SCOPE_CALL },
	{ -18, "KVL_ERR_PERMISSION", KVL_SCOPE_CALL },
	{ -19, "KVL_ERR_SYSTEM", KVL_SCOPE_CALL },
	{ -20, "KVL_ERR_NOT_POSTED", KVL_SCOPE_CALL },
	{ -21, "KVL_ERR_TIMED_OUT", KVL_SCOPE_OPERATION },
	{ -22, "KVL_ERR_CANCELED", KVL_SCOPE_OPERATION },
	{ -23, "KVL_ERR_FLUSHED", KVL_SCOPE_OPERATION },
	{ -24, "KVL_ERR_WIRE", KVL_SCOPE_LANE },
	{ -25, "KVL_ERR_PEER_LOST", KVL_SCOPE_PEER },
	{ -26, "KVL_ERR_CLOSED", KVL_SCOPE_AGENT },
	{ -27, "KVL_ERR_FATAL", KVL_SCOPE_AGENT },
};

TEST(errors_have_fixed_values_names_and_scopes)
{
	for (size_t i = 0; i < COUNT(table); i++) {
		const char *name = kvl_error_name(table[i].code);

		/* With or without the prefix: the name is that of the enum. */
		assert_non_null(strstr(table[i].name, name));
		assert_string_equal(table[i].name + strlen(table[i].name) - strlen(name), name);
		assert_true(strlen(kvl_error_text(table[i].code)) > 3);
		assert_int_equal(kvl_error_scope(table[i].code), table[i].scope);
	}
}

TEST(errors_unknown_code)
{
	assert_string_equal(kvl_error_text(-28), "unknown error");
	assert_string_equal(kvl_error_text(-12345), "unknown error");
	assert_string_equal(kvl_error_text(12345), "unknown error");
	assert_string_equal(kvl_error_name(-28), "unknown error");
}

static void fail_with(const char *name)
{
	struct kvl_config config;

	kvl_config_init(&config);
	must(kvl_config_set(&config, name, "1") == KVL_ERR_OPTION);
}

static void *other_thread(void *arg)
{
	struct kvl_error_detail detail;

	kvl_error_detail(&detail);
	must(detail.code == 0 && detail.message[0] == 0);
	fail_with("option-of-the-other-thread");
	kvl_error_detail(&detail);
	must(detail.code == KVL_ERR_OPTION && strstr(detail.message, "option-of-the-other-thread"));
	return arg;
}

TEST(errors_detail_is_kept_per_thread)
{
	struct kvl_error_detail detail, again;
	struct kvl_config config;
	pthread_t thread;

	fail_with("option-of-the-main-thread");
	assert_int_equal(pthread_create(&thread, NULL, other_thread, NULL), 0);
	pthread_join(thread, NULL);
	kvl_error_detail(&detail);
	assert_int_equal(detail.code, KVL_ERR_OPTION);
	assert_int_equal(detail.entry, KVL_NO_ENTRY);
	assert_message("option-of-the-main-thread");
	/* Later successes do not clear it. */
	kvl_config_init(&config);
	assert_ok(kvl_config_set(&config, "lanes", "2"));
	kvl_config_fini(&config);
	kvl_error_detail(&again);
	assert_int_equal(again.code, KVL_ERR_OPTION);
	assert_string_equal(again.message, detail.message);
}

TEST(errors_detail_has_the_system_error)
{
	struct kvl_error_detail detail;
	struct kvl_config config;

	kvl_config_init(&config);
	assert_true(kvl_config_load(&config, "/no/such/file") < 0);
	kvl_error_detail(&detail);
	assert_int_equal(detail.system, 2); /* ENOENT */
	assert_message("/no/such/file");
}

static void refuse_name(const char *name)
{
	kvl_agent_t agent = 0;

	assert_refused(kvl_agent_open(name, NULL, &agent), KVL_ERR_INVALID);
	assert_int_equal(agent, 0);
}

TEST(errors_agent_names)
{
	static const char max[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.";
	char longer[sizeof(max) + 1];
	kvl_agent_t agent;

	assert_int_equal(strlen(max), KVL_NAME_MAX - 1);
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = 0;
	refuse_name(NULL);
	refuse_name("");
	refuse_name(longer);
	refuse_name("with space");
	refuse_name("a/b");
	refuse_name("..");
	refuse_name("tab\t");
	refuse_name("\xc3\xa4");
	assert_ok(kvl_agent_open(max, NULL, &agent));
	assert_ok(kvl_agent_close(agent, SECOND));
	assert_ok(kvl_agent_open("a", NULL, &agent));
	assert_ok(kvl_agent_close(agent, SECOND));
	assert_refused(kvl_agent_open("a", NULL, NULL), KVL_ERR_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors_have_fixed_values_names_and_scopes),
		cmocka_unit_test(errors_unknown_code),
		cmocka_unit_test(errors_detail_is_kept_per_thread),
		cmocka_unit_test(errors_detail_has_the_system_error),
		cmocka_unit_test(errors_agent_names),
	};

	return TESTING_RUN(tests, 20);
}
