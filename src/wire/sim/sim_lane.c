/* SPDX-License-Identifier: Apache-2.0 */
/* A lane of the software NIC: what it takes, when that completes, and how it fails. */
#include "wire/sim/sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------- chance */

/* SplitMix64 (Steele, Lea and Flood 2014). */
static uint64_t random_step(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* In [0, n). The bias of the remainder, below n / 2^64, is no matter for a simulation. */
static uint64_t random_below(uint64_t *state, uint64_t n)
{
	return random_step(state) % n;
}

static void random_mix(uint64_t *state, const char *name)
{
	do {
		*state = random_step(state) ^ (unsigned char)*name;
	} while (*name++);
}

/* Names, not incarnations, so that the next run of the same program sees the same. */
static uint64_t lane_seed(const struct kvli_wire_lane *lane)
{
	uint64_t state = lane->conn->owner->options.seed;

	random_mix(&state, lane->conn->owner->host.self.name);
	random_mix(&state, lane->conn->target->host.self.name);
	state = random_step(&state) ^ lane->index;
	return random_step(&state);
}

/* ------------------------------------------------------------------------------------------ lists and queues
 */

static void list_push(struct sim_list *list, struct sim_chunk *chunk)
{
	chunk->next = NULL;
	if (list->head)
		list->tail->next = chunk;
	else
		list->head = chunk;
	list->tail = chunk;
}

static struct sim_chunk *list_pop(struct sim_list *list)
{
	struct sim_chunk *chunk = list->head;

	if (chunk)
		list->head = chunk->next;
	return chunk;
}

void kvli_sim_queue_init(struct sim_queue *queue)
{
	memset(queue, 0, sizeof(*queue));
	pthread_mutex_init(&queue->lock, NULL);
}

void kvli_sim_queue_fini(struct sim_queue *queue)
{
	pthread_mutex_destroy(&queue->lock);
}

int kvli_sim_lane_open(struct kvli_wire_lane *lane, struct kvli_conn *conn, uint32_t index)
{
	struct kvli_wire *owner = conn->owner;

	lane->conn = conn;
	lane->index = index;
	lane->random = lane_seed(lane);
	lane->pool = calloc(owner->window, sizeof(*lane->pool));
	if (lane->pool == NULL)
		return KVL_ERR_NOMEM;
	kvli_sim_queue_init(&lane->own);
	lane->queue = owner->options.reorder ? &lane->own : &owner->queue;
	return 0;
}

/* Takes the lane's chunks out of flight; with reorder = 0 those of other lanes stay. Under queue.lock. */
static void lane_end_flight(struct kvli_wire_lane *lane, int status)
{
	struct sim_list *flight = &lane->queue->flight, others = { NULL, NULL };
	struct sim_chunk *chunk;

	while ((chunk = list_pop(flight)) != NULL) {
		chunk->status = status;
		list_push(chunk->lane == lane ? &lane->done : &others, chunk);
	}
	*flight = others;
}

void kvli_sim_lane_close(struct kvli_wire_lane *lane)
{
	kvli_sim_fence(lane, KVL_ERR_CLOSED);
	kvli_sim_queue_fini(&lane->own);
	free(lane->pool);
}

/* -------------------------------------------------------------------------------------------------- issue */

/* One case of again = P. The run is bounded, so that even P = 100 only slows a lane down. */
static int lane_storms(struct kvli_wire_lane *lane)
{
	uint64_t percent = lane->conn->owner->options.again;

	if (percent == 0 || lane->storm == SIM_STORM || random_below(&lane->random, 100) >= percent) {
		lane->storm = 0;
		return 0;
	}
	lane->storm++;
	return 1;
}

static struct sim_chunk *chunk_take(struct kvli_wire_lane *lane)
{
	struct sim_chunk *chunk = list_pop(&lane->spare);

	if (chunk == NULL && lane->used < lane->conn->owner->window)
		chunk = &lane->pool[lane->used++];
	return chunk;
}

/* Remembers the next piece by value and advances the cursor; returns its bytes, at most max. */
static uint64_t chunk_add(struct sim_chunk *chunk, struct kvli_cursor *cursor, uint64_t max)
{
	const struct kvli_segment *segment = &cursor->segment[cursor->at];
	uint64_t left = segment->len - cursor->offset, len = left < max ? left : max;

	chunk->piece[chunk->n++] = (struct sim_piece){
		.local = segment->local + cursor->offset,
		.remote = segment->remote + cursor->offset,
		.len = len,
		.generation = segment->region->generation,
		.slot = segment->region->slot,
	};
	cursor->offset += len;
	if (cursor->offset == segment->len) {
		cursor->at++;
		cursor->offset = 0;
	}
	return len;
}

static uint64_t chunk_fill(struct sim_chunk *chunk, struct kvli_cursor *cursor, uint64_t max)
{
	uint64_t bytes = 0;

	chunk->n = 0;
	while (cursor->at < cursor->n && bytes < max && chunk->n < SIM_PIECES)
		bytes += chunk_add(chunk, cursor, max - bytes);
	return bytes;
}

/* A failing chunk moves a prefix that is shorter than the chunk, half of the time none. */
static void chunk_draw_fault(struct sim_chunk *chunk, struct kvli_wire_lane *lane, uint64_t bytes)
{
	uint64_t mille = lane->conn->owner->options.error;

	chunk->limit = bytes;
	chunk->fault = mille && random_below(&lane->random, 1000) < mille;
	if (chunk->fault)
		chunk->limit = random_below(&lane->random, 2) ? random_below(&lane->random, bytes) : 0;
}

static void lane_launch(struct kvli_wire_lane *lane, struct sim_chunk *chunk)
{
	uint64_t delay = random_below(&lane->random, lane->conn->owner->options.delay + 1);
	struct sim_queue *queue = lane->queue;

	pthread_mutex_lock(&queue->lock);
	chunk->due = queue->tick + 1 + delay;
	list_push(&queue->flight, chunk);
	pthread_mutex_unlock(&queue->lock);
}

/* Withdrawn regions and a closed target are found when the chunk completes, as on a network. */
int64_t kvli_sim_issue(struct kvli_wire_lane *lane, enum kvl_op op, struct kvli_cursor *cursor,
		       uint64_t max_bytes, uint64_t cookie, const char **path, int *provider)
{
	struct sim_chunk *chunk;
	uint64_t bytes;

	(void)provider; /* no error of issue has a code of its own */
	if (lane->failed)
		return KVL_ERR_FLUSHED;
	if (cursor->at == cursor->n || max_bytes == 0)
		return KVL_ERR_INVALID;
	if (lane_storms(lane))
		return KVL_ERR_AGAIN;
	chunk = chunk_take(lane);
	if (chunk == NULL)
		return KVL_ERR_AGAIN;
	bytes = chunk_fill(chunk, cursor, max_bytes < SIM_MAX_CHUNK ? max_bytes : SIM_MAX_CHUNK);
	chunk->lane = lane;
	chunk->op = op;
	chunk->cookie = cookie;
	chunk->status = 0;
	chunk_draw_fault(chunk, lane, bytes);
	lane_launch(lane, chunk);
	*path = kvli_wire_sim.name;
	return (int64_t)bytes;
}

/* --------------------------------------------------------------------------------------------- completion */

/*
 * A failing chunk takes the lane down as on a queue pair in its error state: what is in flight behind it ends
 * flushed and moves nothing. Under queue.lock.
 */
static void lane_place(struct kvli_wire_lane *lane, struct sim_chunk *chunk)
{
	chunk->status = kvli_sim_move(lane->conn->target, chunk);
	if (chunk->status || !chunk->fault)
		return;
	chunk->status = KVL_ERR_WIRE;
	lane->failed = 1;
	lane_end_flight(lane, KVL_ERR_FLUSHED);
}

/* The next chunk to report, or NULL. Under queue.lock. */
static struct sim_chunk *lane_next(struct kvli_wire_lane *lane)
{
	struct sim_queue *queue = lane->queue;
	struct sim_chunk *chunk = list_pop(&lane->done);

	if (chunk)
		return chunk;
	chunk = queue->flight.head;
	if (chunk == NULL || chunk->lane != lane || chunk->due > queue->tick)
		return NULL;
	list_pop(&queue->flight);
	lane_place(lane, chunk);
	return chunk;
}

int kvli_sim_poll(struct kvli_wire_lane *lane, struct kvli_completion *out, int max)
{
	struct sim_chunk *chunk;
	int n = 0;

	pthread_mutex_lock(&lane->queue->lock);
	lane->queue->tick++;
	while (n < max && (chunk = lane_next(lane)) != NULL) {
		out[n].cookie = chunk->cookie;
		out[n].status = chunk->status;
		out[n].provider = chunk->status == KVL_ERR_WIRE && chunk->fault ? EIO : 0;
		list_push(&lane->spare, chunk);
		n++;
	}
	pthread_mutex_unlock(&lane->queue->lock);
	return n;
}

int kvli_sim_fence(struct kvli_wire_lane *lane, int status)
{
	pthread_mutex_lock(&lane->queue->lock);
	lane_end_flight(lane, status);
	pthread_mutex_unlock(&lane->queue->lock);
	return 0;
}

void kvli_sim_reopen(struct kvli_wire_lane *lane)
{
	lane->failed = 0;
	lane->epoch++;
}

int kvli_sim_notify(struct kvli_wire_lane *lane, const void *data, uint64_t len, uint64_t *sent)
{
	struct kvli_notif *notif;
	int rc;

	if (lane_storms(lane))
		return KVL_ERR_AGAIN;
	notif = kvli_notif_new(&lane->conn->owner->host.self, lane->index, len);
	if (notif == NULL)
		return KVL_ERR_NOMEM;
	if (len)
		memcpy(notif + 1, data, len);
	rc = kvli_sim_deliver(lane->conn, notif);
	if (rc)
		kvl_notif_free(&notif->pub);
	else
		*sent = len;
	return rc;
}
