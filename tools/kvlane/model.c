/* SPDX-License-Identifier: Apache-2.0 */
#include "model.h"

#include <strings.h>

static const struct model models[] = {
	{ .name = "Llama-3.1-8B",
	  .source = "config.json of meta-llama/Llama-3.1-8B",
	  .layers = 32,
	  .kv_heads = 8,
	  .head_dim = 128 },
	{ .name = "Llama-3.1-70B",
	  .source = "config.json of meta-llama/Llama-3.1-70B",
	  .layers = 80,
	  .kv_heads = 8,
	  .head_dim = 128 },
	{ .name = "gpt-oss-120b",
	  .source = "config.json of openai/gpt-oss-120b",
	  .layers = 36,
	  .kv_heads = 8,
	  .head_dim = 64,
	  .window = 128 },
	{ .name = "DeepSeek-V3",
	  .source = "config.json of deepseek-ai/DeepSeek-V3",
	  .layers = 61,
	  .latent_dim = 512 + 64 },
	{ .name = "Kimi-K2",
	  .source = "config.json of moonshotai/Kimi-K2-Instruct",
	  .layers = 61,
	  .latent_dim = 512 + 64 },
	{ .name = "Qwen3-32B",
	  .source = "config.json of Qwen/Qwen3-32B",
	  .layers = 64,
	  .kv_heads = 8,
	  .head_dim = 128 },
};

const struct model *model_at(size_t index)
{
	return index < sizeof(models) / sizeof(models[0]) ? &models[index] : NULL;
}

const struct model *model_find(const char *name)
{
	const struct model *m;

	for (size_t i = 0; (m = model_at(i)); i++) {
		if (!strcasecmp(m->name, name))
			return m;
	}
	return NULL;
}

int layout_init(struct layout *l, const struct model *model, unsigned element_bytes, unsigned block_tokens,
		unsigned tp)
{
	uint64_t token_elements = model->latent_dim;

	if (!tp || (!model->latent_dim && model->kv_heads % tp))
		return -1;
	if (!model->latent_dim)
		token_elements = 2ull * (model->kv_heads / tp) * model->head_dim;
	*l = (struct layout){ .model = model,
			      .element_bytes = element_bytes,
			      .block_tokens = block_tokens,
			      .tp = tp,
			      .block_bytes = token_elements * element_bytes * block_tokens };
	return 0;
}

enum model_group layout_group(const struct layout *l, unsigned layer)
{
	return l->model->window && layer % 2 == 0 ? MODEL_WINDOW : MODEL_FULL;
}

unsigned layout_layers(const struct layout *l, enum model_group group)
{
	unsigned n = 0;

	for (unsigned layer = 0; layer < l->model->layers; layer++)
		n += layout_group(l, layer) == group;
	return n;
}

uint32_t layout_blocks(const struct layout *l, enum model_group group, uint64_t tokens, uint32_t *first)
{
	uint64_t begin = 0, end = (tokens + l->block_tokens - 1) / l->block_tokens;

	if (group == MODEL_WINDOW && tokens > l->model->window)
		begin = (tokens - l->model->window) / l->block_tokens;
	*first = (uint32_t)begin;
	return (uint32_t)(end - begin);
}
