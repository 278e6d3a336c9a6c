/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests: slots with a terminal record each. A request's life is in its record (shared/record.h):
 *
 *	FREE -> PREPARED -> POSTING -> PENDING -> ENDED -> (POSTING again | RELEASING -> next life, FREE)
 *
 * Who may touch a slot: in FREE nobody; PREPARED and ENDED whoever wins the CAS to POSTING or RELEASING;
 * POSTING and RELEASING that thread; PENDING the lane's driver. A thread that holds events->lock and sees
 * PREPARED, PENDING or ENDED knows that what the request holds stays until it unlocks: ends are published and
 * releases begun under that lock.
 */
#ifndef KVLI_REQUEST_H
#define KVLI_REQUEST_H

#include "lane/lane.h"
#include "shared/record.h"
#include "xfer/list.h"

/* What the latest post that ended did. Under events->lock, so that a report never meets the next post's job. */
struct kvli_result {
	uint64_t bytes, chunks, ticket;
	uint64_t post_ns, issue_ns, wire_ns, end_ns;
	const char *path;
	size_t failed_segment;
	int provider;
};

struct kvli_request {
	struct kvli_job job; /* first: a job's index is its request's */
	uint32_t index;
	uint32_t flags; /* KVL_XFER_... */
	struct word64 *record;
	struct kvli_list *local, *remote;
	void *peer; /* held */
	struct kvli_lane *lane;
	struct kvli_segment *segment;
	size_t n_segments, room;
	uint64_t total_bytes, n_entries;
	enum kvl_op op;
	uint8_t *notif;
	uint64_t notif_len;
	int has_notif, auto_release;
	uint64_t deadline_ns;      /* length, from each post */
	struct word64 deadline_at; /* point in time of the present post */
	struct kvli_result result;
	uint64_t start_ns, start_tag; /* stamped, and for which post; under events->lock */
	void *user;
	/* the list of ends, under events->lock */
	struct kvli_request *next_end, *prev_end;
	int listed;
	struct kvli_request *next_free;
};

/* Outlives its agent: a poll with a handle of a closed agent still reads a valid word. */
struct kvli_records {
	uint32_t n;
	struct kvli_records *older; /* smaller tables that late pollers may still read */
	struct word64 record[];
};

struct kvli_requests {
	struct kvli_records *records;
	struct kvli_request *slot;
	uint32_t n;
	struct word32 high; /* slots below it have been used; grows only */
	pthread_mutex_t lock;
	struct kvli_request *free_first, *free_last; /* FIFO, so that a slot's lives are far apart */
};

int kvli_requests_open(struct kvli_requests *q, struct kvli_records *records, uint32_t n);
void kvli_requests_close(struct kvli_requests *q); /* every request is released by now */

/* A slot in state FREE; NULL when all are in use. */
struct kvli_request *kvli_request_take(struct kvli_requests *q);

/* Frees what it holds and ends its life; the caller has it alone. */
void kvli_request_give(struct kvli_requests *q, struct kvli_request *r);

/*
 * Pairs the lists entry by entry, or by the index arrays when given, into segments, and merges neighbours
 * unless told not to. right: what the peer's regions must allow. KVL_ERR_MISMATCH, KVL_ERR_RIGHTS and
 * KVL_ERR_INVALID name the entry.
 */
int kvli_request_pair(struct kvli_request *r, const struct kvli_list *local, const uint32_t *local_index,
		      const struct kvli_list *remote, const uint32_t *remote_index, size_t n, uint32_t right);

/* A copy for a request to own; NULL with the error recorded. */
uint8_t *kvli_request_copy_notif(const void *data, uint64_t len);

/* Makes the job ready for one more post. tag: of the record that will be PENDING. */
void kvli_request_arm(struct kvli_request *r, uint64_t tag);

#endif
