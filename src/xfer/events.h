/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an application waits for: ended requests and received notifications, with one lock, one condition and
 * one descriptor. Terminal records are published under the lock, see xfer/request.h.
 */
#ifndef KVLI_EVENTS_H
#define KVLI_EVENTS_H

#include <pthread.h>

#include "xfer/request.h"

struct kvli_events {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	uint32_t waiters;
	uint64_t calls; /* counts reasons to look again besides ends and notifications */
	int closing;
	struct kvli_request *end_first, *end_last;
	struct kvli_notif *notif_first, *notif_last;
	uint64_t notif_bytes, notif_limit;
	int starved; /* a notification was turned away */
	int fd, fd_asked, fd_set;
};

int kvli_events_open(struct kvli_events *e, uint64_t notif_limit);
void kvli_events_close(struct kvli_events *e);

/* Publishes the end of a pending request and lists it, or with auto_release tells the caller to give it up. */
void kvli_events_end(struct kvli_events *e, struct kvli_request *r, int status);

/* An end as it stood when it was taken: the request may be released by another thread at any time. */
struct kvli_ended {
	uint32_t index;
	uint64_t record;
	void *user;
};

/* Takes ends off the list, oldest first. */
size_t kvli_events_take_ends(struct kvli_events *e, struct kvli_ended *out, size_t max);
/* Moves a request that still stands as `seen` to RELEASING and takes it off the list; 0 when it does not. */
int kvli_events_release(struct kvli_events *e, struct kvli_request *r, uint64_t seen);

/* KVL_ERR_AGAIN when the limit is reached, unless the queue is empty. */
int kvli_events_deliver(struct kvli_events *e, struct kvli_notif *notif);
/* NULL when there is none. *resume: there is room again for those turned away. */
struct kvli_notif *kvli_events_take_notif(struct kvli_events *e, int *resume);

/* A reason for waiters to look again. */
void kvli_events_call(struct kvli_events *e);
uint64_t kvli_events_calls(struct kvli_events *e);

/* Makes every waiter return, now and later. */
void kvli_events_shut(struct kvli_events *e);

/* What a sleeper waits for beside calls: `ready` is asked under the lock. */
typedef int (*kvli_ready_fn)(const struct kvli_events *e, const void *arg);

/* Sleeps until ready, a call newer than `calls`, closing, or the deadline. */
void kvli_events_sleep(struct kvli_events *e, kvli_ready_fn ready, const void *arg, uint64_t calls,
		       uint64_t deadline_ns);

/* The descriptor for epoll; from the first call on it is kept readable while something can be taken. */
int kvli_events_fd(struct kvli_events *e);

int kvli_events_any(const struct kvli_events *e, const void *unused); /* a kvli_ready_fn */

#endif
