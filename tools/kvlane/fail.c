/* SPDX-License-Identifier: Apache-2.0 */
#include "fail.h"

#include <stdio.h>
#include <string.h>

void fail_hint(struct kvl_error_detail *detail)
{
	char *call = strstr(detail->message, "; kvl_option_info()");
	size_t len;

	if (!strstr(detail->message, "unknown option"))
		return;
	if (call)
		*call = 0;
	len = strlen(detail->message);
	snprintf(detail->message + len, sizeof(detail->message) - len, "; kvlane info lists the options");
}

void fail_print(const char *what, int code)
{
	struct kvl_error_detail detail;

	kvl_error_detail(&detail);
	/* How a request ended is a status, not a failed call: the detail is then about something older. */
	if (detail.code != code || !detail.message[0])
		snprintf(detail.message, sizeof(detail.message), "%s", kvl_error_text(code));
	fail_hint(&detail);
	fprintf(stderr, "kvlane %s: %s (%s)\n", what, detail.message, kvl_error_name(code));
}

const char *fail_value(const char *text)
{
	return *text ? text : "\"\"";
}

enum exit_code fail_exit_code(int code)
{
	switch (code) {
	case KVL_OK:
		return EXIT_OK;
	case KVL_ERR_OPTION:
	case KVL_ERR_EXISTS:
		return EXIT_USAGE;
	default:
		return EXIT_FAILED;
	}
}
