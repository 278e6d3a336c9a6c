/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVLI_ERROR_H
#define KVLI_ERROR_H

#include <stddef.h>

#include "kvlane/kvlane.h"

/*
 * Records the calling thread's error detail and returns code, so that a refusal is one statement:
 *
 *	return kvli_fail(KVL_ERR_RANGE, i, 0, "end <= region end", "entry %zu ends at %#lx ...", ...);
 *
 * system is errno or 0; its text is appended to the message.
 *
 * Log-free: an error is kept where it first becomes known, callers only forward the code.
 */
int kvli_fail(int code, size_t entry, int system, const char *rule, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* Puts back a detail that was kept while others were recorded. */
void kvli_error_put(const struct kvl_error_detail *detail);

/* Names the entry of the caller's own array in a detail that a callee recorded without knowing it. */
int kvli_fail_at(int code, size_t entry);

#endif
