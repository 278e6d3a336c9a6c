/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_areas.h"

#include "oracle.h"

#define AREAS_GUARD 4096u

/* Returns the length of the whole. */
static uint64_t areas_lay_out(struct areas *a, const uint64_t *len, unsigned n)
{
	uint64_t at = AREAS_GUARD;

	a->n = n;
	for (unsigned i = 0; i < n; i++) {
		a->offset[i] = at;
		a->len[i] = len[i];
		at += (len[i] + AREAS_GUARD - 1) / AREAS_GUARD * AREAS_GUARD + AREAS_GUARD;
	}
	return at;
}

int areas_open(struct areas *a, const struct bench_options *o, const struct kvl_config *config,
	       const char *name, const uint64_t *len, unsigned n)
{
	int rc;

	*a = (struct areas){ .options = o };
	rc = kvl_agent_open(name, config ? config : &o->config, &a->agent);
	if (rc < 0) {
		bench_error_kvl("opening an agent", rc);
		return -1;
	}
	if (bench_memory_open(o, a->agent, areas_lay_out(a, len, n), &a->memory)) {
		areas_close(a);
		return -1;
	}
	oracle_fill(a->memory.addr, a->memory.len, o->seed, 0, 0);
	return 0;
}

void areas_close(struct areas *a)
{
	bench_agent_close(a->agent);
	bench_memory_close(&a->memory);
}

unsigned char *areas_at(const struct areas *a, unsigned area)
{
	return a->memory.addr + a->offset[area];
}

void areas_fill(const struct areas *a, unsigned area, uint64_t epoch)
{
	oracle_fill(areas_at(a, area), a->len[area], a->options->seed, a->offset[area], epoch);
}

uint64_t areas_check(const struct areas *a, unsigned area, uint64_t epoch)
{
	return oracle_check(areas_at(a, area), a->len[area], a->options->seed, a->offset[area], epoch, NULL);
}

uint64_t areas_check_guards(const struct areas *a)
{
	uint64_t bad = 0, from = 0, to;

	for (unsigned i = 0; i <= a->n; i++) {
		to = i < a->n ? a->offset[i] : a->memory.len;
		bad += oracle_check(a->memory.addr + from, to - from, a->options->seed, from, 0, NULL);
		from = i < a->n ? to + a->len[i] : to;
	}
	return bad;
}
