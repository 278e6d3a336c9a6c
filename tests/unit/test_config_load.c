/* SPDX-License-Identifier: Apache-2.0 */
/* Options from a file and from the environment. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* environ */
#endif
#include "testing_config.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/text.h"

static char folder[256], file[300];

static void file_write(const char *text, size_t len)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), (ssize_t)len);
	close(fd);
}

static size_t rows_text(char *out, size_t room, const char *format)
{
	size_t n = 0;

	for (size_t i = 0; i < option_rows_count; i++)
		n += (size_t)snprintf(out + n, room - n, format, option_rows[i].name, option_rows[i].text);
	assert_true(n < room);
	return n;
}

TEST(test_load)
{
	static const char *const formats[] = { "%s=%s\n", "\t %s \t= %s # why\n# lanes = 1\n\n",
					       "%s = %s\r\n" };
	struct kvl_config config;
	char text[4096];

	for (size_t i = 0; i < COUNT(formats); i++) {
		size_t n = rows_text(text, sizeof(text), formats[i]);

		/* The last line does not need an end. */
		file_write(text, i == 0 ? n - 1 : n);
		kvl_config_init(&config);
		assert_ok(kvl_config_load(&config, file));
		options_resolve_to(&config, option_rows_count);
		kvl_config_fini(&config);
	}
	file_write("", 0);
	kvl_config_init(&config);
	assert_ok(kvl_config_load(&config, file));
	options_resolve_to(&config, 0);
}

/* The good lines of a bad file change nothing either. */
static void refused_file(const char *text, size_t len, unsigned line, const char *part)
{
	struct kvl_config config, before;
	char where[16];

	kvl_config_init(&config);
	assert_ok(kvl_config_set(&config, "wire", "sim"));
	memcpy(&before, &config, sizeof(config));
	file_write(text, len);
	assert_refused(kvl_config_load(&config, file), KVL_ERR_OPTION);
	snprintf(where, sizeof(where), "/kv.conf:%u: ", line);
	assert_message(where);
	assert_message(part);
	assert_memory_equal(&config, &before, sizeof(config));
	assert_string_equal(config.wire, "sim");
	kvl_config_fini(&config);
}

TEST(test_load_bad)
{
#define REFUSE(text, line, part) refused_file(text, sizeof(text) - 1, line, part)
	REFUSE("wire = local\nlanes = 65\n", 2, "lanes: \"65\"");
	REFUSE("wire = local\n\n# x\nlnaes = 2", 4, "did you mean \"lanes\"");
	REFUSE("wire local\n", 1, "name = value");
	REFUSE("wire = local\nwindow =\n", 2, "window: \"\"");
	REFUSE("= 1\n", 1, "unknown option \"\"");
	REFUSE("lanes = 2 3\n", 1, "lanes: \"2 3\"");
	REFUSE("lanes = = 2\n", 1, "lanes: \"= 2\"");
	REFUSE("lanes = 2\nwire = local\nlanes = 2\n", 3, "lanes is set a second time");
	REFUSE("lanes = 2\nwire = local\0sim\n", 2, "NUL");
	REFUSE("lanes = 2\nwire = local\0", 2, "NUL");
#undef REFUSE
}

TEST(test_load_unreadable)
{
	struct kvl_config config;
	char *large = calloc(1, 65537), path[400];

	assert_non_null(large);
	kvl_config_init(&config);
	assert_refused(kvl_config_load(&config, NULL), KVL_ERR_INVALID);
	snprintf(path, sizeof(path), "%s/missing.conf", folder);
	assert_refused(kvl_config_load(&config, path), KVL_ERR_NOT_FOUND);
	assert_message("missing.conf");
	assert_refused(kvl_config_load(&config, folder), KVL_ERR_SYSTEM);
	assert_message(folder);
	memset(large, '\n', 65537);
	file_write(large, 65536);
	assert_ok(kvl_config_load(&config, file));
	file_write(large, 65537);
	assert_refused(kvl_config_load(&config, file), KVL_ERR_LIMIT);
	assert_message("kv.conf");
	free(large);
}

/* -------------------------------------------------------------------------------------------- environment */

static void env_clear(void)
{
	for (char **at = environ; *at;) {
		char name[64];
		size_t n = strcspn(*at, "=");

		if (strncmp(*at, "KVLANE_", 7) != 0 || n >= sizeof(name)) {
			at++;
			continue;
		}
		snprintf(name, sizeof(name), "%.*s", (int)n, *at);
		unsetenv(name);
		at = environ;
	}
}

static void env_set(const char *option, const char *value)
{
	char name[64] = "KVLANE_";

	for (size_t i = 0; i <= strlen(option); i++)
		name[7 + i] = (char)toupper((unsigned char)option[i]);
	assert_int_equal(setenv(name, value, 1), 0);
}

TEST(test_env)
{
	struct kvl_config config;

	env_clear();
	kvl_config_init(&config);
	assert_ok(kvl_config_env(&config));
	options_resolve_to(&config, 0);
	assert_int_equal(setenv("KVLANEWIRE", "x", 1), 0);
	for (size_t i = 0; i < option_rows_count; i++)
		env_set(option_rows[i].name, option_rows[i].text);
	/* Nothing is read unless asked for. */
	options_resolve_to(&config, 0);
	assert_ok(kvl_config_env(&config));
	options_resolve_to(&config, option_rows_count);
	kvl_config_fini(&config);
	env_clear();
	unsetenv("KVLANEWIRE");
}

static void refused_env(const char *name, const char *value, const char *part)
{
	struct kvl_config config, before;

	env_clear();
	assert_int_equal(setenv("KVLANE_WIRE", "sim", 1), 0);
	assert_int_equal(setenv(name, value, 1), 0);
	kvl_config_init(&config);
	memcpy(&before, &config, sizeof(config));
	assert_refused(kvl_config_env(&config), KVL_ERR_OPTION);
	assert_message(name);
	assert_message(part);
	assert_memory_equal(&config, &before, sizeof(config));
	env_clear();
}

TEST(test_env_bad)
{
	struct kvl_config config;
	char longest[200];

	refused_env("KVLANE_LANES", "65", "lanes: \"65\"");
	refused_env("KVLANE_LANES", "", "lanes: \"\"");
	refused_env("KVLANE_LNAES", "4", "did you mean \"lanes\"");
	refused_env("KVLANE_lanes", "4", "unknown option");
	refused_env("KVLANE_", "4", "unknown option");
	refused_env("KVLANE_CONFIGS", "4", "unknown option");
	refused_env("KVLANE_CONFIG", "", "empty");
	memset(longest, 'A', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	memcpy(longest, "KVLANE_", 7);
	env_clear();
	assert_int_equal(setenv(longest, "1", 1), 0);
	kvl_config_init(&config);
	assert_refused(kvl_config_env(&config), KVL_ERR_OPTION);
	assert_message("KVLANE_AAAA");
	unsetenv(longest);
}

TEST(test_env_file)
{
	static const char text[] = "lanes = 8\nwindow = 5\nwire = local\n";
	struct kvl_config config;

	env_clear();
	file_write(text, sizeof(text) - 1);
	assert_int_equal(setenv("KVLANE_CONFIG", file, 1), 0);
	env_set("lanes", "16");
	env_set("wire", "sim");
	kvl_config_init(&config);
	config.window = 6;
	config.max_peers = 7;
	assert_ok(kvl_config_env(&config));
	/* A variable wins over the file, the file over what was there, and the rest is as it was. */
	assert_int_equal(config.lanes, 16);
	assert_string_equal(config.wire, "sim");
	assert_int_equal(config.window, 5);
	assert_int_equal(config.max_peers, 7);
	kvl_config_fini(&config);

	file_write("lanes = 99\n", 11);
	kvl_config_init(&config);
	assert_refused(kvl_config_env(&config), KVL_ERR_OPTION);
	assert_message("/kv.conf:1: ");
	assert_int_equal(setenv("KVLANE_CONFIG", folder, 1), 0);
	assert_refused(kvl_config_env(&config), KVL_ERR_SYSTEM);
	assert_null(config.wire);
	env_clear();
}

static int folder_make(void **state)
{
	const char *base = getenv("TMPDIR");

	(void)state;
	snprintf(folder, sizeof(folder), "%s/kvlane-config-XXXXXX", base ? base : P_tmpdir);
	if (!mkdtemp(folder))
		return -1;
	snprintf(file, sizeof(file), "%s/kv.conf", folder);
	return 0;
}

static int folder_remove(void **state)
{
	(void)state;
	unlink(file);
	return rmdir(folder) != 0 || kvli_text_alive() != 0;
}

#define IN_FOLDER(name) cmocka_unit_test_setup_teardown(name, folder_make, folder_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_FOLDER(test_load), IN_FOLDER(test_load_bad), IN_FOLDER(test_load_unreadable),
		IN_FOLDER(test_env),  IN_FOLDER(test_env_bad),  IN_FOLDER(test_env_file),
	};

	return TESTING_RUN(tests, 60);
}
