/* SPDX-License-Identifier: Apache-2.0 */
#include "xfer/request.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* A slot keeps its segment array for its next life up to this size: hand-overs come thousands a second. */
#define KEEP_SEGMENTS 32768

int kvli_requests_open(struct kvli_requests *q, struct kvli_records *records, uint32_t n)
{
	memset(q, 0, sizeof(*q));
	q->slot = calloc(n, sizeof(*q->slot)); /* untouched pages cost nothing */
	if (q->slot == NULL)
		return kvli_fail(KVL_ERR_NOMEM, KVL_NO_ENTRY, 0, "memory", "no memory for %u requests", n);
	q->records = records;
	q->n = n;
	pthread_mutex_init(&q->lock, NULL);
	return 0;
}

void kvli_requests_close(struct kvli_requests *q)
{
	uint32_t high = word32_load_relaxed_sys(&q->high); /* no other thread is left */

	for (uint32_t i = 0; i < high; i++) {
		free(q->slot[i].segment);
		free(q->slot[i].notif);
	}
	free(q->slot);
	pthread_mutex_destroy(&q->lock);
}

/* Under q->lock. Freed slots first once every slot has been used, fresh ones before: lives spread out. */
static struct kvli_request *slot_next(struct kvli_requests *q)
{
	uint32_t high = word32_load_relaxed_sys(&q->high); /* written under this lock */
	struct kvli_request *r = q->free_first;

	if (r) {
		q->free_first = r->next_free;
		if (q->free_first == NULL)
			q->free_last = NULL;
		return r;
	}
	if (high == q->n)
		return NULL;
	r = &q->slot[high];
	r->index = high;
	r->record = &q->records->record[high];
	word32_store_release_sys(&q->high, high + 1); /* E10 */
	return r;
}

struct kvli_request *kvli_request_take(struct kvli_requests *q)
{
	struct kvli_request *r;

	pthread_mutex_lock(&q->lock);
	r = slot_next(q);
	pthread_mutex_unlock(&q->lock);
	return r;
}

static void request_drop(struct kvli_request *r)
{
	kvli_list_drop(r->local);
	kvli_list_drop(r->remote);
	free(r->notif);
	r->local = r->remote = NULL;
	r->notif = NULL;
	r->notif_len = 0;
	r->has_notif = r->auto_release = 0;
	r->peer = NULL;
	r->lane = NULL;
	if (r->room > KEEP_SEGMENTS) {
		free(r->segment);
		r->segment = NULL;
		r->room = 0;
	}
	r->n_segments = 0;
	r->total_bytes = r->n_entries = 0;
	r->start_ns = r->start_tag = 0;
	memset(&r->job, 0, sizeof(r->job));
}

void kvli_request_give(struct kvli_requests *q, struct kvli_request *r)
{
	uint64_t old = record_observe(r->record);

	request_drop(r);
	word64_store_release_sys(r->record, record_make(record_life(old) + 1, 0, RECORD_FREE, 0)); /* E5 */
	pthread_mutex_lock(&q->lock);
	r->next_free = NULL;
	if (q->free_last)
		q->free_last->next_free = r;
	else
		q->free_first = r;
	q->free_last = r;
	pthread_mutex_unlock(&q->lock);
}

static int request_reserve(struct kvli_request *r, size_t n)
{
	struct kvli_segment *s;

	if (n <= r->room)
		return 0;
	s = n <= SIZE_MAX / sizeof(*s) ? malloc(n * sizeof(*s)) : NULL;
	if (s == NULL)
		return kvli_fail(KVL_ERR_NOMEM, KVL_NO_ENTRY, 0, "memory", "no memory for %zu entries", n);
	free(r->segment);
	r->segment = s;
	r->room = n;
	return 0;
}

static int index_refuse(const char *side, size_t i, uint32_t index, size_t n)
{
	return kvli_fail(KVL_ERR_INVALID, i, 0, "index < entries of the list",
			 "%s index %zu is %u, its list has %zu entries", side, i, index, n);
}

static int length_refuse(size_t i, uint64_t local, uint64_t remote)
{
	return kvli_fail(KVL_ERR_MISMATCH, i, 0, "equal lengths",
			 "entry %zu is %" PRIu64 " bytes here and %" PRIu64 " bytes at the peer", i, local,
			 remote);
}

static int rights_refuse(size_t i, const struct kvli_entry *e, uint32_t right)
{
	return kvli_fail(KVL_ERR_RIGHTS, i, 0,
			 right == KVL_REMOTE_WRITE ? "remote write allowed" : "remote read allowed",
			 "entry %zu, %#" PRIx64 " + %" PRIu64
			 ", is in a region of the peer that does not allow %s",
			 i, e->addr, e->len, right == KVL_REMOTE_WRITE ? "WRITE" : "READ");
}

/* Appends a pair to the segments, growing the last one where both sides continue it. */
static inline void segment_append(struct kvli_request *r, const struct kvli_entry *l,
				  const struct kvli_entry *m, size_t entry, int merge)
{
	struct kvli_segment *last = r->n_segments ? &r->segment[r->n_segments - 1] : NULL;

	r->total_bytes += l->len;
	if (merge && last && last->local + last->len == l->addr && last->remote + last->len == m->addr &&
	    last->region == &m->region->at) {
		last->len += l->len;
		return;
	}
	r->segment[r->n_segments++] =
		(struct kvli_segment){ l->addr, m->addr, l->len, &m->region->at, entry };
}

int kvli_request_pair(struct kvli_request *r, const struct kvli_list *local, const uint32_t *local_index,
		      const struct kvli_list *remote, const uint32_t *remote_index, size_t n, uint32_t right)
{
	int merge = !(r->flags & KVL_XFER_NO_MERGE), rc = request_reserve(r, n);

	if (rc)
		return rc;
	for (size_t i = 0; i < n; i++) {
		size_t a = local_index ? local_index[i] : i, b = remote_index ? remote_index[i] : i;

		if (a >= local->n)
			return index_refuse("local", i, (uint32_t)a, local->n);
		if (b >= remote->n)
			return index_refuse("remote", i, (uint32_t)b, remote->n);
		if (local->entry[a].len != remote->entry[b].len)
			return length_refuse(i, local->entry[a].len, remote->entry[b].len);
		if (!(remote->entry[b].region->at.rights & right))
			return rights_refuse(i, &remote->entry[b], right);
		segment_append(r, &local->entry[a], &remote->entry[b], i, merge);
	}
	r->n_entries = n;
	return 0;
}

uint8_t *kvli_request_copy_notif(const void *data, uint64_t len)
{
	uint8_t *copy = malloc(len ? (size_t)len : 1);

	if (copy == NULL)
		kvli_fail(KVL_ERR_NOMEM, KVL_NO_ENTRY, 0, "memory",
			  "no memory for a notification of %" PRIu64 " bytes", len);
	else if (len)
		memcpy(copy, data, (size_t)len);
	return copy;
}

void kvli_request_arm(struct kvli_request *r, uint64_t tag)
{
	struct kvli_job *job = &r->job;

	job->op = r->op;
	job->cursor = (struct kvli_cursor){ r->segment, r->n_segments, 0, 0 };
	job->core.tag = tag;
	/* tags come again after 4096 posts; stops are asked under events->lock, of pending posts only */
	word64_store_relaxed_sys(&job->core.stop, 0); /* published with PENDING */
	job->core.notify = (uint32_t)r->has_notif;
	job->notif = r->notif;
	job->notif_len = r->notif_len;
	job->notif_sent = 0;
	job->bytes = 0;
	job->failed_segment = SIZE_MAX;
	job->issue_ns = job->wire_ns = 0;
	job->path = NULL;
	job->provider = 0;
}
