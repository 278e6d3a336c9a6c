/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/config.h"

#include <inttypes.h>
#include <string.h>

#include "agent/options.h"
#include "agent/text.h"
#include "base/error.h"

#define CONFIG_SIZE_MAX 4096 /* no version of the struct comes near: a larger size was never set */

int kvli_config_check_size(const struct kvl_config *config)
{
	const struct kvli_option *first = kvli_option_at(0);

	if (!config)
		return kvli_fail(KVL_ERR_INVALID, KVL_NO_ENTRY, 0, "config is not NULL",
				 "the config is NULL");
	if (config->size < (size_t)first->offset + first->width || config->size > CONFIG_SIZE_MAX)
		return kvli_fail(KVL_ERR_INVALID, KVL_NO_ENTRY, 0, "size = sizeof(struct kvl_config)",
				 "size of the config is %zu, not sizeof(struct kvl_config): "
				 "kvl_config_init() sets it",
				 config->size);
	return 0;
}

/* A newer caller's later members are fine as long as they ask for nothing. */
static int config_check_rest(const struct kvl_config *config)
{
	const unsigned char *bytes = (const unsigned char *)config;

	for (size_t i = sizeof(*config); i < config->size; i++)
		if (bytes[i] != 0)
			return kvli_fail(
				KVL_ERR_OPTION, KVL_NO_ENTRY, 0, "members of a later version are 0",
				"byte %zu of the config (size %zu) sets an option that this library, "
				"with %zu bytes, does not know",
				i, config->size, sizeof(*config));
	return 0;
}

void kvl_config_fini(struct kvl_config *config)
{
	const struct kvli_option_value none = { .number = 0, .text = NULL };

	for (size_t i = 0; config && i < kvli_option_count(); i++) {
		const struct kvli_option *option = kvli_option_at(i);

		if (!kvli_option_is_text(option) || !kvli_option_present(option, config))
			continue;
		kvli_text_drop(kvli_option_get(option, config).text);
		kvli_option_put(option, none, config);
	}
}

static int config_check_pairs(const struct kvl_config *c)
{
	if (c->latency_lanes >= c->lanes && !(c->lanes == 1 && c->latency_lanes == 1))
		return kvli_fail(KVL_ERR_OPTION, KVL_NO_ENTRY, 0, "latency_lanes < lanes",
				 "latency_lanes: %" PRIu32 " is not allowed with lanes %" PRIu32
				 "; allowed: fewer than lanes, or 1 with lanes 1",
				 c->latency_lanes, c->lanes);
	if (c->notif_queue_bytes < c->notif_max_bytes)
		return kvli_fail(KVL_ERR_OPTION, KVL_NO_ENTRY, 0, "notif_queue_bytes >= notif_max_bytes",
				 "notif_queue_bytes: %" PRIu64 " is not allowed with notif_max_bytes %" PRIu64
				 "; allowed: at least as much, or the longest would never fit",
				 c->notif_queue_bytes, c->notif_max_bytes);
	return 0;
}

int kvli_config_resolve(const struct kvl_config *in, struct kvl_config *out)
{
	struct kvl_config defaults, result;
	int rc;

	kvl_config_init(&defaults);
	kvl_config_init(&result);
	in = in ? in : &defaults;
	rc = kvli_config_check_size(in);
	if (!rc)
		rc = config_check_rest(in);
	for (size_t i = 0; !rc && i < kvli_option_count(); i++) {
		const struct kvli_option *option = kvli_option_at(i);
		struct kvli_option_value value;

		value = kvli_option_get(option, kvli_option_present(option, in) ? in : &defaults);
		rc = kvli_option_resolve(option, value, &value);
		if (!rc)
			kvli_option_put(option, value, &result);
	}
	if (!rc)
		rc = config_check_pairs(&result);
	if (rc)
		return rc;
	if (strcmp(result.wire, "auto") == 0)
		result.wire = "local";
	*out = result;
	return 0;
}

int kvli_config_own(struct kvl_config *config)
{
	struct kvl_config copy = *config;
	size_t i;

	for (i = 0; i < kvli_option_count(); i++) {
		const struct kvli_option *option = kvli_option_at(i);
		struct kvli_option_value value = kvli_option_get(option, config);

		if (!kvli_option_is_text(option) || !value.text)
			continue;
		value.text = kvli_text_copy(value.text);
		kvli_option_put(option, value, &copy);
		if (!value.text)
			goto drop_copies;
	}
	*config = copy;
	return 0;

drop_copies:
	while (i-- > 0)
		if (kvli_option_is_text(kvli_option_at(i)))
			kvli_text_drop(kvli_option_get(kvli_option_at(i), &copy).text);
	return KVL_ERR_NOMEM;
}
