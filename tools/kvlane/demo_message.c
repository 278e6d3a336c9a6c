/* SPDX-License-Identifier: Apache-2.0 */
#include "demo_message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"
#include "size.h"

#define DEMO_MAGIC 0x6b764c31u

/* Lane 0 for everything that is not attached to data: one lane keeps the order of its messages. */
static struct kvl_xfer_opts message_opts(const struct demo *d)
{
	return (struct kvl_xfer_opts){ .size = sizeof(struct kvl_xfer_opts),
				       .lane = KVL_LANE(0),
				       .deadline_ns = d->options->timeout_ns };
}

struct demo_header demo_header(enum demo_type type, uint32_t round, uint32_t request)
{
	return (struct demo_header){ .magic = DEMO_MAGIC, .type = type, .round = round, .request = request };
}

/* ---------------------------------------------------------------------------------------------- receiving */

static size_t message_table_len(const struct demo *d, uint32_t request)
{
	size_t n = 0;

	for (enum model_group g = 0; g < MODEL_GROUPS; g++)
		n += d->plan->request[request].span[g].n;
	return n * sizeof(uint32_t);
}

/* Length of the body that a header calls for; SIZE_MAX for an unknown type. */
static size_t message_len(const struct demo *d, const struct demo_header *h)
{
	switch (h->type) {
	case DEMO_HELLO:
		return sizeof(struct demo_hello);
	case DEMO_TABLE:
		return message_table_len(d, h->request);
	case DEMO_READY:
	case DEMO_HANDOVER:
	case DEMO_RELEASE:
		return 0;
	case DEMO_STATS:
		return sizeof(struct demo_stats);
	case DEMO_DONE:
		return sizeof(struct demo_done);
	default:
		return SIZE_MAX;
	}
}

const void *demo_body(const struct demo_header *h)
{
	return h + 1;
}

const uint32_t *demo_table(const struct demo *d, const struct demo_header *table, enum model_group group)
{
	const uint32_t *id = demo_body(table);

	for (enum model_group g = 0; g < group; g++)
		id += d->plan->request[table->request].span[g].n;
	return id;
}

static int message_table_valid(const struct demo *d, const struct demo_header *h)
{
	for (enum model_group g = 0; g < MODEL_GROUPS; g++) {
		const uint32_t *id = demo_table(d, h, g);

		for (uint32_t i = 0; i < d->plan->request[h->request].span[g].n; i++) {
			if (id[i] >= d->plan->n_blocks[g])
				return 0;
		}
	}
	return 1;
}

const struct demo_header *demo_parse(const struct demo *d, const struct kvl_notif *n)
{
	const struct demo_header *h = n->data;

	if (n->len < sizeof(*h) || h->magic != DEMO_MAGIC || h->request >= d->plan->n_requests)
		return NULL;
	if (n->len - sizeof(*h) != message_len(d, h))
		return NULL;
	if (h->type == DEMO_TABLE && !message_table_valid(d, h))
		return NULL;
	return h;
}

/* ------------------------------------------------------------------------------------------------ sending */

static int message_fail(struct demo *d, int code)
{
	if (demo_lost(d))
		return demo_fail_text(d, "the %s side is gone", demo_role_name(demo_other(d->role)));
	return demo_fail(d, "cannot send a message", code);
}

/* Header and body in one piece; NULL when there is no memory. */
static void *message_join(const struct demo_header *h, const void *body, size_t len)
{
	char *message = malloc(sizeof(*h) + len);

	if (!message)
		return NULL;
	memcpy(message, h, sizeof(*h));
	if (len)
		memcpy(message + sizeof(*h), body, len);
	return message;
}

int demo_send(struct demo *d, const struct demo_header *h, const void *body, size_t len)
{
	struct kvl_xfer_opts opts = message_opts(d);
	uint64_t start = kvl_now();
	void *message = message_join(h, body, len);
	int code = message ? KVL_ERR_AGAIN : KVL_ERR_NOMEM;

	while (code == KVL_ERR_AGAIN) {
		code = kvl_notify(d->agent, d->peer, message, sizeof(*h) + len, &opts);
		if (code == KVL_ERR_AGAIN && kvl_now() - start > d->options->timeout_ns)
			code = KVL_ERR_TIMED_OUT;
		if (code == KVL_ERR_AGAIN)
			(void)!kvl_agent_wait(d->agent, 1000000);
	}
	free(message);
	return code ? message_fail(d, code) : 0;
}

int demo_send_wait(struct demo *d, const struct demo_header *h, const void *body, size_t len)
{
	struct kvl_xfer_opts opts = message_opts(d);
	kvl_list_t none = 0, none_remote = 0;
	kvl_xfer_t xfer = 0;
	int code;

	opts.flags = KVL_XFER_NOTIFY;
	opts.notif = message_join(h, body, len);
	opts.notif_len = sizeof(*h) + len;
	code = opts.notif ? 0 : KVL_ERR_NOMEM;
	if (!code)
		code = kvl_list_create(d->agent, KVL_LOCAL, NULL, 0, &none);
	if (!code)
		code = kvl_list_create(d->agent, d->peer, NULL, 0, &none_remote);
	if (!code)
		code = kvl_xfer_prepare(d->agent, KVL_WRITE, none, none_remote, &opts, &xfer);
	if (!code)
		code = kvl_xfer_post(d->agent, xfer, NULL);
	if (!code)
		code = kvl_xfer_wait(d->agent, xfer, d->options->timeout_ns + 1000000000);
	/* The requests of a lost or closed peer are freed with it; what cannot be released goes with the
	 * agent. */
	if (xfer)
		(void)!kvl_xfer_release(d->agent, xfer);
	if (none)
		(void)!kvl_list_destroy(d->agent, none);
	if (none_remote)
		(void)!kvl_list_destroy(d->agent, none_remote);
	free((void *)(uintptr_t)opts.notif);
	if (code == KVL_PENDING)
		code = KVL_ERR_TIMED_OUT;
	/* After DONE the other side may leave before this side has seen the end. */
	if (code == KVL_ERR_PEER_LOST && h->type == DEMO_DONE)
		code = 0;
	return code ? message_fail(d, code) : 0;
}

int demo_send_table(struct demo *d, uint32_t round, uint32_t request, uint64_t time_ns)
{
	struct demo_header h = demo_header(DEMO_TABLE, round, request);
	size_t len = message_table_len(d, request), at = 0;
	uint32_t *id = malloc(len);
	int code;

	if (!id)
		return demo_fail(d, "cannot send a block table", KVL_ERR_NOMEM);
	for (enum model_group g = 0; g < MODEL_GROUPS; g++) {
		uint32_t n = d->plan->request[request].span[g].n;

		memcpy(id + at, pool_blocks(&d->pool, request, g), n * sizeof(*id));
		at += n;
	}
	h.time_ns = time_ns;
	code = demo_send(d, &h, id, len);
	free(id);
	return code;
}

/* --------------------------------------------------------------------------------------------------- hello
 */

/* --pool last: it shows by its effect, which every option before it has too. */
static const char *const hello_names[DEMO_HELLO_OPTIONS] = {
	"model", "dtype", "tp",   "block-tokens", "requests", "tokens", "rounds",
	"seed",  "op",    "mode", "memory",       "lanes",    "pool",
};

static void hello_number(char out[32], uint64_t value)
{
	snprintf(out, 32, "%llu", (unsigned long long)value);
}

static void hello_options(const struct demo *d, char out[DEMO_HELLO_OPTIONS][32])
{
	const struct demo_options *o = d->options;
	char size[SIZE_TEXT];

	snprintf(out[0], 32, "%s", o->plan.model->name);
	snprintf(out[1], 32, "%s", o->dtype);
	hello_number(out[2], o->plan.tp);
	hello_number(out[3], o->plan.block_tokens);
	hello_number(out[4], o->plan.requests);
	hello_number(out[5], o->plan.tokens);
	hello_number(out[6], o->plan.rounds);
	hello_number(out[7], o->plan.seed);
	snprintf(out[8], 32, "%s", o->op == KVL_WRITE ? "write" : "read");
	snprintf(out[9], 32, "%s", o->whole ? "whole" : "layer");
	snprintf(out[10], 32, "%s", o->user_memory ? "user" : "mapped");
	hello_number(out[11], d->limits.lanes);
	snprintf(out[12], 32, "%s used", size_print(d->plan->pool_bytes, size));
}

static struct demo_hello hello_make(const struct demo *d)
{
	struct demo_hello hello = { .option = { "" } };

	hello_options(d, hello.option);
	for (unsigned i = 0; i < d->pool.n_layers; i++)
		hello.base[i] = (uint64_t)(uintptr_t)d->pool.layer[i];
	return hello;
}

/* Refuses the first option in which the two sides differ. */
static int hello_compare(struct demo *d, const struct demo_hello *mine, const struct demo_hello *theirs)
{
	for (unsigned i = 0; i < DEMO_HELLO_OPTIONS; i++) {
		if (strncmp(mine->option[i], theirs->option[i], sizeof(mine->option[i])))
			return demo_fail_text(d, "--%s: %s here, %.31s on the %s side", hello_names[i],
					      mine->option[i], theirs->option[i],
					      demo_role_name(demo_other(d->role)));
	}
	return 0;
}

static int hello_receive(struct demo *d, const struct demo_hello *mine, struct demo_hello *theirs)
{
	const struct demo_header *h;
	struct kvl_notif *n;
	int code = 0;

	do {
		code = demo_wait(d);
		if (!code)
			code = demo_take(d, &n);
		if (code)
			return code;
	} while (!n);
	h = demo_parse(d, n);
	if (!h || h->type != DEMO_HELLO) {
		kvl_notif_free(n);
		return demo_fail_text(d, "the %s side sent something else than a greeting",
				      demo_role_name(demo_other(d->role)));
	}
	memcpy(theirs, demo_body(h), sizeof(*theirs));
	kvl_notif_free(n);
	return hello_compare(d, mine, theirs);
}

int demo_greet(struct demo *d, kvl_list_t *remote)
{
	struct demo_header h = demo_header(DEMO_HELLO, 0, 0);
	struct demo_hello mine = hello_make(d), theirs;
	int code = demo_send_wait(d, &h, &mine, sizeof(mine));

	if (!code)
		code = hello_receive(d, &mine, &theirs);
	if (code)
		return code;
	code = pool_list_create(d->plan, d->agent, d->peer, theirs.base, remote);
	return code ? demo_fail(d, "cannot list the blocks of the other side", code) : 0;
}
