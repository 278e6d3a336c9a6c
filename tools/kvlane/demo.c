/* SPDX-License-Identifier: Apache-2.0 */
#include "demo.h"

#include <stdio.h>
#include <string.h>

#include "command.h"
#include "demo_options.h"
#include "fail.h"

#define FINISH_NS 5000000000u

struct demo_run {
	const struct demo_options *options;
	const struct plan *plan;
};

static int demo_role_run(const struct demo_run *run, enum demo_role role, struct pair *pair)
{
	struct demo d = { .options = run->options,
			  .plan = run->plan,
			  .role = role,
			  .pair = pair,
			  .quiet_usage = pair && role == DEMO_PREFILL };

	return role == DEMO_PREFILL ? demo_prefill_run(&d) : demo_decode_run(&d);
}

static int demo_child(struct pair *pair, void *arg)
{
	return demo_role_run(arg, DEMO_PREFILL, pair);
}

/* Prefill in a second process, decode, which reports, in this one. */
static int demo_both(struct demo_run *run)
{
	struct pair pair;
	int code = pair_start(&pair, demo_child, run), child;

	if (code) {
		fprintf(stderr, "kvlane demo: cannot start the prefill process: %s\n", pair_reason(code));
		return EXIT_FAILED;
	}
	code = demo_role_run(run, DEMO_DECODE, &pair);
	/* After a failure here the other side has nothing left to do. */
	child = pair_finish(&pair, code ? FINISH_NS / 10 : FINISH_NS);
	if (code || !child)
		return code;
	fprintf(stderr, "kvlane demo: the prefill process ended with %d\n", child);
	return EXIT_FAILED;
}

int demo_main(int argc, char **argv)
{
	struct demo_options options;
	struct plan plan;
	struct demo_run run = { &options, &plan };
	int code;

	demo_options_parse(argc, argv, &options);
	if (plan_create(&options.plan, &plan))
		return EXIT_USAGE;
	code = options.role == DEMO_BOTH ? demo_both(&run) : demo_role_run(&run, options.role, NULL);
	plan_destroy(&plan);
	return code;
}
