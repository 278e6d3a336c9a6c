/* SPDX-License-Identifier: Apache-2.0 */
#include "size.h"

#include <ctype.h>
#include <stdio.h>
#include <strings.h>

static const char units[] = "kmgt";

/* Digits only: strtoull would take signs, blanks and overflow silently. Returns the first other character. */
static const char *size_digits(const char *text, uint64_t *out)
{
	uint64_t value = 0;

	if (!isdigit((unsigned char)*text))
		return NULL;
	for (; isdigit((unsigned char)*text); text++) {
		if (__builtin_mul_overflow(value, 10u, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
			return NULL;
	}
	*out = value;
	return text;
}

/* The power of two that a unit stands for; -1 for an unknown one. */
static int size_shift(const char *unit)
{
	if (!*unit || !strcasecmp(unit, "b"))
		return 0;
	for (int i = 0; units[i]; i++) {
		if (tolower((unsigned char)unit[0]) != units[i])
			continue;
		return !unit[1] || !strcasecmp(unit + 1, "ib") ? 10 * (i + 1) : -1;
	}
	return -1;
}

int size_parse(const char *text, uint64_t *out)
{
	uint64_t value;
	const char *unit = size_digits(text, &value);
	int shift = unit ? size_shift(unit) : -1;

	if (shift < 0 || value > UINT64_MAX >> shift)
		return -1;
	*out = value << shift;
	return 0;
}

int size_parse_count(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	uint64_t value;
	const char *end = size_digits(text, &value);

	if (!end || *end || value < min || value > max)
		return -1;
	*out = value;
	return 0;
}

const char *size_print(uint64_t bytes, char buf[SIZE_TEXT])
{
	int unit = 0;

	while (unit < 4 && bytes >> (10 * (unit + 1)))
		unit++;
	if (!unit)
		snprintf(buf, SIZE_TEXT, "%uB", (unsigned)bytes);
	else if (!(bytes & ((1ull << (10 * unit)) - 1)))
		snprintf(buf, SIZE_TEXT, "%llu%ciB", (unsigned long long)(bytes >> (10 * unit)),
			 toupper((unsigned char)units[unit - 1]));
	else
		snprintf(buf, SIZE_TEXT, "%.2f %ciB", (double)bytes / (double)(1ull << (10 * unit)),
			 toupper((unsigned char)units[unit - 1]));
	return buf;
}
