/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

struct error_row {
	int code;
	enum kvl_scope scope;
	const char *name, *text;
};

#define ERROR_ROW(name, value, scope, text) { (value), KVL_SCOPE_##scope, "KVL_ERR_" #name, text },
static const struct error_row error_rows[] = { { KVL_OK, KVL_SCOPE_CALL, "KVL_OK", "success" },
					       { KVL_PENDING, KVL_SCOPE_CALL, "KVL_PENDING",
						 "the request has not ended" },
					       KVL_ERROR_LIST(ERROR_ROW) };
#undef ERROR_ROW

static const struct error_row error_unknown = { 0, KVL_SCOPE_CALL, "unknown error", "unknown error" };

/* Per thread, so that a failure in one thread never changes what another is about to print. */
static _Thread_local struct kvl_error_detail last = { .entry = KVL_NO_ENTRY };

static const struct error_row *error_find(int code)
{
	for (size_t i = 0; i < sizeof(error_rows) / sizeof(error_rows[0]); i++)
		if (error_rows[i].code == code)
			return &error_rows[i];
	return &error_unknown;
}

const char *kvl_error_name(int code)
{
	return error_find(code)->name;
}

const char *kvl_error_text(int code)
{
	return error_find(code)->text;
}

enum kvl_scope kvl_error_scope(int code)
{
	return error_find(code)->scope;
}

void kvl_error_detail(struct kvl_error_detail *out)
{
	if (out)
		*out = last;
}

const char *kvl_error_message(void)
{
	return last.message;
}

/* Every message about a system call says what the system said. */
static void error_append(char *message, size_t room, const char *text)
{
	size_t at = strlen(message);

	if (text && at < room)
		snprintf(message + at, room - at, ": %s", text);
}

void kvli_error_put(const struct kvl_error_detail *detail)
{
	last = *detail;
}

int kvli_fail(int code, size_t entry, int system, const char *rule, const char *format, ...)
{
	/* Built aside: the arguments may be parts of the detail that is being replaced. */
	struct kvl_error_detail next = { .code = code, .system = system, .entry = entry };
	va_list args;

	snprintf(next.rule, sizeof(next.rule), "%s", rule);
	va_start(args, format);
	vsnprintf(next.message, sizeof(next.message), format, args);
	va_end(args);
	if (system)
		error_append(next.message, sizeof(next.message), strerrordesc_np(system));
	last = next;
	return code;
}

int kvli_fail_at(int code, size_t entry)
{
	/* A code that came without a detail must not be shown with the words of an older failure. */
	if (last.code != code)
		return kvli_fail(code, entry, 0, "", "%s", kvl_error_text(code));
	last.entry = entry;
	return code;
}

uint64_t kvl_now(void)
{
	return kvli_now();
}
