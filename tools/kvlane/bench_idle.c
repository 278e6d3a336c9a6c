/* SPDX-License-Identifier: Apache-2.0 */
/* bench idle: what an agent costs that has nothing to do, and how soon it has moved its first bytes. */
#include "bench_idle.h"

#include <stdio.h>

#include "bench_arm.h"
#include "bench_report.h"
#include "bench_shapes.h"
#include "size.h"

enum {
	KEY_PEERS = BENCH_KEY,
	KEY_IDLE
};

#define IDLE_MAX_MS 3600000u

static const char *const known_arms[] = { "first_transfer", NULL };

struct idle {
	struct bench_options options;
	uint64_t peers, idle_ms;
	struct bench_arms arms;
	struct idle_cost cost;
};

static int idle_firsts(struct idle *s, const struct idle_setup *setup)
{
	struct bench_arm *arm = &s->arms.arm[0];
	struct idle_first first;

	for (uint64_t r = 0; r < s->options.warmup + s->options.rounds; r++) {
		if (idle_measure_first(setup, &first))
			return -1;
		arm->bytes = first.bytes;
		arm->moved += first.bytes;
		arm->mismatches += first.mismatches;
		if (r >= s->options.warmup)
			series_add(&arm->ns, first.ns);
	}
	return 0;
}

static json_t *idle_json(const struct idle *s)
{
	json_t *root = bench_options_json(&s->options), *config = json_object_get(root, "config");
	json_t *idle = json_object();

	json_object_set_new(config, "peers", json_integer((json_int_t)s->peers));
	json_object_set_new(config, "idle_ms", json_integer((json_int_t)s->idle_ms));
	json_object_set_new(root, "idle", idle);
	json_object_set_new(idle, "open_bytes", json_integer((json_int_t)s->cost.open_bytes));
	json_object_set_new(idle, "resident_bytes", json_integer((json_int_t)s->cost.idle_bytes));
	json_object_set_new(idle, "cpu_ns", json_integer((json_int_t)s->cost.cpu_ns));
	json_object_set_new(idle, "wall_ns", json_integer((json_int_t)s->cost.wall_ns));
	json_object_set_new(idle, "wakeups", json_integer((json_int_t)s->cost.wakeups));
	return root;
}

static const char *idle_size(int64_t bytes, char buf[SIZE_TEXT])
{
	return size_print(bytes > 0 ? (uint64_t)bytes : 0, buf);
}

static int idle_report(struct idle *s)
{
	char open[SIZE_TEXT], idle[SIZE_TEXT], cpu[BENCH_TIME_TEXT], wall[BENCH_TIME_TEXT];
	struct bench_report report;

	printf("agent: %s resident once open, %s with %llu idle peer%s; %s CPU and %llu wake-ups in %s\n",
	       idle_size(s->cost.open_bytes, open), idle_size(s->cost.idle_bytes, idle),
	       (unsigned long long)s->peers, s->peers == 1 ? "" : "s",
	       bench_time((double)s->cost.cpu_ns, cpu), (unsigned long long)s->cost.wakeups,
	       bench_time((double)s->cost.wall_ns, wall));
	bench_report_init(&report, idle_json(s), &s->arms);
	bench_report_table(&s->arms);
	return bench_report_finish(&report, &s->options, &s->arms);
}

static int idle_run_shape(struct idle *s)
{
	struct idle_setup setup = { .options = &s->options,
				    .peers = s->peers,
				    .idle_ns = s->idle_ms * 1000000u };

	printf("idle: wire %s, %llu peer%s, %llu ms idle, %llu first transfers, seed %llu\n", s->options.wire,
	       (unsigned long long)s->peers, s->peers == 1 ? "" : "s", (unsigned long long)s->idle_ms,
	       (unsigned long long)s->options.rounds, (unsigned long long)s->options.seed);
	s->arms = (struct bench_arms){ .n = 1, .arm = { { .name = known_arms[0] } } };
	if (bench_arms_init(&s->arms, s->options.rounds, 0) || idle_measure_cost(&setup, &s->cost) ||
	    idle_firsts(s, &setup))
		return EXIT_FAILED;
	return idle_report(s);
}

static const struct argp_option options[] = {
	{ "peers", KEY_PEERS, "N", 0, "Idle peers that the agent is connected to, 0 to 256 (default 1)", 0 },
	{ "idle-ms", KEY_IDLE, "N", 0, "How long nothing is done, 1 to 3600000 (default 2000)", 0 },
	{ NULL, 0, NULL, 0, NULL, 0 },
};

static error_t idle_options(int key, char *arg, struct argp_state *state)
{
	struct idle *s = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &s->options;
		return 0;
	case KEY_PEERS:
		s->peers = bench_arg_count(state, "peers", arg, 0, IDLE_MAX_PEERS);
		return 0;
	case KEY_IDLE:
		s->idle_ms = bench_arg_count(state, "idle-ms", arg, 1, IDLE_MAX_MS);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = { { &bench_options_argp, 0, NULL, 0 }, { NULL, 0, NULL, 0 } };

static const struct argp idle_argp = {
	.options = options,
	.parser = idle_options,
	.doc = "Measures the resident memory, the CPU time and the wake-ups of an agent that has nothing to "
	       "do, "
	       "and, in fresh processes each time, how long it takes from nothing to the end of a first 4 "
	       "KiB "
	       "write: opening both agents, rendezvous, connecting, writing.",
	.children = children,
};

int bench_idle_main(int argc, char **argv)
{
	struct idle s = { .options = { .shape = "idle", .rounds = 20, .warmup = 1 },
			  .peers = 1,
			  .idle_ms = 2000 };
	int rc;

	bench_options_parse(&idle_argp, argc, argv, &s.options, &s);
	rc = bench_ready(&s.options);
	if (rc == EXIT_OK)
		rc = idle_run_shape(&s);
	bench_arms_fini(&s.arms);
	bench_options_fini(&s.options);
	return rc;
}
