/* SPDX-License-Identifier: Apache-2.0 */
#include "info.h"

#include <argp.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>

#include "command.h"
#include "fail.h"
#include "json_out.h"
#include "table.h"

static const struct info_part missing[] = {
	{ "gpu", "not in this build: GPU memory, GPU-driven lanes (the CUDA part)" },
	{ "network", "not in this build: peers on other hosts (the libfabric part)" },
};

const struct info_part *info_missing(size_t index)
{
	return index < sizeof(missing) / sizeof(missing[0]) ? &missing[index] : NULL;
}

/* A limit by name: the text output and the JSON show the same ones. */
struct info_limit {
	const char *name, *unit;
	uint64_t value;
};

static const char *info_retire(const struct kvl_limits *l)
{
	return l->retire_order == KVL_RETIRE_GLOBAL ? "global" : "lane";
}

#define INFO_LIMITS 16

static void info_limits(const struct kvl_limits *l, struct info_limit out[INFO_LIMITS])
{
	const struct info_limit all[INFO_LIMITS] = {
		{ "workers", "threads", l->workers },
		{ "lanes", "per peer", l->lanes },
		{ "latency_lanes", "of these", l->latency_lanes },
		{ "queue_depth", "requests per lane", l->queue_depth },
		{ "max_requests", "requests", l->max_requests },
		{ "max_regions", "regions", l->max_regions },
		{ "max_peers", "peers", l->max_peers },
		{ "max_region_bytes", "bytes", l->max_region_bytes },
		{ "small_bytes", "bytes", l->small_bytes },
		{ "chunk_bytes", "bytes", l->chunk_bytes },
		{ "window", "chunks per lane", l->window },
		{ "ring_bytes", "bytes", l->ring_bytes },
		{ "notif_max_bytes", "bytes", l->notif_max_bytes },
		{ "notif_queue_bytes", "bytes", l->notif_queue_bytes },
		{ "deadline_ms", "ms", l->deadline_ms },
		{ "connect_timeout_ms", "ms", l->connect_timeout_ms },
	};

	memcpy(out, all, sizeof(all));
}

/* ---------------------------------------------------------------------------------------------------- text
 */

static void print_wires(void)
{
	static const struct table_column columns[] = { { "wire", 0 }, { "available", 0 }, { "reason", 0 } };
	struct kvl_wire_info wire;
	struct table t;

	table_init(&t, columns, 3);
	for (size_t i = 0; !kvl_wire_info(i, &wire); i++) {
		table_cell(&t, "%s", wire.name);
		table_cell(&t, "%s", wire.available ? "yes" : "no");
		table_cell(&t, "%s", wire.reason);
	}
	table_print(&t, stdout);
	table_fini(&t);
}

static void print_paths(const struct info *info)
{
	static const struct table_column columns[] = { { "local path", 0 },
						       { "works", 0 },
						       { "what it is, why not", 0 } };
	struct table t;

	table_init(&t, columns, 3);
	for (int i = 0; i < INFO_PATHS; i++) {
		table_cell(&t, "%s", info->path[i].name);
		table_cell(&t, "%s", info->path[i].works ? "yes" : "no");
		table_cell(&t, "%s", info->path[i].works ? info->path[i].what : info->path[i].reason);
	}
	table_print(&t, stdout);
	table_fini(&t);
}

static void print_missing(void)
{
	static const struct table_column columns[] = { { "missing part", 0 }, { "reason", 0 } };
	const struct info_part *part;
	struct table t;

	table_init(&t, columns, 2);
	for (size_t i = 0; (part = info_missing(i)); i++) {
		table_cell(&t, "%s", part->name);
		table_cell(&t, "%s", part->reason);
	}
	table_print(&t, stdout);
	table_fini(&t);
}

static void print_limits(const struct info *info)
{
	static const struct table_column columns[] = { { "limit in force", 0 },
						       { "value", 1 },
						       { "unit", 0 } };
	struct info_limit limit[INFO_LIMITS];
	struct table t;

	info_limits(&info->limits, limit);
	table_init(&t, columns, 3);
	for (int i = 0; i < INFO_LIMITS; i++) {
		table_cell(&t, "%s", limit[i].name);
		table_cell(&t, "%llu", (unsigned long long)limit[i].value);
		table_cell(&t, "%s", limit[i].unit);
	}
	table_cell(&t, "retire_order");
	table_cell(&t, "%s", info_retire(&info->limits));
	table_cell(&t, "%s", "");
	table_cell(&t, "wire");
	table_cell(&t, "%s", info->limits.wire);
	table_cell(&t, "%s", "");
	table_print(&t, stdout);
	table_fini(&t);
}

static void print_options(void)
{
	static const struct table_column columns[] = { { "option", 0 }, { "default", 0 }, { "meaning", 0 } };
	struct kvl_option_info option;
	struct table t;

	table_init(&t, columns, 3);
	for (size_t i = 0; !kvl_option_info(i, &option); i++) {
		table_cell(&t, "%s", option.name);
		table_cell(&t, "%s", option.def);
		table_cell(&t, "%s", option.help);
	}
	table_print(&t, stdout);
	table_fini(&t);
}

static void info_print(const struct info *info)
{
	printf("kvlane %d.%d.%d\n\n", KVL_VERSION_MAJOR, KVL_VERSION_MINOR, KVL_VERSION_PATCH);
	print_wires();
	putchar('\n');
	print_paths(info);
	putchar('\n');
	print_missing();
	putchar('\n');
	print_limits(info);
	putchar('\n');
	print_options();
}

/* ---------------------------------------------------------------------------------------------------- JSON
 */

static json_t *json_wires(void)
{
	json_t *all = json_array();
	struct kvl_wire_info wire;

	for (size_t i = 0; !kvl_wire_info(i, &wire); i++)
		json_array_append_new(all, json_pack("{s:s, s:b, s:s}", "name", wire.name, "available",
						     wire.available, "reason", wire.reason));
	return all;
}

static json_t *json_paths(const struct info *info)
{
	json_t *all = json_array();

	for (int i = 0; i < INFO_PATHS; i++)
		json_array_append_new(all, json_pack("{s:s, s:b, s:s}", "name", info->path[i].name, "works",
						     info->path[i].works, "reason", info->path[i].reason));
	return all;
}

static json_t *json_missing(void)
{
	json_t *all = json_array();
	const struct info_part *part;

	for (size_t i = 0; (part = info_missing(i)); i++)
		json_array_append_new(all,
				      json_pack("{s:s, s:s}", "name", part->name, "reason", part->reason));
	return all;
}

static json_t *json_limits(const struct info *info)
{
	struct info_limit limit[INFO_LIMITS];
	json_t *all = json_object();

	info_limits(&info->limits, limit);
	for (int i = 0; i < INFO_LIMITS; i++)
		json_object_set_new(all, limit[i].name, json_integer((json_int_t)limit[i].value));
	json_object_set_new(all, "retire_order", json_string(info_retire(&info->limits)));
	json_object_set_new(all, "wire", json_string(info->limits.wire));
	return all;
}

static json_t *json_options(void)
{
	json_t *all = json_array();
	struct kvl_option_info option;

	for (size_t i = 0; !kvl_option_info(i, &option); i++)
		json_array_append_new(all, json_pack("{s:s, s:s, s:s}", "name", option.name, "default",
						     option.def, "help", option.help));
	return all;
}

static int info_json(const struct info *info, const char *path)
{
	char version[32];
	json_t *root;
	int failed;

	snprintf(version, sizeof(version), "%d.%d.%d", KVL_VERSION_MAJOR, KVL_VERSION_MINOR,
		 KVL_VERSION_PATCH);
	root = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "version", version, "wires", json_wires(),
			 "local_paths", json_paths(info), "missing", json_missing(), "limits",
			 json_limits(info), "options", json_options());
	if (!root) {
		fprintf(stderr, "kvlane info: %s: cannot write JSON: out of memory\n", path);
		return EXIT_FAILED;
	}
	failed = json_out_write(path, root);
	json_decref(root);
	return failed ? EXIT_FAILED : EXIT_OK;
}

/* ------------------------------------------------------------------------------------------------- command
 */

#define KEY_JSON 0x100

static error_t info_parse(int key, char *arg, struct argp_state *state)
{
	const char **json = state->input;

	switch (key) {
	case KEY_JSON:
		*json = arg ? arg : "-";
		return 0;
	case ARGP_KEY_ARG: /* "--json FILE" as well as "--json=FILE" and "--json" alone */
		if (!*json || strcmp(*json, "-"))
			argp_error(state, "%s: unexpected argument", fail_value(arg));
		*json = arg;
		return 0;
	case ARGP_KEY_END:
		if (*json && json_out_check(*json))
			exit(EXIT_USAGE);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const char doc[] = "Shows what this build of kvlane can do here: wires, ways of the local wire (tried "
			  "with a second process), "
			  "parts that are missing and why, limits in force, and the options of the library "
			  "with their defaults.\v"
			  "Examples:\n"
			  "  kvlane info\n"
			  "  kvlane info --json\n"
			  "\n"
			  "Exit codes: 0 shown; 1 failed; 2 bad usage.";

int info_main(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{ "json", KEY_JSON, "FILE", OPTION_ARG_OPTIONAL,
		  "As one JSON object, to FILE or standard output", 0 },
		{ NULL, 0, NULL, 0, NULL, 0 },
	};
	static const struct argp argp = { .options = options, .parser = info_parse, .doc = doc };
	static char name[] = "kvlane info";
	const char *json = NULL;
	struct info info;
	int code;

	argv[0] = name;
	argp_err_exit_status = EXIT_USAGE;
	argp_parse(&argp, argc, argv, 0, NULL, &json);
	code = info_gather(&info);
	if (code)
		return code;
	if (json)
		return info_json(&info, json);
	info_print(&info);
	return EXIT_OK;
}
