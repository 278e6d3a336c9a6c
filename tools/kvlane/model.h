/* SPDX-License-Identifier: Apache-2.0 */
/* KV-cache layouts of public models: pure arithmetic, no memory. */
#ifndef KVLANE_TOOL_MODEL_H
#define KVLANE_TOOL_MODEL_H

#include <stddef.h>
#include <stdint.h>

/* Layers of one group share block tables: they need the same blocks of a request. */
enum model_group {
	MODEL_FULL,
	MODEL_WINDOW,
	MODEL_GROUPS
};

#define MODEL_LAYERS_MAX 128

struct model {
	const char *name;
	const char *source; /* where the numbers come from */
	unsigned layers;    /* num_hidden_layers */
	unsigned kv_heads;  /* num_key_value_heads; 0 for latent attention */
	unsigned head_dim;
	unsigned latent_dim; /* kv_lora_rank + qk_rope_head_dim; 0 for grouped-query attention */
	unsigned window; /* sliding_window in tokens, of layers 0, 2, 4 and so on; 0: every layer is full */
};

/* The presets in order of index; NULL past the end. Names are found in any case. */
const struct model *model_at(size_t index);
const struct model *model_find(const char *name);

/*
 * One rank's paged cache. A layer is an array of blocks; a block holds block_tokens tokens, as
 *	[2 (K, V)][block_tokens][kv_heads / tp][head_dim]	grouped-query attention
 *	[block_tokens][latent_dim]				latent attention: every rank holds all of it
 */
struct layout {
	const struct model *model;
	unsigned element_bytes, block_tokens, tp;
	uint64_t block_bytes;
};

/* -1 when tp does not divide the KV heads. */
int layout_init(struct layout *l, const struct model *model, unsigned element_bytes, unsigned block_tokens,
		unsigned tp);

enum model_group layout_group(const struct layout *l, unsigned layer);

/* Layers of the group. */
unsigned layout_layers(const struct layout *l, enum model_group group);

/* Blocks that a layer of the group needs for a prompt; *first is the first one's number in the prompt. */
uint32_t layout_blocks(const struct layout *l, enum model_group group, uint64_t tokens, uint32_t *first);

#endif
