/* SPDX-License-Identifier: Apache-2.0 */
#include "lane/order.h"

#include <stdlib.h>

#include "base/error.h"

int kvli_order_open(struct kvli_order *order, uint32_t max_jobs)
{
	uint32_t size = 1;

	while (size < max_jobs)
		size *= 2;
	order->head = order->next = 0;
	order->mask = size - 1;
	order->lane = calloc(size, sizeof(struct kvli_lane *));
	order->done = calloc(size, 1);
	if (order->lane == NULL || order->done == NULL) {
		free(order->lane);
		free(order->done);
		return kvli_fail(KVL_ERR_NOMEM, KVL_NO_ENTRY, 0, "memory",
				 "no memory for the completion order");
	}
	pthread_mutex_init(&order->lock, NULL);
	return 0;
}

void kvli_order_close(struct kvli_order *order)
{
	free(order->lane);
	free(order->done);
	pthread_mutex_destroy(&order->lock);
}

int kvli_order_full(const struct kvli_order *order)
{
	return order->next - order->head > order->mask;
}

uint64_t kvli_order_begin(struct kvli_order *order, struct kvli_lane *lane)
{
	uint64_t place = order->next++;

	order->lane[place & order->mask] = lane;
	order->done[place & order->mask] = 0;
	return place;
}

int kvli_order_is_head(struct kvli_order *order, uint64_t place)
{
	int head;

	pthread_mutex_lock(&order->lock);
	head = order->head == place;
	pthread_mutex_unlock(&order->lock);
	return head;
}

/* Lanes that shut down end out of order: their places are skipped when their turn comes. */
struct kvli_lane *kvli_order_end(struct kvli_order *order, uint64_t place, void (*hold)(void *owner))
{
	struct kvli_lane *oldest = NULL;

	pthread_mutex_lock(&order->lock);
	order->done[place & order->mask] = 1;
	while (order->head != order->next && order->done[order->head & order->mask])
		order->head++;
	if (order->head != order->next) {
		oldest = order->lane[order->head & order->mask];
		hold(oldest->owner);
	}
	pthread_mutex_unlock(&order->lock);
	return oldest;
}
