/* SPDX-License-Identifier: Apache-2.0 */
#include "xfer/region.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

void kvli_region_set_init(struct kvli_region_set *set)
{
	memset(set, 0, sizeof(*set));
	pthread_mutex_init(&set->lock, NULL);
}

void kvli_region_set_fini(struct kvli_region_set *set)
{
	for (size_t i = 0; i < set->n; i++)
		kvli_region_unpin(set->region[i]);
	free(set->region);
	pthread_mutex_destroy(&set->lock);
}

/* Index of the first region with a base greater than addr. */
static size_t set_upper(const struct kvli_region_set *set, uint64_t addr)
{
	size_t lo = 0, hi = set->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (set->region[mid]->at.base <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

int kvli_region_set_reserve(struct kvli_region_set *set, size_t n)
{
	size_t room = set->room ? set->room : 16;
	struct kvli_region **grown;

	if (n <= set->room - set->n)
		return 0;
	while (room - set->n < n)
		room *= 2;
	grown = realloc(set->region, room * sizeof(struct kvli_region *));
	if (grown == NULL)
		return kvli_fail(KVL_ERR_NOMEM, KVL_NO_ENTRY, 0, "memory", "no memory for %zu regions", room);
	set->region = grown;
	set->room = room;
	return 0;
}

int kvli_region_set_add(struct kvli_region_set *set, struct kvli_region *region)
{
	size_t at = set_upper(set, region->at.base);
	int rc = kvli_region_set_reserve(set, 1);

	if (rc)
		return rc;
	memmove(set->region + at + 1, set->region + at, (set->n - at) * sizeof(struct kvli_region *));
	set->region[at] = region;
	set->n++;
	if (region->at.len > set->longest)
		set->longest = region->at.len;
	kvli_region_pin(region);
	return 0;
}

void kvli_region_set_remove(struct kvli_region_set *set, struct kvli_region *region)
{
	size_t at = set_upper(set, region->at.base);

	while (at > 0 && set->region[at - 1] != region)
		at--;
	if (at == 0)
		return;
	memmove(set->region + at - 1, set->region + at, (set->n - at) * sizeof(struct kvli_region *));
	set->n--;
	kvli_region_unpin(region);
}

/* Ends are written as last bytes: a region may end at the top of the address space. */
int kvli_region_holds(const struct kvli_region *r, uint64_t addr, uint64_t len)
{
	return len && addr >= r->at.base && len <= r->at.len && addr - r->at.base <= r->at.len - len;
}

static int region_touches(const struct kvli_region *r, uint64_t addr, uint64_t len)
{
	return r->at.base <= addr + (len - 1) && addr <= r->at.base + (r->at.len - 1);
}

struct kvli_region *kvli_region_set_touch(const struct kvli_region_set *set, uint64_t base, uint64_t len)
{
	struct kvli_region *first = NULL;

	for (size_t at = set_upper(set, base + (len - 1)); at > 0; at--) {
		struct kvli_region *r = set->region[at - 1];

		if (region_touches(r, base, len))
			first = r;
		else if (r->at.base + (set->longest - 1) < base &&
			 r->at.base + (set->longest - 1) >= r->at.base)
			break;
	}
	return first;
}

/* Says how an entry that no region holds misses them all. */
static int set_refuse(const struct kvli_region_set *set, uint64_t addr, uint64_t len, size_t entry)
{
	const struct kvli_region *r = kvli_region_set_touch(set, addr, len);

	if (r == NULL)
		return kvli_fail(KVL_ERR_RANGE, entry, 0, "inside a registered region",
				 "entry %zu, %#" PRIx64 " + %" PRIu64 ", is in no registered region", entry,
				 addr, len);
	if (addr < r->at.base)
		return kvli_fail(KVL_ERR_RANGE, entry, 0, "start >= region start",
				 "entry %zu, %#" PRIx64 " + %" PRIu64 ", begins before the region %#" PRIx64
				 " + %" PRIu64,
				 entry, addr, len, r->at.base, r->at.len);
	return kvli_fail(KVL_ERR_RANGE, entry, 0, "end <= region end",
			 "entry %zu, %#" PRIx64 " + %" PRIu64 ", ends %" PRIu64
			 " bytes past the region %#" PRIx64 " + %" PRIu64,
			 entry, addr, len, len - (r->at.len - (addr - r->at.base)), r->at.base, r->at.len);
}

static int find_device(const struct kvli_region *r, uint32_t device, size_t entry, struct kvli_region **out)
{
	if (r->at.device != device)
		return kvli_fail(KVL_ERR_RANGE, entry, 0, "device of the region",
				 "entry %zu names device %u, its region is on device %u", entry, device,
				 r->at.device);
	*out = (struct kvli_region *)(uintptr_t)r;
	return 0;
}

int kvli_region_set_find(const struct kvli_region_set *set, uint64_t addr, uint64_t len, uint32_t device,
			 size_t entry, struct kvli_region *hint, struct kvli_region **out)
{
	if (len == 0)
		return kvli_fail(KVL_ERR_INVALID, entry, 0, "length >= 1", "entry %zu has length 0", entry);
	if (addr + (len - 1) < addr)
		return kvli_fail(KVL_ERR_RANGE, entry, 0, "no wrap of the address space",
				 "entry %zu, %#" PRIx64 " + %" PRIu64 ", wraps around the address space",
				 entry, addr, len);
	if (hint && kvli_region_holds(hint, addr, len))
		return find_device(hint, device, entry, out);
	for (size_t at = set_upper(set, addr); at > 0; at--) {
		struct kvli_region *r = set->region[at - 1];

		if (kvli_region_holds(r, addr, len))
			return find_device(r, device, entry, out);
		if (addr - r->at.base >= set->longest)
			break;
	}
	return set_refuse(set, addr, len, entry);
}

void kvli_region_pin(struct kvli_region *region)
{
	word32_add_seq_sys(&region->pins, 1); /* no edge: a count */
}

void kvli_region_unpin(struct kvli_region *region)
{
	if (word32_add_seq_sys(&region->pins, UINT32_MAX) == 0) /* no edge: a count */
		free(region);
}

int kvli_region_use(struct kvli_region *region)
{
	uint32_t use;

	do {
		use = word32_load_relaxed_sys(&region->use); /* judged by the CAS */
		if (use & KVLI_USE_CLOSED)
			return 0;
	} while (!word32_cas_seq_sys(&region->use, use, use + 1)); /* no edge: a count */
	return 1;
}

void kvli_region_unuse(struct kvli_region *region)
{
	word32_add_seq_sys(&region->use, UINT32_MAX); /* no edge: a count */
}

int kvli_region_close(struct kvli_region *region)
{
	return word32_cas_seq_sys(&region->use, 0, KVLI_USE_CLOSED); /* no edge: a count */
}

void kvli_region_force_close(struct kvli_region *region)
{
	uint32_t use;

	do
		use = word32_load_relaxed_sys(&region->use);                   /* judged by the CAS */
	while (!word32_cas_seq_sys(&region->use, use, use | KVLI_USE_CLOSED)); /* no edge: a flag */
}

void kvli_region_reopen(struct kvli_region *region)
{
	word32_exchange_seq_sys(&region->use, 0); /* no edge: a flag */
}

int kvli_region_closed(const struct kvli_region *region)
{
	return (word32_load_relaxed_sys(&region->use) & KVLI_USE_CLOSED) != 0; /* a hint; use() decides */
}
