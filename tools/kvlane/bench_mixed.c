/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench mixed: a small request to one peer beside a bulk request to another. One process with two agents (one
 * per retirement order) writes to one process with two agents, A (bulk) and B (small). One of the two sources
 * is active in a round; they take turns.
 */
#include <stdio.h>

#include "bench_mixed.h"
#include "bench_report.h"
#include "bench_shapes.h"
#include "size.h"

enum {
	KEY_SMALL = BENCH_KEY,
	KEY_BULK,
	KEY_ARMS
};

static const char *const known_arms[] = { "global", "lane", NULL };

#define MIXED_MAX_SIZE (1ull << 30)

struct mixed_time {
	uint64_t part[MIXED_PARTS], window;
};

/* ------------------------------------------------------------------------------------------------- rounds */

/* One look at a request that has not been seen to end. 0, or its error after a message. */
static int mixed_look(struct mixed_source *src, enum mixed_part part, uint64_t *end)
{
	int rc;

	if (*end)
		return 0;
	rc = kvl_xfer_poll(src->areas.agent, src->xfer[part]);
	if (rc == KVL_PENDING)
		return 0;
	*end = kvl_now();
	return rc < 0 ? bench_error_kvl(part == MIXED_BULK ? "the bulk request" : "the small request", rc)
		      : 0;
}

/* Polls both in turns until both have ended. */
static int mixed_spin(struct mixed_source *src, uint64_t start, uint64_t end[MIXED_PARTS])
{
	for (uint64_t i = 1; !end[MIXED_SMALL] || !end[MIXED_BULK]; i++) {
		if (src->drive)
			kvl_progress(src->areas.agent);
		if (mixed_look(src, MIXED_SMALL, &end[MIXED_SMALL]) ||
		    mixed_look(src, MIXED_BULK, &end[MIXED_BULK]))
			return -1;
		if (i % 65536 == 0 && kvl_now() - start > BENCH_END_NS) {
			bench_error("a request has not ended in %llu s", BENCH_END_NS / 1000000000ull);
			return -1;
		}
	}
	return 0;
}

/* Windows: bulk from before its post, small from between the posts, both from the first to the last. */
static int mixed_post(struct mixed_source *src, struct mixed_time *t)
{
	uint64_t end[MIXED_PARTS] = { 0 }, start = kvl_now(), between;
	int rc = kvl_xfer_post(src->areas.agent, src->xfer[MIXED_BULK], NULL);

	between = kvl_now();
	if (rc == 0)
		rc = kvl_xfer_post(src->areas.agent, src->xfer[MIXED_SMALL], NULL);
	if (rc < 0)
		return bench_error_kvl("posting a request", rc);
	if (mixed_spin(src, start, end))
		return -1;
	t->part[MIXED_BULK] = end[MIXED_BULK] - start;
	t->part[MIXED_SMALL] = end[MIXED_SMALL] - between;
	t->window = (end[MIXED_BULK] > end[MIXED_SMALL] ? end[MIXED_BULK] : end[MIXED_SMALL]) - start;
	return 0;
}

static int mixed_step(struct mixed *s, struct bench_arm *arm, int measured)
{
	struct bench_command check = { .verb = MIXED_CHECK, .epoch = ++s->epoch };
	struct mixed_source *src = &s->source[arm->kind];
	struct bench_reply reply;
	struct mixed_time t = { 0 };

	mixed_fill(src, s->epoch);
	if (mixed_post(src, &t) || bench_ask(&s->link, &check, &reply))
		return -1;
	arm->moved += arm->bytes;
	for (unsigned p = 0; p < MIXED_PARTS; p++) {
		src->mismatches[p] += reply.value[p];
		arm->mismatches += reply.value[p];
		if (measured)
			series_add(&src->part[p], t.part[p]);
	}
	if (measured)
		series_add(&arm->ns, t.window);
	return 0;
}

static int mixed_rounds(struct mixed *s, uint64_t *stray)
{
	struct bench_command guards = { .verb = MIXED_GUARDS };
	struct bench_reply reply;

	for (uint64_t r = 0; r < s->options.warmup + s->options.rounds; r++) {
		for (size_t i = 0; i < s->arms.n; i++) {
			if (mixed_step(s, bench_arms_turn(&s->arms, r, i), r >= s->options.warmup))
				return -1;
		}
	}
	if (bench_ask(&s->link, &guards, &reply))
		return -1;
	*stray = reply.value[0] + reply.value[1];
	return 0;
}

/* ------------------------------------------------------------------------------------------------- report */

static const char *const part_name[] = { [MIXED_BULK] = "bulk", [MIXED_SMALL] = "small" };

static uint64_t mixed_bytes(const struct mixed *s, enum mixed_part part)
{
	return s->size[part] + MIXED_MARKER_BYTES;
}

static void mixed_report_arm(const struct mixed *s, const struct bench_arm *arm, json_t *arms,
			     struct table *table)
{
	const struct mixed_source *src = &s->source[arm->kind];
	json_t *o = json_object();
	char name[32];

	for (int p = MIXED_SMALL; p >= MIXED_BULK; p--) {
		json_object_set_new(o, part_name[p],
				    bench_figures_json(&src->part[p], mixed_bytes(s, p), src->mismatches[p]));
		snprintf(name, sizeof(name), "%s %s", arm->name, part_name[p]);
		bench_table_row(table, name, &src->part[p], mixed_bytes(s, p), src->mismatches[p]);
	}
	json_object_set_new(o, "window", bench_arm_json(arm));
	json_object_set_new(arms, arm->name, o);
	snprintf(name, sizeof(name), "%s both", arm->name);
	bench_table_row(table, name, &arm->ns, arm->bytes, arm->mismatches);
}

static void mixed_ratios(struct mixed *s, json_t *ratios)
{
	const struct mixed_source *global = &s->source[MIXED_GLOBAL], *lane = &s->source[MIXED_LANE];
	struct figures g, l;
	double p50, p99, rate;

	if (s->arms.n < MIXED_KINDS || series_figures(&global->part[MIXED_SMALL], &g) ||
	    series_figures(&lane->part[MIXED_SMALL], &l))
		return;
	p50 = (double)l.p50 / (double)(g.p50 ? g.p50 : 1);
	p99 = (double)l.p99 / (double)(g.p99 ? g.p99 : 1);
	rate = series_ratio(&lane->part[MIXED_BULK], &global->part[MIXED_BULK]);
	json_object_set_new(ratios, "small_p50_lane_over_global", json_real(p50));
	json_object_set_new(ratios, "small_p99_lane_over_global", json_real(p99));
	json_object_set_new(ratios, "bulk_rate_lane_over_global", json_real(rate));
	printf("lane / global: small p50 %.4f, small p99 %.4f; bulk rate %.3f (median of rounds)\n", p50, p99,
	       rate);
}

static int mixed_report(struct mixed *s, uint64_t stray)
{
	json_t *root = bench_options_json(&s->options), *config = json_object_get(root, "config");
	struct bench_report report;
	struct table table;

	json_object_set_new(config, "small", json_integer((json_int_t)s->size[MIXED_SMALL]));
	json_object_set_new(config, "bulk", json_integer((json_int_t)s->size[MIXED_BULK]));
	bench_report_init(&report, root, &s->arms);
	report.stray = stray;
	bench_table_init(&table);
	for (size_t i = 0; i < s->arms.n; i++)
		mixed_report_arm(s, &s->arms.arm[i], json_object_get(root, "arms"), &table);
	bench_table_print(&table);
	mixed_ratios(s, report.ratios);
	return bench_report_finish(&report, &s->options, &s->arms);
}

/* --------------------------------------------------------------------------------------------------- life */

static int mixed_init(struct mixed *s)
{
	uint64_t bytes = mixed_bytes(s, MIXED_BULK) + mixed_bytes(s, MIXED_SMALL);

	if (bench_arms_init(&s->arms, s->options.rounds, bytes))
		return -1;
	for (unsigned k = 0; k < MIXED_KINDS; k++) {
		for (unsigned p = 0; p < MIXED_PARTS; p++) {
			if (series_init(&s->source[k].part[p], s->options.rounds)) {
				bench_error("no memory for the samples");
				return -1;
			}
		}
	}
	return 0;
}

static void mixed_fini(struct mixed *s)
{
	for (unsigned k = 0; k < MIXED_KINDS; k++) {
		series_fini(&s->source[k].part[MIXED_BULK]);
		series_fini(&s->source[k].part[MIXED_SMALL]);
	}
	bench_arms_fini(&s->arms);
}

static int mixed_run(struct mixed *s)
{
	char small[SIZE_TEXT], bulk[SIZE_TEXT];
	uint64_t stray = 0;
	int rc;

	printf("mixed: wire %s, %s beside %s, %s memory, %llu rounds after %llu, seed %llu\n",
	       s->options.wire, size_print(s->size[MIXED_SMALL], small),
	       size_print(s->size[MIXED_BULK], bulk), s->options.user_memory ? "user" : "mapped",
	       (unsigned long long)s->options.rounds, (unsigned long long)s->options.warmup,
	       (unsigned long long)s->options.seed);
	if (mixed_init(s) || bench_link_start(&s->link, &s->options, mixed_target_main, s))
		return EXIT_FAILED;
	rc = mixed_sources_open(s) || mixed_rounds(s, &stray);
	for (unsigned k = 0; k < MIXED_KINDS; k++)
		areas_close(&s->source[k].areas);
	rc |= bench_link_finish(&s->link);
	return rc ? EXIT_FAILED : mixed_report(s, stray);
}

static const struct argp_option options[] = {
	{ "small", KEY_SMALL, "SIZE", 0, "Bytes of the small request (default 4KiB)", 0 },
	{ "bulk", KEY_BULK, "SIZE", 0, "Bytes of the bulk request (default 2MiB)", 0 },
	{ "arms", KEY_ARMS, "LIST", 0,
	  "lane: a request waits for older ones of its lane only; global: for all older ones of its agent "
	  "(default global,lane)",
	  0 },
	{ NULL, 0, NULL, 0, NULL, 0 },
};

static error_t mixed_options(int key, char *arg, struct argp_state *state)
{
	struct mixed *s = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &s->options;
		return 0;
	case KEY_SMALL:
		s->size[MIXED_SMALL] = bench_arg_size(state, "small", arg, 1, MIXED_MAX_SIZE);
		return 0;
	case KEY_BULK:
		s->size[MIXED_BULK] = bench_arg_size(state, "bulk", arg, 1, MIXED_MAX_SIZE);
		return 0;
	case KEY_ARMS:
		bench_arms_parse(state, arg, known_arms, &s->arms);
		return 0;
	case ARGP_KEY_END:
		if (!s->arms.n)
			bench_arms_parse(state, "global,lane", known_arms, &s->arms);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = { { &bench_options_argp, 0, NULL, 0 }, { NULL, 0, NULL, 0 } };

static const struct argp mixed_argp = {
	.options = options,
	.parser = mixed_options,
	.doc = "Posts a bulk request to one peer, then a small one to another, and polls both in turns.",
	.children = children,
};

int bench_mixed_main(int argc, char **argv)
{
	struct mixed s = { .options = { .shape = "mixed", .rounds = 100, .warmup = 20 },
			   .size = { [MIXED_BULK] = 2u << 20, [MIXED_SMALL] = 4096 } };
	int rc;

	bench_options_parse(&mixed_argp, argc, argv, &s.options, &s);
	rc = bench_ready(&s.options);
	if (rc == EXIT_OK)
		rc = mixed_run(&s);
	mixed_fini(&s);
	bench_options_fini(&s.options);
	return rc;
}
