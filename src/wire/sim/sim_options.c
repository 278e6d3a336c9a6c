/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/sim/sim.h"

#include <stddef.h>
#include <string.h>

#include "base/error.h"

struct sim_key {
	const char *name;
	size_t offset;
	uint64_t def, max;
	const char *allowed;
};

static const struct sim_key keys[] = {
	{ "seed", offsetof(struct sim_options, seed), 1, UINT64_MAX, "0 to 2^64 - 1" },
	{ "delay", offsetof(struct sim_options, delay), 8, 1000000, "0 to 1000000 polls" },
	{ "again", offsetof(struct sim_options, again), 0, 100, "0 to 100 percent" },
	{ "error", offsetof(struct sim_options, error), 0, 1000, "0 to 1000 per mille" },
	{ "reorder", offsetof(struct sim_options, reorder), 1, 1, "0 or 1" },
};

#define N_KEYS (sizeof(keys) / sizeof(keys[0]))

static uint64_t *key_value(const struct sim_key *key, struct sim_options *options)
{
	return (uint64_t *)(void *)((char *)options + key->offset);
}

/* Digits only: strtoull would take signs and spaces. */
static int number_parse(const char *text, size_t len, uint64_t *out)
{
	uint64_t value = 0;

	for (size_t i = 0; i < len; i++) {
		uint64_t digit = (uint64_t)(unsigned char)text[i] - '0';

		if (digit > 9 || value > (UINT64_MAX - digit) / 10)
			return KVL_ERR_OPTION;
		value = value * 10 + digit;
	}
	*out = value;
	return len ? 0 : KVL_ERR_OPTION;
}

static const struct sim_key *key_find(const char *name, size_t len)
{
	for (size_t i = 0; i < N_KEYS; i++)
		if (strlen(keys[i].name) == len && memcmp(keys[i].name, name, len) == 0)
			return &keys[i];
	return NULL;
}

/* One "key=value" of len bytes; seen has a bit per key. */
static int pair_parse(const char *pair, size_t len, struct sim_options *out, unsigned *seen)
{
	const char *equals = memchr(pair, '=', len), *value;
	size_t name_len = equals ? (size_t)(equals - pair) : len;
	const struct sim_key *key = key_find(pair, name_len);
	uint64_t number;

	if (key == NULL)
		return kvli_fail(
			KVL_ERR_OPTION, KVL_NO_ENTRY, 0, "keys of sim: seed, delay, again, error, reorder",
			"option sim has no key \"%.*s\"; there are seed, delay, again, error and reorder",
			(int)name_len, pair);
	value = equals ? equals + 1 : pair + len;
	len -= (size_t)(value - pair);
	if (number_parse(value, len, &number) || number > key->max)
		return kvli_fail(KVL_ERR_OPTION, KVL_NO_ENTRY, 0, key->allowed,
				 "option sim: %s is \"%.*s\"; allowed is %s", key->name, (int)len, value,
				 key->allowed);
	if (*seen & 1u << (key - keys))
		return kvli_fail(KVL_ERR_OPTION, KVL_NO_ENTRY, 0, "each key once",
				 "option sim names %s twice, the second time with \"%.*s\"; allowed is once",
				 key->name, (int)len, value);
	*seen |= 1u << (key - keys);
	*key_value(key, out) = number;
	return 0;
}

int kvli_sim_options(const char *text, struct sim_options *out)
{
	struct sim_options options;
	unsigned seen = 0;

	for (size_t i = 0; i < N_KEYS; i++)
		*key_value(&keys[i], &options) = keys[i].def;
	while (text && *text) {
		size_t len = strcspn(text, ",");
		int rc = pair_parse(text, len, &options, &seen);

		if (rc)
			return rc;
		text += len;
		if (*text == ',' && *++text == '\0')
			return kvli_fail(KVL_ERR_OPTION, KVL_NO_ENTRY, 0, "key=value,key=value",
					 "option sim ends in a comma; allowed is key=value,key=value");
	}
	*out = options;
	return 0;
}
