/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_report.h"

#include <stdio.h>

#include "json_out.h"

void bench_report_init(struct bench_report *report, json_t *root, const struct bench_arms *arms)
{
	json_t *all = json_object();

	*report = (struct bench_report){ .root = root, .ratios = json_object() };
	for (size_t i = 0; i < arms->n; i++)
		json_object_set_new(all, arms->arm[i].name, bench_arm_json(&arms->arm[i]));
	json_object_set_new(root, "arms", all);
	json_object_set_new(root, "ratios", report->ratios);
}

void bench_report_table(const struct bench_arms *arms)
{
	struct table table;

	bench_table_init(&table);
	bench_table_arms(&table, arms);
	bench_table_print(&table);
}

int bench_report_finish(struct bench_report *report, struct bench_options *o, const struct bench_arms *arms)
{
	uint64_t bad = bench_arms_mismatches(arms) + report->stray;
	int rc = bad ? EXIT_FAILED : bench_arms_ran(arms) ? EXIT_OK : EXIT_SKIPPED;

	json_object_set_new(report->root, "stray_mismatches", json_integer((json_int_t)report->stray));
	if (rc == EXIT_SKIPPED)
		printf("SKIPPED: no arm could run\n");
	else
		printf("%s: %llu bytes, %llu mismatches\n", bad ? "NOT VERIFIED" : "verified",
		       (unsigned long long)bench_arms_moved(arms), (unsigned long long)bad);
	bench_options_stdout(o);
	if (o->json && json_out_write(o->json, report->root))
		rc = EXIT_FAILED;
	json_decref(report->root);
	return rc;
}
