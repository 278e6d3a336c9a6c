/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes and counts as people write them. */
#ifndef KVLANE_TOOL_SIZE_H
#define KVLANE_TOOL_SIZE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Bytes from text: a decimal number, then nothing, B, k, m, g, t, or these followed by iB ("64k", "4KiB",
 * "2MiB"); powers of 1024, any case. 0, or -1 when it is not that or does not fit; *out only on success.
 */
int size_parse(const char *text, uint64_t *out);

/* A plain decimal number in [min, max]. 0 or -1; *out only on success. */
int size_parse_count(const char *text, uint64_t min, uint64_t max, uint64_t *out);

#define SIZE_TEXT 24

/* "4KiB" when that is exact (and size_parse reads it back), otherwise rounded as in "1.62 GiB". Returns buf.
 */
const char *size_print(uint64_t bytes, char buf[SIZE_TEXT]);

#endif
