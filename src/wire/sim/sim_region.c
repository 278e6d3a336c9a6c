/* SPDX-License-Identifier: Apache-2.0 */
/* What a wire's peers may touch. Every byte that moves does so under the target's serve lock. */
#include "wire/sim/sim.h"

#include <stdlib.h>
#include <string.h>

void kvli_sim_serve(struct kvli_wire *wire)
{
	pthread_mutex_lock(&wire->turn);
	pthread_mutex_lock(&wire->serve);
	pthread_mutex_unlock(&wire->turn);
}

/* Under serve. */
static int regions_grow(struct kvli_wire *wire, uint32_t slot)
{
	uint64_t n = wire->n_regions ? wire->n_regions : 16;
	struct sim_region *grown;

	while (n <= slot)
		n *= 2;
	if (n == wire->n_regions)
		return 0;
	grown = realloc(wire->region, n * sizeof(*grown));
	if (grown == NULL)
		return KVL_ERR_NOMEM;
	memset(grown + wire->n_regions, 0, (n - wire->n_regions) * sizeof(*grown));
	wire->region = grown;
	wire->n_regions = (uint32_t)n;
	return 0;
}

int kvli_sim_expose(struct kvli_wire *wire, uint32_t slot, uint64_t generation, const struct kvl_mem *mem)
{
	int rc;

	kvli_sim_serve(wire);
	rc = slot < wire->n_regions ? 0 : regions_grow(wire, slot);
	if (rc == 0)
		wire->region[slot] = (struct sim_region){
			.generation = generation,
			.base = (uintptr_t)mem->addr,
			.len = mem->len,
			.rights = mem->rights ? mem->rights : KVL_REMOTE_ALL,
			.exposed = 1,
		};
	pthread_mutex_unlock(&wire->serve);
	return rc;
}

void kvli_sim_revoke(struct kvli_wire *wire, uint32_t slot)
{
	kvli_sim_serve(wire);
	if (slot < wire->n_regions)
		wire->region[slot].exposed = 0;
	pthread_mutex_unlock(&wire->serve);
}

/* Under serve. NULL: that life of the slot is over. */
static const struct sim_region *region_find(const struct kvli_wire *wire, uint32_t slot, uint64_t generation)
{
	const struct sim_region *region = wire->region + slot;

	if (wire->closed || slot >= wire->n_regions || !region->exposed || region->generation != generation)
		return NULL;
	return region;
}

int kvli_sim_exposed(struct kvli_wire *wire, const struct kvli_remote *remote)
{
	int found;

	kvli_sim_serve(wire);
	found = region_find(wire, remote->slot, remote->generation) != NULL;
	pthread_mutex_unlock(&wire->serve);
	return found;
}

/* Under serve. The wire trusts no initiator, as a NIC would not: range and rights are checked again. */
static int piece_check(const struct kvli_wire *wire, const struct sim_piece *piece, uint32_t right)
{
	const struct sim_region *region = region_find(wire, piece->slot, piece->generation);

	if (region == NULL)
		return KVL_ERR_STALE;
	/* An address below base wraps to an offset that no region reaches. */
	if (piece->len > region->len || piece->remote - region->base > region->len - piece->len)
		return KVL_ERR_RANGE;
	return region->rights & right ? 0 : KVL_ERR_RIGHTS;
}

static int chunk_check(const struct kvli_wire *target, const struct sim_chunk *chunk)
{
	uint32_t right = chunk->op == KVL_WRITE ? KVL_REMOTE_WRITE : KVL_REMOTE_READ;
	int rc = target->closed ? KVL_ERR_PEER_LOST : 0;

	for (uint32_t i = 0; i < chunk->n && rc == 0; i++)
		rc = piece_check(target, &chunk->piece[i], right);
	return rc;
}

/* memmove: an agent that is its own peer may give ranges that overlap. */
static void chunk_copy(const struct sim_chunk *chunk)
{
	uint64_t left = chunk->limit;

	for (uint32_t i = 0; i < chunk->n && left; i++) {
		const struct sim_piece *piece = &chunk->piece[i];
		uint64_t len = piece->len < left ? piece->len : left;
		void *local = (void *)(uintptr_t)piece->local, *remote = (void *)(uintptr_t)piece->remote;

		if (chunk->op == KVL_WRITE)
			memmove(remote, local, len);
		else
			memmove(local, remote, len);
		left -= len;
	}
}

int kvli_sim_move(struct kvli_wire *target, const struct sim_chunk *chunk)
{
	int rc;

	kvli_sim_serve(target);
	rc = chunk_check(target, chunk);
	if (rc == 0)
		chunk_copy(chunk);
	pthread_mutex_unlock(&target->serve);
	return rc;
}
