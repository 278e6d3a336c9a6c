/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the two sides of the demo tell each other, as notifications. Both run on one host: plain structs, and
 * times of the one CLOCK_MONOTONIC.
 *
 *	both			HELLO		who I am, where the layers of my pool are
 *
 *	WRITE, each round	decode		TABLE for every request: where its blocks shall go
 *				prefill		HANDOVER, attached to a request's last write
 *	READ, each round	decode		READY
 *				prefill		TABLE for a request that is filled, at most --inflight ahead
 *				decode		RELEASE, attached to a request's last read
 *
 *	at the end of WRITE	prefill		STATS
 *	at the end		decode		DONE
 */
#ifndef KVLANE_TOOL_DEMO_MESSAGE_H
#define KVLANE_TOOL_DEMO_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "demo.h"

enum demo_type {
	DEMO_HELLO = 1,
	DEMO_TABLE,
	DEMO_READY,
	DEMO_HANDOVER,
	DEMO_RELEASE,
	DEMO_STATS,
	DEMO_DONE
};

struct demo_header {
	uint32_t magic;
	uint32_t type;
	uint32_t round, request;
	uint64_t time_ns; /* when the prefill side had finished the request */
};

#define DEMO_HELLO_OPTIONS 13

struct demo_hello {
	char option[DEMO_HELLO_OPTIONS][32]; /* as text, in one order on both sides */
	uint64_t base[MODEL_LAYERS_MAX];
};

struct demo_stats {
	uint64_t busy_ns; /* at least one hand-over was on its way */
	uint64_t bytes, descriptors, pieces, chunks;
	char path[16], reason[64];
};

struct demo_done {
	uint64_t mismatches;
};

struct demo_header demo_header(enum demo_type type, uint32_t round, uint32_t request);

/* The header when the notification is a whole message of the demo for this plan, else NULL. */
const struct demo_header *demo_parse(const struct demo *d, const struct kvl_notif *n);

/* The body behind the header of a parsed message. */
const void *demo_body(const struct demo_header *h);

/* Sends header and body. Exit codes. Blocks while the lane is full; demo_send_wait also until it is there. */
int demo_send(struct demo *d, const struct demo_header *h, const void *body, size_t len);
int demo_send_wait(struct demo *d, const struct demo_header *h, const void *body, size_t len);

/* Sends the block table of a request, all groups one after the other. */
int demo_send_table(struct demo *d, uint32_t round, uint32_t request, uint64_t time_ns);

/* Block ids of a group in a TABLE that demo_parse let through. */
const uint32_t *demo_table(const struct demo *d, const struct demo_header *table, enum model_group group);

/*
 * Tells the other side who this is, waits for its HELLO, refuses one with other options by name. Sets *remote
 * to the list of the other side's pool.
 */
int demo_greet(struct demo *d, kvl_list_t *remote);

#endif
