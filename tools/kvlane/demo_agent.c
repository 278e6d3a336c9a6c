/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "demo.h"
#include "fail.h"

/* How often a blocked side looks whether the other one still lives. */
#define SLICE_NS 100000000u
#define CLOSE_NS 2000000000u

const char *demo_role_name(enum demo_role role)
{
	return role == DEMO_PREFILL ? "prefill" : "decode";
}

enum demo_role demo_other(enum demo_role role)
{
	return role == DEMO_PREFILL ? DEMO_DECODE : DEMO_PREFILL;
}

int demo_fail(struct demo *d, const char *what, int code)
{
	char text[96];

	progress_end(&d->progress);
	if (fail_exit_code(code) != EXIT_USAGE || !d->quiet_usage) {
		snprintf(text, sizeof(text), "demo: %s: %s", demo_role_name(d->role), what);
		fail_print(text, code);
	}
	return (int)fail_exit_code(code);
}

int demo_fail_text(struct demo *d, const char *format, ...)
{
	char text[256];
	va_list args;

	progress_end(&d->progress);
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, "kvlane demo: %s: %s\n", demo_role_name(d->role), text);
	return EXIT_FAILED;
}

int demo_lost(struct demo *d)
{
	struct kvl_peer_info info = { .size = sizeof(info) };

	return kvl_peer_info(d->agent, d->peer, &info) || !info.connected;
}

/* ------------------------------------------------------------------------------------------ open and close
 */

static int agent_configure(const struct demo_options *o, struct kvl_config *config)
{
	char deadline[32];
	int code = kvl_config_env(config);

	/* A connect or request of the agent must not outlive what the user is ready to wait. */
	snprintf(deadline, sizeof(deadline), "%llu", (unsigned long long)(o->timeout_ns / 1000000));
	if (!code)
		code = kvl_config_set(config, "deadline_ms", deadline);
	for (unsigned i = 0; i < o->n_agent && !code; i++)
		code = kvl_config_set(config, o->agent[i].name, o->agent[i].value);
	return code;
}

int demo_open(struct demo *d)
{
	struct kvl_config config;
	int code;

	kvl_config_init(&config);
	code = agent_configure(d->options, &config);
	if (!code)
		code = kvl_agent_open(demo_role_name(d->role), &config, &d->agent);
	kvl_config_fini(&config);
	d->limits.size = sizeof(d->limits);
	if (!code)
		code = kvl_agent_limits(d->agent, &d->limits);
	d->driven = !d->limits.workers;
	return code ? demo_fail(d, "cannot open the agent", code) : 0;
}

int demo_withdraw(struct demo *d)
{
	int code = pool_withdraw(&d->pool);

	return code ? demo_fail(d, "cannot withdraw the block pool", code) : 0;
}

void demo_close(struct demo *d)
{
	int code = d->agent ? kvl_agent_close(d->agent, CLOSE_NS) : 0;

	d->agent = 0;
	/* A stopped peer may be inside a copy from or to malloc'd memory: then it stays until the process
	 * ends. */
	if (!code)
		pool_destroy(&d->pool);
}

/* ------------------------------------------------------------------------------------------- finding a peer
 */

/* 1 when this pair's other process is gone. */
static int agent_other_dead(const struct demo *d)
{
	char byte;

	return d->pair && pair_recv(d->pair, &byte, 1, 0) == -EPIPE;
}

static int agent_retry(int code)
{
	return code == KVL_ERR_NOT_FOUND || code == KVL_ERR_STALE || code == KVL_ERR_PEER_LOST ||
	       code == KVL_ERR_TIMED_OUT;
}

/* One try: a short look, then as long as is left for the connect, which the other side takes part in. */
static int agent_find_once(struct demo *d, const char *dir, uint64_t left_ns)
{
	uint64_t slice = left_ns < SLICE_NS ? left_ns : SLICE_NS;
	size_t len;
	void *bytes;
	int code = kvl_lookup(dir, demo_role_name(demo_other(d->role)), slice, &bytes, &len);

	if (code)
		return code;
	code = kvl_peer_connect(d->agent, bytes, len, left_ns, &d->peer);
	free(bytes);
	return code;
}

static int agent_find(struct demo *d, const char *dir)
{
	uint64_t start = kvl_now(), gone = 0, timeout = d->options->timeout_ns;
	const char *other = demo_role_name(demo_other(d->role));
	int code;

	do {
		code = agent_find_once(d, dir, timeout - gone);
		if (!code)
			return 0;
		if (!agent_retry(code))
			return demo_fail(d, "cannot connect to the other side", code);
		if (agent_other_dead(d))
			return demo_fail_text(d, "the %s side is gone before it could be reached", other);
		gone = kvl_now() - start;
	} while (gone < timeout);
	return demo_fail_text(d, "no %s side answered in %s within %.3g s (--timeout)", other, dir,
			      (double)timeout / 1e9);
}

int demo_connect(struct demo *d)
{
	const char *dir = d->pair ? d->pair->dir : d->options->rendezvous;
	int code = kvl_publish(d->agent, dir);

	return code ? demo_fail(d, "cannot publish", code) : agent_find(d, dir);
}

/* ------------------------------------------------------------------------------------------------- waiting
 */

int demo_wait(struct demo *d)
{
	const char *other = demo_role_name(demo_other(d->role));
	uint64_t start = kvl_now(), timeout = d->options->timeout_ns, gone = 0;
	int n, lost;

	do {
		uint64_t left = timeout - gone;

		/* Asked first: what it sent before it went is still there to be taken afterwards. */
		lost = demo_lost(d);
		n = kvl_agent_wait(d->agent, lost ? 0 : left < SLICE_NS ? left : SLICE_NS);
		if (n > 0)
			return 0;
		if (n < 0)
			return demo_fail(d, "cannot wait", n);
		if (lost)
			return demo_fail_text(d, "the %s side is gone", other);
		gone = kvl_now() - start;
	} while (gone < timeout);
	return demo_fail_text(d, "no sign of life from the %s side for %.3g s (--timeout)", other,
			      (double)timeout / 1e9);
}

int demo_take(struct demo *d, struct kvl_notif **out)
{
	int code;

	*out = NULL;
	if (d->driven)
		kvl_progress(d->agent);
	code = kvl_notif_next(d->agent, out);
	return !code || code == KVL_ERR_AGAIN ? 0 : demo_fail(d, "cannot take a notification", code);
}
