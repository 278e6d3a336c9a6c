/* SPDX-License-Identifier: Apache-2.0 */
#include "xfer/events.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"

int kvli_events_open(struct kvli_events *e, uint64_t notif_limit)
{
	pthread_condattr_t attr;

	memset(e, 0, sizeof(*e));
	e->notif_limit = notif_limit;
	e->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (e->fd < 0)
		return kvli_fail(KVL_ERR_SYSTEM, KVL_NO_ENTRY, errno, "eventfd", "can not make a descriptor");
	pthread_mutex_init(&e->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&e->wake, &attr);
	pthread_condattr_destroy(&attr);
	return 0;
}

void kvli_events_close(struct kvli_events *e)
{
	struct kvli_notif *next;

	for (struct kvli_notif *n = e->notif_first; n; n = next) {
		next = n->next;
		free(n);
	}
	close(e->fd);
	pthread_cond_destroy(&e->wake);
	pthread_mutex_destroy(&e->lock);
}

int kvli_events_any(const struct kvli_events *e, const void *unused)
{
	(void)unused;
	return e->end_first || e->notif_first;
}

/* Keeps the descriptor's level equal to "something can be taken". Under the lock. */
static void events_level(struct kvli_events *e)
{
	int any = kvli_events_any(e, NULL);
	uint64_t value = 1;
	ssize_t n;

	if (!e->fd_asked || any == e->fd_set)
		return;
	n = any ? write(e->fd, &value, sizeof(value)) : read(e->fd, &value, sizeof(value));
	(void)n; /* one writer, a count of at most 1: neither can fail */
	e->fd_set = any;
}

/* Under the lock. */
static void events_wake(struct kvli_events *e)
{
	events_level(e);
	if (e->waiters)
		pthread_cond_broadcast(&e->wake);
}

static void ends_unlink(struct kvli_events *e, struct kvli_request *r)
{
	if (r->prev_end)
		r->prev_end->next_end = r->next_end;
	else
		e->end_first = r->next_end;
	if (r->next_end)
		r->next_end->prev_end = r->prev_end;
	else
		e->end_last = r->prev_end;
	r->listed = 0;
}

static void ends_append(struct kvli_events *e, struct kvli_request *r)
{
	if (r->listed)
		ends_unlink(e, r); /* an end of an earlier post that nobody took */
	r->prev_end = e->end_last;
	r->next_end = NULL;
	if (e->end_last)
		e->end_last->next_end = r;
	else
		e->end_first = r;
	e->end_last = r;
	r->listed = 1;
}

static void result_set(struct kvli_request *r, uint64_t end_ns)
{
	const struct kvli_job *job = &r->job;

	r->result = (struct kvli_result){
		.bytes = job->bytes,
		.chunks = job->core.chunks,
		.ticket = job->core.ticket,
		.post_ns = job->post_ns,
		.issue_ns = job->issue_ns,
		.wire_ns = job->wire_ns || job->core.chunks == 0 ? job->wire_ns : end_ns,
		.end_ns = end_ns,
		.path = job->path,
		.failed_segment = job->failed_segment,
		.provider = job->provider,
	};
}

void kvli_events_end(struct kvli_events *e, struct kvli_request *r, int status)
{
	uint64_t pending = record_observe(r->record), now = kvli_now();

	pthread_mutex_lock(&e->lock);
	result_set(r, now);
	if (!r->auto_release)
		ends_append(e, r);
	record_publish(r->record, pending, status);
	events_wake(e);
	pthread_mutex_unlock(&e->lock);
}

/* One that is being posted stays listed: the post may be refused, and then its earlier end is still news. */
size_t kvli_events_take_ends(struct kvli_events *e, struct kvli_ended *out, size_t max)
{
	struct kvli_request *next;
	size_t n = 0;

	pthread_mutex_lock(&e->lock);
	for (struct kvli_request *r = e->end_first; r && n < max; r = next) {
		uint64_t record = record_observe(r->record);

		next = r->next_end;
		if (record_state(record) == RECORD_POSTING)
			continue;
		ends_unlink(e, r);
		if (record_state(record) == RECORD_ENDED) /* else it was posted again meanwhile */
			out[n++] = (struct kvli_ended){ r->index, record, r->user };
	}
	events_level(e);
	pthread_mutex_unlock(&e->lock);
	return n;
}

int kvli_events_release(struct kvli_events *e, struct kvli_request *r, uint64_t seen)
{
	int done;

	pthread_mutex_lock(&e->lock);
	done = word64_cas_seq_sys(r->record, seen, record_with_state(seen, RECORD_RELEASING, 0)); /* E5 */
	if (done && r->listed)
		ends_unlink(e, r);
	events_level(e);
	pthread_mutex_unlock(&e->lock);
	return done;
}

/* Empty notifications cost memory too. */
static uint64_t notif_cost(const struct kvli_notif *n)
{
	return n->pub.len + sizeof(*n);
}

int kvli_events_deliver(struct kvli_events *e, struct kvli_notif *notif)
{
	int rc = 0;

	pthread_mutex_lock(&e->lock);
	if (e->notif_first && e->notif_bytes + notif_cost(notif) > e->notif_limit) {
		e->starved = 1;
		rc = KVL_ERR_AGAIN;
	} else {
		notif->next = NULL;
		if (e->notif_last)
			e->notif_last->next = notif;
		else
			e->notif_first = notif;
		e->notif_last = notif;
		e->notif_bytes += notif_cost(notif);
		events_wake(e);
	}
	pthread_mutex_unlock(&e->lock);
	return rc;
}

struct kvli_notif *kvli_events_take_notif(struct kvli_events *e, int *resume)
{
	struct kvli_notif *n;

	pthread_mutex_lock(&e->lock);
	n = e->notif_first;
	if (n) {
		e->notif_first = n->next;
		if (e->notif_first == NULL)
			e->notif_last = NULL;
		e->notif_bytes -= notif_cost(n);
		events_level(e);
	}
	*resume = e->starved && e->notif_bytes <= e->notif_limit / 2;
	if (*resume)
		e->starved = 0;
	pthread_mutex_unlock(&e->lock);
	return n;
}

void kvli_events_call(struct kvli_events *e)
{
	pthread_mutex_lock(&e->lock);
	e->calls++;
	if (e->waiters)
		pthread_cond_broadcast(&e->wake);
	pthread_mutex_unlock(&e->lock);
}

uint64_t kvli_events_calls(struct kvli_events *e)
{
	uint64_t calls;

	pthread_mutex_lock(&e->lock);
	calls = e->calls;
	pthread_mutex_unlock(&e->lock);
	return calls;
}

void kvli_events_shut(struct kvli_events *e)
{
	pthread_mutex_lock(&e->lock);
	e->closing = 1;
	pthread_cond_broadcast(&e->wake);
	pthread_mutex_unlock(&e->lock);
}

void kvli_events_sleep(struct kvli_events *e, kvli_ready_fn ready, const void *arg, uint64_t calls,
		       uint64_t deadline_ns)
{
	struct timespec at = { (time_t)(deadline_ns / 1000000000), (long)(deadline_ns % 1000000000) };
	int rc = 0;

	pthread_mutex_lock(&e->lock);
	e->waiters++;
	while (rc == 0 && !e->closing && e->calls == calls && !ready(e, arg))
		rc = pthread_cond_timedwait(&e->wake, &e->lock, &at);
	e->waiters--;
	pthread_mutex_unlock(&e->lock);
}

int kvli_events_fd(struct kvli_events *e)
{
	pthread_mutex_lock(&e->lock);
	e->fd_asked = 1;
	events_level(e);
	pthread_mutex_unlock(&e->lock);
	return e->fd;
}
