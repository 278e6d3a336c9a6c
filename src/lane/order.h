/* SPDX-License-Identifier: Apache-2.0 */
/*
 * retire_order = global: one completion list over all lanes, oldest request first. It exists to be measured
 * against: this is the head-of-line blocking that lanes do away with.
 */
#ifndef KVLI_ORDER_H
#define KVLI_ORDER_H

#include "lane/lane.h"

int kvli_order_open(struct kvli_order *order, uint32_t max_jobs);
void kvli_order_close(struct kvli_order *order);

/* Under order->lock. Lanes that shut down free their jobs while an older request still holds the head. */
int kvli_order_full(const struct kvli_order *order);

/* Takes the next place. With order->lock held across this and the lane's own reserve: both orders agree. */
uint64_t kvli_order_begin(struct kvli_order *order, struct kvli_lane *lane);

int kvli_order_is_head(struct kvli_order *order, uint64_t place);

/* Ends a place; the lane whose request is oldest now, held by `hold`, or NULL when there is none. */
struct kvli_lane *kvli_order_end(struct kvli_order *order, uint64_t place, void (*hold)(void *owner));

#endif
