/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "demo_message.h"
#include "demo_mover.h"
#include "fail.h"
#include "size.h"

struct prefill {
	struct demo *d;
	struct mover mover; /* WRITE */
	uint32_t round;
	uint32_t ready;           /* READ: the round that the decode side waits for */
	struct kvl_notif **ahead; /* WRITE: tables of the next round */
	uint32_t n_ahead;
	uint32_t sent, released;
	int done;            /* the decode side has said its last word */
	uint64_t mismatches; /* that it found */
};

static int prefill_done(struct prefill *p, const struct demo_header *h)
{
	const struct demo_done *done = demo_body(h);

	p->done = 1;
	p->mismatches = done->mismatches;
	return 0;
}

/*
 * The decode side may be one round ahead: it has taken the last hand-over of a round before this side has
 * seen the end of it.
 */
static int prefill_table(struct prefill *p, const struct demo_header *h, struct kvl_notif *n)
{
	if (h->round == p->round)
		return mover_add(&p->mover, h, n);
	if (h->round != p->round + 1 || p->n_ahead == p->d->plan->n_requests)
		return -1;
	p->ahead[p->n_ahead++] = n;
	return 0;
}

static int prefill_ready(struct prefill *p, const struct demo_header *h)
{
	if (h->round != p->ready + 1)
		return -1;
	p->ready = h->round;
	return 0;
}

/* One message. Sets *keep when the notification has been taken over. -1 when it does not belong here. */
static int prefill_message(struct prefill *p, const struct demo_header *h, struct kvl_notif *n, int *keep)
{
	int write = p->d->options->op == KVL_WRITE;

	if (h->type == DEMO_DONE)
		return prefill_done(p, h);
	if (write && h->type == DEMO_TABLE)
		return *keep = !prefill_table(p, h, n), *keep ? 0 : -1;
	if (!write && h->type == DEMO_READY)
		return prefill_ready(p, h);
	if (!write && h->type == DEMO_RELEASE && h->round == p->round)
		return p->released++ < p->sent ? 0 : -1;
	return -1;
}

static int prefill_nonsense(struct prefill *p)
{
	return demo_fail_text(p->d, "the decode side sent a message that makes no sense here");
}

/* Takes every message that is there. */
static int prefill_listen(struct prefill *p)
{
	struct kvl_notif *n;
	int code;

	while (!(code = demo_take(p->d, &n)) && n) {
		const struct demo_header *h = demo_parse(p->d, n);
		int keep = 0, bad = !h || prefill_message(p, h, n, &keep);

		if (!keep)
			kvl_notif_free(n);
		if (bad)
			return demo_fail_text(p->d,
					      "the decode side sent a message that makes no sense here");
	}
	return code;
}

/* READ: announces requests while few enough are out. */
static int prefill_announce(struct prefill *p)
{
	struct demo *d = p->d;
	int code = 0;

	if (p->ready != p->round)
		return 0;
	while (!code && p->sent < d->plan->n_requests && p->sent - p->released < d->options->inflight) {
		code = demo_send_table(p->d, p->round, p->sent, kvl_now());
		p->sent++;
	}
	return code;
}

static int prefill_round_over(const struct prefill *p)
{
	uint32_t n = p->d->plan->n_requests;

	return p->d->options->op == KVL_WRITE ? p->mover.done == n : p->released == n;
}

static int prefill_step(struct prefill *p)
{
	int code = prefill_listen(p);

	if (!code)
		code = p->d->options->op == KVL_WRITE ? mover_pump(&p->mover) : prefill_announce(p);
	return code;
}

/* Tables that came early; -1 when two are for one request. */
static int prefill_catch_up(struct prefill *p)
{
	int bad = 0;

	for (uint32_t i = 0; i < p->n_ahead; i++) {
		if (!mover_add(&p->mover, p->ahead[i]->data, p->ahead[i]))
			continue;
		kvl_notif_free(p->ahead[i]);
		bad = -1;
	}
	p->n_ahead = 0;
	return bad;
}

static int prefill_round(struct prefill *p, uint32_t round)
{
	struct demo *d = p->d;
	int code;

	p->round = round;
	p->sent = p->released = 0;
	mover_round(&p->mover, round);
	if (prefill_catch_up(p))
		return prefill_nonsense(p);
	pool_deal(&d->pool);
	for (uint32_t r = 0; r < d->plan->n_requests; r++)
		pool_fill(&d->pool, r, round);
	for (;;) {
		code = prefill_step(p);
		if (code || prefill_round_over(p))
			return code;
		code = demo_wait(d);
		if (code)
			return code;
	}
}

/* After the last round: waits until the decode side has looked at everything. */
static int prefill_finish(struct prefill *p)
{
	struct demo_header h = demo_header(DEMO_STATS, p->round, 0);
	int code = 0;

	if (p->d->options->op == KVL_WRITE)
		code = demo_send(p->d, &h, &p->mover.stats, sizeof(p->mover.stats));
	while (!code && !p->done) {
		code = prefill_listen(p);
		if (!code && !p->done)
			code = demo_wait(p->d);
	}
	return code;
}

static void prefill_report(const struct prefill *p)
{
	const struct plan *plan = p->d->plan;
	char bytes[SIZE_TEXT];

	if (!p->d->pair)
		printf("prefill: handed over %u requests, %llu blocks, %s; the decode side found %llu "
		       "mismatches\n",
		       plan->n_requests * plan->n_rounds, (unsigned long long)(plan->blocks * plan->n_rounds),
		       size_print(plan->bytes * plan->n_rounds, bytes), (unsigned long long)p->mismatches);
}

static int prefill_serve(struct prefill *p)
{
	struct demo *d = p->d;
	kvl_list_t remote = 0;
	int code = demo_connect(d);

	if (!code)
		code = demo_greet(d, &remote);
	if (!code)
		code = mover_create(&p->mover, d, remote);
	p->ahead = calloc(d->plan->n_requests, sizeof(*p->ahead));
	if (!code && !p->ahead)
		code = demo_fail(d, "cannot make the table queue", KVL_ERR_NOMEM);
	for (uint32_t round = 1; !code && round <= d->plan->n_rounds; round++)
		code = prefill_round(p, round);
	if (!code)
		code = prefill_finish(p);
	if (!code)
		prefill_report(p);
	for (uint32_t i = 0; i < p->n_ahead; i++)
		kvl_notif_free(p->ahead[i]);
	free(p->ahead);
	mover_destroy(&p->mover);
	if (!code)
		code = demo_withdraw(d);
	return code ? code : p->mismatches ? EXIT_FAILED : EXIT_OK;
}

int demo_prefill_run(struct demo *d)
{
	struct prefill p = { .d = d, .mover = { .d = d } };
	int code = demo_open(d);

	if (!code) {
		code = pool_create(&d->pool, d->plan, d->agent, d->options->user_memory, d->plan->seed ^ 1);
		code = code ? demo_fail(d, "cannot make the block pool", code) : prefill_serve(&p);
	}
	demo_close(d);
	return code;
}
