/* SPDX-License-Identifier: Apache-2.0 */
#include "xfer/list.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"

static int list_nomem(size_t n)
{
	return kvli_fail(KVL_ERR_NOMEM, KVL_NO_ENTRY, 0, "memory", "no memory for a list of %zu entries", n);
}

static struct kvli_list *list_new(size_t n)
{
	struct kvli_list *list = calloc(1, sizeof(*list));

	if (list == NULL)
		return NULL;
	word32_store_relaxed_sys(&list->refs, 1); /* not shared yet */
	if (n == 0)
		return list;
	if (n <= SIZE_MAX / sizeof(*list->entry))
		list->entry = malloc(n * sizeof(*list->entry));
	if (list->entry)
		return list;
	free(list);
	return NULL;
}

void kvli_list_hold(struct kvli_list *list)
{
	word32_add_seq_sys(&list->refs, 1); /* no edge: a count */
}

void kvli_list_drop(struct kvli_list *list)
{
	if (list == NULL || word32_add_seq_sys(&list->refs, UINT32_MAX)) /* no edge: a count */
		return;
	for (size_t i = 0; i < list->n_regions; i++)
		kvli_region_unpin(list->region[i]);
	if (list->peer)
		list->drop_peer(list->peer);
	free(list->region);
	free(list->entry);
	free(list);
}

static int list_note_region(struct kvli_list *list, struct kvli_region *region, uint64_t mark)
{
	size_t n = list->n_regions;

	if (region->mark == mark)
		return 0;
	if ((n & (n - 1)) == 0) { /* full: room doubles at powers of two */
		struct kvli_region **grown =
			realloc(list->region, (n ? 2 * n : 1) * sizeof(struct kvli_region *));

		if (grown == NULL)
			return list_nomem(list->n);
		list->region = grown;
	}
	region->mark = mark;
	kvli_region_pin(region);
	list->region[list->n_regions++] = region;
	return 0;
}

/* Checks one entry and appends it. Under set->lock; the last region is the first guess for the next. */
static int list_append(struct kvli_list *list, struct kvli_region_set *set, uint64_t addr, uint64_t len,
		       uint32_t device)
{
	struct kvli_region *hint = list->n ? list->entry[list->n - 1].region : NULL, *region;
	int rc = kvli_region_set_find(set, addr, len, device, list->n, hint, &region);

	if (rc)
		return rc;
	rc = list_note_region(list, region, set->marks);
	if (rc)
		return rc;
	list->entry[list->n++] = (struct kvli_entry){ addr, len, region };
	return 0;
}

static int list_finish(struct kvli_list *list, int rc, struct kvli_list **out)
{
	if (rc == 0)
		*out = list;
	else
		kvli_list_drop(list);
	return rc;
}

int kvli_list_from_descs(struct kvli_region_set *set, const struct kvl_desc *desc, size_t n,
			 struct kvli_list **out)
{
	struct kvli_list *list = list_new(n);
	int rc = 0;

	if (list == NULL)
		return list_nomem(n);
	pthread_mutex_lock(&set->lock);
	set->marks++;
	for (size_t i = 0; i < n && rc == 0; i++) {
		if (desc[i].reserved)
			rc = kvli_fail(KVL_ERR_INVALID, i, 0, "reserved is 0", "entry %zu has reserved = %u",
				       i, desc[i].reserved);
		else
			rc = list_append(list, set, desc[i].addr, desc[i].len, desc[i].device);
	}
	pthread_mutex_unlock(&set->lock);
	return list_finish(list, rc, out);
}

static int run_check(const struct kvl_run *run, size_t i, size_t *total)
{
	if (run->reserved)
		return kvli_fail(KVL_ERR_INVALID, i, 0, "reserved is 0", "run %zu has reserved = %u", i,
				 run->reserved);
	if (run->count == 0)
		return kvli_fail(KVL_ERR_INVALID, i, 0, "count >= 1", "run %zu has count 0", i);
	if (run->count > 1 && run->stride < run->len)
		return kvli_fail(KVL_ERR_INVALID, i, 0, "stride >= length",
				 "run %zu has stride %" PRIu64 " below its length %" PRIu64, i, run->stride,
				 run->len);
	if (run->count > SIZE_MAX / sizeof(struct kvli_entry) - *total ||
	    (run->count > 1 && run->stride > UINT64_MAX / (run->count - 1)) ||
	    run->addr + run->stride * (run->count - 1) < run->addr)
		return kvli_fail(KVL_ERR_RANGE, i, 0, "no wrap of the address space",
				 "run %zu of %" PRIu64 " pieces wraps around the address space", i,
				 run->count);
	*total += run->count;
	return 0;
}

int kvli_list_from_runs(struct kvli_region_set *set, const struct kvl_run *run, size_t n,
			struct kvli_list **out)
{
	struct kvli_list *list;
	size_t total = 0;
	int rc = 0;

	for (size_t i = 0; i < n; i++) {
		rc = run_check(&run[i], i, &total);
		if (rc)
			return rc;
	}
	list = list_new(total);
	if (list == NULL)
		return list_nomem(total);
	pthread_mutex_lock(&set->lock);
	set->marks++;
	for (size_t i = 0; i < n; i++)
		for (uint64_t k = 0; k < run[i].count && rc == 0; k++)
			rc = list_append(list, set, run[i].addr + k * run[i].stride, run[i].len,
					 run[i].device);
	pthread_mutex_unlock(&set->lock);
	return list_finish(list, rc, out);
}

int kvli_list_from_blocks(struct kvli_region_set *set, uint64_t base, uint64_t block_bytes,
			  const uint32_t *index, size_t n, uint32_t device, struct kvli_list **out)
{
	struct kvli_list *list = list_new(n);
	int rc = 0;

	if (list == NULL)
		return list_nomem(n);
	pthread_mutex_lock(&set->lock);
	set->marks++;
	for (size_t i = 0; i < n && rc == 0; i++) {
		if (block_bytes && index[i] > (UINT64_MAX - base) / block_bytes)
			rc = kvli_fail(KVL_ERR_RANGE, i, 0, "no wrap of the address space",
				       "entry %zu, block %u of %" PRIu64
				       " bytes, wraps around the address space",
				       i, index[i], block_bytes);
		else
			rc = list_append(list, set, base + index[i] * block_bytes, block_bytes, device);
	}
	pthread_mutex_unlock(&set->lock);
	return list_finish(list, rc, out);
}

int kvli_list_stale(const struct kvli_list *list)
{
	for (size_t i = 0; list && i < list->n_regions; i++)
		if (kvli_region_closed(list->region[i]))
			return 1;
	return 0;
}

int kvli_list_use(struct kvli_list *list)
{
	for (size_t i = 0; list && i < list->n_regions; i++) {
		if (kvli_region_use(list->region[i]))
			continue;
		while (i-- > 0)
			kvli_region_unuse(list->region[i]);
		return 0;
	}
	return 1;
}

void kvli_list_unuse(struct kvli_list *list)
{
	for (size_t i = 0; list && i < list->n_regions; i++)
		kvli_region_unuse(list->region[i]);
}
