/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decode side takes requests over and checks every byte of one as soon as it is handed over, while others
 * are still on their way; when a round is over it checks the whole pool again. Between any two blocks it
 * looks for news, so that the time of a hand-over is not the time of a check.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "demo_decode.h"
#include "demo_message.h"
#include "demo_mover.h"
#include "demo_report.h"
#include "fail.h"

#define FAULTS_SHOWN 5

/* ---------------------------------------------------------------------------------------------- hand-overs
 */

static void decode_handed_over(struct decode *c, uint32_t request, uint64_t latency_ns)
{
	hist_add(&c->result.latency, latency_ns);
	pool_own(&c->d->pool, request, c->round);
	c->queue[c->handed++] = request;
}

/* READ: all reads of a request have ended. */
static void decode_read_done(void *user, uint32_t request, const struct move *move)
{
	struct decode *c = user;
	const struct demo_header *h = move->table->data;

	decode_handed_over(c, request, move->end_ns - h->time_ns);
}

/* -1 when the message does not belong here; sets *keep when the notification has been taken over. */
static int decode_message(struct decode *c, const struct demo_header *h, struct kvl_notif *n, int *keep)
{
	int write = c->d->options->op == KVL_WRITE;

	if (h->round != c->round)
		return -1;
	if (!write && h->type == DEMO_TABLE)
		return *keep = !mover_add(&c->mover, h, n), *keep ? 0 : -1;
	if (write && h->type == DEMO_STATS && !c->have_stats) {
		memcpy(&c->result.stats, demo_body(h), sizeof(c->result.stats));
		c->have_stats = 1;
		return 0;
	}
	if (!write || h->type != DEMO_HANDOVER || c->taken[h->request] == c->round)
		return -1;
	c->taken[h->request] = c->round;
	decode_handed_over(c, h->request, kvl_now() - h->time_ns);
	return 0;
}

/* Takes what is there, never blocks. */
static int decode_pump(struct decode *c)
{
	struct kvl_notif *n;
	int code;

	while (!(code = demo_take(c->d, &n)) && n) {
		const struct demo_header *h = demo_parse(c->d, n);
		int keep = 0, bad = !h || decode_message(c, h, n, &keep);

		if (!keep)
			kvl_notif_free(n);
		if (bad)
			return demo_fail_text(c->d,
					      "the prefill side sent a message that makes no sense here");
	}
	return code || c->d->options->op == KVL_WRITE ? code : mover_pump(&c->mover);
}

/* ------------------------------------------------------------------------------------------------- checking
 */

static void decode_fault(struct decode *c, const struct pool_fault *f)
{
	const char *round = f->owner.round == c->round ? "" : " of an earlier round";
	uint64_t *wrong = &c->wrong[c->d->pool.entry[f->layer] + f->id];
	uint64_t known = *wrong;

	/* The check of the whole pool meets again what was wrong at the hand-over: a byte counts once. */
	if (f->bytes <= known)
		return;
	c->result.mismatches += f->bytes - known;
	*wrong = f->bytes;
	if (known || c->faults++ >= FAULTS_SHOWN)
		return;
	progress_end(&c->d->progress);
	if (f->owner.round)
		fprintf(stderr,
			"kvlane demo: decode: mismatch: request %u%s, layer %u, block %u (id %u), offset "
			"%zu: %llu bytes\n",
			f->owner.request, round, f->layer, f->owner.number, f->id, f->offset,
			(unsigned long long)f->bytes);
	else
		fprintf(stderr,
			"kvlane demo: decode: mismatch: unused block: layer %u, id %u, offset %zu: %llu "
			"bytes written\n",
			f->layer, f->id, f->offset, (unsigned long long)f->bytes);
}

static void decode_check_block(struct decode *c, unsigned layer, uint32_t id)
{
	struct pool_fault fault;

	if (pool_check(&c->d->pool, layer, id, &fault))
		decode_fault(c, &fault);
}

static int decode_check_request(struct decode *c, uint32_t request)
{
	struct demo *d = c->d;
	int code = 0;

	for (unsigned layer = 0; layer < d->pool.n_layers && !code; layer++) {
		enum model_group g = layout_group(&d->plan->layout, layer);
		const uint32_t *id = pool_blocks(&d->pool, request, g);

		for (uint32_t i = 0; i < d->plan->request[request].span[g].n && !code; i++) {
			decode_check_block(c, layer, id[i]);
			c->result.verified += d->plan->layout.block_bytes;
			progress_update(&c->d->progress, ++c->checked);
			code = decode_pump(c);
		}
	}
	return code;
}

/* Every block of the pool, also those that no request uses: a late or stray write shows here. */
static void decode_check_pool(struct decode *c)
{
	const struct demo *d = c->d;

	for (unsigned layer = 0; layer < d->pool.n_layers; layer++) {
		uint32_t n = d->plan->n_blocks[layout_group(&d->plan->layout, layer)];

		for (uint32_t id = 0; id < n; id++)
			decode_check_block(c, layer, id);
	}
}

/* --damage: proof that a wrong byte is found. */
static void decode_damage(struct decode *c)
{
	struct demo *d = c->d;
	uint32_t request = c->queue[0];
	unsigned layer = d->pool.n_layers / 2;
	const uint32_t *id = pool_blocks(&d->pool, request, layout_group(&d->plan->layout, layer));

	d->pool.layer[layer][(id[0] + 1) * d->plan->layout.block_bytes - 1] ^= 1;
}

/* --------------------------------------------------------------------------------------------------- rounds
 */

static int decode_ask(struct decode *c)
{
	struct demo_header h = demo_header(DEMO_READY, c->round, 0);
	int code = 0;

	if (c->d->options->op == KVL_READ)
		return demo_send(c->d, &h, NULL, 0);
	for (uint32_t r = 0; r < c->d->plan->n_requests && !code; r++)
		code = demo_send_table(c->d, c->round, r, 0);
	return code;
}

static int decode_take_over(struct decode *c)
{
	uint32_t checked = 0, n = c->d->plan->n_requests;
	int code = 0;

	while (!code && checked < n) {
		code = decode_pump(c);
		if (code)
			break;
		if (checked == c->handed) {
			code = demo_wait(c->d);
			continue;
		}
		if (c->d->options->damage && c->round == 1 && !checked)
			decode_damage(c);
		code = decode_check_request(c, c->queue[checked++]);
	}
	return code;
}

static int decode_round(struct decode *c, uint32_t round)
{
	int code;

	c->round = round;
	c->handed = 0;
	memset(c->wrong, 0, c->d->pool.n_entries * sizeof(*c->wrong));
	mover_round(&c->mover, round);
	pool_deal(&c->d->pool);
	code = decode_ask(c);
	if (!code)
		code = decode_take_over(c);
	/* With the last round the figures of the side that wrote come as well. */
	while (!code && c->d->options->op == KVL_WRITE && round == c->d->plan->n_rounds && !c->have_stats) {
		code = decode_pump(c);
		if (!code && !c->have_stats)
			code = demo_wait(c->d);
	}
	if (!code)
		decode_check_pool(c);
	return code;
}

static int decode_goodbye(struct decode *c)
{
	struct demo_header h = demo_header(DEMO_DONE, c->round, 0);
	struct demo_done done = { .mismatches = c->result.mismatches };

	return demo_send_wait(c->d, &h, &done, sizeof(done));
}

/* --------------------------------------------------------------------------------------------------- the
 * role */

static int decode_prepare(struct decode *c)
{
	struct demo *d = c->d;
	kvl_list_t remote = 0;
	int code = demo_greet(d, &remote);

	if (!code)
		code = mover_create(&c->mover, d, remote);
	c->mover.finished = decode_read_done;
	c->mover.user = c;
	c->queue = calloc(d->plan->n_requests, sizeof(*c->queue));
	c->taken = calloc(d->plan->n_requests, sizeof(*c->taken));
	c->wrong = calloc(d->pool.n_entries, sizeof(*c->wrong));
	if (!code && (!c->queue || !c->taken || !c->wrong))
		code = demo_fail(d, "cannot make the request queue", KVL_ERR_NOMEM);
	if (!code)
		pool_poison(&d->pool);
	return code;
}

static int decode_serve(struct decode *c)
{
	struct demo *d = c->d;
	int code = demo_connect(d);

	if (!code)
		code = decode_prepare(c);
	progress_start(&d->progress, "kvlane demo", d->plan->blocks * d->plan->n_rounds);
	for (uint32_t round = 1; !code && round <= d->plan->n_rounds; round++)
		code = decode_round(c, round);
	progress_end(&d->progress);
	if (!code)
		code = decode_goodbye(c);
	if (!code && d->options->op == KVL_READ)
		c->result.stats = c->mover.stats;
	return code;
}

int demo_decode_run(struct demo *d)
{
	struct decode *c = calloc(1, sizeof(*c));
	int code;

	if (!c)
		return demo_fail(d, "cannot start", KVL_ERR_NOMEM);
	c->d = d;
	c->mover.d = d;
	hist_reset(&c->result.latency);
	code = demo_open(d);
	if (!code) {
		code = pool_create(&d->pool, d->plan, d->agent, d->options->user_memory, d->plan->seed ^ 2);
		code = code ? demo_fail(d, "cannot make the block pool", code) : decode_serve(c);
	}
	mover_destroy(&c->mover);
	if (!code)
		code = demo_withdraw(d);
	if (!code)
		code = demo_report(d, &c->result);
	demo_close(d);
	free(c->queue);
	free(c->taken);
	free(c->wrong);
	free(c);
	return code;
}
