/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Disaggregated inference in small: decode asks for a prompt's KV in free blocks of its pool, prefill
 * computes it into blocks of its own, and one request hands it over and notifies decode.
 */
#include "example.h"

#define PROMPTS     8
#define BLOCKS      40 /* of a prompt */
#define BLOCK_BYTES 16384
#define POOL_BLOCKS 512
#define POOL_BYTES  (POOL_BLOCKS * BLOCK_BYTES)

struct ask {
	uint32_t prompt, table[BLOCKS];
};

/* A whole pool, prepared once: entry i is block i, and block tables pick from it. */
static kvl_list_t pool_list(kvl_agent_t agent, kvl_peer_t owner, uint64_t pool)
{
	struct kvl_run run = { pool, .len = BLOCK_BYTES, .stride = BLOCK_BYTES, .count = POOL_BLOCKS };
	kvl_list_t list;

	must(kvl_list_create_runs(agent, owner, &run, 1, &list));
	return list;
}

static void prefill(const char *dir)
{
	char *pool;
	kvl_peer_t peer;
	kvl_agent_t agent = agent_join(dir, "prefill", "decode", POOL_BYTES, &pool, &peer);
	struct kvl_region_info region = { .size = sizeof(region) };
	struct kvl_xfer_opts opts = { .size = sizeof(opts), .flags = KVL_XFER_NOTIFY };
	uint32_t table[BLOCKS];
	kvl_xfer_t xfer;

	must(kvl_peer_region(agent, peer, 0, &region));
	kvl_list_t ours = pool_list(agent, KVL_LOCAL, (uintptr_t)pool);
	kvl_list_t theirs = pool_list(agent, peer, region.addr);
	for (uint32_t n = 0; n < PROMPTS; n++) {
		struct kvl_notif *asked = notif_wait(agent);
		const struct ask *ask = asked->data;
		for (uint32_t i = 0; i < BLOCKS; i++) {
			table[i] = (n * BLOCKS + i) * 7 % POOL_BLOCKS;
			memset(pool + table[i] * BLOCK_BYTES, (int)(ask->prompt + i), BLOCK_BYTES);
		}
		must(kvl_xfer_prepare_indexed(agent, KVL_WRITE, ours, table, theirs, ask->table, BLOCKS,
					      &opts, &xfer));
		must(kvl_xfer_post(agent, xfer, NULL));
		must(kvl_xfer_wait(agent, xfer, KVL_FOREVER));
		must(kvl_xfer_release(agent, xfer));
		kvl_notif_free(asked);
	}
	must(kvl_agent_close(agent, KVL_FOREVER));
}

static void decode(const char *dir)
{
	char *pool;
	kvl_peer_t peer;
	kvl_agent_t agent = agent_join(dir, "decode", "prefill", POOL_BYTES, &pool, &peer);
	struct ask ask = { 0 };

	for (; ask.prompt < PROMPTS; ask.prompt++) {
		for (uint32_t i = 0; i < BLOCKS; i++)
			ask.table[i] = (ask.prompt * BLOCKS + i) * 5 % POOL_BLOCKS;
		must(kvl_notify(agent, peer, &ask, sizeof(ask), NULL));
		kvl_notif_free(notif_wait(agent));
		for (uint32_t i = 0; i < BLOCKS; i++)
			bytes_check(pool + ask.table[i] * BLOCK_BYTES, ask.prompt + i, BLOCK_BYTES);
	}
	must(kvl_agent_close(agent, KVL_FOREVER));
}

int main(void)
{
	return processes_run(1, prefill, decode);
}
