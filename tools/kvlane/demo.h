/* SPDX-License-Identifier: Apache-2.0 */
/* kvlane demo: what its files share. Call order of a role: plan, agent, pool, then its rounds. */
#ifndef KVLANE_TOOL_DEMO_H
#define KVLANE_TOOL_DEMO_H

#include <stdint.h>

#include <kvlane/kvlane.h>

#include "demo_plan.h"
#include "demo_pool.h"
#include "pair.h"
#include "progress.h"

enum demo_role {
	DEMO_BOTH,
	DEMO_PREFILL,
	DEMO_DECODE
};

#define DEMO_OPTIONS_MAX 32

struct demo_options {
	enum demo_role role;
	const char *rendezvous; /* directory; NULL with DEMO_BOTH */
	const char *json;
	struct plan_options plan;
	const char *dtype;
	enum kvl_op op;
	int whole;       /* one transfer per request, not one per layer */
	int user_memory; /* pools by malloc, not by kvl_mem_alloc */
	int damage;      /* flip one byte before it is verified */
	uint32_t inflight;
	uint64_t timeout_ns;
	/* Of the agent, as text for kvl_config_set: checked there and refused by name. */
	struct {
		const char *name, *value;
	} agent[DEMO_OPTIONS_MAX];
	unsigned n_agent;
};

/* One role. */
struct demo {
	const struct demo_options *options;
	const struct plan *plan;
	enum demo_role role;
	struct pair *pair; /* NULL when the other role is not ours */
	int quiet_usage;   /* the other role says it as well */
	kvl_agent_t agent;
	kvl_peer_t peer;
	struct kvl_limits limits;
	struct pool pool;
	int driven; /* the agent has no workers: this thread makes its progress */
	struct progress progress;
};

const char *demo_role_name(enum demo_role role);
enum demo_role demo_other(enum demo_role role);

/* Wipes the progress bar, prints "kvlane demo: <role>: ..." and returns an exit code. */
int demo_fail(struct demo *d, const char *what, int code);
int demo_fail_text(struct demo *d, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* 1 when the other side's agent is gone: whatever failed then, that is the reason worth saying. */
int demo_lost(struct demo *d);

/* Everything of demo_agent.c returns an exit code: 0, or what demo_fail returned. */
int demo_open(struct demo *d);     /* opens the agent */
int demo_connect(struct demo *d);  /* publishes, finds the other role; blocks up to timeout_ns */
int demo_withdraw(struct demo *d); /* the pool, at a good end */
void demo_close(struct demo *d);   /* safe in any state */

/*
 * Blocks until a notification or an ended request can be taken. Fails when the other side is gone, or has
 * shown no sign of life for timeout_ns.
 */
int demo_wait(struct demo *d);

/* Takes a notification of the other side without blocking; *out is NULL when there is none. */
int demo_take(struct demo *d, struct kvl_notif **out);

/* One role from open to close; the exit code. */
int demo_prefill_run(struct demo *d);
int demo_decode_run(struct demo *d);

#endif
