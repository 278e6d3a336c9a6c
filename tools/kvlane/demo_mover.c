/* SPDX-License-Identifier: Apache-2.0 */
#include "demo_mover.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"

#define ENDS_MAX 64

int mover_create(struct mover *m, struct demo *d, kvl_list_t remote)
{
	const struct plan *p = d->plan;

	*m = (struct mover){ .d = d, .remote = remote };
	m->n_pieces = d->options->whole ? 1 : p->layout.model->layers;
	m->move = calloc(p->n_requests, sizeof(*m->move));
	m->queue = calloc(p->n_requests, sizeof(*m->queue));
	m->local_index = calloc(p->most_blocks, sizeof(*m->local_index));
	m->remote_index = calloc(p->most_blocks, sizeof(*m->remote_index));
	if (m->move && m->queue && m->local_index && m->remote_index)
		return 0;
	return demo_fail(d, "cannot make the request table", KVL_ERR_NOMEM);
}

static void mover_drop_tables(struct mover *m)
{
	for (uint32_t r = 0; m->move && r < m->d->plan->n_requests; r++) {
		if (m->move[r].table)
			kvl_notif_free(m->move[r].table);
		m->move[r] = (struct move){ 0 };
	}
}

void mover_destroy(struct mover *m)
{
	mover_drop_tables(m);
	if (m->remote)
		(void)!kvl_list_destroy(m->d->agent, m->remote);
	free(m->move);
	free(m->queue);
	free(m->local_index);
	free(m->remote_index);
	*m = (struct mover){ 0 };
}

void mover_round(struct mover *m, uint32_t round)
{
	mover_drop_tables(m);
	m->round = round;
	m->queued = m->started = m->done = 0;
}

int mover_add(struct mover *m, const struct demo_header *h, struct kvl_notif *n)
{
	struct move *move = &m->move[h->request];

	if (move->table)
		return -1;
	move->table = n;
	m->queue[m->queued++] = h->request;
	return 0;
}

/* -------------------------------------------------------------------------------------------------- posting
 */

/* Index arrays of one layer of a request, from position n on; returns the new n. */
static size_t mover_index(struct mover *m, uint32_t request, unsigned layer, size_t n)
{
	const struct demo *d = m->d;
	enum model_group g = layout_group(&d->plan->layout, layer);
	const uint32_t *local = pool_blocks(&d->pool, request, g);
	const uint32_t *remote = demo_table(d, m->move[request].table->data, g);
	uint32_t entry = d->pool.entry[layer], count = d->plan->request[request].span[g].n;

	for (uint32_t i = 0; i < count; i++) {
		m->local_index[n + i] = entry + local[i];
		m->remote_index[n + i] = entry + remote[i];
	}
	return n + count;
}

static uint32_t mover_lane(const struct mover *m, uint32_t request)
{
	const struct kvl_limits *l = &m->d->limits;

	if (l->lanes == l->latency_lanes)
		return KVL_LANE(request % l->lanes);
	return KVL_LANE(l->latency_lanes + request % (l->lanes - l->latency_lanes));
}

/* A kvl code; KVL_ERR_AGAIN when every request slot is in use. */
static int mover_prepare(struct mover *m, uint32_t request, uint32_t piece)
{
	struct demo *d = m->d;
	enum demo_type type = d->options->op == KVL_WRITE ? DEMO_HANDOVER : DEMO_RELEASE;
	struct demo_header h = demo_header(type, m->round, request);
	struct kvl_xfer_opts opts = { .size = sizeof(opts),
				      .lane = mover_lane(m, request),
				      .deadline_ns = d->options->timeout_ns,
				      .user = &m->move[request] };
	size_t n = 0;

	h.time_ns = m->move[request].start_ns;
	if (piece + 1 == m->n_pieces) {
		opts.flags = KVL_XFER_NOTIFY;
		opts.notif = &h;
		opts.notif_len = sizeof(h);
	}
	if (d->options->whole) {
		for (unsigned layer = 0; layer < d->pool.n_layers; layer++)
			n = mover_index(m, request, layer, n);
	} else {
		n = mover_index(m, request, piece, n);
	}
	return kvl_xfer_prepare_indexed(d->agent, d->options->op, d->pool.list, m->local_index, m->remote,
					m->remote_index, n, &opts, &m->move[request].prepared);
}

/* Posts pieces of one request until all are or the lane is full (KVL_ERR_AGAIN). A kvl code. */
static int mover_post(struct mover *m, uint32_t request)
{
	struct move *move = &m->move[request];
	int code;

	while (move->posted < m->n_pieces) {
		code = move->prepared ? 0 : mover_prepare(m, request, move->posted);
		if (!code)
			code = kvl_xfer_post(m->d->agent, move->prepared, NULL);
		if (code)
			return code;
		move->prepared = 0;
		move->posted++;
	}
	return 0;
}

static void mover_begin(struct mover *m)
{
	struct move *move = &m->move[m->queue[m->started]];

	move->start_ns = kvl_now();
	if (m->started == m->done)
		m->busy_since = move->start_ns;
	m->started++;
}

static int mover_fail(struct mover *m, const char *what, int code)
{
	if (!demo_lost(m->d))
		return demo_fail(m->d, what, code);
	return demo_fail_text(m->d, "the %s side is gone: %s (%s)", demo_role_name(demo_other(m->d->role)),
			      what, kvl_error_name(code));
}

static int mover_post_fail(struct mover *m, uint32_t request, int code)
{
	char what[64];

	snprintf(what, sizeof(what), "request %u: cannot post", request);
	return mover_fail(m, what, code);
}

static int mover_post_all(struct mover *m)
{
	int code;

	while (m->started < m->queued && m->started - m->done < m->d->options->inflight)
		mover_begin(m);
	for (uint32_t i = 0; i < m->started; i++) {
		if (m->move[m->queue[i]].posted == m->n_pieces)
			continue;
		code = mover_post(m, m->queue[i]);
		if (code && code != KVL_ERR_AGAIN)
			return mover_post_fail(m, m->queue[i], code);
	}
	return 0;
}

/* --------------------------------------------------------------------------------------------------- ending
 */

static void mover_account(struct mover *m, const struct kvl_report *report)
{
	struct demo_stats *s = &m->stats;

	s->bytes += report->bytes;
	s->descriptors += report->descriptors;
	s->pieces += report->pieces;
	s->chunks += report->chunks;
	if (!s->path[0]) {
		memcpy(s->path, report->path, sizeof(s->path));
		memcpy(s->reason, report->reason, sizeof(s->reason));
	} else if (strncmp(s->path, report->path, sizeof(s->path))) {
		snprintf(s->path, sizeof(s->path), "mixed");
	}
}

static int mover_end_fail(struct mover *m, const struct kvl_end *end, const struct kvl_report *report)
{
	uint32_t request = (uint32_t)((struct move *)end->user - m->move);
	char what[128];
	int n = snprintf(what, sizeof(what), "request %u failed after %llu of %llu bytes", request,
			 (unsigned long long)report->bytes, (unsigned long long)report->total_bytes);

	if (report->provider && n > 0)
		snprintf(what + n, sizeof(what) - (size_t)n, ", %s", strerror(report->provider));
	return mover_fail(m, what, end->status);
}

/* All pieces of a request have ended. */
static void mover_finish(struct mover *m, struct move *move)
{
	m->done++;
	if (m->started == m->done)
		m->stats.busy_ns += move->end_ns - m->busy_since;
	if (m->finished)
		m->finished(m->user, (uint32_t)(move - m->move), move);
}

static int mover_end(struct mover *m, const struct kvl_end *end)
{
	struct kvl_report report = { .size = sizeof(report) };
	struct move *move = end->user;
	int code = kvl_xfer_report(m->d->agent, end->xfer, &report);

	if (code)
		return demo_fail(m->d, "cannot read a report", code);
	if (end->status)
		return mover_end_fail(m, end, &report);
	mover_account(m, &report);
	if (report.end_ns > move->end_ns)
		move->end_ns = report.end_ns;
	code = kvl_xfer_release(m->d->agent, end->xfer);
	if (code)
		return demo_fail(m->d, "cannot release a request", code);
	if (++move->ended == m->n_pieces)
		mover_finish(m, move);
	return 0;
}

static int mover_reap(struct mover *m)
{
	struct kvl_end end[ENDS_MAX];
	int n, code;

	do {
		n = kvl_poll_many(m->d->agent, end, ENDS_MAX, 0);
		if (n < 0)
			return demo_fail(m->d, "cannot poll", n);
		for (int i = 0; i < n; i++) {
			code = mover_end(m, &end[i]);
			if (code)
				return code;
		}
	} while (n == ENDS_MAX);
	return 0;
}

int mover_pump(struct mover *m)
{
	int code;

	if (m->started == m->done && m->started == m->queued)
		return 0;
	code = mover_reap(m);
	return code ? code : mover_post_all(m);
}
