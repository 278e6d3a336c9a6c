/* SPDX-License-Identifier: Apache-2.0 */
/* Options from text: one by one, from a file, from the environment. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* environ */
#endif
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/config.h"
#include "agent/options.h"
#include "agent/text.h"
#include "base/error.h"

#define CONFIG_FILE_MAX 65536
#define CONFIG_ENV      "KVLANE_"
#define CONFIG_ENV_FILE "CONFIG"
#define CONFIG_NAME_MAX 64

/*
 * Options on their way into a config. A file or an environment is taken whole or not at all, so everything
 * that can fail happens here and the commit cannot.
 */
struct staged {
	struct kvl_config config; /* its size is the target's, its strings are ours */
	uint64_t set;             /* bit i: option i has been set */
};

static int staged_init(struct staged *staged, const struct kvl_config *target)
{
	int rc = kvli_config_check_size(target);

	memset(staged, 0, sizeof(*staged));
	if (!rc)
		staged->config.size = target->size;
	return rc;
}

static int staged_has(const struct staged *staged, size_t index)
{
	return (staged->set >> index & 1) != 0;
}

static void staged_put(struct staged *staged, size_t index, struct kvli_option_value value)
{
	const struct kvli_option *option = kvli_option_at(index);

	kvli_text_drop(kvli_option_get(option, &staged->config).text);
	kvli_option_put(option, value, &staged->config);
	staged->set |= UINT64_C(1) << index;
}

static int staged_set(struct staged *staged, const struct kvli_option *option, const char *text)
{
	struct kvli_option_value value;
	int rc;

	if (!kvli_option_present(option, &staged->config))
		return kvli_fail(KVL_ERR_OPTION, KVL_NO_ENTRY, 0, "the option fits in size",
				 "%s: a config of size %zu, of an older version, cannot hold it",
				 option->name, staged->config.size);
	rc = kvli_option_parse(option, text, &value);
	if (rc)
		return rc;
	if (kvli_option_is_text(option)) {
		value.text = kvli_text_copy(text);
		if (!value.text)
			return KVL_ERR_NOMEM;
	}
	staged_put(staged, (size_t)(option - kvli_option_at(0)), value);
	return 0;
}

/* Takes over what was set, or on a failure drops it. */
static int staged_end(struct staged *staged, int rc, struct kvl_config *target)
{
	if (rc) {
		kvl_config_fini(&staged->config);
		return rc;
	}
	for (size_t i = 0; i < kvli_option_count(); i++) {
		const struct kvli_option *option = kvli_option_at(i);

		if (!staged_has(staged, i))
			continue;
		if (kvli_option_is_text(option))
			kvli_text_drop(kvli_option_get(option, target).text);
		kvli_option_put(option, kvli_option_get(option, &staged->config), target);
	}
	return 0;
}

int kvl_config_set(struct kvl_config *config, const char *name, const char *value)
{
	const struct kvli_option *option;
	struct staged staged;
	int rc;

	if (!name || !value)
		return kvli_fail(KVL_ERR_INVALID, KVL_NO_ENTRY, 0, "name and value are not NULL",
				 "kvl_config_set: %s is NULL", name ? "the value" : "the name");
	rc = staged_init(&staged, config);
	if (rc)
		return rc;
	option = kvli_option_find(name);
	if (!option)
		return kvli_option_unknown(name);
	return staged_end(&staged, staged_set(&staged, option, value), config);
}

/* -------------------------------------------------------------------------------------------------- files */

/* Adds where it happened to the detail of a failure. */
static int fail_where(int code, const char *where)
{
	struct kvl_error_detail detail;

	kvl_error_detail(&detail);
	return kvli_fail(code, detail.entry, detail.system, detail.rule, "%s: %s", where, detail.message);
}

static int file_fail(const char *path, int system)
{
	int code = KVL_ERR_SYSTEM;

	if (system == ENOENT || system == ENOTDIR)
		code = KVL_ERR_NOT_FOUND;
	if (system == EACCES || system == EPERM)
		code = KVL_ERR_PERMISSION;
	return kvli_fail(code, KVL_NO_ENTRY, system, "the file can be read", "configuration file %.160s",
			 path);
}

/* Reads the file into buf, which has room for one byte more than is allowed. Returns the length. */
static ssize_t file_read(const char *path, char *buf)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = 0, len = 0;

	if (fd < 0)
		return file_fail(path, errno);
	while (len <= CONFIG_FILE_MAX) {
		got = read(fd, buf + len, (size_t)(CONFIG_FILE_MAX + 1 - len));
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		len += got;
	}
	if (got < 0)
		len = file_fail(path, errno);
	close(fd);
	if (len > CONFIG_FILE_MAX)
		return kvli_fail(KVL_ERR_LIMIT, KVL_NO_ENTRY, 0, "at most 65536 bytes",
				 "configuration file %.160s: longer than %d bytes", path, CONFIG_FILE_MAX);
	return len;
}

/* The text without blanks at its ends, in place. */
static char *text_trim(char *text)
{
	size_t n;

	while (isspace((unsigned char)*text))
		text++;
	for (n = strlen(text); n > 0 && isspace((unsigned char)text[n - 1]); n--)
		;
	text[n] = '\0';
	return text;
}

static int line_stage(struct staged *staged, char *line)
{
	const struct kvli_option *option;
	char *name, *value;

	line[strcspn(line, "#")] = '\0';
	name = text_trim(line);
	if (*name == '\0')
		return 0;
	value = strchr(name, '=');
	if (!value)
		return kvli_fail(KVL_ERR_OPTION, KVL_NO_ENTRY, 0, "a line is name = value",
				 "\"%.60s\" is not name = value", name);
	*value++ = '\0';
	name = text_trim(name);
	option = kvli_option_find(name);
	if (!option)
		return kvli_option_unknown(name);
	/* Which of two lines counts would depend on their order, and one of them is a mistake. */
	if (staged_has(staged, (size_t)(option - kvli_option_at(0))))
		return kvli_fail(KVL_ERR_OPTION, KVL_NO_ENTRY, 0, "an option is set once in a file",
				 "%s is set a second time", name);
	return staged_set(staged, option, text_trim(value));
}

static int lines_stage(struct staged *staged, const char *path, char *text, size_t len)
{
	size_t skip =
		strlen(path) > 96 ? strlen(path) - 96 : 0; /* the end of a path says more than its start */
	unsigned number = 1;
	char where[128];

	text[len] = '\0';
	for (char *line = text, *end; line < text + len; line = end + 1, number++) {
		int rc;

		end = memchr(line, '\n', (size_t)(text + len - line));
		if (!end)
			end = text + len;
		*end = '\0';
		if (strlen(line) != (size_t)(end - line))
			rc = kvli_fail(KVL_ERR_OPTION, KVL_NO_ENTRY, 0, "lines are text", "a NUL byte");
		else
			rc = line_stage(staged, line);
		if (!rc)
			continue;
		snprintf(where, sizeof(where), "%s%s:%u", skip ? "..." : "", path + skip, number);
		return fail_where(rc, where);
	}
	return 0;
}

static int file_stage(struct staged *staged, const char *path)
{
	char *text = malloc(CONFIG_FILE_MAX + 1);
	ssize_t len;
	int rc;

	if (!text)
		return kvli_fail(KVL_ERR_NOMEM, KVL_NO_ENTRY, 0, "memory for the file",
				 "no memory to read configuration file %.160s", path);
	len = file_read(path, text);
	rc = len < 0 ? (int)len : lines_stage(staged, path, text, (size_t)len);
	free(text);
	return rc;
}

int kvl_config_load(struct kvl_config *config, const char *path)
{
	struct staged staged;
	int rc = staged_init(&staged, config);

	if (rc)
		return rc;
	if (!path)
		return kvli_fail(KVL_ERR_INVALID, KVL_NO_ENTRY, 0, "path is not NULL",
				 "kvl_config_load: no path");
	return staged_end(&staged, file_stage(&staged, path), config);
}

/* -------------------------------------------------------------------------------------------- environment */

/* variable: what follows KVLANE_, NAME=VALUE. */
static int variable_stage(struct staged *staged, const char *variable)
{
	const struct kvli_option *option = NULL;
	size_t n = strcspn(variable, "=");
	char name[CONFIG_NAME_MAX], where[sizeof(CONFIG_ENV) + CONFIG_NAME_MAX];
	int capitals = 1, rc;

	if (n == strlen(CONFIG_ENV_FILE) && strncmp(variable, CONFIG_ENV_FILE, n) == 0)
		return 0;
	snprintf(name, sizeof(name), "%.*s", (int)(n < sizeof(name) ? n : sizeof(name)), variable);
	snprintf(where, sizeof(where), "%s%s", CONFIG_ENV, name);
	for (char *c = name; *c; c++) {
		capitals &= !islower((unsigned char)*c);
		*c = (char)tolower((unsigned char)*c);
	}
	if (capitals && variable[n] == '=')
		option = kvli_option_find(name);
	rc = option ? staged_set(staged, option, variable + n + 1) : kvli_option_unknown(name);
	return rc ? fail_where(rc, where) : 0;
}

int kvl_config_env(struct kvl_config *config)
{
	const char *path = getenv(CONFIG_ENV CONFIG_ENV_FILE);
	struct staged staged;
	int rc = staged_init(&staged, config);

	if (rc)
		return rc;
	if (path && *path == '\0')
		return kvli_fail(KVL_ERR_OPTION, KVL_NO_ENTRY, 0, "a file is named",
				 "KVLANE_CONFIG is empty");
	if (path)
		rc = file_stage(&staged, path);
	for (char **at = environ; !rc && at && *at; at++)
		if (strncmp(*at, CONFIG_ENV, strlen(CONFIG_ENV)) == 0)
			rc = variable_stage(&staged, *at + strlen(CONFIG_ENV));
	return staged_end(&staged, rc, config);
}
