/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The initiator must be a fresh process as well, so the program forks it, and it starts the target in turn.
 * Its result comes back as one message.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "bench_areas.h"
#include "bench_idle.h"
#include "bench_link.h"

enum idle_verb {
	IDLE_OPEN = 1,
	IDLE_CHECK
};

#define IDLE_PAGE      4096u
#define IDLE_EPOCH     1u
#define IDLE_RESULT_NS 120000000000ull
#define IDLE_TARGET    "bench-target"

/* --------------------------------------------------------------------------------------------------- cost */

static int64_t idle_resident(void)
{
	long size = 0, resident = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (!f)
		return -1;
	if (fscanf(f, "%ld %ld", &size, &resident) != 2)
		resident = -1;
	fclose(f);
	return resident < 0 ? -1 : (int64_t)resident * sysconf(_SC_PAGESIZE);
}

static uint64_t timeval_ns(struct timeval tv)
{
	return (uint64_t)tv.tv_sec * 1000000000u + (uint64_t)tv.tv_usec * 1000u;
}

/* Does nothing for a while, and tells what this process used meanwhile. */
static void idle_sleep(uint64_t ns, struct idle_cost *cost)
{
	struct timespec ts = { .tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u) };
	struct rusage before, after;
	uint64_t start = kvl_now();

	getrusage(RUSAGE_SELF, &before);
	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
	getrusage(RUSAGE_SELF, &after);
	cost->wall_ns = kvl_now() - start;
	cost->cpu_ns = timeval_ns(after.ru_utime) + timeval_ns(after.ru_stime) - timeval_ns(before.ru_utime) -
		       timeval_ns(before.ru_stime);
	cost->wakeups = (uint64_t)(after.ru_nvcsw - before.ru_nvcsw);
}

static void idle_no_commands(void *ctx, const struct bench_command *command, struct bench_reply *reply)
{
	(void)ctx;
	(void)command;
	reply->status = KVL_ERR_UNSUPPORTED;
}

/* One agent after the other, each offered; then all of them wait. */
static int cost_target_main(struct pair *pair, void *arg)
{
	const struct idle_setup *setup = arg;
	const struct bench_memory none = { 0 };
	kvl_agent_t agent[IDLE_MAX_PEERS];
	uint64_t n;
	char name[48];
	int rc = 0;

	for (n = 0; n < setup->peers && !rc; n++) {
		snprintf(name, sizeof(name), "bench-target-%llu", (unsigned long long)n);
		agent[n] = 0;
		rc = bench_agent_open(setup->options, name, &agent[n]);
		if (!rc)
			rc = bench_offer_send(pair, agent[n], &none);
	}
	rc = rc ? EXIT_FAILED : bench_serve(pair, idle_no_commands, NULL);
	while (n--)
		bench_agent_close(agent[n]);
	return rc;
}

static int cost_with_offers(const struct idle_setup *setup, const struct bench_offer *offer,
			    struct idle_cost *cost)
{
	int64_t before = idle_resident(), opened;
	kvl_agent_t agent;
	kvl_peer_t peer;
	int rc;

	if (bench_agent_open(setup->options, "bench-initiator", &agent))
		return -1;
	opened = idle_resident();
	rc = 0;
	for (uint64_t i = 0; i < setup->peers && !rc; i++)
		rc = bench_offer_connect(&offer[i], agent, &peer);
	if (!rc) {
		idle_sleep(setup->idle_ns, cost);
		cost->open_bytes = opened - before;
		cost->idle_bytes = idle_resident() - before;
		rc = before < 0;
	}
	bench_agent_close(agent);
	return rc;
}

static int cost_run(const struct idle_setup *setup, struct bench_link *link, struct idle_cost *cost)
{
	static struct bench_offer offer[IDLE_MAX_PEERS]; /* of a process that exists for one run */
	uint64_t n;
	int rc = 0;

	for (n = 0; n < setup->peers && !rc; n++)
		rc = bench_offer_recv(&link->pair, &offer[n]);
	if (!rc)
		rc = cost_with_offers(setup, offer, cost);
	while (n--)
		bench_offer_free(&offer[n]);
	return rc;
}

static int cost_main(struct pair *pair, void *arg)
{
	struct idle_setup *setup = arg;
	struct idle_cost cost = { .rc = -1 };
	struct bench_link link;

	if (!bench_link_start(&link, setup->options, cost_target_main, setup)) {
		cost.rc = cost_run(setup, &link, &cost);
		if (bench_link_finish(&link))
			cost.rc = -1;
	}
	return pair_send(pair, &cost, sizeof(cost)) ? EXIT_FAILED : EXIT_OK;
}

/* ----------------------------------------------------------------------------------------- first transfer */

/* The target's agent is opened by command: both ends begin with nothing when the clock starts. */
struct first_target {
	const struct idle_setup *setup;
	struct pair *pair;
	struct areas areas;
};

static const uint64_t first_len[1] = { IDLE_PAGE };

static int first_target_open(struct first_target *t)
{
	int rc;

	if (areas_open(&t->areas, t->setup->options, NULL, IDLE_TARGET, first_len, 1))
		return -1;
	if (!t->pair->dir[0])
		return bench_offer_send(t->pair, t->areas.agent, &t->areas.memory);
	rc = kvl_publish(t->areas.agent, t->pair->dir);
	return rc < 0 ? bench_error_kvl("publishing the target", rc) : 0;
}

static void first_handle(void *ctx, const struct bench_command *command, struct bench_reply *reply)
{
	struct first_target *t = ctx;

	if (command->verb == IDLE_OPEN) {
		reply->status = first_target_open(t);
		reply->value[0] = reply->status ? 0 : (uintptr_t)areas_at(&t->areas, 0);
		return;
	}
	reply->value[0] = areas_check(&t->areas, 0, IDLE_EPOCH) + areas_check_guards(&t->areas);
}

static int first_target_main(struct pair *pair, void *arg)
{
	struct first_target target = { .setup = arg, .pair = pair };
	int rc = bench_serve(pair, first_handle, &target);

	areas_close(&target.areas);
	return rc;
}

/* By rendezvous in a directory; on the sim wire, which has no second process, by handing over the bytes. */
static int first_connect(struct bench_link *link, kvl_agent_t agent, kvl_peer_t *out)
{
	struct bench_offer offer;
	int rc;

	if (link->pair.dir[0]) {
		rc = kvl_peer_find(agent, link->pair.dir, IDLE_TARGET, 10000000000ull, out);
		return rc < 0 ? bench_error_kvl("finding the target", rc) : 0;
	}
	if (bench_offer_recv(&link->pair, &offer))
		return -1;
	rc = bench_offer_connect(&offer, agent, out);
	bench_offer_free(&offer);
	return rc;
}

static int first_write(struct bench_link *link, const struct areas *areas)
{
	struct kvl_desc local = { .addr = (uintptr_t)areas_at(areas, 0), .len = IDLE_PAGE };
	struct kvl_desc remote = { .len = IDLE_PAGE };
	struct bench_reply reply;
	kvl_peer_t peer;
	kvl_xfer_t xfer;
	int rc;

	if (first_connect(link, areas->agent, &peer) || bench_hear(link, &reply))
		return -1;
	remote.addr = reply.value[0];
	rc = kvl_write(areas->agent, peer, &local, &remote, 1, NULL, &xfer);
	return rc < 0 ? bench_error_kvl("the first write", rc) : bench_wait(areas->agent, xfer);
}

static int first_run(const struct idle_setup *setup, struct bench_link *link, struct idle_first *out)
{
	struct bench_command open = { .verb = IDLE_OPEN }, check = { .verb = IDLE_CHECK };
	uint64_t start = kvl_now();
	struct bench_reply reply;
	struct areas areas;
	int rc;

	if (bench_tell(link, &open) ||
	    areas_open(&areas, setup->options, NULL, "bench-initiator", first_len, 1))
		return -1;
	areas_fill(&areas, 0, IDLE_EPOCH);
	rc = first_write(link, &areas);
	out->ns = kvl_now() - start;
	if (!rc)
		rc = bench_ask(link, &check, &reply);
	if (!rc) {
		out->bytes = IDLE_PAGE;
		out->mismatches = reply.value[0];
	}
	areas_close(&areas);
	return rc;
}

static int first_main(struct pair *pair, void *arg)
{
	struct idle_setup *setup = arg;
	struct idle_first first = { .rc = -1 };
	struct bench_link link;

	if (!bench_link_start(&link, setup->options, first_target_main, setup)) {
		first.rc = first_run(setup, &link, &first);
		if (bench_link_finish(&link))
			first.rc = -1;
	}
	return pair_send(pair, &first, sizeof(first)) ? EXIT_FAILED : EXIT_OK;
}

/* --------------------------------------------------------------------------------------------------- both */

/* Runs main in a fresh process and takes its result. */
static int idle_run(const struct idle_setup *setup, int (*main_of_run)(struct pair *pair, void *arg),
		    void *result, size_t len)
{
	struct idle_setup copy = *setup;
	struct pair pair;
	int rc = pair_start(&pair, main_of_run, &copy), error;

	if (rc) {
		bench_error("cannot start a process: %s", strerror(-rc));
		return -1;
	}
	error = pair_recv(&pair, result, len, setup->idle_ns + IDLE_RESULT_NS);
	if (error)
		bench_error("the initiator does not answer: %s", strerror(-error));
	rc = pair_finish(&pair, 10000000000ull);
	return error || rc ? -1 : 0;
}

int idle_measure_cost(const struct idle_setup *setup, struct idle_cost *out)
{
	return idle_run(setup, cost_main, out, sizeof(*out)) || out->rc ? -1 : 0;
}

int idle_measure_first(const struct idle_setup *setup, struct idle_first *out)
{
	return idle_run(setup, first_main, out, sizeof(*out)) || out->rc ? -1 : 0;
}
