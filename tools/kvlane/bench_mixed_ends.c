/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_mixed.h"

#include <string.h>

static unsigned mixed_area(enum mixed_part part, enum mixed_area area)
{
	return part * MIXED_AREAS + area;
}

static int mixed_areas_open(const struct mixed *s, const struct kvl_config *config, const char *name,
			    struct areas *out)
{
	const uint64_t len[] = { s->size[MIXED_BULK], MIXED_MARKER_BYTES, s->size[MIXED_SMALL],
				 MIXED_MARKER_BYTES };

	return areas_open(out, &s->options, config, name, len, MIXED_PARTS * MIXED_AREAS);
}

/* ------------------------------------------------------------------------------------------------- target */

/* The marker is loaded first, with acquire order, as a consumer would. */
static uint64_t mixed_check(const struct areas *a, enum mixed_part part, uint64_t epoch)
{
	const void *marker = areas_at(a, mixed_area(part, MIXED_MARKER));
	uint64_t seen = __atomic_load_n((const uint64_t *)marker, __ATOMIC_ACQUIRE);

	return (seen == epoch ? 0 : MIXED_MARKER_BYTES) +
	       areas_check(a, mixed_area(part, MIXED_PAYLOAD), epoch);
}

/* Guards, and the areas of the part that this target has nothing to do with. */
static uint64_t mixed_check_rest(const struct areas *a, enum mixed_part part)
{
	enum mixed_part other = part == MIXED_BULK ? MIXED_SMALL : MIXED_BULK;

	return areas_check_guards(a) + areas_check(a, mixed_area(other, MIXED_PAYLOAD), 0) +
	       areas_check(a, mixed_area(other, MIXED_MARKER), 0);
}

static void mixed_handle(void *ctx, const struct bench_command *command, struct bench_reply *reply)
{
	const struct areas *targets = ctx;

	for (unsigned p = 0; p < MIXED_PARTS; p++)
		reply->value[p] = command->verb == MIXED_CHECK ? mixed_check(&targets[p], p, command->epoch)
							       : mixed_check_rest(&targets[p], p);
}

int mixed_target_main(struct pair *pair, void *arg)
{
	const struct mixed *s = arg;
	struct areas target[MIXED_PARTS];
	int rc = EXIT_FAILED;

	if (mixed_areas_open(s, NULL, "bench-a", &target[MIXED_BULK]))
		return rc;
	if (mixed_areas_open(s, NULL, "bench-b", &target[MIXED_SMALL]))
		goto close_bulk;
	if (!bench_offer_send(pair, target[MIXED_BULK].agent, &target[MIXED_BULK].memory) &&
	    !bench_offer_send(pair, target[MIXED_SMALL].agent, &target[MIXED_SMALL].memory))
		rc = bench_serve(pair, mixed_handle, target);
	areas_close(&target[MIXED_SMALL]);
close_bulk:
	areas_close(&target[MIXED_BULK]);
	return rc;
}

/* ------------------------------------------------------------------------------------------------ sources */

/* A part of this agent's memory, or of the target's at base. */
static int mixed_list(const struct areas *areas, kvl_peer_t peer, uint64_t base, enum mixed_part part,
		      kvl_list_t *out)
{
	struct kvl_desc desc[MIXED_AREAS] = { 0 };
	int rc;

	for (unsigned i = 0; i < MIXED_AREAS; i++) {
		desc[i].addr = base + areas->offset[mixed_area(part, i)];
		desc[i].len = areas->len[mixed_area(part, i)];
	}
	rc = kvl_list_create(areas->agent, peer, desc, MIXED_AREAS, out);
	return rc < 0 ? bench_error_kvl("preparing a list", rc) : 0;
}

static int mixed_prepare(struct mixed *s, struct mixed_source *src, enum mixed_part part)
{
	kvl_list_t local, remote;
	kvl_peer_t peer;
	int rc;

	if (bench_offer_connect(&s->offer[part], src->areas.agent, &peer) ||
	    mixed_list(&src->areas, KVL_LOCAL, (uintptr_t)src->areas.memory.addr, part, &local) ||
	    mixed_list(&src->areas, peer, s->offer[part].addr, part, &remote))
		return -1;
	rc = kvl_xfer_prepare(src->areas.agent, KVL_WRITE, local, remote, NULL, &src->xfer[part]);
	return rc < 0 ? bench_error_kvl("preparing a request", rc) : 0;
}

static int mixed_source_open(struct mixed *s, unsigned kind)
{
	struct mixed_source *src = &s->source[kind];
	struct kvl_config config = s->options.config;

	config.retire_order = kind == MIXED_GLOBAL ? KVL_RETIRE_GLOBAL : KVL_RETIRE_LANE;
	if (mixed_areas_open(s, &config, kind == MIXED_GLOBAL ? "bench-global" : "bench-lane", &src->areas))
		return -1;
	src->drive = bench_must_drive(src->areas.agent);
	return mixed_prepare(s, src, MIXED_BULK) || mixed_prepare(s, src, MIXED_SMALL);
}

int mixed_sources_open(struct mixed *s)
{
	int rc;

	if (bench_offer_recv(&s->link.pair, &s->offer[MIXED_BULK]))
		return -1;
	rc = bench_offer_recv(&s->link.pair, &s->offer[MIXED_SMALL]);
	for (size_t i = 0; i < s->arms.n && !rc; i++)
		rc = mixed_source_open(s, s->arms.arm[i].kind);
	for (unsigned p = 0; p < MIXED_PARTS; p++)
		bench_offer_free(&s->offer[p]);
	return rc;
}

void mixed_fill(const struct mixed_source *src, uint64_t epoch)
{
	for (unsigned p = 0; p < MIXED_PARTS; p++) {
		areas_fill(&src->areas, mixed_area(p, MIXED_PAYLOAD), epoch);
		memcpy(areas_at(&src->areas, mixed_area(p, MIXED_MARKER)), &epoch, MIXED_MARKER_BYTES);
	}
}
