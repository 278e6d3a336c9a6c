/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends of a connection of the local wire that are no agents: they say what a test wants, when it wants it, and
 * stand still where an agent would have to be stopped at the right instant. All of it uses must().
 */
#ifndef KVLANE_TESTING_RAW_H
#define KVLANE_TESTING_RAW_H

#include "testing.h"

#include "control/metadata.h"
#include "wire/local/message.h"
#include "wire/local/segment.h"

/* ------------------------------------------------------------------------------------------ an initiator */

struct raw_initiator {
	int sock, bell;
	void *segment;
	size_t segment_len;
	uint32_t lanes, ring_bytes;
	int status; /* of the welcome; KVL_ERR_PEER_LOST when none came */
};

/* Says hello to the agent of the metadata, with a bell of that socket type. The bell's other end stays here. */
void raw_initiator_open(struct raw_initiator *raw, const void *metadata, size_t len, uint32_t lanes,
			uint32_t ring_bytes, int bell_type);
void raw_initiator_open_to(struct raw_initiator *raw, kvl_agent_t to, uint32_t lanes, uint32_t ring_bytes);
void raw_initiator_close(struct raw_initiator *raw);
/* Odd: the target has to take the lane for being inside a copy. */
void raw_initiator_busy(struct raw_initiator *raw, uint32_t lane, uint64_t busy);
/* The first frames of a lane, in one go: n notifications of len bytes. Rings the bell. */
void raw_initiator_notify(struct raw_initiator *raw, uint32_t lane, size_t n, uint32_t len);
/* A frame of no known type. Rings the bell. */
void raw_initiator_corrupt(struct raw_initiator *raw, uint32_t lane);

/* A connection that never says hello. Returns its socket. */
int raw_knock(const void *metadata, size_t len);

/* --------------------------------------------------------------------------------------------- a target */

#define RAW_REGIONS 2
#define RAW_EXPORTS 16

struct raw_target {
	struct kvli_md md;
	struct kvli_md_region region[RAW_REGIONS]; /* slots 0 and 1, generations 1 and 2 */
	int listen, table_fd, sock, bell;
	struct word64 *table;
	void *segment; /* the initiator's */
	size_t segment_len;
	unsigned char bytes[4096]; /* its metadata, with so many regions */
	size_t len;
};

/* Its regions are LEN bytes at these addresses, not mappable until a test says so. */
void raw_target_open(struct raw_target *raw, const uint64_t *addr, size_t n, uint64_t len);
/* Writes the metadata anew. */
void raw_target_encode(struct raw_target *raw, uint32_t n_regions);
/* Waits for a connection and its hello; only then raw_target_welcome(). */
void raw_target_accept(struct raw_target *raw);
void raw_target_welcome(struct raw_target *raw);
/* Hangs up: the next connection can be accepted. */
void raw_target_hang_up(struct raw_target *raw);
void raw_target_close(struct raw_target *raw);
/* Accepts and welcomes an agent that connects here. */
kvl_peer_t raw_target_connect(struct raw_target *raw, kvl_agent_t from);

#endif
