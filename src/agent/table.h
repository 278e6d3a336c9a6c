/* SPDX-License-Identifier: Apache-2.0 */
/* Slots with lives: what turns handles of regions, peers and lists into objects. Thread-safe. */
#ifndef KVLI_TABLE_H
#define KVLI_TABLE_H

#include <pthread.h>

#include "agent/handle.h"

struct kvli_table_slot {
	void *object; /* NULL: free */
	uint64_t life, handle;
	uint32_t next_free;
};

struct kvli_table {
	pthread_mutex_t lock;
	enum kvli_kind kind;
	uint32_t agent; /* its slot in the registry */
	uint64_t first_life;
	const char *limit_name; /* option that bounds it, for the refusal */
	uint32_t max, room, used;
	uint32_t free_first, free_last; /* FIFO: lives of one slot are far apart */
	struct kvli_table_slot *slot;
};

void kvli_table_init(struct kvli_table *t, enum kvli_kind kind, uint32_t max, const char *limit_name);
/* Before the first add. */
void kvli_table_name(struct kvli_table *t, uint32_t agent, uint64_t first_life);
void kvli_table_fini(struct kvli_table *t);

/* KVL_ERR_LIMIT names limit_name. */
int kvli_table_add(struct kvli_table *t, void *object, uint64_t *handle);

/* The object, after hold(object) under the lock (NULL: none); NULL with the error recorded. */
void *kvli_table_get(struct kvli_table *t, uint64_t handle, size_t entry, void (*hold)(void *));

/* The same without a record of the error. hold NULL: for callers whose own lock keeps the object. */
void *kvli_table_peek(struct kvli_table *t, uint64_t handle, void (*hold)(void *));

/* Takes it out: its handle is stale from here on. NULL with the error recorded. */
void *kvli_table_remove(struct kvli_table *t, uint64_t handle);

/* The object in slot i, held; NULL when free. For walks from 0 to kvli_table_room(). */
void *kvli_table_at(struct kvli_table *t, uint32_t i, void (*hold)(void *), uint64_t *handle);
uint32_t kvli_table_room(struct kvli_table *t);

#endif
