/* SPDX-License-Identifier: Apache-2.0 */
/* bench single: one small request, posted again and again while the target is idle. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench_areas.h"
#include "bench_arm.h"
#include "bench_link.h"
#include "bench_raw.h"
#include "bench_report.h"
#include "bench_shapes.h"
#include "size.h"

enum {
	KEY_SIZE = BENCH_KEY,
	KEY_ARMS,
	KEY_VERIFY
};

enum single_kind {
	SINGLE_WRITE,
	SINGLE_READ,
	SINGLE_RAW,
	SINGLE_RAW_READ,
	SINGLE_KINDS
};
static const char *const known_arms[] = { "write", "read", "raw", "raw_read", NULL };

enum single_verb {
	SINGLE_FILL = 1,
	SINGLE_CHECK,
	SINGLE_GUARDS
};

#define SINGLE_MAX_SIZE (1ull << 28)

struct single {
	struct bench_options options;
	uint64_t size, verify;
	struct bench_arms arms;
	struct bench_link link;
	struct areas side;
	int64_t pid; /* of the target */
	kvl_peer_t peer;
	kvl_xfer_t xfer[SINGLE_KINDS];
	uint64_t remote, epoch, read_epoch[SINGLE_KINDS], checked[SINGLE_KINDS];
	int drive;
	char path[16];
};

/* ------------------------------------------------------------------------------------------------- target */

static int single_open(struct areas *side, const struct single *s, const char *name)
{
	const uint64_t len[SINGLE_KINDS] = { s->size, s->size, s->size, s->size };

	return areas_open(side, &s->options, NULL, name, len, SINGLE_KINDS);
}

static void single_handle(void *ctx, const struct bench_command *command, struct bench_reply *reply)
{
	const struct areas *side = ctx;

	if (command->verb == SINGLE_FILL)
		areas_fill(side, command->arm, command->epoch);
	else if (command->verb == SINGLE_CHECK)
		reply->value[0] = areas_check(side, command->arm, command->epoch);
	else
		reply->value[0] = areas_check_guards(side);
}

static int single_target_main(struct pair *pair, void *arg)
{
	const struct single *s = arg;
	struct areas side;
	int rc = EXIT_FAILED;

	if (single_open(&side, s, "bench-target"))
		return rc;
	if (!bench_offer_send(pair, side.agent, &side.memory))
		rc = bench_serve(pair, single_handle, &side);
	areas_close(&side);
	return rc;
}

/* ---------------------------------------------------------------------------------------------- initiator */

static int single_list(struct single *s, kvl_peer_t peer, uint64_t base, unsigned kind, kvl_list_t *out)
{
	struct kvl_desc desc = { .addr = base + s->side.offset[kind], .len = s->size };
	int rc = kvl_list_create(s->side.agent, peer, &desc, 1, out);

	return rc < 0 ? bench_error_kvl("preparing a list", rc) : 0;
}

static int single_prepare(struct single *s, unsigned kind)
{
	kvl_list_t local, remote;
	int rc;

	if (single_list(s, KVL_LOCAL, (uintptr_t)s->side.memory.addr, kind, &local) ||
	    single_list(s, s->peer, s->remote, kind, &remote))
		return -1;
	rc = kvl_xfer_prepare(s->side.agent, kind == SINGLE_READ ? KVL_READ : KVL_WRITE, local, remote, NULL,
			      &s->xfer[kind]);
	return rc < 0 ? bench_error_kvl("preparing a request", rc) : 0;
}

static int single_connect(struct single *s)
{
	struct bench_offer offer;
	int rc;

	if (bench_offer_recv(&s->link.pair, &offer))
		return -1;
	s->remote = offer.addr;
	s->pid = offer.pid;
	rc = bench_offer_connect(&offer, s->side.agent, &s->peer);
	bench_offer_free(&offer);
	if (rc || single_prepare(s, SINGLE_WRITE) || single_prepare(s, SINGLE_READ))
		return -1;
	s->drive = bench_must_drive(s->side.agent);
	return 0;
}

static int single_ask(struct single *s, enum single_verb verb, unsigned kind, uint64_t *mismatches)
{
	struct bench_command command = { .verb = verb, .arm = kind, .epoch = s->epoch };
	struct bench_reply reply;

	if (bench_ask(&s->link, &command, &reply))
		return -1;
	*mismatches = reply.value[0];
	return 0;
}

/* ------------------------------------------------------------------------------------------------- rounds */

static int single_post(struct single *s, unsigned kind, uint64_t *ns)
{
	uint64_t start = kvl_now(), end;
	int rc = kvl_xfer_post(s->side.agent, s->xfer[kind], NULL);

	if (rc < 0)
		return bench_error_kvl("posting a request", rc);
	rc = bench_spin(s->side.agent, s->xfer[kind], s->drive, &end);
	*ns = end - start;
	return rc;
}

static int single_raw(struct single *s, struct bench_arm *arm, uint64_t *ns)
{
	static const uint32_t only[1] = { 0 };
	struct raw_copy raw = { .pid = (pid_t)s->pid,
				.op = arm->kind == SINGLE_RAW ? KVL_WRITE : KVL_READ,
				.local = (uintptr_t)areas_at(&s->side, arm->kind),
				.remote = s->remote + s->side.offset[arm->kind],
				.block = s->size,
				.vector = 1 };
	uint64_t start = kvl_now();
	int rc = raw_copy_move(&raw, only, only, 1);

	*ns = kvl_now() - start;
	if (rc == -EPERM || rc == -ENOSYS) {
		bench_arm_skip(arm, "bare cross-process copies are refused here: %s", strerror(-rc));
		return 0;
	}
	if (rc)
		bench_error("bare cross-process copy: %s", strerror(-rc));
	return rc;
}

static int single_is_raw(const struct bench_arm *arm)
{
	return arm->kind == SINGLE_RAW || arm->kind == SINGLE_RAW_READ;
}

static int single_move(struct single *s, struct bench_arm *arm, uint64_t *ns)
{
	return single_is_raw(arm) ? single_raw(s, arm, ns) : single_post(s, arm->kind, ns);
}

/* write and raw: new bytes here each time; the target checks the last ones of every `verify` rounds. */
static int single_out(struct single *s, struct bench_arm *arm, int verify, uint64_t *ns)
{
	uint64_t bad = 0;
	int rc;

	s->epoch++;
	areas_fill(&s->side, arm->kind, s->epoch);
	rc = single_move(s, arm, ns);
	if (rc || arm->skipped[0] || !verify)
		return rc;
	if (single_ask(s, SINGLE_CHECK, arm->kind, &bad))
		return -1;
	arm->mismatches += bad;
	arm->moved += s->size;
	s->checked[arm->kind]++;
	return 0;
}

/* read and raw_read: new bytes there at the start of every `verify` rounds, none of them here before a move. */
static int single_in(struct single *s, struct bench_arm *arm, int renew, uint64_t *ns)
{
	uint64_t none;
	int rc;

	if (renew) {
		s->read_epoch[arm->kind] = ++s->epoch;
		if (single_ask(s, SINGLE_FILL, arm->kind, &none))
			return -1;
	}
	memset(areas_at(&s->side, arm->kind), 0, s->size);
	rc = single_move(s, arm, ns);
	if (rc || arm->skipped[0])
		return rc;
	arm->mismatches += areas_check(&s->side, arm->kind, s->read_epoch[arm->kind]);
	arm->moved += s->size;
	s->checked[arm->kind]++;
	return 0;
}

static int single_round(struct single *s, uint64_t round, uint64_t rounds)
{
	int first = round % s->verify == 0;
	int last = round % s->verify == s->verify - 1 || round + 1 == rounds;
	struct bench_arm *arm;
	uint64_t ns = 0;
	int rc;

	for (size_t i = 0; i < s->arms.n; i++) {
		arm = bench_arms_turn(&s->arms, round, i);
		if (arm->skipped[0])
			continue;
		if (arm->kind == SINGLE_READ || arm->kind == SINGLE_RAW_READ)
			rc = single_in(s, arm, first, &ns);
		else
			rc = single_out(s, arm, last, &ns);
		if (rc)
			return rc;
		if (round >= s->options.warmup && !arm->skipped[0])
			series_add(&arm->ns, ns);
	}
	return 0;
}

static void single_path(struct single *s)
{
	struct kvl_report report = { .size = sizeof(report) };

	for (unsigned kind = SINGLE_WRITE; kind <= SINGLE_READ; kind++) {
		if (!s->path[0] && kvl_xfer_report(s->side.agent, s->xfer[kind], &report) == 0 &&
		    report.end_ns)
			snprintf(s->path, sizeof(s->path), "%s", report.path);
	}
}

static int single_rounds(struct single *s, uint64_t *stray)
{
	uint64_t rounds = s->options.warmup + s->options.rounds;

	for (uint64_t r = 0; r < rounds; r++) {
		if (single_round(s, r, rounds))
			return -1;
	}
	single_path(s);
	if (single_ask(s, SINGLE_GUARDS, 0, stray))
		return -1;
	*stray += areas_check_guards(&s->side);
	return 0;
}

/* ------------------------------------------------------------------------------------------------- report */

static int single_report(struct single *s, uint64_t stray)
{
	json_t *root = bench_options_json(&s->options), *config = json_object_get(root, "config"), *arm;
	struct bench_report report;

	json_object_set_new(config, "size", json_integer((json_int_t)s->size));
	json_object_set_new(config, "verify_every", json_integer((json_int_t)s->verify));
	bench_report_init(&report, root, &s->arms);
	bench_report_table(&s->arms);
	report.stray = stray;
	for (size_t i = 0; i < s->arms.n; i++) {
		arm = json_object_get(json_object_get(root, "arms"), s->arms.arm[i].name);
		json_object_set_new(arm, "verified_rounds",
				    json_integer((json_int_t)s->checked[s->arms.arm[i].kind]));
		if (!single_is_raw(&s->arms.arm[i]))
			json_object_set_new(arm, "path", json_string(s->path));
	}
	bench_ratio_time(report.ratios, &s->arms, "write", "raw");
	bench_ratio_time(report.ratios, &s->arms, "read", "raw");
	bench_ratio_time(report.ratios, &s->arms, "read", "raw_read");
	return bench_report_finish(&report, &s->options, &s->arms);
}

static int single_run(struct single *s)
{
	char size[SIZE_TEXT];
	uint64_t stray = 0;
	int rc = -1;

	printf("single: wire %s, %s, %s memory, %llu rounds, seed %llu\n", s->options.wire,
	       size_print(s->size, size), s->options.user_memory ? "user" : "mapped",
	       (unsigned long long)s->options.rounds, (unsigned long long)s->options.seed);
	if (bench_arms_init(&s->arms, s->options.rounds, s->size) ||
	    bench_link_start(&s->link, &s->options, single_target_main, s))
		return EXIT_FAILED;
	if (!single_open(&s->side, s, "bench-initiator")) {
		rc = single_connect(s) || single_rounds(s, &stray);
		areas_close(&s->side);
	}
	rc |= bench_link_finish(&s->link);
	return rc ? EXIT_FAILED : single_report(s, stray);
}

/* ------------------------------------------------------------------------------------------------ options */

static const struct argp_option options[] = {
	{ "size", KEY_SIZE, "SIZE", 0, "Bytes of the request (default 4KiB)", 0 },
	{ "arms", KEY_ARMS, "LIST", 0,
	  "write, read: kvlane; raw, raw_read: one bare cross-process copy there or back (default "
	  "write,read)",
	  0 },
	{ "verify-every", KEY_VERIFY, "N", 0,
	  "The target looks at its memory after every N-th round only (default 1), so that the rounds "
	  "between "
	  "find their lines in this core's cache",
	  0 },
	{ NULL, 0, NULL, 0, NULL, 0 },
};

static error_t single_options(int key, char *arg, struct argp_state *state)
{
	struct single *s = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &s->options;
		return 0;
	case KEY_SIZE:
		s->size = bench_arg_size(state, "size", arg, 1, SINGLE_MAX_SIZE);
		return 0;
	case KEY_ARMS:
		bench_arms_parse(state, arg, known_arms, &s->arms);
		return 0;
	case KEY_VERIFY:
		s->verify = bench_arg_count(state, "verify-every", arg, 1, BENCH_MAX_ROUNDS);
		return 0;
	case ARGP_KEY_END:
		if (!s->arms.n)
			bench_arms_parse(state, "write,read", known_arms, &s->arms);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = { { &bench_options_argp, 0, NULL, 0 }, { NULL, 0, NULL, 0 } };

static const struct argp single_argp = {
	.options = options,
	.parser = single_options,
	.doc = "Posts one prepared request again and again, with new bytes each time, and measures from "
	       "before "
	       "the post until a tight poll sees its end. The target is blocked in the meantime.",
	.children = children,
};

int bench_single_main(int argc, char **argv)
{
	struct single s = { .options = { .shape = "single", .rounds = 10000, .warmup = 1000 },
			    .size = 4096,
			    .verify = 1 };
	int rc;

	bench_options_parse(&single_argp, argc, argv, &s.options, &s);
	rc = bench_ready(&s.options);
	if (rc == EXIT_OK)
		rc = single_run(&s);
	bench_arms_fini(&s.arms);
	bench_options_fini(&s.options);
	return rc;
}
