/* SPDX-License-Identifier: Apache-2.0 */
/* How the program says that something went wrong: one sentence on standard error. */
#ifndef KVLANE_TOOL_FAIL_H
#define KVLANE_TOOL_FAIL_H

#include <kvlane/kvlane.h>

enum exit_code {
	EXIT_OK = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_SKIPPED = 77
};

/*
 * "kvlane <what>: <message> (<code>)" for a library call of this thread, or a request, that ended with code;
 * what begins with the command, as in "demo: prefill: cannot publish".
 */
void fail_print(const char *what, int code);

/* EXIT_USAGE for codes that blame an option, a name or a directory that the user gave, else EXIT_FAILED. */
#include <kvlane/kvlane.h>

enum exit_code fail_exit_code(int code);

/* Lets the library's message about an unknown option name the command that lists them, not the call. */
void fail_hint(struct kvl_error_detail *detail);

/* A value of the user as it is shown in messages: an empty one must not look like none. */
const char *fail_value(const char *text);

#endif
