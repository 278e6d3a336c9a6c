/* SPDX-License-Identifier: Apache-2.0 */
#include "testing_traffic.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LANES    TRAFFIC_LANES
#define REQUESTS TRAFFIC_REQUESTS
#define ENTRIES  6u
#define MEMORY   (4 * MIB)

enum pattern {
	LOCAL = 1,
	REMOTE = 2
};

struct request {
	enum kvl_op op;
	uint32_t lane, n;
	struct kvl_desc local[ENTRIES], remote[ENTRIES];
	int notify, notified, ended, status;
};

struct traffic {
	struct duo duo;
	struct buffer local, remote;
	struct request request[REQUESTS];
	uint64_t state; /* of the choices made here */
	uint64_t seed;
	int global;
	uint32_t posted, ended, notified;
	uint32_t last_end; /* index + 1 of the request that ended last */
	uint64_t next_ticket[LANES];
	uint32_t last_notif[LANES]; /* index + 1 */
	int last_status[LANES];
	struct traffic_seen seen;
};

static struct traffic t;

/* ------------------------------------------------------------------------------------------------ making it
 */

static uint64_t choose(uint64_t low, uint64_t high)
{
	return random_range(&t.state, low, high);
}

/* Entries lie apart or touch; the remote ones are in opposite order. Every request has its own bytes. */
static void request_make(struct request *r, uint64_t *at)
{
	uint64_t remote_at = *at;

	r->op = choose(0, 2) ? KVL_WRITE : KVL_READ;
	r->lane = (uint32_t)choose(0, LANES - 1);
	r->notify = (int)choose(0, 1);
	r->n = (uint32_t)choose(0, ENTRIES);
	for (uint32_t i = 0; i < r->n; i++) {
		uint64_t len = choose(0, 9) ? choose(1, 3000) : choose(1, 15000);

		*at += choose(0, 1) * choose(1, 40);
		r->local[i] = desc_of(t.local.data + *at, len);
		*at += len;
	}
	for (uint32_t i = r->n; i-- > 0;) {
		r->remote[i] = desc_of(t.remote.data + remote_at, r->local[i].len);
		remote_at += r->local[i].len;
	}
	assert_true(*at <= MEMORY);
}

static void traffic_open(const char *sim, uint64_t seed, uint32_t workers, enum kvl_retire_order order)
{
	struct kvl_config config = {
		.size = sizeof(config),
		.wire = "sim",
		.sim = sim,
		.workers = workers,
		.lanes = LANES,
		.queue_depth = 16,
		.max_requests = 48,
		.chunk_bytes = 4096,
		.window = 4,
		.retire_order = order,
	};
	uint64_t at = 0;

	memset(&t, 0, sizeof(t));
	t.state = t.seed = seed;
	t.global = order == KVL_RETIRE_GLOBAL;
	duo_open(&t.duo, &config);
	buffer_open(&t.local, t.duo.a, BUFFER_PLAIN, MEMORY, 0);
	buffer_open(&t.remote, t.duo.b, BUFFER_PLAIN, MEMORY, 0);
	duo_connect(&t.duo);
	bytes_fill(t.local.data, MEMORY, LOCAL, 0, seed);
	bytes_fill(t.remote.data, MEMORY, REMOTE, 0, seed);
	for (uint32_t i = 0; i < REQUESTS; i++)
		request_make(&t.request[i], &at);
}

static void traffic_close(void)
{
	buffer_close(&t.local);
	buffer_close(&t.remote);
	duo_close(&t.duo);
}

/* ------------------------------------------------------------------------------------------------ checking
 * it */

/* The destination's bytes are all as they were, or all as they should be. */
static int request_bytes_are(const struct request *r, enum pattern pattern)
{
	size_t wrong = 0;

	for (uint32_t i = 0; i < r->n; i++) {
		const struct kvl_desc *to = r->op == KVL_WRITE ? &r->remote[i] : &r->local[i];
		uint64_t offset = pattern == LOCAL ? r->local[i].addr - buffer_addr(&t.local)
						   : r->remote[i].addr - buffer_addr(&t.remote);

		wrong += bytes_wrong((void *)(uintptr_t)to->addr, to->len, pattern, offset, t.seed);
	}
	return wrong == 0;
}

static int request_arrived(const struct request *r)
{
	return request_bytes_are(r, r->op == KVL_WRITE ? LOCAL : REMOTE);
}

static int request_untouched(const struct request *r)
{
	return request_bytes_are(r, r->op == KVL_WRITE ? REMOTE : LOCAL);
}

static void history_add(uint64_t what)
{
	t.seen.hash = (t.seen.hash ^ what) * UINT64_C(0x100000001b3);
	t.seen.hash ^= t.seen.hash >> 29;
}

/* What a lane says of its errors: one WIRE, then flushed requests, then good ones again. */
static void end_check_status(const struct request *r, int provider)
{
	int before = t.last_status[r->lane];

	t.last_status[r->lane] = r->status;
	if (r->status == 0) {
		assert_true(request_arrived(r));
		t.seen.good_after_error[r->lane] += before != 0;
	} else if (r->status == KVL_ERR_FLUSHED) {
		assert_true(before != 0);
		assert_true(request_untouched(r));
		t.seen.flushed++;
	} else {
		assert_int_equal(r->status, KVL_ERR_WIRE);
		assert_int_equal(provider, EIO);
		t.seen.failed++;
	}
}

static void end_check(const struct kvl_end *end)
{
	struct request *r = end->user;
	struct kvl_report report = { .size = sizeof(report) };
	uint32_t index = (uint32_t)(r - t.request);

	assert_true(index < t.posted);
	assert_false(r->ended);
	r->ended = 1;
	r->status = end->status;
	assert_int_equal(kvl_xfer_poll(t.duo.a, end->xfer), end->status);
	assert_ok(kvl_xfer_report(t.duo.a, end->xfer, &report));
	assert_int_equal(report.lane, r->lane);
	assert_int_equal(report.ticket, t.next_ticket[r->lane]++);
	assert_int_equal(report.status, end->status);
	assert_int_equal(report.descriptors, r->n);
	if (end->status == 0 && r->n)
		assert_string_equal(report.path, "sim");
	end_check_status(r, report.provider);
	t.seen.overtaking += index + 1 < t.last_end;
	if (t.global)
		assert_int_equal(index, t.last_end);
	t.last_end = index + 1;
	t.ended++;
	history_add(index);
	history_add((uint64_t)(int64_t)end->status);
	history_add(report.chunks);
	assert_ok(kvl_xfer_release(t.duo.a, end->xfer));
}

/* An attached notification: once, in its lane's order, and not before its data. */
static void notif_check(const struct kvl_notif *notif)
{
	struct request *r;
	uint32_t index;

	assert_int_equal(notif->len, sizeof(index));
	memcpy(&index, notif->data, sizeof(index));
	assert_true(index < t.posted);
	r = &t.request[index];
	assert_true(r->notify);
	assert_false(r->notified);
	r->notified = 1;
	assert_int_equal(notif->lane, r->lane);
	assert_string_equal(notif->peer, "duo-a");
	assert_true(t.last_notif[r->lane] < index + 1);
	t.last_notif[r->lane] = index + 1;
	assert_true(request_arrived(r));
	t.notified++;
	history_add(~(uint64_t)index);
}

static void traffic_take(void)
{
	struct kvl_end end[5];
	struct kvl_notif *notif;
	int64_t n;

	if (t.duo.driven)
		duo_drive(&t.duo);
	while ((n = assert_ok(kvl_poll_many(t.duo.a, end, COUNT(end), 0))) > 0)
		for (int64_t i = 0; i < n; i++)
			end_check(&end[i]);
	while (kvl_notif_next(t.duo.b, &notif) == 0) {
		notif_check(notif);
		kvl_notif_free(notif);
	}
}

/* ----------------------------------------------------------------------------------------------- running it
 */

static void traffic_post(uint32_t index)
{
	struct request *r = &t.request[index];
	struct kvl_xfer_opts opts = {
		.size = sizeof(opts),
		.lane = KVL_LANE(r->lane),
		.flags = r->notify ? KVL_XFER_NOTIFY : 0,
		.notif = r->notify ? &index : NULL,
		.notif_len = r->notify ? sizeof(index) : 0,
		.deadline_ns = 100 * SECOND,
		.user = r,
	};
	uint64_t until = kvl_now() + PATIENCE;
	kvl_xfer_t xfer;
	int code;

	t.posted++; /* it may end inside the post */
	for (;;) {
		code = r->op == KVL_WRITE
			       ? kvl_write(t.duo.a, t.duo.ab, r->local, r->remote, r->n, &opts, &xfer)
			       : kvl_read(t.duo.a, t.duo.ab, r->local, r->remote, r->n, &opts, &xfer);
		if (code != KVL_ERR_AGAIN)
			break;
		assert_true(kvl_now() < until);
		traffic_take();
	}
	assert_ok(code);
}

static uint32_t notifs_expected(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < REQUESTS; i++)
		n += t.request[i].notify && t.request[i].ended && t.request[i].status == 0;
	return n;
}

/* Everything else in both memories is as it was; of a request with a wire error any part may have moved. */
static void memory_check(void)
{
	for (uint32_t i = 0; i < REQUESTS; i++) {
		const struct request *r = &t.request[i];

		for (uint32_t k = 0; k < r->n; k++) {
			int write = r->op == KVL_WRITE;
			const struct kvl_desc *to = write ? &r->remote[k] : &r->local[k];
			const struct buffer *buffer = write ? &t.remote : &t.local;

			bytes_fill((void *)(uintptr_t)to->addr, to->len, write ? REMOTE : LOCAL,
				   to->addr - buffer_addr(buffer), t.seed);
		}
	}
	assert_int_equal(bytes_wrong(t.local.data, MEMORY, LOCAL, 0, t.seed), 0);
	assert_int_equal(bytes_wrong(t.remote.data, MEMORY, REMOTE, 0, t.seed), 0);
}

/* Nothing has moved after an end. */
static void ends_check_again(void)
{
	for (uint32_t i = 0; i < REQUESTS; i++) {
		const struct request *r = &t.request[i];

		if (r->status == 0)
			assert_true(request_arrived(r));
		if (r->status == KVL_ERR_FLUSHED)
			assert_true(request_untouched(r));
	}
}

static void traffic_run(void)
{
	uint64_t until;

	for (uint32_t i = 0; i < REQUESTS; i++) {
		traffic_post(i);
		for (uint64_t rounds = choose(0, 7) ? 0 : choose(0, 30); rounds;
		     rounds--) /* bursts, and quiet */
			traffic_take();
	}
	until = kvl_now() + PATIENCE;
	while (t.ended < REQUESTS || t.notified < notifs_expected()) {
		assert_true(kvl_now() < until);
		traffic_take();
	}
	for (int i = 0; i < 100; i++)
		traffic_take(); /* whatever came twice would fail in here */
	assert_int_equal(t.ended, REQUESTS);
	assert_int_equal(t.notified, notifs_expected());
	ends_check_again();
	memory_check();
}

struct traffic_seen traffic(const char *sim, uint64_t seed, uint32_t workers, enum kvl_retire_order order)
{
	char option[96];

	snprintf(option, sizeof(option), "seed=%llu,%s", (unsigned long long)seed, sim);
	traffic_open(option, seed, workers, order);
	traffic_run();
	traffic_close();
	return t.seen;
}
