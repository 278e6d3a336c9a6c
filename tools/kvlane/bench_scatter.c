/* SPDX-License-Identifier: Apache-2.0 */
/* bench scatter: random blocks of one pool to random blocks of another. */
#include <stdio.h>

#include "bench_report.h"
#include "bench_scatter.h"
#include "bench_shapes.h"
#include "size.h"

enum {
	KEY_BLOCK = BENCH_KEY,
	KEY_COUNT,
	KEY_POOL,
	KEY_ARMS,
	KEY_OP,
	KEY_VECTOR
};

static const char *const known_arms[] = { "direct", "memcpy", "raw", NULL };

#define SCATTER_ROUND_BYTES (256ull << 20) /* of a round, unless --count is given */
#define SCATTER_SWEEP_BYTES (64ull << 20)  /* of one try of a vector length */
#define SCATTER_SWEEP_TRIES 3
#define SCATTER_MAX_BLOCKS  (1u << 26)

/* ------------------------------------------------------------------------------------------------- rounds */

/* One arm moves the first n entries of a list and is checked. 0, or a negative value after a message. */
static int scatter_step(struct scatter *s, struct bench_arm *arm, uint64_t list, size_t n,
			struct scatter_time *t)
{
	uint64_t bad;
	int rc;

	if (arm->skipped[0])
		return 0;
	if (pool_step_begin(&s->pp, list, n))
		return -1;
	rc = scatter_move(s, arm, n, t);
	if (rc || arm->skipped[0])
		return rc;
	if (pool_step_end(&s->pp, n, &bad))
		return -1;
	arm->mismatches += bad;
	arm->moved += n * s->block;
	return 0;
}

static void scatter_record(struct scatter *s, struct bench_arm *arm, const struct scatter_time *t)
{
	if (arm->skipped[0])
		return;
	series_add(&arm->ns, t->move);
	if (arm->kind != SCATTER_DIRECT)
		return;
	series_add(&s->prepare, t->prepare);
	series_add(&s->post, t->post);
	series_add(&s->whole, t->prepare + t->move);
}

static int scatter_rounds(struct scatter *s)
{
	struct scatter_time t = { 0 };
	struct bench_arm *arm;

	for (uint64_t r = 0; r < s->options.warmup + s->options.rounds; r++) {
		for (size_t i = 0; i < s->arms.n; i++) {
			arm = bench_arms_turn(&s->arms, r, i);
			if (scatter_step(s, arm, r, s->count, &t))
				return -1;
			if (r >= s->options.warmup)
				scatter_record(s, arm, &t);
		}
	}
	return 0;
}

/* Best time of a few tries with one vector length. */
static int scatter_try(struct scatter *s, struct bench_arm *raw, size_t n, uint64_t *best)
{
	struct scatter_time t = { 0 };

	*best = UINT64_MAX;
	for (uint64_t i = 0; i < SCATTER_SWEEP_TRIES && !raw->skipped[0]; i++) {
		if (scatter_step(s, raw, UINT64_MAX - 1 - i, n, &t))
			return -1;
		if (t.move < *best)
			*best = t.move;
	}
	return 0;
}

/* The raw arm gets the vector length that is best on this machine for these blocks. */
static int scatter_sweep(struct scatter *s, struct bench_arm *raw)
{
	static const size_t lengths[] = { 1, 16, 64, 128, 256, 512, 1024 };
	uint64_t n = SCATTER_SWEEP_BYTES / s->block, best = UINT64_MAX, ns;
	size_t vector = 1;

	n = n < 1 ? 1 : n > s->count ? s->count : n;
	printf("bare copy, GB/s by vector length:");
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		if (lengths[i] * s->block > BENCH_MAX_BLOCK || (i && lengths[i - 1] >= n))
			break;
		s->raw.vector = lengths[i];
		if (scatter_try(s, raw, n, &ns))
			return -1;
		if (raw->skipped[0])
			return 0;
		printf(" %zu: %.2f", lengths[i], (double)(n * s->block) / (double)ns);
		if (ns < best) {
			best = ns;
			vector = lengths[i];
		}
	}
	printf("; using %zu\n", vector);
	s->raw.vector = vector;
	return 0;
}

static int scatter_prepare_raw(struct scatter *s)
{
	struct bench_arm *raw = bench_arms_find(&s->arms, known_arms[SCATTER_RAW]);

	s->raw = (struct raw_copy){ .pid = s->pp.pid,
				    .op = s->op,
				    .local = (uintptr_t)s->pp.local.memory.addr,
				    .remote = s->pp.remote,
				    .block = s->block,
				    .vector = s->vector };
	return raw && !s->vector ? scatter_sweep(s, raw) : 0;
}

/* ------------------------------------------------------------------------------------------------- report */

static void scatter_arm_direct(const struct scatter *s, json_t *o)
{
	struct figures prepare, post, whole;
	double n = (double)s->count;

	if (series_figures(&s->prepare, &prepare) || series_figures(&s->post, &post) ||
	    series_figures(&s->whole, &whole))
		return;
	printf("direct: path %s; in the caller, ns per block: prepare %.1f, post %.1f\n", s->path,
	       (double)prepare.p50 / n, (double)post.p50 / n);
	json_object_set_new(o, "path", json_string(s->path));
	json_object_set_new(o, "prepare_ns_per_block", json_real((double)prepare.p50 / n));
	json_object_set_new(o, "post_ns_per_block", json_real((double)post.p50 / n));
	json_object_set_new(o, "prepare_to_end_p50_ns", json_integer((json_int_t)whole.p50));
}

/* The ratio that also charges the preparation of the request to the direct arm. */
static void scatter_ratio_prepared(struct scatter *s, json_t *ratios, const char *below)
{
	const struct bench_arm *b = bench_arms_find(&s->arms, below);
	char key[80];
	double ratio;

	if (!b || !bench_arms_find(&s->arms, "direct"))
		return;
	ratio = series_ratio(&s->whole, &b->ns);
	snprintf(key, sizeof(key), "direct_with_prepare_over_%s", below);
	json_object_set_new(ratios, key, json_real(ratio));
	printf("direct with prepare / %s: %.3f\n", below, ratio);
}

static json_t *scatter_json(struct scatter *s)
{
	json_t *root = bench_options_json(&s->options), *config = json_object_get(root, "config");

	json_object_set_new(config, "op", json_string(s->op == KVL_WRITE ? "write" : "read"));
	json_object_set_new(config, "block", json_integer((json_int_t)s->block));
	json_object_set_new(config, "count", json_integer((json_int_t)s->count));
	json_object_set_new(config, "pool", json_integer((json_int_t)s->pool));
	if (bench_arms_find(&s->arms, "raw"))
		json_object_set_new(config, "vector", json_integer((json_int_t)s->raw.vector));
	return root;
}

static int scatter_report(struct scatter *s, uint64_t stray)
{
	struct bench_report report;
	json_t *arms;

	bench_report_init(&report, scatter_json(s), &s->arms);
	bench_report_table(&s->arms);
	report.stray = stray;
	arms = json_object_get(report.root, "arms");
	bench_ratio(report.ratios, &s->arms, "direct", "memcpy");
	scatter_ratio_prepared(s, report.ratios, "memcpy");
	bench_ratio(report.ratios, &s->arms, "direct", "raw");
	scatter_ratio_prepared(s, report.ratios, "raw");
	if (bench_arms_find(&s->arms, "direct"))
		scatter_arm_direct(s, json_object_get(arms, "direct"));
	return bench_report_finish(&report, &s->options, &s->arms);
}

/* ------------------------------------------------------------------------------------------------ options */

static const struct argp_option options[] = {
	{ "block", KEY_BLOCK, "SIZE", 0, "Bytes of a block (default 4KiB)", 0 },
	{ "count", KEY_COUNT, "N", 0, "Blocks a round moves (default: 256MiB of them, at most the pool)", 0 },
	{ "pool", KEY_POOL, "SIZE", 0, "Each of the two pools (default 1GiB)", 0 },
	{ "op", KEY_OP, "OP", 0, "write (default) or read", 0 },
	{ "arms", KEY_ARMS, "LIST", 0,
	  "direct: kvlane; memcpy: plain copies by one thread; raw: bare vectored cross-process copies "
	  "(default direct,memcpy for mapped memory, direct,raw otherwise)",
	  0 },
	{ "vector", KEY_VECTOR, "N", 0,
	  "Blocks per call of the raw arm, 1 to 1024 (default: the best is found first)", 0 },
	{ NULL, 0, NULL, 0, NULL, 0 },
};

/* A size as the user wrote it, or the default. */
static const char *scatter_typed(const char *typed, uint64_t bytes, char buf[SIZE_TEXT])
{
	return typed ? typed : size_print(bytes, buf);
}

static void scatter_options_end(struct argp_state *state, struct scatter *s)
{
	uint64_t blocks = s->pool / s->block;
	char pool[SIZE_TEXT], block[SIZE_TEXT];

	if (!blocks || blocks > SCATTER_MAX_BLOCKS)
		argp_error(state, "--pool %s: must hold from 1 to %u blocks of --block %s",
			   scatter_typed(s->pool_typed, s->pool, pool), SCATTER_MAX_BLOCKS,
			   scatter_typed(s->block_typed, s->block, block));
	if (s->count > blocks)
		argp_error(state, "--count %llu: the pool has %llu blocks", (unsigned long long)s->count,
			   (unsigned long long)blocks);
	if (!s->count)
		s->count = SCATTER_ROUND_BYTES / s->block;
	s->count = s->count < 1 ? 1 : s->count > blocks ? blocks : s->count;
	if (s->vector * s->block > BENCH_MAX_BLOCK)
		argp_error(state, "--vector %llu: times --block it must be at most 1GiB",
			   (unsigned long long)s->vector);
	if (!s->arms.n)
		bench_arms_parse(state, s->options.user_memory ? "direct,raw" : "direct,memcpy", known_arms,
				 &s->arms);
}

static error_t scatter_options(int key, char *arg, struct argp_state *state)
{
	struct scatter *s = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &s->options;
		return 0;
	case KEY_BLOCK:
		s->block = bench_arg_size(state, "block", arg, 1, BENCH_MAX_BLOCK);
		s->block_typed = arg;
		return 0;
	case KEY_COUNT:
		s->count = bench_arg_count(state, "count", arg, 1, SCATTER_MAX_BLOCKS);
		return 0;
	case KEY_POOL:
		s->pool = bench_arg_size(state, "pool", arg, 1, BENCH_MAX_BYTES);
		s->pool_typed = arg;
		return 0;
	case KEY_OP:
		s->op = bench_arg_op(state, arg);
		return 0;
	case KEY_ARMS:
		bench_arms_parse(state, arg, known_arms, &s->arms);
		return 0;
	case KEY_VECTOR:
		s->vector = bench_arg_count(state, "vector", arg, 1, RAW_MAX_VECTOR);
		return 0;
	case ARGP_KEY_END:
		scatter_options_end(state, s);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = { { &bench_options_argp, 0, NULL, 0 }, { NULL, 0, NULL, 0 } };

static const struct argp scatter_argp = {
	.options = options,
	.parser = scatter_options,
	.doc = "Moves random blocks of one pool to random blocks of another and compares the rate with plain "
	       "copies of the same lists.",
	.children = children,
};

static void scatter_header(const struct scatter *s)
{
	char block[SIZE_TEXT], pool[SIZE_TEXT];

	printf("scatter: wire %s, %s, %s memory, %llu blocks of %s in pools of %s, %llu rounds, seed %llu\n",
	       s->options.wire, s->op == KVL_WRITE ? "write" : "read",
	       s->options.user_memory ? "user" : "mapped", (unsigned long long)s->count,
	       size_print(s->block, block), size_print(s->pool, pool), (unsigned long long)s->options.rounds,
	       (unsigned long long)s->options.seed);
}

static int scatter_series(struct scatter *s)
{
	uint64_t rounds = s->options.rounds;

	if (bench_arms_init(&s->arms, rounds, s->count * s->block))
		return -1;
	return series_init(&s->prepare, rounds) || series_init(&s->post, rounds) ||
	       series_init(&s->whole, rounds);
}

static int scatter_run(struct scatter *s)
{
	struct pool_shape shape = {
		.options = &s->options, .op = s->op, .block = s->block, .blocks = s->pool / s->block
	};
	uint64_t stray = 0;
	int rc;

	scatter_header(s);
	if (scatter_series(s) || pool_pair_open(&s->pp, &shape))
		return EXIT_FAILED;
	rc = scatter_prepare_raw(s) || scatter_rounds(s) || pool_check_all(&s->pp, &stray);
	rc |= pool_pair_close(&s->pp);
	return rc ? EXIT_FAILED : scatter_report(s, stray);
}

int bench_scatter_main(int argc, char **argv)
{
	struct scatter s = { .options = { .shape = "scatter", .rounds = 20, .warmup = 2 },
			     .op = KVL_WRITE,
			     .block = 4096,
			     .pool = 1ull << 30 };
	int rc;

	bench_options_parse(&scatter_argp, argc, argv, &s.options, &s);
	rc = bench_ready(&s.options);
	if (rc == EXIT_OK)
		rc = scatter_run(&s);
	series_fini(&s.prepare);
	series_fini(&s.post);
	series_fini(&s.whole);
	bench_arms_fini(&s.arms);
	bench_options_fini(&s.options);
	return rc;
}
