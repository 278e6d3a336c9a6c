/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/text.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/*
 * struct kvl_config has no room to say which of its strings are ours, and a caller mixes literals with text
 * that was set. So every copy we make is on this list, and only what is found there is ever freed. Global,
 * because a config belongs to no agent; a handful of short strings, touched at set-up and tear-down only.
 */
struct pooled {
	struct pooled *next;
	char text[];
};

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static struct pooled *pool;

const char *kvli_text_copy(const char *text)
{
	size_t n = strlen(text) + 1;
	struct pooled *item = malloc(sizeof(*item) + n);

	if (!item) {
		kvli_fail(KVL_ERR_NOMEM, KVL_NO_ENTRY, 0, "memory for an option",
			  "no memory for an option's text");
		return NULL;
	}
	memcpy(item->text, text, n);
	pthread_mutex_lock(&pool_lock);
	item->next = pool;
	pool = item;
	pthread_mutex_unlock(&pool_lock);
	return item->text;
}

void kvli_text_drop(const char *text)
{
	struct pooled **at, *item;

	pthread_mutex_lock(&pool_lock);
	for (at = &pool; *at && (*at)->text != text; at = &(*at)->next)
		;
	item = *at;
	if (item)
		*at = item->next;
	pthread_mutex_unlock(&pool_lock);
	free(item);
}

size_t kvli_text_alive(void)
{
	size_t n = 0;

	pthread_mutex_lock(&pool_lock);
	for (const struct pooled *item = pool; item; item = item->next)
		n++;
	pthread_mutex_unlock(&pool_lock);
	return n;
}
