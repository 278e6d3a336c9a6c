/* SPDX-License-Identifier: Apache-2.0 */
#include "demo_plan.h"

#include <stdio.h>
#include <stdlib.h>

#include "oracle.h"
#include "size.h"

/* Blocks no request uses: one that changes was written by mistake. */
static uint64_t plan_spare(uint64_t need)
{
	return need / 8 + 4;
}

/*
 * Prompt length of a request whose random fraction is `fraction` / 2^32: mean / 2 to mean * 3 / 2. Grows with
 * the mean for a fixed fraction, so a smaller mean never needs more memory.
 */
static uint64_t plan_tokens(uint64_t mean, uint32_t fraction)
{
	uint64_t span = 2 * (mean / 2) + 1;

	return mean - mean / 2 + (uint64_t)(((unsigned __int128)span * fraction) >> 32);
}

static void plan_request_init(const struct layout *l, uint64_t tokens, struct plan_request *r)
{
	*r = (struct plan_request){ .tokens = tokens };
	for (enum model_group g = 0; g < MODEL_GROUPS; g++) {
		if (!layout_layers(l, g))
			continue;
		r->span[g].n = layout_blocks(l, g, tokens, &r->span[g].first);
		r->blocks += (uint64_t)r->span[g].n * layout_layers(l, g);
	}
}

/* Everything that follows from a mean prompt length. -1 when block numbers would not fit 32 bits. */
static int plan_fill(struct plan *p, uint64_t mean)
{
	uint64_t state = p->seed, need[MODEL_GROUPS] = { 0 }, entries = 0;

	p->tokens = mean;
	p->blocks = p->most_blocks = 0;
	for (uint32_t i = 0; i < p->n_requests; i++) {
		struct plan_request *r = &p->request[i];

		plan_request_init(&p->layout, plan_tokens(mean, (uint32_t)(oracle_random(&state) >> 32)), r);
		for (enum model_group g = 0; g < MODEL_GROUPS; g++)
			need[g] += r->span[g].n;
		p->blocks += r->blocks;
		if (r->blocks > p->most_blocks)
			p->most_blocks = r->blocks;
	}
	for (enum model_group g = 0; g < MODEL_GROUPS; g++) {
		need[g] += layout_layers(&p->layout, g) ? plan_spare(need[g]) : 0;
		entries += need[g] * layout_layers(&p->layout, g);
		p->n_blocks[g] = (uint32_t)need[g];
	}
	p->bytes = p->blocks * p->layout.block_bytes;
	p->pool_bytes = entries * p->layout.block_bytes;
	return entries > UINT32_MAX ? -1 : 0;
}

static int plan_fits(struct plan *p, uint64_t mean, uint64_t limit)
{
	return !plan_fill(p, mean) && p->pool_bytes <= limit;
}

/* Leaves the plan at the largest mean that fits. -1 when not even one token a request does. */
static int plan_scale(struct plan *p, uint64_t mean, uint64_t limit)
{
	uint64_t low = 1, high = mean;

	while (low < high) {
		uint64_t middle = high - (high - low) / 2;

		if (plan_fits(p, middle, limit))
			low = middle;
		else
			high = middle - 1;
	}
	return plan_fits(p, low, limit) ? 0 : -1;
}

/* Fits the plan into the limit and says what had to give. */
static int plan_fit(struct plan *p, const struct plan_options *o)
{
	char want[SIZE_TEXT], limit[SIZE_TEXT];

	if (plan_fits(p, o->tokens, o->pool))
		return 0;
	size_print(p->pool_bytes, want);
	size_print(o->pool, limit);
	if (plan_scale(p, o->tokens, o->pool)) {
		size_print(p->pool_bytes, want);
		fprintf(stderr,
			"kvlane demo: --pool %s: too small, %u requests of one token need %s per side\n",
			limit, o->requests, want);
		return -1;
	}
	fprintf(stderr,
		"kvlane demo: --tokens %llu needs %s of KV cache per side: scaled down to %llu to fit "
		"--pool %s%s\n",
		(unsigned long long)o->tokens, want, (unsigned long long)p->tokens, limit,
		o->pool_given ? "" : " (the default)");
	return 0;
}

int plan_create(const struct plan_options *o, struct plan *out)
{
	struct plan p = { .seed = o->seed, .n_requests = o->requests, .n_rounds = o->rounds };

	if (layout_init(&p.layout, o->model, o->element_bytes, o->block_tokens, o->tp)) {
		fprintf(stderr, "kvlane demo: --tp %u: must divide the %u KV heads of %s\n", o->tp,
			o->model->kv_heads, o->model->name);
		return -1;
	}
	p.request = calloc(o->requests, sizeof(*p.request));
	if (!p.request) {
		fprintf(stderr, "kvlane demo: --requests %u: out of memory\n", o->requests);
		return -1;
	}
	if (plan_fit(&p, o)) {
		free(p.request);
		return -1;
	}
	*out = p;
	return 0;
}

void plan_destroy(struct plan *plan)
{
	free(plan->request);
	plan->request = NULL;
}
