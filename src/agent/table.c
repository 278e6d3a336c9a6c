/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define NO_SLOT UINT32_MAX

static const char *const kind_name[] = { "", "agent", "region", "peer", "list", "request" };

int kvli_handle_refuse(uint64_t h, enum kvli_kind kind, size_t entry)
{
	if (!kvli_handle_is(h, kind))
		return kvli_fail(KVL_ERR_INVALID, entry, 0, "handle of the right kind",
				 "%#" PRIx64 " is not a %s handle", h, kind_name[kind]);
	return kvli_fail(KVL_ERR_STALE, entry, 0, "handle of a living object",
			 "%s handle %#" PRIx64 " belongs to an earlier life of its slot", kind_name[kind], h);
}

void kvli_table_init(struct kvli_table *t, enum kvli_kind kind, uint32_t max, const char *limit_name)
{
	memset(t, 0, sizeof(*t));
	pthread_mutex_init(&t->lock, NULL);
	t->kind = kind;
	t->max = max;
	t->limit_name = limit_name;
	t->free_first = t->free_last = NO_SLOT;
}

void kvli_table_name(struct kvli_table *t, uint32_t agent, uint64_t first_life)
{
	t->agent = agent;
	t->first_life = first_life;
}

void kvli_table_fini(struct kvli_table *t)
{
	free(t->slot);
	pthread_mutex_destroy(&t->lock);
}

static int table_grow(struct kvli_table *t)
{
	uint32_t room = t->room ? 2 * t->room : 16;
	struct kvli_table_slot *grown;

	if (room > t->max)
		room = t->max;
	grown = realloc(t->slot, room * sizeof(*grown));
	if (grown == NULL)
		return kvli_fail(KVL_ERR_NOMEM, KVL_NO_ENTRY, 0, "memory", "no memory for %u slots", room);
	memset(grown + t->room, 0, (room - t->room) * sizeof(*grown));
	for (uint32_t i = t->room; i < room; i++)
		grown[i].life = t->first_life;
	t->slot = grown;
	t->room = room;
	return 0;
}

static uint32_t table_reuse(struct kvli_table *t)
{
	uint32_t i = t->free_first;

	t->free_first = t->slot[i].next_free;
	if (t->free_first == NO_SLOT)
		t->free_last = NO_SLOT;
	return i;
}

/* Under the lock. */
static int table_take(struct kvli_table *t, uint32_t *out)
{
	int rc;

	if (t->free_first != NO_SLOT) {
		*out = table_reuse(t);
		return 0;
	}
	if (t->used == t->max)
		return kvli_fail(KVL_ERR_LIMIT, KVL_NO_ENTRY, 0, t->limit_name,
				 "all %u %s slots are in use (option %s)", t->max, kind_name[t->kind],
				 t->limit_name);
	rc = t->used == t->room ? table_grow(t) : 0;
	if (rc == 0)
		*out = t->used++;
	return rc;
}

int kvli_table_add(struct kvli_table *t, void *object, uint64_t *handle)
{
	uint32_t i = 0;
	int rc;

	pthread_mutex_lock(&t->lock);
	rc = table_take(t, &i);
	if (rc == 0) {
		t->slot[i].object = object;
		t->slot[i].life++;
		t->slot[i].handle = kvli_handle_make(t->kind, t->agent, t->slot[i].life, i);
		*handle = t->slot[i].handle;
	}
	pthread_mutex_unlock(&t->lock);
	return rc;
}

/* Under the lock. */
static struct kvli_table_slot *table_find(struct kvli_table *t, uint64_t handle)
{
	uint32_t i = kvli_handle_index(handle);

	return i < t->used && t->slot[i].object && t->slot[i].handle == handle ? &t->slot[i] : NULL;
}

void *kvli_table_peek(struct kvli_table *t, uint64_t handle, void (*hold)(void *))
{
	struct kvli_table_slot *slot;
	void *object;

	pthread_mutex_lock(&t->lock);
	slot = table_find(t, handle);
	object = slot ? slot->object : NULL;
	if (object && hold)
		hold(object);
	pthread_mutex_unlock(&t->lock);
	return object;
}

void *kvli_table_get(struct kvli_table *t, uint64_t handle, size_t entry, void (*hold)(void *))
{
	void *object = kvli_table_peek(t, handle, hold);

	if (object == NULL)
		kvli_handle_refuse(handle, t->kind, entry);
	return object;
}

void *kvli_table_remove(struct kvli_table *t, uint64_t handle)
{
	struct kvli_table_slot *slot;
	void *object = NULL;

	pthread_mutex_lock(&t->lock);
	slot = table_find(t, handle);
	if (slot) {
		uint32_t i = (uint32_t)(slot - t->slot);

		object = slot->object;
		slot->object = NULL;
		slot->next_free = NO_SLOT;
		if (t->free_last == NO_SLOT)
			t->free_first = i;
		else
			t->slot[t->free_last].next_free = i;
		t->free_last = i;
	}
	pthread_mutex_unlock(&t->lock);
	if (object == NULL)
		kvli_handle_refuse(handle, t->kind, KVL_NO_ENTRY);
	return object;
}

void *kvli_table_at(struct kvli_table *t, uint32_t i, void (*hold)(void *), uint64_t *handle)
{
	void *object = NULL;

	pthread_mutex_lock(&t->lock);
	if (i < t->used && t->slot[i].object) {
		object = t->slot[i].object;
		*handle = t->slot[i].handle;
		if (hold)
			hold(object);
	}
	pthread_mutex_unlock(&t->lock);
	return object;
}

uint32_t kvli_table_room(struct kvli_table *t)
{
	uint32_t used;

	pthread_mutex_lock(&t->lock);
	used = t->used;
	pthread_mutex_unlock(&t->lock);
	return used;
}
