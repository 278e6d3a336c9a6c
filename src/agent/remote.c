/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/remote.h"

#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* Under update_lock: the region in this slot of the owner's table, if it is of this generation. */
static struct kvli_region *remote_known(const struct kvli_peer *peer, const struct kvli_md_region *m)
{
	struct kvli_region *r = m->slot < peer->n_by_slot ? peer->by_slot[m->slot] : NULL;

	return r && r->at.generation == m->generation ? r : NULL;
}

static int remote_reserve_slots(struct kvli_peer *peer, const struct kvli_md *md)
{
	uint32_t n = peer->n_by_slot;
	struct kvli_region **grown;

	for (uint32_t i = 0; i < md->n_regions; i++)
		if (md->region[i].slot >= n)
			n = md->region[i].slot + 1;
	if (n == peer->n_by_slot)
		return 0;
	grown = realloc(peer->by_slot, n * sizeof(struct kvli_region *));
	if (grown == NULL)
		return kvli_fail(KVL_ERR_NOMEM, KVL_NO_ENTRY, 0, "memory", "no memory for %u regions", n);
	memset(grown + peer->n_by_slot, 0, (n - peer->n_by_slot) * sizeof(struct kvli_region *));
	peer->by_slot = grown;
	peer->n_by_slot = n;
	return 0;
}

static struct kvli_region *remote_new(const struct kvli_md_region *m)
{
	struct kvli_region *r = calloc(1, sizeof(*r));

	if (r == NULL) {
		kvli_fail(KVL_ERR_NOMEM, KVL_NO_ENTRY, 0, "memory", "no memory for a region of the peer");
		return NULL;
	}
	r->at = (struct kvli_remote){
		.base = m->base,
		.len = m->len,
		.generation = m->generation,
		.slot = m->slot,
		.rights = m->rights,
		.device = m->device,
	};
	word32_store_relaxed_sys(&r->pins, 1); /* not shared yet; the pin is this update's */
	return r;
}

/* Imports the regions of md that are not known; fresh[i] is NULL for the others, which are marked as named. */
static int remote_import(struct kvli_peer *peer, const struct kvli_md *md, uint64_t deadline,
			 struct kvli_region **fresh)
{
	for (uint32_t i = 0; i < md->n_regions; i++) {
		struct kvli_region *known = remote_known(peer, &md->region[i]);
		int rc;

		if (known) {
			known->naming = peer->updates;
			continue;
		}
		fresh[i] = remote_new(&md->region[i]);
		if (fresh[i] == NULL)
			return KVL_ERR_NOMEM;
		fresh[i]->naming = peer->updates;
		rc = peer->agent->ops->import(peer->conn, &fresh[i]->at, (int)md->region[i].mappable,
					      deadline);
		if (rc)
			return rc;
	}
	return 0;
}

/*
 * Lanes find the region closed, then its mapping goes while none of them is driven, so that no driver is between
 * reading the mapping and using it; then its struct, with the last list that names it. at.map changes only under
 * the set's lock: the thread that finds the peer lost forgets regions too.
 */
static void remote_retract(struct kvli_peer *peer, struct kvli_region *r)
{
	kvli_region_force_close(r);
	for (uint32_t i = 0; i < peer->n_lanes; i++)
		kvli_lane_seize(&peer->lane[i]);
	pthread_mutex_lock(&peer->regions.lock);
	peer->agent->ops->forget(peer->conn, &r->at);
	pthread_mutex_unlock(&peer->regions.lock);
	for (uint32_t i = peer->n_lanes; i-- > 0;)
		kvli_lane_unseize(&peer->lane[i]);
	peer->by_slot[r->at.slot] = NULL;
	pthread_mutex_lock(&peer->regions.lock);
	kvli_region_set_remove(&peer->regions, r);
	pthread_mutex_unlock(&peer->regions.lock);
}

/* The region that follows `at` in the owner's slots and was not named by this update. */
static struct kvli_region *remote_next_gone(const struct kvli_peer *peer, uint32_t *at)
{
	while (*at < peer->n_by_slot) {
		struct kvli_region *r = peer->by_slot[(*at)++];

		if (r && r->naming != peer->updates)
			return r;
	}
	return NULL;
}

static int remote_reserve(struct kvli_peer *peer, uint32_t n)
{
	int rc;

	pthread_mutex_lock(&peer->regions.lock);
	rc = kvli_region_set_reserve(&peer->regions, n);
	pthread_mutex_unlock(&peer->regions.lock);
	return rc;
}

static int remote_add(struct kvli_peer *peer, struct kvli_region **fresh, uint32_t n)
{
	int rc = 0;

	pthread_mutex_lock(&peer->regions.lock);
	for (uint32_t i = 0; i < n && rc == 0; i++) {
		rc = fresh[i] ? kvli_region_set_add(&peer->regions, fresh[i]) : 0;
		if (fresh[i] && rc == 0)
			peer->by_slot[fresh[i]->at.slot] = fresh[i];
	}
	pthread_mutex_unlock(&peer->regions.lock);
	return rc;
}

static void remote_drop_fresh(struct kvli_peer *peer, struct kvli_region **fresh, uint32_t n, int failed)
{
	for (uint32_t i = 0; i < n; i++) {
		if (fresh[i] && failed && peer->by_slot[fresh[i]->at.slot] != fresh[i])
			peer->agent->ops->forget(peer->conn, &fresh[i]->at); /* nobody else knows it */
		if (fresh[i])
			kvli_region_unpin(fresh[i]);
	}
}

/* Under update_lock. What can fail comes first and changes nothing. */
static int remote_update(struct kvli_peer *peer, const struct kvli_md *md, uint64_t deadline)
{
	struct kvli_region **fresh = calloc(md->n_regions ? md->n_regions : 1, sizeof(struct kvli_region *)),
			   *gone;
	uint32_t at = 0;
	int rc;

	if (fresh == NULL)
		return kvli_fail(KVL_ERR_NOMEM, KVL_NO_ENTRY, 0, "memory", "no memory for %u regions",
				 md->n_regions);
	peer->updates++;
	rc = remote_reserve_slots(peer, md);
	if (rc == 0)
		rc = remote_import(peer, md, deadline, fresh);
	if (rc == 0)
		rc = remote_reserve(peer, md->n_regions);
	while (rc == 0 && (gone = remote_next_gone(peer, &at)))
		remote_retract(peer, gone);
	if (rc == 0)
		rc = remote_add(peer, fresh, md->n_regions);
	remote_drop_fresh(peer, fresh, md->n_regions, rc);
	free(fresh);
	return rc;
}

int kvli_remote_update(struct kvli_peer *peer, const struct kvli_md *md, uint64_t deadline_ns)
{
	int rc;

	pthread_mutex_lock(&peer->update_lock);
	if (peer->closed || word32_load_acquire_sys(&peer->state) != KVLI_PEER_CONNECTED) /* a flag */
		rc = kvli_fail(KVL_ERR_PEER_LOST, KVL_NO_ENTRY, 0, "peer is connected", "peer '%s' is gone",
			       peer->identity.name);
	else
		rc = remote_update(peer, md, deadline_ns);
	pthread_mutex_unlock(&peer->update_lock);
	return rc;
}

void kvli_remote_close_all(struct kvli_peer *peer, int disconnecting)
{
	pthread_mutex_lock(&peer->regions.lock);
	for (size_t i = 0; i < peer->regions.n; i++) {
		struct kvli_region *r = peer->regions.region[i];

		kvli_region_force_close(r);
		if (peer->conn && (disconnecting || !r->pinned_map))
			peer->agent->ops->forget(peer->conn, &r->at); /* lanes are shut: nobody uses it */
	}
	pthread_mutex_unlock(&peer->regions.lock);
}

int kvli_remote_info(struct kvli_peer *peer, size_t index, struct kvl_region_info *out)
{
	int rc = 0;

	pthread_mutex_lock(&peer->regions.lock);
	if (index < peer->regions.n) {
		const struct kvli_remote *at = &peer->regions.region[index]->at;

		out->addr = at->base;
		out->len = at->len;
		out->rights = at->rights;
		out->device = at->device;
		out->mapped = at->map != NULL;
	} else {
		rc = kvli_fail(KVL_ERR_NOT_FOUND, KVL_NO_ENTRY, 0, "index < regions of the peer",
			       "'%s' exports %zu regions", peer->identity.name, peer->regions.n);
	}
	pthread_mutex_unlock(&peer->regions.lock);
	return rc;
}

int kvli_remote_map(struct kvli_peer *peer, uint64_t addr, uint64_t len, void **out)
{
	struct kvli_region *r;
	int rc;

	pthread_mutex_lock(&peer->regions.lock);
	rc = kvli_region_set_find(&peer->regions, addr, len, KVL_HOST, KVL_NO_ENTRY, NULL, &r);
	if (rc == 0 && kvli_region_closed(r))
		rc = kvli_fail(KVL_ERR_STALE, KVL_NO_ENTRY, 0, "region is exported",
			       "the region %#" PRIx64 " of '%s' is gone", r->at.base, peer->identity.name);
	else if (rc == 0 && r->at.map == NULL)
		rc = kvli_fail(KVL_ERR_UNSUPPORTED, KVL_NO_ENTRY, 0, "region is mapped",
			       "the region %#" PRIx64 " of '%s' is not mapped here", r->at.base,
			       peer->identity.name);
	if (rc == 0) {
		r->pinned_map = 1;
		*out = r->at.map + (addr - r->at.base);
	}
	pthread_mutex_unlock(&peer->regions.lock);
	return rc;
}
