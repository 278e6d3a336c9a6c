/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_options.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "json_out.h"
#include "size.h"

enum {
	KEY_WIRE = 0x100,
	KEY_ROUNDS,
	KEY_WARMUP,
	KEY_SEED,
	KEY_MEMORY,
	KEY_SET,
	KEY_JSON
};

static const struct argp_option options[] = {
	{ NULL, 0, NULL, 0, "Every shape:", 10 },
	{ "wire", KEY_WIRE, "NAME", 0, "local (default): two processes; sim: two agents in one process", 0 },
	{ "memory", KEY_MEMORY, "KIND", 0,
	  "mapped (default): memory of kvl_mem_alloc on both sides; user: plain memory, only registered", 0 },
	{ "rounds", KEY_ROUNDS, "N", 0,
	  "Measured rounds, 1 to 10000000; in each of them every arm has its turn. Default: scatter and idle "
	  "20, single 10000, mixed 100, post 11",
	  0 },
	{ "warmup", KEY_WARMUP, "N", 0,
	  "Rounds before these, 0 to 10000000, verified but not counted. Default: scatter 2, single 1000, "
	  "mixed 20, post and idle 1",
	  0 },
	{ "seed", KEY_SEED, "N", 0,
	  "Replays the block lists and the data of an earlier run, 0 to 2^63 - 1 (default: a new one, "
	  "printed)",
	  0 },
	{ "set", KEY_SET, "NAME=VALUE", 0, "An option of the library for every agent, such as workers=2", 0 },
	{ "json", KEY_JSON, "FILE", 0, "Also writes the figures as one JSON object; - is standard output",
	  0 },
	{ NULL, 0, NULL, 0, NULL, 0 },
};

/* ----------------------------------------------------------------------------------------------- messages */

void bench_error(const char *format, ...)
{
	va_list args;

	fputs("kvlane bench: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

int bench_error_kvl(const char *what, int code)
{
	char text[128];

	snprintf(text, sizeof(text), "bench: %s", what);
	fail_print(text, code);
	return code;
}

/* ------------------------------------------------------------------------------------------------- values */

uint64_t bench_arg_size(const struct argp_state *state, const char *option, const char *text, uint64_t min,
			uint64_t max)
{
	char low[SIZE_TEXT], high[SIZE_TEXT];
	uint64_t value = 0;

	if (size_parse(text, &value) || value < min || value > max)
		argp_error(state, "--%s %s: must be a size from %s to %s", option, fail_value(text),
			   size_print(min, low), size_print(max, high));
	return value;
}

uint64_t bench_arg_count(const struct argp_state *state, const char *option, const char *text, uint64_t min,
			 uint64_t max)
{
	uint64_t value = 0;

	if (size_parse_count(text, min, max, &value))
		argp_error(state, "--%s %s: must be a number from %llu to %llu", option, fail_value(text),
			   (unsigned long long)min, (unsigned long long)max);
	return value;
}

enum kvl_op bench_arg_op(const struct argp_state *state, const char *text)
{
	if (strcmp(text, "write") && strcmp(text, "read"))
		argp_error(state, "--op %s: must be write or read", fail_value(text));
	return strcmp(text, "read") ? KVL_WRITE : KVL_READ;
}

static void options_wire(const struct argp_state *state, struct bench_options *o, const char *name)
{
	struct kvl_wire_info info;

	for (size_t i = 0; kvl_wire_info(i, &info) == 0; i++) {
		if (strcmp(info.name, name))
			continue;
		snprintf(o->wire, sizeof(o->wire), "%s", name);
		if (kvl_config_set(&o->config, "wire", name) == 0)
			return;
	}
	argp_error(state, "--wire %s: no such wire in this build ('kvlane info' lists them)",
		   fail_value(name));
}

static void options_memory(const struct argp_state *state, struct bench_options *o, const char *kind)
{
	if (strcmp(kind, "mapped") && strcmp(kind, "user"))
		argp_error(state, "--memory %s: must be mapped or user", fail_value(kind));
	o->user_memory = !strcmp(kind, "user");
}

static void options_set(const struct argp_state *state, struct bench_options *o, char *text)
{
	char *value = strchr(text, '=');
	struct kvl_error_detail detail;

	if (!value) {
		argp_error(state, "--set %s: must be NAME=VALUE", fail_value(text));
		return;
	}
	*value++ = 0;
	if (!strcmp(text, "wire")) {
		options_wire(state, o, value);
		return;
	}
	if (kvl_config_set(&o->config, text, value)) {
		kvl_error_detail(&detail);
		fail_hint(&detail);
		argp_error(state, "--set %s=%s: %s", text, fail_value(value), detail.message);
	}
	json_object_set_new(o->set, text, json_string(value));
}

static uint64_t options_random_seed(void)
{
	uint64_t seed;

	/* The clock will do: a seed need not be secret, only new. */
	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed))
		seed = kvl_now();
	return seed >> 1; /* JSON integers are signed */
}

/* So that the JSON tells what made the figures. */
static void options_note_env(struct bench_options *o)
{
	struct kvl_option_info info;
	char name[64];
	size_t len;

	for (size_t i = 0; kvl_option_info(i, &info) == 0; i++) {
		len = (size_t)snprintf(name, sizeof(name), "KVLANE_%s", info.name);
		for (size_t k = 0; k < len && k < sizeof(name); k++)
			name[k] = (char)toupper((unsigned char)name[k]);
		if (getenv(name))
			json_object_set_new(o->set, info.name, json_string(getenv(name)));
	}
}

static void options_init(struct bench_options *o)
{
	int rc;

	kvl_config_init(&o->config);
	rc = kvl_config_env(&o->config);
	if (rc < 0) {
		fail_print("bench: environment", rc);
		exit(EXIT_USAGE);
	}
	o->set = json_object();
	options_note_env(o);
	o->seed = options_random_seed();
	if (o->config.wire && strcmp(o->config.wire, "auto"))
		snprintf(o->wire, sizeof(o->wire), "%s", o->config.wire);
	else
		snprintf(o->wire, sizeof(o->wire), "local");
}

static void options_end(const struct argp_state *state, struct bench_options *o)
{
	if (kvl_config_set(&o->config, "wire", o->wire))
		argp_error(state, "--wire %s: refused by the library", o->wire);
	/* Before the work: a run of minutes must not end in "no such directory". */
	if (o->json && json_out_check(o->json))
		exit(EXIT_USAGE);
	o->json_stdout = -1;
	if (o->json && !strcmp(o->json, "-")) {
		o->json_stdout = dup(STDOUT_FILENO);
		dup2(STDERR_FILENO, STDOUT_FILENO);
	}
}

static error_t options_parse(int key, char *arg, struct argp_state *state)
{
	struct bench_options *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		options_init(o);
		return 0;
	case KEY_WIRE:
		options_wire(state, o, arg);
		return 0;
	case KEY_MEMORY:
		options_memory(state, o, arg);
		return 0;
	case KEY_ROUNDS:
		o->rounds = bench_arg_count(state, "rounds", arg, 1, BENCH_MAX_ROUNDS);
		return 0;
	case KEY_WARMUP:
		o->warmup = bench_arg_count(state, "warmup", arg, 0, BENCH_MAX_ROUNDS);
		return 0;
	case KEY_SEED:
		o->seed = bench_arg_count(state, "seed", arg, 0, INT64_MAX);
		return 0;
	case KEY_SET:
		options_set(state, o, arg);
		return 0;
	case KEY_JSON:
		o->json = arg;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "%s: not an option of %s", fail_value(arg), o->shape);
		return 0;
	case ARGP_KEY_END:
		options_end(state, o);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp bench_options_argp = { .options = options, .parser = options_parse };

/* ------------------------------------------------------------------------------------------- life, report */

void bench_options_parse(const struct argp *argp, int argc, char **argv, struct bench_options *o, void *input)
{
	char name[64];
	char *own = argv[0];

	/* argp takes the name in its messages from argv[0]. */
	snprintf(name, sizeof(name), "kvlane bench %s", o->shape);
	argv[0] = name;
	argp_err_exit_status = EXIT_USAGE;
	argp_parse(argp, argc, argv, 0, NULL, input);
	argv[0] = own;
}

void bench_options_stdout(struct bench_options *o)
{
	if (o->json_stdout < 0)
		return;
	fflush(stdout);
	dup2(o->json_stdout, STDOUT_FILENO);
	close(o->json_stdout);
	o->json_stdout = -1;
}

void bench_options_fini(struct bench_options *o)
{
	kvl_config_fini(&o->config);
	json_decref(o->set);
	o->set = NULL;
}

static int wire_available(const struct bench_options *o)
{
	struct kvl_wire_info info;

	for (size_t i = 0; kvl_wire_info(i, &info) == 0; i++) {
		if (strcmp(info.name, o->wire))
			continue;
		if (!info.available)
			printf("SKIPPED: wire %s: %s\n", o->wire, info.reason);
		return info.available;
	}
	return 0;
}

static _Noreturn void ready_child(const struct bench_options *o)
{
	kvl_agent_t agent;
	int rc = kvl_agent_open("bench-probe", &o->config, &agent);

	if (rc == 0)
		rc = kvl_agent_close(agent, 5000000000ull);
	if (rc < 0)
		fail_print("bench: opening an agent", rc);
	_exit(fail_exit_code(rc));
}

int bench_ready(const struct bench_options *o)
{
	int status = 0;
	pid_t child;

	if (!wire_available(o))
		return EXIT_SKIPPED;
	/* In a process of its own: what follows must start from one that never had an agent. */
	fflush(NULL);
	child = fork();
	if (!child)
		ready_child(o);
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (child > 0 && WIFEXITED(status))
		return WEXITSTATUS(status);
	bench_error("cannot try the options in a process of their own");
	return EXIT_FAILED;
}

json_t *bench_options_json(const struct bench_options *o)
{
	json_t *root = json_object(), *config = json_object();

	json_object_set_new(root, "shape", json_string(o->shape));
	json_object_set_new(root, "wire", json_string(o->wire));
	json_object_set_new(root, "config", config);
	json_object_set_new(config, "memory", json_string(o->user_memory ? "user" : "mapped"));
	json_object_set_new(config, "rounds", json_integer((json_int_t)o->rounds));
	json_object_set_new(config, "warmup", json_integer((json_int_t)o->warmup));
	json_object_set_new(config, "seed", json_integer((json_int_t)o->seed));
	json_object_set(config, "set", o->set);
	return root;
}
