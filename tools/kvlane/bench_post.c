/* SPDX-License-Identifier: Apache-2.0 */
/* bench post: what a list of blocks costs its caller, before anything of it has to be moved. */
#include <stdio.h>
#include <stdlib.h>

#include "bench_post.h"
#include "bench_report.h"
#include "bench_shapes.h"
#include "size.h"

enum {
	KEY_BLOCK = BENCH_KEY,
	KEY_BLOCKS,
	KEY_ARMS,
	KEY_OP
};

static const char *const known_arms[] = { "prepared", "repost", "unprepared", NULL };

#define POST_MAX_BLOCKS  (1u << 24)
#define POST_REPOST_LIST (UINT64_MAX - 1) /* its numbers are not those of rounds */

/* ------------------------------------------------------------------------------------------------- rounds */

static void post_record(struct post *s, struct bench_arm *arm, enum post_size size,
			const uint64_t t[POST_METRICS])
{
	for (unsigned m = 0; m < POST_METRICS; m++)
		series_add(&s->arm[arm->kind].sample[m][size], t[m]);
	if (size == POST_ALL)
		series_add(&arm->ns, t[POST_CALLER_NS]);
}

static int post_step(struct post *s, struct bench_arm *arm, uint64_t round, enum post_size size)
{
	uint64_t list = arm->kind == POST_REPOST ? POST_REPOST_LIST : round * POST_SIZES + size, bad;
	uint64_t t[POST_METRICS];

	if (pool_step_begin(&s->pp, list, s->n[size]) || post_move(s, arm->kind, size, t) ||
	    pool_step_end(&s->pp, s->n[size], &bad))
		return -1;
	arm->mismatches += bad;
	arm->moved += s->n[size] * s->block;
	if (round >= s->options.warmup)
		post_record(s, arm, size, t);
	return 0;
}

static int post_rounds(struct post *s)
{
	for (uint64_t r = 0; r < s->options.warmup + s->options.rounds; r++) {
		for (size_t i = 0; i < s->arms.n; i++) {
			if (post_step(s, bench_arms_turn(&s->arms, r, i), r, POST_TENTH) ||
			    post_step(s, bench_arms_turn(&s->arms, r, i), r, POST_ALL))
				return -1;
		}
	}
	return 0;
}

/* The requests that are posted again and again. */
static int post_prepare_repost(struct post *s)
{
	pool_pair_list(&s->pp, POST_REPOST_LIST);
	return post_prepare(s, s->n[POST_TENTH], &s->repost[POST_TENTH]) ||
	       post_prepare(s, s->n[POST_ALL], &s->repost[POST_ALL]);
}

/* ------------------------------------------------------------------------------------------------- report */

/* Median, in ns per block. */
static double post_per_block(const struct post *s, const struct bench_arm *arm, enum post_metric metric,
			     enum post_size size)
{
	struct figures f;

	if (series_figures(&s->arm[arm->kind].sample[metric][size], &f))
		return 0;
	return (double)f.p50 / (double)s->n[size];
}

static void post_report_arm(const struct post *s, const struct bench_arm *arm, json_t *o, json_t *ratios,
			    struct table *table)
{
	double whole = post_per_block(s, arm, POST_WHOLE_NS, POST_ALL);
	double gbps = whole > 0 ? (double)s->block / whole : 0;
	double cpu = post_per_block(s, arm, POST_CPU_NS, POST_ALL);
	double tenth = post_per_block(s, arm, POST_CPU_NS, POST_TENTH);
	double linearity = tenth > 0 ? cpu / tenth : 0;
	const struct {
		const char *name;
		double value;
	} field[] = {
		{ "ns_per_block", post_per_block(s, arm, POST_CALLER_NS, POST_ALL) },
		{ "prepare_ns_per_block", post_per_block(s, arm, POST_PREPARE_NS, POST_ALL) },
		{ "post_ns_per_block", post_per_block(s, arm, POST_POST_NS, POST_ALL) },
		{ "tenth_ns_per_block", post_per_block(s, arm, POST_CALLER_NS, POST_TENTH) },
		{ "cpu_ns_per_block", cpu },
		{ "tenth_cpu_ns_per_block", tenth },
	};
	char key[64];

	table_cell(table, "%s", arm->name);
	for (size_t i = 0; i < sizeof(field) / sizeof(*field); i++) {
		json_object_set_new(o, field[i].name, json_real(field[i].value));
		table_cell(table, "%.1f", field[i].value);
	}
	json_object_set_new(o, "gbps", json_real(gbps));
	snprintf(key, sizeof(key), "%s_linearity", arm->name);
	json_object_set_new(ratios, key, json_real(linearity));
	table_cell(table, "%.2f", linearity);
	table_cell(table, "%.2f", gbps);
	table_cell(table, "%llu", (unsigned long long)arm->mismatches);
}

static json_t *post_json(const struct post *s)
{
	json_t *root = bench_options_json(&s->options), *config = json_object_get(root, "config");

	json_object_set_new(config, "op", json_string(s->op == KVL_WRITE ? "write" : "read"));
	json_object_set_new(config, "block", json_integer((json_int_t)s->block));
	json_object_set_new(config, "blocks", json_integer((json_int_t)s->blocks));
	json_object_set_new(config, "tenth", json_integer((json_int_t)s->n[POST_TENTH]));
	return root;
}

static int post_report(struct post *s, uint64_t stray)
{
	static const struct table_column column[] = {
		{ "arm", 0 },       { "ns/block", 1 },     { "prepare", 1 }, { "post", 1 },
		{ "a tenth", 1 },   { "CPU ns/block", 1 }, { "a tenth", 1 }, { "linearity", 1 },
		{ "GB/s, end", 1 }, { "mismatches", 1 },
	};
	struct bench_report report;
	struct table table;
	json_t *arms;

	bench_report_init(&report, post_json(s), &s->arms);
	report.stray = stray;
	arms = json_object_get(report.root, "arms");
	table_init(&table, column, sizeof(column) / sizeof(*column));
	for (size_t i = 0; i < s->arms.n; i++)
		post_report_arm(s, &s->arms.arm[i], json_object_get(arms, s->arms.arm[i].name), report.ratios,
				&table);
	bench_table_print(&table);
	return bench_report_finish(&report, &s->options, &s->arms);
}

/* --------------------------------------------------------------------------------------------------- life */

/* All of them, counted through. */
static struct series *post_series(struct post *s, unsigned i)
{
	unsigned of_arm = i % (POST_METRICS * POST_SIZES);

	return &s->arm[i / (POST_METRICS * POST_SIZES)].sample[of_arm / POST_SIZES][of_arm % POST_SIZES];
}

static int post_init(struct post *s)
{
	uint64_t rounds = s->options.rounds;
	int rc = bench_arms_init(&s->arms, rounds, s->blocks * s->block);

	for (unsigned i = 0; i < POST_KINDS * POST_METRICS * POST_SIZES && !rc; i++)
		rc = series_init(post_series(s, i), rounds);
	s->local = calloc(s->blocks, sizeof(*s->local));
	s->remote = calloc(s->blocks, sizeof(*s->remote));
	if (!rc && s->local && s->remote)
		return 0;
	bench_error("no memory for the lists and samples");
	return -1;
}

static void post_fini(struct post *s)
{
	for (unsigned i = 0; i < POST_KINDS * POST_METRICS * POST_SIZES; i++)
		series_fini(post_series(s, i));
	bench_arms_fini(&s->arms);
	free(s->local);
	free(s->remote);
}

static int post_run(struct post *s)
{
	struct pool_shape shape = {
		.options = &s->options, .op = s->op, .block = s->block, .blocks = s->blocks
	};
	char block[SIZE_TEXT];
	uint64_t stray = 0;
	int rc;

	printf("post: wire %s, %s, %s memory, %llu blocks of %s, %llu rounds, seed %llu\n", s->options.wire,
	       s->op == KVL_WRITE ? "write" : "read", s->options.user_memory ? "user" : "mapped",
	       (unsigned long long)s->blocks, size_print(s->block, block),
	       (unsigned long long)s->options.rounds, (unsigned long long)s->options.seed);
	if (post_init(s) || pool_pair_open(&s->pp, &shape))
		return EXIT_FAILED;
	rc = post_prepare_repost(s) || post_rounds(s) || pool_check_all(&s->pp, &stray);
	rc |= pool_pair_close(&s->pp);
	return rc ? EXIT_FAILED : post_report(s, stray);
}

static const struct argp_option options[] = {
	{ "blocks", KEY_BLOCKS, "N", 0, "Blocks of a list (default 100000)", 0 },
	{ "block", KEY_BLOCK, "SIZE", 0, "Bytes of a block (default 4KiB)", 0 },
	{ "op", KEY_OP, "OP", 0, "write (default) or read", 0 },
	{ "arms", KEY_ARMS, "LIST", 0,
	  "prepared: a request made of prepared lists and two index arrays, and its post; repost: the post "
	  "of "
	  "a request that was made before; unprepared: descriptors to posted request in one call (default "
	  "all)",
	  0 },
	{ NULL, 0, NULL, 0, NULL, 0 },
};

static void post_options_end(const struct argp_state *state, struct post *s)
{
	if (s->blocks > BENCH_MAX_BYTES / s->block)
		argp_error(state, "--blocks %llu: times --block it must be at most 1TiB",
			   (unsigned long long)s->blocks);
	s->n[POST_ALL] = s->blocks;
	s->n[POST_TENTH] = s->blocks < 10 ? 1 : s->blocks / 10;
	if (!s->arms.n)
		bench_arms_parse(state, "prepared,repost,unprepared", known_arms, &s->arms);
}

static error_t post_options(int key, char *arg, struct argp_state *state)
{
	struct post *s = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &s->options;
		return 0;
	case KEY_BLOCKS:
		s->blocks = bench_arg_count(state, "blocks", arg, 1, POST_MAX_BLOCKS);
		return 0;
	case KEY_BLOCK:
		s->block = bench_arg_size(state, "block", arg, 1, BENCH_MAX_BLOCK);
		return 0;
	case KEY_OP:
		s->op = bench_arg_op(state, arg);
		return 0;
	case KEY_ARMS:
		bench_arms_parse(state, arg, known_arms, &s->arms);
		return 0;
	case ARGP_KEY_END:
		post_options_end(state, s);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = { { &bench_options_argp, 0, NULL, 0 }, { NULL, 0, NULL, 0 } };

static const struct argp post_argp = {
	.options = options,
	.parser = post_options,
	.doc = "Measures the time that the caller spends in making and posting a request of many random "
	       "blocks, "
	       "per block, for all blocks and for a tenth of them.",
	.children = children,
};

int bench_post_main(int argc, char **argv)
{
	struct post s = { .options = { .shape = "post", .rounds = 11, .warmup = 1 },
			  .op = KVL_WRITE,
			  .block = 4096,
			  .blocks = 100000 };
	int rc;

	bench_options_parse(&post_argp, argc, argv, &s.options, &s);
	rc = bench_ready(&s.options);
	if (rc == EXIT_OK)
		rc = post_run(&s);
	post_fini(&s);
	bench_options_fini(&s.options);
	return rc;
}
