/* SPDX-License-Identifier: Apache-2.0 */
/* Two ends of the sim wire with hosts that only count, so that its table of calls is tested without an agent.
 */
#ifndef KVLANE_TESTING_SIM_H
#define KVLANE_TESTING_SIM_H

#include "testing.h"
#include "wire/wire.h"

extern const struct kvli_wire_ops kvli_wire_sim;

#define LANES  4u
#define WINDOW 16u /* chunks in flight per lane */
#define MEMORY (256 * KIB)
#define SLOT   37u /* of the one region of each end: far enough to make the table grow */
#define LIFE   7u  /* its first generation */

struct sim_end {
	struct kvli_wire_host host;
	struct kvli_wire *wire;
	unsigned char *data; /* MEMORY bytes */
	struct kvli_notif *notif[64];
	size_t n_notifs, room; /* deliver() says AGAIN once n_notifs == room */
	int resumes_inside;    /* deliver() calls resume(), as an agent may */
	int refusals;          /* AGAINs given */
	int lost, kicks;       /* upcalls about the link that starts here */
};

/* a is the initiator, b the target. */
struct sim_link {
	struct sim_end a, b;
	struct kvli_conn *conn;
	struct kvli_remote remote;
};

/* Only the option and what is needed to open a wire. */
struct kvl_config sim_config(const char *sim);
struct kvli_identity sim_identity(const char *name);

void sim_end_open(struct sim_end *end, const char *name, const char *sim);
void sim_end_close(struct sim_end *end);
void sim_end_expose(struct sim_end *end, uint64_t generation, uint32_t rights);
int sim_connect(struct sim_end *from, const struct sim_end *to, struct kvli_conn **out);

void sim_link_open(struct sim_link *link, const char *sim);
void sim_link_close(struct sim_link *link);
struct kvli_wire_lane *sim_lane(const struct sim_link *link, uint32_t lane);

/* [offset, + len) of both sides. */
struct kvli_segment sim_segment(struct sim_link *link, uint64_t offset, uint64_t len);

/* One range at the same offset of both sides, in two pieces, whole or not at all: what issue() returned. */
int64_t sim_issue(struct sim_link *link, uint32_t lane, enum kvl_op op, uint64_t offset, uint64_t len,
		  uint64_t cookie);

/* Fills a's memory for the calls below: it has no byte 0, so that in b's 0 means untouched. */
#define BLOCK  512u
#define BLOCKS ((uint32_t)(MEMORY / BLOCK))
void sim_fill(struct sim_link *link);
/* The block's number is the cookie. */
int64_t sim_issue_block(struct sim_link *link, uint32_t lane, uint32_t block);
/* How many bytes from the block's start have arrived; the rest of it is untouched. */
size_t sim_arrived(const struct sim_link *link, uint32_t block);

/* One tick. */
int sim_poll(struct sim_link *link, uint32_t lane, struct kvli_completion *out);
/* Ticks until something completes; fails after a million. */
struct kvli_completion sim_next(struct sim_link *link, uint32_t lane);

int sim_notify(struct sim_link *link, uint32_t lane, const void *data, uint64_t len);

#endif
