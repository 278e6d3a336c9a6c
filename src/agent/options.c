/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/options.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"

/* clang-format off */
#define OPTION_ROW(member, kind, rule, def, min, max, words, help) \
	{ #member, offsetof(struct kvl_config, member), sizeof(((struct kvl_config *)0)->member), \
	  KVLI_OPTION_##kind, KVLI_RULE_##rule, (def), (min), (max), (words), (help) },
/* clang-format on */
static const struct kvli_option options[] = { KVLI_OPTION_LIST(OPTION_ROW) };
#undef OPTION_ROW

_Static_assert(sizeof(options) / sizeof(options[0]) <= KVLI_OPTIONS_MAX, "sets of options are 64-bit masks");

#define OPTIONS       (sizeof(options) / sizeof(options[0]))
#define OPTION_MAX    32 /* longest option name that suggestions look at, with NUL */
#define OPTION_SHOWN  48 /* longest part of a refused value that is shown, with NUL */
#define OPTION_FORMAT 160

size_t kvli_option_count(void)
{
	return OPTIONS;
}

const struct kvli_option *kvli_option_at(size_t index)
{
	return &options[index];
}

const struct kvli_option *kvli_option_find(const char *name)
{
	for (size_t i = 0; i < OPTIONS; i++)
		if (strcmp(options[i].name, name) == 0)
			return &options[i];
	return NULL;
}

int kvli_option_is_text(const struct kvli_option *option)
{
	return option->kind == KVLI_OPTION_WORD || option->kind == KVLI_OPTION_LIST ||
	       option->kind == KVLI_OPTION_PAIRS;
}

int kvl_option_info(size_t index, struct kvl_option_info *out)
{
	if (!out)
		return kvli_fail(KVL_ERR_INVALID, KVL_NO_ENTRY, 0, "out is not NULL",
				 "kvl_option_info: no out");
	if (index >= OPTIONS)
		return kvli_fail(KVL_ERR_NOT_FOUND, KVL_NO_ENTRY, 0, "index < number of options",
				 "there are %zu options", OPTIONS);
	out->name = options[index].name;
	out->def = options[index].def;
	out->help = options[index].help;
	return 0;
}

/* ----------------------------------------------------------------------------------------------- refusals */

/* A refused value may hold anything: what could upset a terminal or a log line is replaced. */
static const char *value_show(const char *text, char *out, size_t room)
{
	size_t i;

	for (i = 0; text[i] && i + 1 < room; i++)
		out[i] = isprint((unsigned char)text[i]) ? text[i] : '?';
	out[i] = '\0';
	if (text[i])
		memcpy(out + room - 4, "...", 4);
	return out;
}

static void number_show(const struct kvli_option *option, uint64_t n, char *out, size_t room)
{
	const char *suffix = " kmgtp";

	for (; option->kind == KVLI_OPTION_SIZE && n >= 1024 && n % 1024 == 0 && suffix[1]; suffix++)
		n /= 1024;
	snprintf(out, room, "%" PRIu64 "%.1s", n, *suffix == ' ' ? "" : suffix);
}

/* What the option takes, as text. */
static void option_allowed(const struct kvli_option *option, char *out, size_t room)
{
	char words[64], min[24], max[24];
	size_t n = 0;

	for (const char *w = option->words; *w && n + 3 < sizeof(words); w++) {
		words[n++] = *w == '|' ? ',' : *w;
		if (*w == '|')
			words[n++] = ' ';
	}
	words[n] = '\0';
	number_show(option, option->min, min, sizeof(min));
	number_show(option, option->max, max, sizeof(max));
	switch (option->kind) {
	case KVLI_OPTION_COUNT:
	case KVLI_OPTION_SIZE:
		snprintf(out, room, "%s%s to %s", option->rule == KVLI_RULE_POWER2 ? "a power of two, " : "",
			 min, max);
		break;
	case KVLI_OPTION_ENUM:
	case KVLI_OPTION_WORD:
		snprintf(out, room, "one of %s", words);
		break;
	case KVLI_OPTION_LIST:
		snprintf(out, room, "%s, each at most once, separated by commas", words);
		break;
	case KVLI_OPTION_PAIRS:
		snprintf(out, room, "NAME=NUMBER, separated by commas, NAME each at most once of %s", words);
		break;
	}
}

static int option_refuse(const struct kvli_option *option, const char *text)
{
	char allowed[OPTION_FORMAT], shown[OPTION_SHOWN];

	option_allowed(option, allowed, sizeof(allowed));
	return kvli_fail(KVL_ERR_OPTION, KVL_NO_ENTRY, 0, allowed, "%s: \"%s\" is not allowed; allowed: %s",
			 option->name, value_show(text, shown, sizeof(shown)), allowed);
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Edit distance, ignoring case; both at most OPTION_MAX - 1 characters. */
static size_t name_distance(const char *a, const char *b)
{
	size_t row[OPTION_MAX], n = strlen(b);

	for (size_t j = 0; j <= n; j++)
		row[j] = j;
	for (size_t i = 1; a[i - 1]; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= n; j++) {
			int differ = tolower((unsigned char)a[i - 1]) != tolower((unsigned char)b[j - 1]);
			size_t best = least(least(row[j], row[j - 1]) + 1, diagonal + (size_t)differ);

			diagonal = row[j];
			row[j] = best;
		}
	}
	return row[n];
}

static const char *option_nearest(const char *name)
{
	size_t best = (strlen(name) + 1) / 3; /* further away it is another word, not a slip */
	const char *nearest = NULL;

	for (size_t i = 0; strlen(name) < OPTION_MAX && i < OPTIONS; i++) {
		size_t distance = name_distance(name, options[i].name);

		if (distance > best || (nearest && distance == best))
			continue;
		best = distance;
		nearest = options[i].name;
	}
	return nearest;
}

int kvli_option_unknown(const char *name)
{
	const char *nearest = option_nearest(name);
	char shown[OPTION_SHOWN];

	value_show(name, shown, sizeof(shown));
	if (!nearest)
		return kvli_fail(KVL_ERR_OPTION, KVL_NO_ENTRY, 0, "the option exists",
				 "unknown option \"%s\"; kvl_option_info() lists the options", shown);
	return kvli_fail(KVL_ERR_OPTION, KVL_NO_ENTRY, 0, "the option exists",
			 "unknown option \"%s\"; did you mean \"%s\"?", shown, nearest);
}

/* ------------------------------------------------------------------------------------------------ parsing */

/* Digits only: strtoull() would take spaces, signs and wrap-arounds. Returns the end, NULL without digits. */
static const char *number_scan(const char *text, uint64_t *out)
{
	uint64_t n = 0;
	const char *at = text;

	for (; *at >= '0' && *at <= '9'; at++) {
		uint64_t digit = (uint64_t)(*at - '0');

		if (n > (UINT64_MAX - digit) / 10)
			return NULL;
		n = n * 10 + digit;
	}
	*out = n;
	return at == text ? NULL : at;
}

/* Multiplies by the suffix, which is the rest of the text; 0 when it is no suffix or the product too large. */
static int suffix_apply(const char *suffix, uint64_t *n)
{
	static const char units[] = "kmgtp";
	const char *unit = strchr(units, tolower((unsigned char)*suffix));
	unsigned shift;

	if (*suffix == '\0')
		return 1;
	if (!unit || (suffix[1] != '\0' && strcasecmp(suffix + 1, "iB") != 0))
		return 0;
	shift = 10 * (unsigned)(unit - units + 1);
	if (*n > UINT64_MAX >> shift)
		return 0;
	*n <<= shift;
	return 1;
}

static int number_allowed(const struct kvli_option *option, uint64_t n)
{
	if (n < option->min || n > option->max)
		return 0;
	return option->rule != KVLI_RULE_POWER2 || (n & (n - 1)) == 0;
}

/* Which of the option's words starts the text and ends there or at stop; -1 when none does. */
static int word_scan(const struct kvli_option *option, const char *text, char stop, const char **end)
{
	const char *word = option->words;

	for (int i = 0;; i++) {
		size_t n = strcspn(word, "|");

		if (strncmp(text, word, n) == 0 && (text[n] == '\0' || text[n] == stop)) {
			*end = text + n;
			return i;
		}
		if (word[n] == '\0')
			return -1;
		word += n + 1;
	}
}

/* LIST and PAIRS: items separated by commas, no word twice. */
static int items_allowed(const struct kvli_option *option, const char *text)
{
	int pairs = option->kind == KVLI_OPTION_PAIRS;
	unsigned seen = 0;
	uint64_t number;

	for (const char *at = text;; at++) {
		int word = word_scan(option, at, pairs ? '=' : ',', &at);

		if (word < 0 || (seen & 1u << word))
			return 0;
		seen |= 1u << word;
		if (pairs)
			at = *at == '=' ? number_scan(at + 1, &number) : NULL;
		if (!at || (*at != ',' && *at != '\0'))
			return 0;
		if (*at == '\0')
			return 1;
	}
}

static int text_allowed(const struct kvli_option *option, const char *text)
{
	const char *end;

	if (option->kind == KVLI_OPTION_WORD)
		return word_scan(option, text, '\0', &end) >= 0;
	return items_allowed(option, text);
}

static int number_parse(const struct kvli_option *option, const char *text, uint64_t *n)
{
	const char *end;

	if (option->kind == KVLI_OPTION_ENUM) {
		int word = word_scan(option, text, '\0', &end);

		*n = (uint64_t)word;
		return word >= 0;
	}
	end = number_scan(text, n);
	if (!end || (option->kind == KVLI_OPTION_COUNT && *end != '\0'))
		return 0;
	return suffix_apply(end, n) && number_allowed(option, *n);
}

int kvli_option_parse(const struct kvli_option *option, const char *text, struct kvli_option_value *out)
{
	struct kvli_option_value value = { .number = 0, .text = text };
	int good;

	if (kvli_option_is_text(option))
		good = text_allowed(option, text);
	else
		good = number_parse(option, text, &value.number);
	if (!good)
		return option_refuse(option, text);
	if (option->rule == KVLI_RULE_ZERO && value.number == 0)
		value.number = KVL_NO_WORKERS;
	*out = value;
	return 0;
}

/* --------------------------------------------------------------------------------------------- the struct */

static uint64_t words_count(const char *words)
{
	uint64_t n = 1;

	for (; *words; words++)
		n += *words == '|';
	return n;
}

static int number_resolve(const struct kvli_option *option, uint64_t *n)
{
	char shown[24];
	int good;

	snprintf(shown, sizeof(shown), "%" PRIu64, *n);
	if (option->kind == KVLI_OPTION_ENUM) {
		good = *n < words_count(option->words);
	} else if (*n == 0) {
		good = number_parse(option, option->def, n);
	} else if (option->rule == KVLI_RULE_ZERO && *n == KVL_NO_WORKERS) {
		*n = 0;
		good = 1;
	} else {
		good = number_allowed(option, *n);
	}
	return good ? 0 : option_refuse(option, shown);
}

int kvli_option_resolve(const struct kvli_option *option, struct kvli_option_value held,
			struct kvli_option_value *out)
{
	*out = held;
	if (!kvli_option_is_text(option))
		return number_resolve(option, &out->number);
	if (!held.text)
		out->text = option->def;
	return text_allowed(option, out->text) ? 0 : option_refuse(option, out->text);
}

int kvli_option_present(const struct kvli_option *option, const struct kvl_config *config)
{
	return (size_t)option->offset + option->width <= config->size;
}

struct kvli_option_value kvli_option_get(const struct kvli_option *option, const struct kvl_config *config)
{
	const char *member = (const char *)config + option->offset;
	struct kvli_option_value value = { .number = 0, .text = NULL };
	uint32_t narrow = 0;

	if (kvli_option_is_text(option)) {
		memcpy(&value.text, member, sizeof(value.text));
	} else if (option->width == sizeof(narrow)) {
		memcpy(&narrow, member, sizeof(narrow));
		value.number = narrow;
	} else {
		memcpy(&value.number, member, sizeof(value.number));
	}
	return value;
}

void kvli_option_put(const struct kvli_option *option, struct kvli_option_value value,
		     struct kvl_config *config)
{
	char *member = (char *)config + option->offset;
	uint32_t narrow = (uint32_t)value.number;

	if (kvli_option_is_text(option))
		memcpy(member, &value.text, sizeof(value.text));
	else if (option->width == sizeof(narrow))
		memcpy(member, &narrow, sizeof(narrow));
	else
		memcpy(member, &value.number, sizeof(value.number));
}
