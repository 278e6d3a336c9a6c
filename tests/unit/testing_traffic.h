/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random traffic from one agent to another over the sim wire; every end, notification and byte of it is
 * checked on the way: each request ends once, in its lane's order, its notification after its data, and an
 * error flushes what is behind it.
 */
#ifndef KVLANE_TESTING_TRAFFIC_H
#define KVLANE_TESTING_TRAFFIC_H

#include "testing.h"

#define TRAFFIC_LANES    4u
#define TRAFFIC_REQUESTS 250u

struct traffic_seen {
	uint64_t hash;                            /* of ends and notifications, in order */
	uint32_t failed, flushed;                 /* requests */
	uint32_t overtaking;                      /* requests that ended after one that was posted later */
	uint32_t good_after_error[TRAFFIC_LANES]; /* times that a lane recovered */
};

/*
 * Opens two agents with these options of the wire, posts TRAFFIC_REQUESTS requests, waits for all that they
 * promise, and closes. seed goes to the wire and to the choices made here.
 */
struct traffic_seen traffic(const char *sim, uint64_t seed, uint32_t workers, enum kvl_retire_order order);

#endif
