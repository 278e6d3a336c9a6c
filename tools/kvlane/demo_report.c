/* SPDX-License-Identifier: Apache-2.0 */
#include "demo_report.h"

#include <stdio.h>

#include "fail.h"
#include "json_out.h"
#include "size.h"
#include "table.h"

static const char *report_op(const struct demo *d)
{
	return d->options->op == KVL_WRITE ? "write" : "read";
}

static const char *report_mode(const struct demo *d)
{
	return d->options->whole ? "whole" : "layer";
}

static const char *report_memory(const struct demo *d)
{
	return d->options->user_memory ? "user" : "mapped";
}

static double report_gbps(const struct demo_result *r)
{
	return r->stats.busy_ns ? (double)r->stats.bytes / (double)r->stats.busy_ns : 0;
}

static void report_table(const struct demo *d, const struct demo_result *r)
{
	static const struct table_column columns[] = {
		{ "requests", 1 },         { "blocks", 1 },           { "bytes", 1 }, { "GB/s", 1 },
		{ "hand-over p50 ms", 1 }, { "hand-over p99 ms", 1 }, { "path", 0 },
	};
	char bytes[SIZE_TEXT];
	struct table t;

	table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
	table_cell(&t, "%u", d->plan->n_requests * d->plan->n_rounds);
	table_cell(&t, "%llu", (unsigned long long)r->stats.descriptors);
	table_cell(&t, "%s", size_print(r->stats.bytes, bytes));
	table_cell(&t, "%.2f", report_gbps(r));
	table_cell(&t, "%.3f", (double)hist_quantile(&r->latency, 0.5) / 1e6);
	table_cell(&t, "%.3f", (double)hist_quantile(&r->latency, 0.99) / 1e6);
	table_cell(&t, "%s", r->stats.path);
	table_print(&t, stdout);
	table_fini(&t);
}

static void report_text(const struct demo *d, const struct demo_result *r)
{
	const struct layout *l = &d->plan->layout;
	char block[SIZE_TEXT];

	printf("%s: %u layers, blocks of %u tokens (%s a layer), %s, TP %u; %s %s, %s memory\n\n",
	       l->model->name, l->model->layers, l->block_tokens, size_print(l->block_bytes, block),
	       d->options->dtype, l->tp, report_op(d),
	       d->options->whole ? "all layers at once" : "layer by layer", report_memory(d));
	report_table(d, r);
	printf("\nverified: %llu bytes, %llu mismatches\n", (unsigned long long)r->verified,
	       (unsigned long long)r->mismatches);
}

static json_t *report_config(const struct demo *d)
{
	const struct demo_options *o = d->options;

	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:s}",
			 "dtype", o->dtype, "block_tokens", (json_int_t)o->plan.block_tokens, "block_bytes",
			 (json_int_t)d->plan->layout.block_bytes, "tp", (json_int_t)o->plan.tp,
			 "tokens_asked", (json_int_t)o->plan.tokens, "tokens", (json_int_t)d->plan->tokens,
			 "rounds", (json_int_t)o->plan.rounds, "inflight", (json_int_t)o->inflight, "mode",
			 report_mode(d), "memory", report_memory(d), "wire", d->limits.wire, "seed",
			 (json_int_t)o->plan.seed, "pool_bytes", (json_int_t)d->plan->pool_bytes, "workers",
			 (json_int_t)d->limits.workers, "lanes", (json_int_t)d->limits.lanes, "retire",
			 d->limits.retire_order == KVL_RETIRE_GLOBAL ? "global" : "lane");
}

static json_t *report_json(const struct demo *d, const struct demo_result *r)
{
	return json_pack("{s:s, s:s, s:I, s:I, s:I, s:f, s:I, s:I, s:I, s:I, s:s, s:s, s:I, s:I, s:I, s:o}",
			 "model", d->plan->layout.model->name, "op", report_op(d), "requests",
			 (json_int_t)d->plan->n_requests * d->plan->n_rounds, "blocks",
			 (json_int_t)r->stats.descriptors, "bytes", (json_int_t)r->stats.bytes, "gbps",
			 report_gbps(r), "mismatches", (json_int_t)r->mismatches, "verified_bytes",
			 (json_int_t)r->verified, "handover_p50_ns",
			 (json_int_t)hist_quantile(&r->latency, 0.5), "handover_p99_ns",
			 (json_int_t)hist_quantile(&r->latency, 0.99), "path", r->stats.path, "path_reason",
			 r->stats.reason, "busy_ns", (json_int_t)r->stats.busy_ns, "pieces",
			 (json_int_t)r->stats.pieces, "chunks", (json_int_t)r->stats.chunks, "config",
			 report_config(d));
}

static int report_json_write(const struct demo *d, const struct demo_result *r)
{
	json_t *root = report_json(d, r);
	int failed;

	if (!root) {
		fprintf(stderr, "kvlane demo: %s: cannot write JSON: out of memory\n", d->options->json);
		return EXIT_FAILED;
	}
	failed = json_out_write(d->options->json, root);
	json_decref(root);
	return failed ? EXIT_FAILED : EXIT_OK;
}

int demo_report(struct demo *d, const struct demo_result *r)
{
	int code = EXIT_OK;

	/* Standard output belongs to the JSON when that goes there. */
	if (!d->options->json || d->options->json[0] != '-' || d->options->json[1])
		report_text(d, r);
	if (d->options->json)
		code = report_json_write(d, r);
	/* Less than everything is not a success, whatever the compared bytes were. */
	if (r->verified != d->plan->bytes * d->plan->n_rounds || r->stats.bytes != r->verified)
		return demo_fail_text(d, "handed over %llu bytes, verified %llu of %llu",
				      (unsigned long long)r->stats.bytes, (unsigned long long)r->verified,
				      (unsigned long long)(d->plan->bytes * d->plan->n_rounds));
	return r->mismatches ? EXIT_FAILED : code;
}
