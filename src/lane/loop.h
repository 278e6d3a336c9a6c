/* SPDX-License-Identifier: Apache-2.0 */
/* A ready list of lanes, and the worker thread that serves it when the agent has workers. */
#ifndef KVLI_LOOP_H
#define KVLI_LOOP_H

#include <pthread.h>

#include "lane/lane.h"

struct kvli_loop {
	struct kvli_engine *engine;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct kvli_lane *first, *last; /* FIFO; each entry holds its lane's owner */
	uint32_t n_ready;
	int sleeping, stopping;
	pthread_t thread;
};

/* Puts the lane at the end of its loop's ready list, once, and wakes the worker. */
void kvli_loop_put(struct kvli_lane *lane);

/* Takes the first ready lane and with it the hold on its owner; NULL when there is none. */
struct kvli_lane *kvli_loop_take(struct kvli_loop *loop);

/* Takes the lane off the list if it is on it. */
void kvli_loop_remove(struct kvli_lane *lane);

#endif
