/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oracle.h"

enum pool_verb {
	POOL_FILL = 1,
	POOL_CHECK,
	POOL_CHECK_ALL
};

#define POOL_SAMPLE 256 /* unlisted blocks that every step looks at */

/* ------------------------------------------------------------------------------------------------ one end */

static unsigned char *pool_at(const struct block_pool *p, uint32_t block)
{
	return p->memory.addr + block * p->shape->block;
}

static void pool_fill_block(struct block_pool *p, uint32_t block, uint64_t epoch)
{
	oracle_fill(pool_at(p, block), p->shape->block, p->shape->options->seed, block * p->shape->block,
		    epoch);
}

static uint64_t pool_check_block(const struct block_pool *p, uint32_t block)
{
	const struct pool_content *c = &p->content[block];

	return oracle_check(pool_at(p, block), p->shape->block, p->shape->options->seed,
			    c->block * p->shape->block, c->epoch, NULL);
}

static int pool_sink_init(struct block_pool *p)
{
	p->content = malloc(p->shape->blocks * sizeof(*p->content));
	if (!p->content)
		return -1;
	for (uint32_t i = 0; i < p->shape->blocks; i++) {
		p->content[i] = (struct pool_content){ .block = i };
		pool_fill_block(p, i, 0);
	}
	return 0;
}

static void pool_close(struct block_pool *p)
{
	bench_agent_close(p->agent);
	bench_memory_close(&p->memory);
	free(p->origin);
	free(p->sink);
	free(p->content);
}

static int pool_open(struct block_pool *p, const struct pool_shape *shape, const char *name, int is_sink)
{
	*p = (struct block_pool){ .shape = shape, .list = UINT64_MAX };
	if (bench_agent_open(shape->options, name, &p->agent))
		return -1;
	if (bench_memory_open(shape->options, p->agent, shape->block * shape->blocks, &p->memory))
		goto close;
	p->origin = calloc(shape->blocks, sizeof(*p->origin));
	p->sink = calloc(shape->blocks, sizeof(*p->sink));
	if (p->origin && p->sink && (!is_sink || !pool_sink_init(p)))
		return 0;
	bench_error("no memory for the lists of %llu blocks", (unsigned long long)shape->blocks);
close:
	pool_close(p);
	return -1;
}

static void pool_list(struct block_pool *p, uint64_t list)
{
	uint64_t state = p->shape->options->seed;

	if (p->list == list)
		return;
	state = oracle_random(&state) + list;
	oracle_shuffle(p->origin, p->shape->blocks, &state);
	oracle_shuffle(p->sink, p->shape->blocks, &state);
	p->list = list;
}

static void pool_fill(struct block_pool *p, uint64_t list, size_t n, uint64_t epoch)
{
	pool_list(p, list);
	for (size_t i = 0; i < n; i++)
		pool_fill_block(p, p->origin[i], epoch);
}

static uint64_t pool_check(struct block_pool *p, uint64_t list, size_t n, uint64_t epoch)
{
	uint64_t bad = 0, state = epoch, left = p->shape->blocks - n;

	pool_list(p, list);
	for (size_t i = 0; i < n; i++) {
		p->content[p->sink[i]] =
			(struct pool_content){ .block = p->origin[i], .epoch = (uint32_t)epoch };
		bad += pool_check_block(p, p->sink[i]);
	}
	for (size_t i = 0; left && i < POOL_SAMPLE; i++)
		bad += pool_check_block(p, p->sink[n + oracle_random(&state) % left]);
	return bad;
}

static uint64_t pool_check_whole(const struct block_pool *p)
{
	uint64_t bad = 0;

	for (uint32_t i = 0; i < p->shape->blocks; i++)
		bad += pool_check_block(p, i);
	return bad;
}

/* ------------------------------------------------------------------------------------------------- target */

static void pool_handle(void *ctx, const struct bench_command *command, struct bench_reply *reply)
{
	struct block_pool *p = ctx;

	if (command->verb == POOL_FILL)
		pool_fill(p, command->list, command->n, command->epoch);
	else if (command->verb == POOL_CHECK)
		reply->value[0] = pool_check(p, command->list, command->n, command->epoch);
	else
		reply->value[0] = pool_check_whole(p);
}

static int pool_target_main(struct pair *pair, void *arg)
{
	const struct pool_shape *shape = arg;
	struct block_pool pool;
	int rc = EXIT_FAILED;

	if (pool_open(&pool, shape, "bench-target", shape->op == KVL_WRITE))
		return rc;
	if (!bench_offer_send(pair, pool.agent, &pool.memory))
		rc = bench_serve(pair, pool_handle, &pool);
	pool_close(&pool);
	return rc;
}

/* ---------------------------------------------------------------------------------------------- initiator */

/* Lists, and the mapping if there is one. */
static int pool_pair_prepare(struct pool_pair *pp)
{
	struct kvl_run run = { .len = pp->shape.block, .stride = pp->shape.block, .count = pp->shape.blocks };
	struct kvl_error_detail detail;
	void *map;
	int rc;

	run.addr = (uintptr_t)pp->local.memory.addr;
	rc = kvl_list_create_runs(pp->local.agent, KVL_LOCAL, &run, 1, &pp->local_list);
	if (rc < 0)
		return bench_error_kvl("list of the own pool", rc);
	run.addr = pp->remote;
	rc = kvl_list_create_runs(pp->local.agent, pp->peer, &run, 1, &pp->remote_list);
	if (rc < 0)
		return bench_error_kvl("list of the target's pool", rc);
	rc = kvl_peer_map(pp->local.agent, pp->peer, pp->remote, pp->local.memory.len, &map);
	if (rc == 0) {
		pp->map = map;
		return 0;
	}
	kvl_error_detail(&detail);
	snprintf(pp->map_refused, sizeof(pp->map_refused), "%s: %.120s", kvl_error_name(rc), detail.message);
	return 0;
}

static int pool_pair_connect(struct pool_pair *pp)
{
	struct bench_offer offer;
	int rc;

	if (bench_offer_recv(&pp->link.pair, &offer))
		return -1;
	pp->remote = offer.addr;
	pp->pid = (pid_t)offer.pid;
	rc = bench_offer_connect(&offer, pp->local.agent, &pp->peer);
	bench_offer_free(&offer);
	return rc ? -1 : pool_pair_prepare(pp);
}

/*
 * Page-table entries of both pools in this process are made now: which arm comes first must not decide who
 * pays for them.
 */
static void pool_pair_touch(const struct pool_pair *pp)
{
	uint64_t len = pp->local.memory.len;

	for (uint64_t i = 0; i < len; i += 4096) {
		if (!pp->local.content)
			pp->local.memory.addr[i] = 1;
		if (pp->map)
			(void)*(volatile const unsigned char *)(pp->map + i);
	}
}

int pool_pair_open(struct pool_pair *pp, const struct pool_shape *shape)
{
	memset(pp, 0, sizeof(*pp));
	pp->shape = *shape;
	if (bench_link_start(&pp->link, shape->options, pool_target_main, &pp->shape))
		return -1;
	if (pool_open(&pp->local, &pp->shape, "bench-initiator", shape->op == KVL_READ))
		goto finish_link;
	if (pool_pair_connect(pp))
		goto close_pool;
	pool_pair_touch(pp);
	return 0;

close_pool:
	pool_close(&pp->local);
finish_link:
	bench_link_finish(&pp->link);
	return -1;
}

int pool_pair_close(struct pool_pair *pp)
{
	pool_close(&pp->local);
	return bench_link_finish(&pp->link);
}

void pool_pair_list(struct pool_pair *pp, uint64_t list)
{
	pool_list(&pp->local, list);
}

const uint32_t *pool_pair_local_index(const struct pool_pair *pp)
{
	return pp->shape.op == KVL_WRITE ? pp->local.origin : pp->local.sink;
}

const uint32_t *pool_pair_remote_index(const struct pool_pair *pp)
{
	return pp->shape.op == KVL_WRITE ? pp->local.sink : pp->local.origin;
}

static int pool_ask(struct pool_pair *pp, enum pool_verb verb, size_t n, uint64_t *mismatches)
{
	struct bench_command command = { .verb = verb, .list = pp->local.list, .n = n, .epoch = pp->epoch };
	struct bench_reply reply;

	if (bench_ask(&pp->link, &command, &reply))
		return -1;
	*mismatches = reply.value[0];
	return 0;
}

int pool_step_begin(struct pool_pair *pp, uint64_t list, size_t n)
{
	uint64_t none;

	pp->epoch++;
	pool_list(&pp->local, list);
	if (pp->shape.op == KVL_READ)
		return pool_ask(pp, POOL_FILL, n, &none);
	pool_fill(&pp->local, list, n, pp->epoch);
	return 0;
}

int pool_step_end(struct pool_pair *pp, size_t n, uint64_t *mismatches)
{
	if (pp->shape.op == KVL_WRITE)
		return pool_ask(pp, POOL_CHECK, n, mismatches);
	*mismatches = pool_check(&pp->local, pp->local.list, n, pp->epoch);
	return 0;
}

int pool_check_all(struct pool_pair *pp, uint64_t *mismatches)
{
	if (pp->shape.op == KVL_WRITE)
		return pool_ask(pp, POOL_CHECK_ALL, 0, mismatches);
	*mismatches = pool_check_whole(&pp->local);
	return 0;
}
