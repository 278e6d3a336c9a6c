/* SPDX-License-Identifier: Apache-2.0 */
#include "demo_pool.h"

#include <stdlib.h>
#include <string.h>

#include "oracle.h"

/* ------------------------------------------------------------------------------------------------- memory */

static uint64_t pool_layer_bytes(const struct plan *plan, unsigned layer)
{
	return plan->n_blocks[layout_group(&plan->layout, layer)] * plan->layout.block_bytes;
}

static int pool_alloc_mapped(struct pool *p)
{
	for (unsigned i = 0; i < p->n_layers; i++) {
		void *addr;
		int code = kvl_mem_alloc(p->agent, pool_layer_bytes(p->plan, i), KVL_REMOTE_ALL, &addr,
					 &p->mr[i]);

		if (code)
			return code;
		p->layer[i] = addr;
		p->n_registered++;
	}
	return 0;
}

static int pool_alloc_user(struct pool *p)
{
	struct kvl_mem mem[MODEL_LAYERS_MAX] = { 0 };
	int code;

	for (unsigned i = 0; i < p->n_layers; i++) {
		mem[i].len = pool_layer_bytes(p->plan, i);
		mem[i].addr = p->layer[i] = malloc(mem[i].len);
		if (!p->layer[i])
			return KVL_ERR_NOMEM;
	}
	code = kvl_mem_register(p->agent, mem, p->n_layers, p->mr);
	if (!code)
		p->n_registered = p->n_layers;
	return code;
}

static int pool_alloc_tables(struct pool *p)
{
	for (enum model_group g = 0; g < MODEL_GROUPS; g++) {
		size_t n = p->plan->n_blocks[g] + 1; /* never an allocation of nothing */

		p->table[g] = calloc(n, sizeof(*p->table[g]));
		p->start[g] = calloc(p->plan->n_requests, sizeof(*p->start[g]));
		p->owner[g] = calloc(n, sizeof(*p->owner[g]));
		if (!p->table[g] || !p->start[g] || !p->owner[g])
			return KVL_ERR_NOMEM;
	}
	return 0;
}

int pool_list_create(const struct plan *plan, kvl_agent_t agent, kvl_peer_t peer, const uint64_t *base,
		     kvl_list_t *out)
{
	struct kvl_run run[MODEL_LAYERS_MAX] = { 0 };
	unsigned n = plan->layout.model->layers;

	for (unsigned i = 0; i < n; i++) {
		run[i].addr = base[i];
		run[i].len = run[i].stride = plan->layout.block_bytes;
		run[i].count = plan->n_blocks[layout_group(&plan->layout, i)];
		run[i].device = KVL_HOST;
	}
	return kvl_list_create_runs(agent, peer, run, n, out);
}

static int pool_list_local(struct pool *p)
{
	uint64_t base[MODEL_LAYERS_MAX];
	uint32_t entry = 0;

	for (unsigned i = 0; i < p->n_layers; i++) {
		base[i] = (uint64_t)(uintptr_t)p->layer[i];
		p->entry[i] = entry;
		entry += p->plan->n_blocks[layout_group(&p->plan->layout, i)];
	}
	p->n_entries = entry;
	return pool_list_create(p->plan, p->agent, KVL_LOCAL, base, &p->list);
}

int pool_create(struct pool *pool, const struct plan *plan, kvl_agent_t agent, int user, uint64_t random)
{
	int code;

	*pool = (struct pool){ .plan = plan, .agent = agent, .user = user, .random = random };
	pool->n_layers = plan->layout.model->layers;
	code = pool_alloc_tables(pool);
	if (!code)
		code = user ? pool_alloc_user(pool) : pool_alloc_mapped(pool);
	return code ? code : pool_list_local(pool);
}

int pool_withdraw(struct pool *pool)
{
	int code = kvl_list_destroy(pool->agent, pool->list);

	if (!code)
		code = kvl_mem_deregister(pool->agent, pool->mr, pool->n_registered);
	if (!code)
		pool->n_registered = 0;
	return code;
}

void pool_destroy(struct pool *pool)
{
	for (unsigned i = 0; pool->user && i < pool->n_layers; i++)
		free(pool->layer[i]);
	for (enum model_group g = 0; g < MODEL_GROUPS; g++) {
		free(pool->table[g]);
		free(pool->start[g]);
		free(pool->owner[g]);
	}
	memset(pool, 0, sizeof(*pool));
}

/* ------------------------------------------------------------------------------------------- block tables */

void pool_deal(struct pool *pool)
{
	for (enum model_group g = 0; g < MODEL_GROUPS; g++) {
		uint32_t next = 0;

		oracle_shuffle(pool->table[g], pool->plan->n_blocks[g], &pool->random);
		for (uint32_t r = 0; r < pool->plan->n_requests; r++) {
			pool->start[g][r] = next;
			next += pool->plan->request[r].span[g].n;
		}
	}
}

const uint32_t *pool_blocks(const struct pool *pool, uint32_t request, enum model_group group)
{
	return pool->table[group] + pool->start[group][request];
}

void pool_own(struct pool *pool, uint32_t request, uint32_t round)
{
	const struct plan_request *r = &pool->plan->request[request];

	for (enum model_group g = 0; g < MODEL_GROUPS; g++) {
		const uint32_t *id = pool_blocks(pool, request, g);

		for (uint32_t i = 0; i < r->span[g].n; i++)
			pool->owner[g][id[i]] = (struct pool_owner){ request, r->span[g].first + i, round };
	}
}

/* ------------------------------------------------------------------------------------------------ content */

/* The oracle's stream of a block: a request's own, or the pool's for poison. */
struct pool_stream {
	uint64_t seed, offset, epoch;
};

static struct pool_stream pool_stream(const struct pool *p, unsigned layer, uint32_t id)
{
	const struct pool_owner *o = &p->owner[layout_group(&p->plan->layout, layer)][id];
	uint64_t position = (uint64_t)layer << 32;

	if (!o->round)
		return (struct pool_stream){ ~p->plan->seed, (position | id) * p->plan->layout.block_bytes,
					     0 };
	return (struct pool_stream){ p->plan->seed + o->request + 1,
				     (position | o->number) * p->plan->layout.block_bytes, o->round };
}

static uint8_t *pool_at(const struct pool *p, unsigned layer, uint32_t id)
{
	return p->layer[layer] + id * p->plan->layout.block_bytes;
}

static void pool_write(struct pool *p, unsigned layer, uint32_t id)
{
	struct pool_stream s = pool_stream(p, layer, id);

	oracle_fill(pool_at(p, layer, id), p->plan->layout.block_bytes, s.seed, s.offset, s.epoch);
}

void pool_poison(struct pool *pool)
{
	for (unsigned layer = 0; layer < pool->n_layers; layer++) {
		uint32_t n = pool->plan->n_blocks[layout_group(&pool->plan->layout, layer)];

		for (uint32_t id = 0; id < n; id++)
			pool_write(pool, layer, id);
	}
}

void pool_fill(struct pool *pool, uint32_t request, uint32_t round)
{
	pool_own(pool, request, round);
	for (unsigned layer = 0; layer < pool->n_layers; layer++) {
		enum model_group g = layout_group(&pool->plan->layout, layer);
		const uint32_t *id = pool_blocks(pool, request, g);

		for (uint32_t i = 0; i < pool->plan->request[request].span[g].n; i++)
			pool_write(pool, layer, id[i]);
	}
}

int pool_check(const struct pool *pool, unsigned layer, uint32_t id, struct pool_fault *fault)
{
	struct pool_stream s = pool_stream(pool, layer, id);
	size_t first;
	uint64_t bad = oracle_check(pool_at(pool, layer, id), pool->plan->layout.block_bytes, s.seed,
				    s.offset, s.epoch, &first);

	if (!bad)
		return 0;
	*fault = (struct pool_fault){
		.bytes = bad,
		.layer = layer,
		.id = id,
		.owner = pool->owner[layout_group(&pool->plan->layout, layer)][id],
		.offset = first,
	};
	return 1;
}
