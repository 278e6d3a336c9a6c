/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "wire/wire.h"

struct kvli_notif *kvli_notif_new(const struct kvli_identity *from, uint32_t lane, uint64_t len)
{
	struct kvli_notif *n;

	if (len > SIZE_MAX - sizeof(*n))
		return NULL;
	n = malloc(sizeof(*n) + (size_t)len);
	if (n == NULL)
		return NULL;
	memset(n, 0, sizeof(*n));
	n->pub.data = n + 1;
	n->pub.len = len;
	n->pub.lane = lane;
	memcpy(n->pub.peer, from->name, sizeof(n->pub.peer));
	memcpy(n->pub.incarnation, from->incarnation, sizeof(n->pub.incarnation));
	return n;
}

void kvl_notif_free(struct kvl_notif *notif)
{
	free(notif);
}
