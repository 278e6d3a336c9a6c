/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A registered region, of this agent or of a peer, and the set that finds one by address. The same code checks
 * local and remote entries.
 *
 * word | written by                          | read by | order | edge
 * use  | posts and ends (CAS on the count);  | same    | seq   | none: a count, taken before the request is
 *      | withdrawal (CAS 0 -> closed)        |         |       | visible to a driver and given back after
 */
#ifndef KVLI_REGION_H
#define KVLI_REGION_H

#include <pthread.h>

#include "shared/word.h"
#include "wire/wire.h"

#define KVLI_USE_CLOSED UINT32_C(0x80000000)

struct kvli_region {
	struct kvli_remote at; /* base, len, rights, ...; the wire's view when it is a peer's */
	struct word32 use;     /* pending requests that name it, or KVLI_USE_CLOSED */
	struct word32 pins;    /* references to this struct: its set and the lists that name it */
	uint64_t handle;       /* of a local one */
	uint32_t
		counted; /* registrations of the same range; under the agent's memory lock, as the next two */
	uint32_t naming; /* mentions in the deregistration that is going on */
	int closing;     /* closed by it */
	int withdrawn;   /* its deregistration has begun and can only be finished */
	uint32_t mappable; /* peers of this host may ask for its descriptor */
	uint64_t mark;     /* list build that saw it last; under the set's lock */
	int pinned_map;    /* a pointer into its mapping was handed out */
	/* owned memory, for local regions of kvl_mem_alloc or with a memfd */
	struct kvl_mem mem;
	int owned;
};

/* Sorted by base; regions do not overlap on the local side, and may on a peer's. */
struct kvli_region_set {
	pthread_mutex_t lock;
	struct kvli_region **region;
	size_t n, room;
	uint64_t longest; /* bounds the search when regions overlap */
	uint64_t marks;
};

void kvli_region_set_init(struct kvli_region_set *set);
/* Drops the set's pins. */
void kvli_region_set_fini(struct kvli_region_set *set);

/* Under set->lock. Room for n more, so that the next n adds can not fail. */
int kvli_region_set_reserve(struct kvli_region_set *set, size_t n);

/* Under set->lock. Adds a pin; KVL_ERR_NOMEM. */
int kvli_region_set_add(struct kvli_region_set *set, struct kvli_region *region);
void kvli_region_set_remove(struct kvli_region_set *set, struct kvli_region *region); /* and its pin */

/* Under set->lock: the first region that shares a byte with [base, base + len), or NULL. */
struct kvli_region *kvli_region_set_touch(const struct kvli_region_set *set, uint64_t base, uint64_t len);

/*
 * Under set->lock: the region that holds all of [addr, addr + len) on this device. KVL_ERR_RANGE names the
 * rule and `entry`; hint, a region or NULL, is tried first.
 */
int kvli_region_set_find(const struct kvli_region_set *set, uint64_t addr, uint64_t len, uint32_t device,
			 size_t entry, struct kvli_region *hint, struct kvli_region **out);

/* Whether [addr, addr + len) lies in it, len >= 1. */
int kvli_region_holds(const struct kvli_region *region, uint64_t addr, uint64_t len);

void kvli_region_pin(struct kvli_region *region);
void kvli_region_unpin(struct kvli_region *region); /* frees it with the last pin */

/* A pending request names it: 1, or 0 when it is withdrawn. */
int kvli_region_use(struct kvli_region *region);
void kvli_region_unuse(struct kvli_region *region);
/* 1 when no request names it; none can from then on. 0: in use, nothing changed. */
int kvli_region_close(struct kvli_region *region);
void kvli_region_force_close(struct kvli_region *region); /* a peer's, whatever still names it */
void kvli_region_reopen(struct kvli_region *region);      /* undoes kvli_region_close() */
int kvli_region_closed(const struct kvli_region *region);

#endif
