/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lane's progress: reserve, issue, complete, retire, publish. Bounded steps with no waiting, no allocation,
 * no system call and no function pointer, so that one text serves a host thread, a GPU thread and the
 * exhaustive scheduler. The loop around them differs; so do the hooks, which the including file defines first:
 *
 *	struct lane_request *lane_hook_request(struct lane_core *, uint32_t index);
 *	int  lane_hook_issue(struct lane_core *, uint32_t index);        LANE_ISSUED | LANE_LAST, AGAIN or an error
 *	int  lane_hook_may_retire(struct lane_core *, uint32_t index);   1, or 0: another lane's request is older
 *	int  lane_hook_notify(struct lane_core *, uint32_t index);       0, AGAIN or an error
 *	void lane_hook_publish(struct lane_core *, uint32_t index, int status);
 *	void lane_hook_reopen(struct lane_core *);                       a new epoch after a failure
 *
 * word  | written by            | read by   | write       | read        | edge
 * tail  | producers, under a lock | driver  | release.sys | acquire.sys | E3 posted: slots < tail hold requests
 * head  | driver                | producers | release.sys | acquire.sys | E4 retired: slots < head may be refilled
 * drive | whoever takes the lane | the same | seq         | seq         | E6 hand-over, see lane_drive_try()
 * stop  | anyone (CAS)          | driver    | seq         | relaxed     | none: a reason, it orders nothing
 *
 * Everything else belongs to the driver: the one thread that holds `drive`.
 *
 * Invariants, 32-bit wrap-around, tickets from oldest to newest: head <= issue <= tail <= head + mask + 1.
 * Tickets < head are retired and published, in order; tickets < issue have nothing left to issue; only the
 * ticket `issue` may be partly issued. A request retires when its ticket is head, it is < issue, and none of
 * its chunks is outstanding: FIFO within the lane, and nothing of another lane is ever looked at (but by
 * lane_hook_may_retire, whose answer is 1 unless retire_order is global).
 *
 * The algorithm is that of ticket locks and of completion by send-queue order; compare the independent
 * queue-pair progress of NIXL's GPUNETIO engine (pull request 2222), of which this is the CPU and GPU form.
 */
#ifndef KVLI_STEP_H
#define KVLI_STEP_H

#include "kvlane/kvlane.h"
#include "lane/core.h"

/*
 * Takes the lane for driving, or makes sure that whoever drives it now looks again before it leaves: a caller
 * who has made work visible and gets 0 may go away.
 */
KVLI_FN int lane_drive_try(struct lane_core *l)
{
	for (;;) {
		if (word32_cas_seq_sys(&l->drive, LANE_FREE, LANE_DRIVEN)) /* E6 */
			return 1;
		if (word32_cas_seq_sys(&l->drive, LANE_DRIVEN, LANE_CALLED)) /* E6 */
			return 0;
		/*
		 * Another's mark is swapped for the same mark and not just looked at: a load could be done before our
		 * own stores are out, and the driver that clears the mark would look too early for them.
		 */
		if (word32_cas_seq_sys(&l->drive, LANE_CALLED, LANE_CALLED)) /* E6 */
			return 0;
	}
}

/* Takes the lane only when it is free, and leaves no mark: for one who will wait until it gets it. */
KVLI_FN int lane_drive_take(struct lane_core *l)
{
	return word32_cas_seq_sys(&l->drive, LANE_FREE, LANE_DRIVEN); /* E6 */
}

/* 1: left. 0: somebody called meanwhile, the lane is still ours and is to be looked at again. */
KVLI_FN int lane_drive_leave(struct lane_core *l)
{
	if (word32_cas_seq_sys(&l->drive, LANE_DRIVEN, LANE_FREE)) /* E6 */
		return 1;
	word32_exchange_seq_sys(&l->drive, LANE_DRIVEN); /* E6 */
	return 0;
}

/* Takes the next ticket; ticket order is send-queue order. Under the producers' lock. */
KVLI_FN int lane_reserve(struct lane_core *l, uint32_t index, struct lane_request *r)
{
	uint32_t tail = word32_load_relaxed_sys(&l->tail); /* own word: the lock is held */

	if (seq_distance(word32_load_acquire_sys(&l->head), tail) > l->mask) /* E4 */
		return KVL_ERR_AGAIN;
	r->ticket = tail;
	r->outstanding = 0;
	r->chunks = 0;
	r->error = 0;
	l->slot[tail & l->mask] = index;
	word32_store_release_sys(&l->tail, tail + 1); /* E3 */
	return 0;
}

KVLI_FN int lane_queue_empty(const struct lane_core *l)
{
	return word32_load_acquire_sys(&l->head) == word32_load_acquire_sys(&l->tail); /* E4 E3 */
}

/* Keeps the first error. One of the wire's fails the lane: what is queued behind is flushed, unissued. */
KVLI_FN void lane_fail(struct lane_core *l, struct lane_request *r, int error)
{
	if (r->error == 0)
		r->error = error;
	if (error != KVL_ERR_WIRE || l->flushing)
		return;
	l->flushing = 1;
	l->flush_after = r->ticket;
	l->flush_until = word32_load_acquire_sys(&l->tail); /* E3 */
}

/* The end that was asked for this very post, 0 when none was. */
KVLI_FN int lane_stop_asked(const struct lane_request *r)
{
	uint64_t stop = word64_load_relaxed_sys(&r->stop); /* the reason itself is all that is read */

	return stop >> 16 == r->tag ? -(int)(stop & 0xffff) : 0;
}

/*
 * Asks for an early end of the post `tag`. The first reason stands, but that a cancel, which waits for what
 * is in flight, gives way to one that does not. The tag keeps a late caller, who saw an earlier post of this
 * slot, from stopping the present one.
 */
KVLI_FN void lane_stop(struct lane_request *r, uint64_t tag, int error)
{
	uint64_t old, asked = tag << 16 | (uint64_t)(uint32_t)-error;

	do {
		old = word64_load_relaxed_sys(&r->stop); /* judged by the CAS */
		if (old >> 16 == tag && (old & 0xffff) != (uint64_t)-KVL_ERR_CANCELED)
			return;
	} while (!word64_cas_seq_sys(&r->stop, old, asked)); /* no edge: a reason */
}

/* Why nothing more of this request is to be issued; 0 to go on. */
KVLI_FN int lane_stop_reason(const struct lane_core *l, const struct lane_request *r)
{
	int asked = lane_stop_asked(r);

	if (r->error || asked)
		return r->error ? r->error : asked;
	if (!l->flushing || !seq_before(l->flush_after, r->ticket) || !seq_before(r->ticket, l->flush_until))
		return 0;
	return KVL_ERR_FLUSHED;
}

/* Issues at most one chunk of the oldest request that has any left. */
KVLI_FN enum lane_result lane_issue(struct lane_core *l)
{
	struct lane_request *r;
	uint32_t index;
	int rc;

	if (l->issue == word32_load_acquire_sys(&l->tail)) /* E3 */
		return LANE_IDLE;
	if (l->flushing && l->issue == l->flush_until)
		return LANE_BLOCKED; /* the new epoch begins when the old one has drained */
	index = l->slot[l->issue & l->mask];
	r = lane_hook_request(l, index);
	rc = lane_stop_reason(l, r);
	if (rc == 0) {
		if (l->inflight >= l->window)
			return LANE_BLOCKED;
		rc = lane_hook_issue(l, index);
		if (rc == KVL_ERR_AGAIN)
			return LANE_BLOCKED;
	}
	if (rc < 0) {
		lane_fail(l, r, rc);
		rc = LANE_LAST;
	}
	if (rc & LANE_ISSUED) {
		r->outstanding++;
		r->chunks++;
		l->inflight++;
	}
	if (rc & LANE_LAST)
		l->issue++;
	return LANE_MOVED;
}

/* One chunk of request `index` is done; status 0 or a negative error. */
KVLI_FN void lane_complete(struct lane_core *l, uint32_t index, int status)
{
	struct lane_request *r = lane_hook_request(l, index);

	r->outstanding--;
	l->inflight--;
	if (status)
		lane_fail(l, r, status);
}

/* The notification, after the data and before the record. AGAIN is not for ever: a stop ends it. */
KVLI_FN int lane_notify(struct lane_core *l, uint32_t index, struct lane_request *r)
{
	int rc = 0;

	if (r->error == 0)
		r->error = lane_stop_reason(l, r);
	if (r->error == 0 && r->notify)
		rc = lane_hook_notify(l, index);
	if (rc == KVL_ERR_AGAIN)
		return rc;
	if (rc < 0)
		lane_fail(l, r, rc);
	return 0;
}

/* Ends the head request when nothing of it is left. After the publish its slot is the caller's. */
KVLI_FN enum lane_result lane_retire(struct lane_core *l)
{
	uint32_t head = word32_load_relaxed_sys(&l->head); /* own word */
	struct lane_request *r;
	uint32_t index;
	int status;

	if (head == l->issue)
		return LANE_IDLE;
	index = l->slot[head & l->mask];
	r = lane_hook_request(l, index);
	if (r->outstanding)
		return LANE_BLOCKED;
	if (!lane_stop_asked(r) && !lane_hook_may_retire(l, index)) /* who is to stop waits for no lane */
		return LANE_BLOCKED;
	if (lane_notify(l, index, r))
		return LANE_BLOCKED;
	status = r->error;
	word32_store_release_sys(&l->head, head + 1); /* E4 */
	if (l->flushing && head + 1 == l->flush_until) {
		l->flushing = 0;
		l->epoch++;
		lane_hook_reopen(l);
	}
	lane_hook_publish(l, index, status);
	return LANE_MOVED;
}

#endif
