/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An agent's control thread: one epoll loop that sleeps unless a descriptor is ready. It serves connects,
 * doorbells and deaths, so that these need no call of the application.
 */
#ifndef KVLI_REACTOR_H
#define KVLI_REACTOR_H

#include <stdint.h>

struct kvli_reactor;
struct kvli_watch; /* one watched descriptor */

/* Runs in the control thread. Returns 1 to be called again soon without waiting for the descriptor. */
typedef int (*kvli_watch_fn)(void *arg, uint32_t events);

int kvli_reactor_open(struct kvli_reactor **out);
void kvli_reactor_close(struct kvli_reactor *reactor); /* every watch is gone by now; joins the thread */

/* events as epoll's, level-triggered. The descriptor stays the caller's. */
int kvli_watch_add(struct kvli_reactor *reactor, int fd, uint32_t events, kvli_watch_fn fn, void *arg,
		   struct kvli_watch **out);

/*
 * After return the function does not run and will not. Waits for a running call unless made from the control
 * thread itself, so the caller must not hold a lock that the function takes. NULL is allowed.
 */
void kvli_watch_del(struct kvli_watch *watch);

/* Between the two no function runs, for changing what several of them use. Waits as kvli_watch_del() does. */
void kvli_reactor_pause(struct kvli_reactor *reactor);
void kvli_reactor_go_on(struct kvli_reactor *reactor);

/* From the control thread: the function is called soon without waiting for the descriptor. */
void kvli_watch_again(struct kvli_watch *watch);

/* From the control thread: the descriptor's events are not looked at any more; kvli_watch_again still works. NULL is
 * allowed. */
void kvli_watch_mute(struct kvli_watch *watch);

#endif
