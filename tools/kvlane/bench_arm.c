/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_arm.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "bench_options.h"

/* ---------------------------------------------------------------------------------------------- selection */

/* "direct, memcpy, raw" */
static void arms_list(const char *const *known, char *out, size_t room)
{
	size_t len = 0;

	out[0] = 0;
	for (unsigned i = 0; known[i] && len < room; i++)
		len += (size_t)snprintf(out + len, room - len, "%s%s", i ? ", " : "", known[i]);
}

static unsigned arms_known(const struct argp_state *state, const char *name, const char *const *known)
{
	char all[160];

	for (unsigned i = 0; known[i]; i++) {
		if (!strcmp(known[i], name))
			return i;
	}
	arms_list(known, all, sizeof(all));
	argp_error(state, "--arms: '%s' is not an arm of this shape; the arms are %s", name, all);
	return 0;
}

static void arms_select(const struct argp_state *state, const char *name, const char *const *known,
			struct bench_arms *out)
{
	unsigned kind = arms_known(state, name, known);

	for (size_t i = 0; i < out->n; i++) {
		if (out->arm[i].kind == kind)
			argp_error(state, "--arms: '%s' is named twice", name);
	}
	if (out->n < BENCH_MAX_ARMS)
		out->arm[out->n++] = (struct bench_arm){ .name = known[kind], .kind = kind };
}

void bench_arms_parse(const struct argp_state *state, const char *text, const char *const *known,
		      struct bench_arms *out)
{
	char name[32];
	size_t len;

	memset(out, 0, sizeof(*out));
	do {
		len = strcspn(text, ",");
		snprintf(name, sizeof(name), "%.*s", (int)(len < sizeof(name) ? len : sizeof(name)), text);
		arms_select(state, name, known, out);
		text += len;
	} while (*text++ == ',');
}

int bench_arms_init(struct bench_arms *arms, uint64_t rounds, uint64_t bytes)
{
	for (size_t i = 0; i < arms->n; i++) {
		arms->arm[i].bytes = bytes;
		if (series_init(&arms->arm[i].ns, rounds)) {
			bench_error("no memory for the samples of %llu rounds", (unsigned long long)rounds);
			return -1;
		}
	}
	return 0;
}

void bench_arms_fini(struct bench_arms *arms)
{
	for (size_t i = 0; i < arms->n; i++)
		series_fini(&arms->arm[i].ns);
}

/* ------------------------------------------------------------------------------------------------- access */

struct bench_arm *bench_arms_turn(struct bench_arms *arms, uint64_t round, size_t i)
{
	return &arms->arm[(round + i) % arms->n];
}

struct bench_arm *bench_arms_find(struct bench_arms *arms, const char *name)
{
	for (size_t i = 0; i < arms->n; i++) {
		if (!strcmp(arms->arm[i].name, name))
			return arms->arm[i].skipped[0] ? NULL : &arms->arm[i];
	}
	return NULL;
}

size_t bench_arms_ran(const struct bench_arms *arms)
{
	size_t ran = 0;

	for (size_t i = 0; i < arms->n; i++)
		ran += !arms->arm[i].skipped[0];
	return ran;
}

uint64_t bench_arms_mismatches(const struct bench_arms *arms)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < arms->n; i++)
		sum += arms->arm[i].mismatches;
	return sum;
}

uint64_t bench_arms_moved(const struct bench_arms *arms)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < arms->n; i++)
		sum += arms->arm[i].moved;
	return sum;
}

void bench_arm_skip(struct bench_arm *arm, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(arm->skipped, sizeof(arm->skipped), format, args);
	va_end(args);
	printf("SKIPPED: arm %s: %s\n", arm->name, arm->skipped);
}

/* ------------------------------------------------------------------------------------------------- report */

json_t *bench_arm_json(const struct bench_arm *arm)
{
	json_t *o;

	if (!arm->skipped[0])
		return bench_figures_json(&arm->ns, arm->bytes, arm->mismatches);
	o = json_object();
	json_object_set_new(o, "skipped", json_string(arm->skipped));
	return o;
}

void bench_ratio(json_t *ratios, struct bench_arms *arms, const char *above, const char *below)
{
	const struct bench_arm *a = bench_arms_find(arms, above), *b = bench_arms_find(arms, below);
	char key[80];
	double ratio;

	if (!a || !b)
		return;
	ratio = series_ratio(&a->ns, &b->ns);
	snprintf(key, sizeof(key), "%s_over_%s", above, below);
	json_object_set_new(ratios, key, json_real(ratio));
	printf("%s: %.3f of the rate of %s (median of %zu rounds)\n", above, ratio, below, a->ns.n);
}

void bench_ratio_time(json_t *ratios, struct bench_arms *arms, const char *above, const char *below)
{
	const struct bench_arm *a = bench_arms_find(arms, above), *b = bench_arms_find(arms, below);
	char key[80];
	double ratio;

	if (!a || !b)
		return;
	ratio = series_ratio(&b->ns, &a->ns);
	snprintf(key, sizeof(key), "%s_time_over_%s", above, below);
	json_object_set_new(ratios, key, json_real(ratio));
	printf("%s: %.3f times as long as %s (median of %zu rounds)\n", above, ratio, below, a->ns.n);
}

void bench_table_arms(struct table *t, const struct bench_arms *arms)
{
	for (size_t i = 0; i < arms->n; i++) {
		if (!arms->arm[i].skipped[0])
			bench_table_row(t, arms->arm[i].name, &arms->arm[i].ns, arms->arm[i].bytes,
					arms->arm[i].mismatches);
	}
}
