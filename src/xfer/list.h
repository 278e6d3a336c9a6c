/* SPDX-License-Identifier: Apache-2.0 */
/* Prepared descriptor lists: validated once, immutable, shared by requests. */
#ifndef KVLI_LIST_H
#define KVLI_LIST_H

#include "xfer/region.h"

struct kvli_entry {
	uint64_t addr, len;
	struct kvli_region *region;
};

struct kvli_list {
	struct word32 refs;
	void *peer; /* whose memory; NULL: local */
	void (*drop_peer)(void *peer);
	size_t n;
	struct kvli_entry *entry;
	struct kvli_region **region; /* the distinct ones, pinned */
	size_t n_regions;
};

/* set: of the owner of the memory. On success the list has taken over one hold on peer. */
int kvli_list_from_descs(struct kvli_region_set *set, const struct kvl_desc *desc, size_t n,
			 struct kvli_list **out);
int kvli_list_from_runs(struct kvli_region_set *set, const struct kvl_run *run, size_t n,
			struct kvli_list **out);
int kvli_list_from_blocks(struct kvli_region_set *set, uint64_t base, uint64_t block_bytes,
			  const uint32_t *index, size_t n, uint32_t device, struct kvli_list **out);

void kvli_list_hold(struct kvli_list *list);
void kvli_list_drop(struct kvli_list *list);

/* Whether a region of the list is withdrawn. In this and the next two NULL is an empty list. */
int kvli_list_stale(const struct kvli_list *list);

/* Marks every region used by one more request; 0 when one is withdrawn, and then none is marked. */
int kvli_list_use(struct kvli_list *list);
void kvli_list_unuse(struct kvli_list *list);

#endif
