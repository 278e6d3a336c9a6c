/* SPDX-License-Identifier: Apache-2.0 */
#include "demo_options.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "demo_usage.h"
#include "fail.h"
#include "json_out.h"
#include "size.h"
#include "table.h"

#define POOL_DEFAULT (1ull << 30)

/* -------------------------------------------------------------------------------------------------- values
 */

static uint64_t parse_count(struct argp_state *state, const char *name, const char *text, uint64_t min,
			    uint64_t max)
{
	uint64_t value = 0;

	if (size_parse_count(text, min, max, &value))
		argp_error(state, "--%s %s: must be a number from %llu to %llu", name, fail_value(text),
			   (unsigned long long)min, (unsigned long long)max);
	return value;
}

/* 1 for the first word, 0 for the second. */
static int parse_choice(struct argp_state *state, const char *name, const char *text, const char *one,
			const char *zero)
{
	if (strcmp(text, one) && strcmp(text, zero))
		argp_error(state, "--%s %s: must be %s or %s", name, fail_value(text), one, zero);
	return !strcmp(text, one);
}

/* Prompt lengths are often given in k. */
static uint64_t parse_tokens(struct argp_state *state, const char *text)
{
	uint64_t value = 0;

	if (size_parse(text, &value) || value < 1 || value > 1u << 20)
		argp_error(state, "--tokens %s: must be a number from 1 to 1048576", fail_value(text));
	return value;
}

static uint64_t parse_pool(struct argp_state *state, const char *text)
{
	uint64_t value = 0;

	if (size_parse(text, &value) || !value)
		argp_error(state, "--pool %s: must be a size such as 512MiB", fail_value(text));
	return value;
}

static uint64_t parse_timeout(struct argp_state *state, const char *text)
{
	/* Plain decimal only: strtod would take signs, blanks, exponents and hexadecimal. */
	size_t whole = strspn(text, "0123456789");
	size_t part = text[whole] == '.' ? 1 + strspn(text + whole + 1, "0123456789") : 0;
	double seconds = strtod(text, NULL);

	if (!whole || part == 1 || text[whole + part] || !(seconds >= 0.1 && seconds <= 86400))
		argp_error(state, "--timeout %s: must be seconds from 0.1 to 86400", fail_value(text));
	return (uint64_t)(seconds * 1e9);
}

static void parse_dtype(struct argp_state *state, const char *text, struct demo_options *o)
{
	if (strcmp(text, "bf16") && strcmp(text, "fp16") && strcmp(text, "fp8"))
		argp_error(state, "--dtype %s: must be bf16, fp16 or fp8", fail_value(text));
	o->dtype = text;
	o->plan.element_bytes = strcmp(text, "fp8") ? 2 : 1;
}

static void model_list(void)
{
	static const struct table_column columns[] = { { "model", 0 },    { "layers", 1 },
						       { "KV heads", 1 }, { "head dim", 1 },
						       { "window", 1 },   { "KiB/token (bf16)", 1 },
						       { "source", 0 } };
	const struct model *m;
	struct layout l;
	struct table t;

	table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; (m = model_at(i)); i++) {
		layout_init(&l, m, 2, 1, 1);
		table_cell(&t, "%s", m->name);
		table_cell(&t, "%u", m->layers);
		if (m->latent_dim)
			table_cell(&t, "MLA");
		else
			table_cell(&t, "%u", m->kv_heads);
		table_cell(&t, "%u", m->latent_dim ? m->latent_dim : m->head_dim);
		if (m->window)
			table_cell(&t, "%u", m->window);
		else
			table_cell(&t, "-");
		table_cell(&t, "%.1f", (double)(l.block_bytes * m->layers) / 1024);
		table_cell(&t, "%s", m->source);
	}
	table_print(&t, stdout);
	table_fini(&t);
	printf("\nwindow: layers 0, 2, 4 and so on keep that many tokens only. MLA: head dim is kv_lora_rank "
	       "+ "
	       "qk_rope_head_dim.\n");
}

static void parse_model(struct argp_state *state, const char *text, struct demo_options *o)
{
	const struct model *m = model_find(text);

	if (!strcmp(text, "list")) {
		model_list();
		exit(EXIT_OK);
	}
	if (!m)
		argp_error(state, "--model %s: no such model (--model list shows them)", fail_value(text));
	else
		o->plan.model = m;
}

/* An option of the library is checked by it, here, before any process is started. shown: up to the value. */
static void parse_agent(struct argp_state *state, const char *shown, const char *name, const char *value,
			struct demo_options *o)
{
	struct kvl_error_detail detail;
	struct kvl_config config;

	kvl_config_init(&config);
	if (kvl_config_set(&config, name, value)) {
		kvl_error_detail(&detail);
		fail_hint(&detail);
		argp_error(state, "--%s%s: %s", shown, fail_value(value), detail.message);
	}
	kvl_config_fini(&config);
	if (o->n_agent == DEMO_OPTIONS_MAX)
		argp_error(state, "--%s%s: more than %d options of the library", shown, value,
			   DEMO_OPTIONS_MAX);
	o->agent[o->n_agent].name = name;
	o->agent[o->n_agent++].value = value;
}

static void parse_set(struct argp_state *state, char *text, struct demo_options *o)
{
	char *value = strchr(text, '='), shown[64];

	if (!value) {
		argp_error(state, "--set %s: must be NAME=VALUE", fail_value(text));
		return;
	}
	*value++ = 0;
	/* The sim wire ends at the process: two processes can not meet on it. */
	if (!strcmp(text, "wire") && strcmp(value, "auto") && strcmp(value, "local"))
		argp_error(state, "--set wire=%s: must be auto or local", fail_value(value));
	snprintf(shown, sizeof(shown), "set %s=", text);
	parse_agent(state, shown, text, value, o);
}

static void parse_wire(struct argp_state *state, const char *text, struct demo_options *o)
{
	parse_choice(state, "wire", text, "auto", "local");
	parse_agent(state, "wire ", "wire", text, o);
}

static void parse_role(struct argp_state *state, const char *text, struct demo_options *o)
{
	o->role = parse_choice(state, "role", text, "prefill", "decode") ? DEMO_PREFILL : DEMO_DECODE;
}

/* -------------------------------------------------------------------------------------------------- parsing
 */

static error_t parse_what(int key, char *arg, struct argp_state *state)
{
	struct demo_options *o = state->input;

	switch (key) {
	case KEY_MODEL:
		parse_model(state, arg, o);
		return 0;
	case KEY_REQUESTS:
		o->plan.requests = (uint32_t)parse_count(state, "requests", arg, 1, 4096);
		return 0;
	case KEY_TOKENS:
		o->plan.tokens = parse_tokens(state, arg);
		return 0;
	case KEY_BLOCK_TOKENS:
		o->plan.block_tokens = (unsigned)parse_count(state, "block-tokens", arg, 1, 1024);
		return 0;
	case KEY_DTYPE:
		parse_dtype(state, arg, o);
		return 0;
	case KEY_TP:
		o->plan.tp = (unsigned)parse_count(state, "tp", arg, 1, 1024);
		return 0;
	case KEY_POOL:
		o->plan.pool = parse_pool(state, arg);
		o->plan.pool_given = 1;
		return 0;
	case KEY_ROUNDS:
		o->plan.rounds = (uint32_t)parse_count(state, "rounds", arg, 1, 1000);
		return 0;
	case KEY_SEED:
		o->plan.seed = parse_count(state, "seed", arg, 0, INT64_MAX);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse_how(int key, char *arg, struct argp_state *state)
{
	struct demo_options *o = state->input;

	switch (key) {
	case KEY_OP:
		o->op = parse_choice(state, "op", arg, "write", "read") ? KVL_WRITE : KVL_READ;
		return 0;
	case KEY_MODE:
		o->whole = parse_choice(state, "mode", arg, "whole", "layer");
		return 0;
	case KEY_MEMORY:
		o->user_memory = parse_choice(state, "memory", arg, "user", "mapped");
		return 0;
	case KEY_INFLIGHT:
		o->inflight = (uint32_t)parse_count(state, "inflight", arg, 1, 4096);
		return 0;
	case KEY_WIRE:
		parse_wire(state, arg, o);
		return 0;
	case KEY_RETIRE:
		parse_agent(state, "retire ", "retire_order", arg, o);
		return 0;
	case KEY_WORKERS:
		parse_agent(state, "workers ", "workers", arg, o);
		return 0;
	case KEY_LANES:
		parse_agent(state, "lanes ", "lanes", arg, o);
		return 0;
	case KEY_SET:
		parse_set(state, arg, o);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void check_directory(struct argp_state *state, const char *dir)
{
	struct stat st;

	if (stat(dir, &st))
		argp_error(state, "--rendezvous %s: %s", fail_value(dir), strerror(errno));
	else if (!S_ISDIR(st.st_mode))
		argp_error(state, "--rendezvous %s: not a directory", dir);
	else if (access(dir, R_OK | W_OK | X_OK))
		argp_error(state, "--rendezvous %s: %s", fail_value(dir), strerror(errno));
}

/* Where the wire comes from when no option of the command names it. */
static const char *wire_source(void)
{
	return getenv("KVLANE_WIRE") ? "KVLANE_WIRE" : "KVLANE_CONFIG: wire";
}

/* The sim wire ends at the process: two processes would wait for each other until the time-out. */
static void check_wire(struct argp_state *state, const struct demo_options *o)
{
	struct kvl_config config;
	int code;

	kvl_config_init(&config);
	code = kvl_config_env(&config);
	if (code) {
		fail_print("demo: environment", code);
		exit(EXIT_USAGE);
	}
	for (unsigned i = 0; i < o->n_agent; i++)
		(void)!kvl_config_set(&config, o->agent[i].name, o->agent[i].value);
	if (config.wire && strcmp(config.wire, "auto") && strcmp(config.wire, "local"))
		argp_error(state, "%s %s: must be auto or local", wire_source(), config.wire);
	kvl_config_fini(&config);
}

/* What can only be said of all options together. */
static void check_all(struct argp_state *state, const struct demo_options *o)
{
	if (o->role == DEMO_BOTH && o->rendezvous)
		argp_error(state, "--rendezvous %s: needs --role", o->rendezvous);
	if (o->role != DEMO_BOTH && !o->rendezvous)
		argp_error(state, "--role %s: needs --rendezvous DIR", demo_role_name(o->role));
	if (o->role == DEMO_PREFILL && o->json)
		argp_error(state, "--json %s: the decode side writes it", o->json);
	if (o->role == DEMO_PREFILL && o->damage)
		argp_error(state, "--damage: belongs to the decode side");
	if (o->rendezvous)
		check_directory(state, o->rendezvous);
	check_wire(state, o);
	/* Now, not after the work. */
	if (o->json && json_out_check(o->json))
		exit(EXIT_USAGE);
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct demo_options *o = state->input;
	error_t e;

	switch (key) {
	case KEY_ROLE:
		parse_role(state, arg, o);
		return 0;
	case KEY_RENDEZVOUS:
		o->rendezvous = arg;
		return 0;
	case KEY_TIMEOUT:
		o->timeout_ns = parse_timeout(state, arg);
		return 0;
	case KEY_JSON:
		o->json = arg;
		return 0;
	case KEY_DAMAGE:
		o->damage = 1;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "%s: unexpected argument", fail_value(arg));
		return 0;
	case ARGP_KEY_END:
		check_all(state, o);
		return 0;
	default:
		e = parse_what(key, arg, state);
		return e == ARGP_ERR_UNKNOWN ? parse_how(key, arg, state) : e;
	}
}

static uint64_t default_pool(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	uint64_t quarter = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page / 4 : POOL_DEFAULT;

	return quarter < POOL_DEFAULT ? quarter : POOL_DEFAULT;
}

void demo_options_parse(int argc, char **argv, struct demo_options *out)
{
	static const struct argp argp = { .options = demo_usage_options,
					  .parser = parse_option,
					  .doc = demo_usage_doc };
	static char name[] = "kvlane demo"; /* what messages begin with */

	*out = (struct demo_options){
		.dtype = "bf16",
		.op = KVL_WRITE,
		.inflight = 4,
		.timeout_ns = 30000000000u,
		.plan = { .model = model_at(0),
			  .element_bytes = 2,
			  .block_tokens = 16,
			  .tp = 1,
			  .requests = 8,
			  .rounds = 1,
			  .tokens = 512,
			  .seed = 1,
			  .pool = default_pool() },
	};
	argv[0] = name;
	argp_err_exit_status = EXIT_USAGE;
	argp_parse(&argp, argc, argv, 0, NULL, out);
}
