/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_figures.h"

#include <stdlib.h>
#include <string.h>

#include "bench_options.h"

/* ------------------------------------------------------------------------------------------------ samples */

int series_init(struct series *s, size_t room)
{
	*s = (struct series){ .v = malloc(room * sizeof(*s->v)), .room = room };
	if (!s->v)
		return -1;
	memset(s->v, 0xff, room * sizeof(*s->v));
	return 0;
}

void series_fini(struct series *s)
{
	free(s->v);
	*s = (struct series){ 0 };
}

void series_add(struct series *s, uint64_t value)
{
	if (s->n < s->room)
		s->v[s->n++] = value;
}

static int compare_u64(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int compare_double(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static uint64_t sorted_quantile(const uint64_t *sorted, size_t n, double q)
{
	return sorted[(size_t)((double)(n - 1) * q)];
}

int series_figures(const struct series *s, struct figures *out)
{
	uint64_t *sorted;

	memset(out, 0, sizeof(*out));
	if (!s->n)
		return 0;
	sorted = malloc(s->n * sizeof(*sorted));
	if (!sorted)
		return -1;
	memcpy(sorted, s->v, s->n * sizeof(*sorted));
	qsort(sorted, s->n, sizeof(*sorted), compare_u64);
	out->min = sorted[0];
	out->p50 = sorted_quantile(sorted, s->n, 0.5);
	out->p99 = sorted_quantile(sorted, s->n, 0.99);
	out->p999 = sorted_quantile(sorted, s->n, 0.999);
	out->max = sorted[s->n - 1];
	free(sorted);
	return 0;
}

double series_ratio(const struct series *above, const struct series *below)
{
	size_t n = above->n < below->n ? above->n : below->n;
	double *ratio, median;

	ratio = n ? malloc(n * sizeof(*ratio)) : NULL;
	if (!ratio)
		return 0;
	for (size_t i = 0; i < n; i++)
		ratio[i] = (double)below->v[i] / (double)(above->v[i] ? above->v[i] : 1);
	qsort(ratio, n, sizeof(*ratio), compare_double);
	median = ratio[(n - 1) / 2];
	free(ratio);
	return median;
}

/* --------------------------------------------------------------------------------------------------- JSON */

static double figures_gbps(uint64_t bytes, uint64_t ns)
{
	return ns ? (double)bytes / (double)ns : 0;
}

json_t *bench_figures_json(const struct series *s, uint64_t bytes, uint64_t mismatches)
{
	struct figures f;
	json_t *o;

	if (series_figures(s, &f)) {
		bench_error("no memory to sort the samples in");
		return NULL;
	}
	o = json_object();
	json_object_set_new(o, "p50_ns", json_integer((json_int_t)f.p50));
	json_object_set_new(o, "p99_ns", json_integer((json_int_t)f.p99));
	json_object_set_new(o, "p999_ns", json_integer((json_int_t)f.p999));
	json_object_set_new(o, "max_ns", json_integer((json_int_t)f.max));
	json_object_set_new(o, "gbps", json_real(figures_gbps(bytes, f.p50)));
	json_object_set_new(o, "mismatches", json_integer((json_int_t)mismatches));
	return o;
}

/* -------------------------------------------------------------------------------------------------- table */

const char *bench_time(double ns, char buf[BENCH_TIME_TEXT])
{
	static const char *const unit[] = { "ns", "us", "ms", "s" };
	int u = 0;

	while (u < 3 && ns >= 1000) {
		ns /= 1000;
		u++;
	}
	snprintf(buf, BENCH_TIME_TEXT, "%.*f %s", !u ? 0 : ns < 10 ? 2 : ns < 100 ? 1 : 0, ns, unit[u]);
	return buf;
}

void bench_table_init(struct table *t)
{
	static const struct table_column column[] = {
		{ "arm", 0 },   { "GB/s", 1 }, { "p50", 1 },        { "p99", 1 },
		{ "p99.9", 1 }, { "max", 1 },  { "mismatches", 1 },
	};

	table_init(t, column, sizeof(column) / sizeof(*column));
}

void bench_table_row(struct table *t, const char *name, const struct series *s, uint64_t bytes,
		     uint64_t mismatches)
{
	char buf[BENCH_TIME_TEXT];
	struct figures f;

	if (series_figures(s, &f)) {
		t->failed = 1;
		return;
	}
	table_cell(t, "%s", name);
	table_cell(t, "%.2f", figures_gbps(bytes, f.p50));
	table_cell(t, "%s", bench_time((double)f.p50, buf));
	table_cell(t, "%s", bench_time((double)f.p99, buf));
	table_cell(t, "%s", bench_time((double)f.p999, buf));
	table_cell(t, "%s", bench_time((double)f.max, buf));
	table_cell(t, "%llu", (unsigned long long)mismatches);
}

void bench_table_print(struct table *t)
{
	if (table_print(t, stdout))
		bench_error("no memory for the table");
	table_fini(t);
}
