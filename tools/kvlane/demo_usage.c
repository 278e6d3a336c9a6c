/* SPDX-License-Identifier: Apache-2.0 */
#include "demo_usage.h"

const struct argp_option demo_usage_options[] = {
	{ NULL, 0, NULL, 0, "What is moved:", 1 },
	{ "model", KEY_MODEL, "NAME", 0, "KV layout, default Llama-3.1-8B; list shows all with their sources",
	  0 },
	{ "requests", KEY_REQUESTS, "N", 0, "Requests, 1 to 4096, default 8", 0 },
	{ "tokens", KEY_TOKENS, "N", 0,
	  "Mean prompt length, 1 to 1048576, default 512; lengths lie between half and one and a half of it "
	  "and follow "
	  "from the seed",
	  0 },
	{ "block-tokens", KEY_BLOCK_TOKENS, "N", 0, "Tokens per block, 1 to 1024, default 16", 0 },
	{ "dtype", KEY_DTYPE, "TYPE", 0, "Element type: bf16 (default), fp16, fp8", 0 },
	{ "tp", KEY_TP, "N", 0,
	  "Tensor-parallel degree, 1 to 1024, default 1: each side is one rank and holds its share of the KV "
	  "heads; "
	  "latent "
	  "attention (MLA) is whole on every rank",
	  0 },
	{ "pool", KEY_POOL, "SIZE", 0,
	  "Most KV cache per side, as in 512MiB, default 1GiB (a quarter of the memory, where that is less); "
	  "prompts "
	  "are shortened to fit, with a message",
	  0 },
	{ "rounds", KEY_ROUNDS, "N", 0,
	  "Do it all N times, 1 to 1000, default 1: other bytes, other block tables, the same pools", 0 },
	{ "seed", KEY_SEED, "N", 0,
	  "Prompt lengths, block tables and bytes follow from it, 0 to 2^63 - 1, default 1", 0 },

	{ NULL, 0, NULL, 0, "How it is moved:", 2 },
	{ "op", KEY_OP, "OP", 0, "write (default): prefill writes; read: decode reads", 0 },
	{ "mode", KEY_MODE, "MODE", 0, "layer (default): one transfer per layer; whole: one per request", 0 },
	{ "memory", KEY_MEMORY, "KIND", 0,
	  "mapped (default): pools of kvl_mem_alloc, which the other process maps; user: pools of malloc, "
	  "registered",
	  0 },
	{ "inflight", KEY_INFLIGHT, "N", 0, "Requests on their way at once, 1 to 4096, default 4", 0 },
	{ "wire", KEY_WIRE, "NAME", 0, "auto (default) or local", 0 },
	{ "lanes", KEY_LANES, "N", 0, "Lanes per peer, 1 to 64, default 4", 0 },
	{ "workers", KEY_WORKERS, "N", 0,
	  "Background threads of the library on each side, 0 to 64, default 1; 0: none", 0 },
	{ "retire", KEY_RETIRE, "ORDER", 0, "lane (default) or global: which older requests an end waits for",
	  0 },
	{ "set", KEY_SET, "NAME=VALUE", 0, "Any other option of the library (kvlane info lists them)", 0 },

	{ NULL, 0, NULL, 0, "The two sides:", 3 },
	{ "role", KEY_ROLE, "ROLE", 0,
	  "Run one side only, prefill or decode; both must get the same options. Default: both are started",
	  0 },
	{ "rendezvous", KEY_RENDEZVOUS, "DIR", 0,
	  "Directory in which the two sides of --role find each other; the entry of a side that a signal "
	  "ends stays there until the next start",
	  0 },
	{ "timeout", KEY_TIMEOUT, "SECONDS", 0,
	  "Give up when the other side does not appear, or shows no sign of life, for so long, 0.1 to 86400; "
	  "default 30",
	  0 },

	{ NULL, 0, NULL, 0, "Output:", 4 },
	{ "json", KEY_JSON, "FILE", 0,
	  "Write the figures as one JSON object; - is standard output, instead of text", 0 },
	{ "damage", KEY_DAMAGE, NULL, 0,
	  "Flip one bit before it is verified: shows that the check finds it, exit code 1", 0 },
	{ NULL, 0, NULL, 0, "Help:", -1 },
	{ NULL, 0, NULL, 0, NULL, 0 },
};

const char demo_usage_doc[] =
	"Moves the paged KV cache of a model from a prefill to a decode process and proves every byte.\v"
	"Figures:\n"
	"  hand-over  Per request. write: from the moment the prefill side has the\n"
	"             request complete and posts its first layer, until the decode\n"
	"             side has taken the attached notification. read: from the moment\n"
	"             the prefill side announces the request, until the decode side's\n"
	"             last read of it has ended.\n"
	"  GB/s       10^9 bytes handed over per second in which at least one request\n"
	"             was on its way (first post to last end, at the side that moves).\n"
	"             Filling and verifying are outside; but while one request is\n"
	"             verified others are on their way, and share cores and memory.\n"
	"  verified   Every byte of a request as soon as it is handed over; after each\n"
	"             round the whole decode pool again, unused blocks included.\n"
	"\n"
	"Examples:\n"
	"  kvlane demo\n"
	"  kvlane demo --model DeepSeek-V3 --op read --tokens 2k --json demo.json\n"
	"  kvlane demo --role prefill --rendezvous DIR (and --role decode elsewhere)\n"
	"\n"
	"Exit codes: 0 every byte is right; 1 failed or mismatch; 2 bad usage.";
