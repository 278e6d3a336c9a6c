/* SPDX-License-Identifier: Apache-2.0 */
/* The owner's side of the copy fence (E7, segment.h): waits for the copies that began before a withdrawal. */
#include <sched.h>
#include <stdlib.h>

#include "base/clock.h"
#include "wire/local/local.h"

/* One lane that was inside a copy, and its busy word as it was seen then. */
struct fence_wait {
	struct serve *serve;
	const struct word64 *busy;
	uint64_t seen;
};

/* Under serve_lock. Those that are inside a copy now; each holds its connection. */
static size_t fence_collect(struct kvli_wire *wire, struct fence_wait *out)
{
	size_t n = 0;

	for (struct serve *s = wire->serves; s; s = s->next) {
		for (uint32_t i = 0; i < s->n_lanes; i++) {
			const struct word64 *busy = &s->lane[i].words->busy;
			uint64_t seen = word64_load_seq_sys(busy); /* E7 */

			if (!(seen & 1))
				continue;
			kvli_serve_hold(s);
			out[n++] = (struct fence_wait){ s, busy, seen };
		}
	}
	return n;
}

static size_t fence_room(const struct kvli_wire *wire)
{
	size_t n = 0;

	for (const struct serve *s = wire->serves; s; s = s->next)
		n += s->n_lanes;
	return n;
}

static int fence_still_in(const struct fence_wait *w)
{
	return word64_load_seq_sys(w->busy) == w->seen && /* E7 */
	       !word32_load_acquire_sys(&w->serve->dead); /* a flag */
}

static int fence_one(const struct fence_wait *w, uint64_t deadline)
{
	while (fence_still_in(w)) { /* E7 */
		if (kvli_now() >= deadline)
			return KVL_ERR_TIMED_OUT;
		sched_yield();
	}
	return 0;
}

int kvli_serve_fence(struct kvli_wire *wire, uint64_t timeout_ns)
{
	uint64_t deadline = kvli_deadline(timeout_ns);
	struct fence_wait *wait;
	size_t room, n = 0;
	int rc = 0;

	pthread_mutex_lock(&wire->serve_lock);
	room = fence_room(wire);
	wait = room ? calloc(room, sizeof(*wait)) : NULL;
	if (wait)
		n = fence_collect(wire, wait);
	pthread_mutex_unlock(&wire->serve_lock);
	if (room && wait == NULL)
		return KVL_ERR_NOMEM;
	for (size_t i = 0; i < n; i++) {
		if (rc == 0)
			rc = fence_one(&wait[i], deadline);
		kvli_serve_drop(wait[i].serve);
	}
	free(wait);
	return rc;
}
