/* SPDX-License-Identifier: Apache-2.0 */
#include <argp.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "bench_options.h"
#include "bench_shapes.h"

static const struct {
	const char *name;
	int (*main)(int argc, char **argv);
} shapes[] = {
	{ "scatter", bench_scatter_main }, { "single", bench_single_main }, { "mixed", bench_mixed_main },
	{ "post", bench_post_main },       { "idle", bench_idle_main },
};

static const char doc[] =
	"Measures kvlane against plain copies, and checks every byte that it measures."
	"\v"
	"Shapes:\n"
	"  scatter   random blocks of one pool to random blocks of another: GB/s\n"
	"  single    one small request, post to done, target idle: latency\n"
	"  mixed     a small request beside a bulk one, by retirement order: isolation\n"
	"  post      the caller's cost of a list of blocks: ns per block\n"
	"  idle      what an agent costs that does nothing, and the time to its first transfer\n"
	"\n"
	"'kvlane bench SHAPE --help' lists a shape's options. Every shape starts both of its processes "
	"itself, "
	"lets its arms take turns in one run, and takes --json FILE. Exit code: 0, 1 for any wrong byte or "
	"failure, "
	"2 for bad usage, 77 when what it needs is missing here.";

/* Everything from the shape's name on is that shape's. */
static error_t bench_parse(int key, char *arg, struct argp_state *state)
{
	int *shape_at = state->input;

	(void)arg;
	switch (key) {
	case ARGP_KEY_ARG:
		*shape_at = state->next - 1;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "which shape? scatter, single, mixed, post or idle");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int bench_main(int argc, char **argv)
{
	static const struct argp argp = { .parser = bench_parse,
					  .args_doc = "SHAPE [OPTION...]",
					  .doc = doc };
	char name[] = "kvlane bench";
	int at = 0;

	argv[0] = name;
	argp_err_exit_status = EXIT_USAGE;
	setvbuf(stdout, NULL, _IOLBF, 0);
	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &at);
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
		if (!strcmp(argv[at], shapes[i].name))
			return shapes[i].main(argc - at, argv + at);
	}
	bench_error("no shape %s; the shapes are scatter, single, mixed, post and idle",
		    fail_value(argv[at]));
	return EXIT_USAGE;
}
