/* SPDX-License-Identifier: Apache-2.0 */
#include "control/reactor.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <errno.h>
#include <unistd.h>

#include "base/error.h"

struct kvli_watch {
	struct kvli_reactor *reactor;
	struct kvli_watch *next_again; /* list of watches to call again */
	int fd;
	kvli_watch_fn fn;
	void *arg;
};

struct kvli_reactor {
	pthread_t thread;
	pthread_mutex_t
		run; /* held while a callback runs: kvli_watch_del() waits on it. Recursive: callbacks delete too */
	int epoll, stop_fd;
	int stopping, turn; /* under run */
	struct kvli_watch *again;
};

static void again_unlink(struct kvli_reactor *r, const struct kvli_watch *w)
{
	struct kvli_watch **at = &r->again;

	while (*at && *at != w)
		at = &(*at)->next_again;
	if (*at)
		*at = w->next_again;
}

/* A function that deleted its own watch returns 0: then w is gone. */
static void watch_call(struct kvli_reactor *r, struct kvli_watch *w, uint32_t events)
{
	again_unlink(r, w);
	if (w->fn(w->arg, events))
		kvli_watch_again(w);
}

void kvli_watch_again(struct kvli_watch *w)
{
	struct kvli_watch **at = &w->reactor->again;

	while (*at && *at != w) /* to the end: each watch gets its turn */
		at = &(*at)->next_again;
	if (*at)
		return;
	w->next_again = NULL;
	*at = w;
}

void kvli_watch_mute(struct kvli_watch *w)
{
	if (w == NULL)
		return;
	epoll_ctl(w->reactor->epoll, EPOLL_CTL_DEL, w->fd, NULL);
}

/*
 * One event at a time and with the lock held since it was fetched, so that no event of a deleted watch can
 * be left over. Returns 0 to stop, else whether watches want to be called again.
 */
static int reactor_pass(struct kvli_reactor *r, int *again)
{
	struct epoll_event ev;

	pthread_mutex_lock(&r->run);
	if (r->stopping) {
		pthread_mutex_unlock(&r->run);
		return 0;
	}
	r->turn = !r->turn; /* neither a busy descriptor nor a busy watch keeps the other from its turn */
	if (r->again && r->turn)
		watch_call(r, r->again, 0);
	else if (epoll_wait(r->epoll, &ev, 1, 0) == 1 && ev.data.ptr)
		watch_call(r, ev.data.ptr, ev.events);
	*again = r->again != NULL;
	pthread_mutex_unlock(&r->run);
	return 1;
}

static void *reactor_main(void *arg)
{
	struct kvli_reactor *r = arg;
	struct pollfd p = { r->epoll, POLLIN, 0 };
	int again = 0;

	do
		poll(&p, 1, again ? 0 : -1);
	while (reactor_pass(r, &again));
	return NULL;
}

/* The application's signals are not for this thread. */
static int reactor_start(struct kvli_reactor *r)
{
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&r->thread, NULL, reactor_main, r);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc;
}

static void run_init(pthread_mutex_t *run)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(run, &attr);
	pthread_mutexattr_destroy(&attr);
}

void kvli_reactor_pause(struct kvli_reactor *r)
{
	pthread_mutex_lock(&r->run);
}

void kvli_reactor_go_on(struct kvli_reactor *r)
{
	pthread_mutex_unlock(&r->run);
}

int kvli_reactor_open(struct kvli_reactor **out)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct kvli_reactor *r = calloc(1, sizeof(*r));
	int rc;

	if (r == NULL)
		return kvli_fail(KVL_ERR_NOMEM, KVL_NO_ENTRY, 0, "memory",
				 "no memory for the control thread");
	run_init(&r->run);
	r->epoll = epoll_create1(EPOLL_CLOEXEC);
	r->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = errno;
	if (r->epoll < 0 || r->stop_fd < 0 || epoll_ctl(r->epoll, EPOLL_CTL_ADD, r->stop_fd, &ev))
		goto close_fds;
	rc = reactor_start(r);
	if (rc)
		goto close_fds;
	*out = r;
	return 0;

close_fds:
	if (r->epoll >= 0)
		close(r->epoll);
	if (r->stop_fd >= 0)
		close(r->stop_fd);
	pthread_mutex_destroy(&r->run);
	free(r);
	return kvli_fail(KVL_ERR_SYSTEM, KVL_NO_ENTRY, rc, "control thread",
			 "can not start the control thread");
}

void kvli_reactor_close(struct kvli_reactor *r)
{
	uint64_t one = 1;
	ssize_t n;

	pthread_mutex_lock(&r->run);
	r->stopping = 1;
	pthread_mutex_unlock(&r->run);
	n = write(r->stop_fd, &one, sizeof(one));
	(void)n; /* a full counter is readable too */
	pthread_join(r->thread, NULL);
	close(r->epoll);
	close(r->stop_fd);
	pthread_mutex_destroy(&r->run);
	free(r);
}

int kvli_watch_add(struct kvli_reactor *r, int fd, uint32_t events, kvli_watch_fn fn, void *arg,
		   struct kvli_watch **out)
{
	struct kvli_watch *w = calloc(1, sizeof(*w));
	struct epoll_event ev = { .events = events, .data.ptr = w };

	if (w == NULL)
		return kvli_fail(KVL_ERR_NOMEM, KVL_NO_ENTRY, 0, "memory", "no memory to watch a descriptor");
	w->reactor = r;
	w->fd = fd;
	w->fn = fn;
	w->arg = arg;
	*out = w; /* before the first call can come */
	if (epoll_ctl(r->epoll, EPOLL_CTL_ADD, fd, &ev) == 0)
		return 0;
	*out = NULL;
	free(w);
	return kvli_fail(KVL_ERR_SYSTEM, KVL_NO_ENTRY, errno, "epoll_ctl", "can not watch descriptor %d", fd);
}

void kvli_watch_del(struct kvli_watch *w)
{
	struct kvli_reactor *r;

	if (w == NULL)
		return;
	r = w->reactor;
	pthread_mutex_lock(&r->run);
	epoll_ctl(r->epoll, EPOLL_CTL_DEL, w->fd, NULL);
	again_unlink(r, w);
	pthread_mutex_unlock(&r->run);
	free(w);
}
