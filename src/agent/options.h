/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every option, once. The row drives parsing, validation, defaults, the environment, help and the error
 * texts. Adding one: a member at the end of struct kvl_config, a row here, a line in
 * tests/unit/test_config.c.
 */
#ifndef KVLI_OPTIONS_H
#define KVLI_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "kvlane/kvlane.h"

enum kvli_option_kind {
	KVLI_OPTION_COUNT, /* a number; 0 in the struct means default */
	KVLI_OPTION_SIZE,  /* the same; text may end in k, m, g, t, p (or KiB ... PiB): powers of 1024 */
	KVLI_OPTION_ENUM,  /* a number in the struct, one of words in text; the first word is 0 */
	KVLI_OPTION_WORD,  /* one of words */
	KVLI_OPTION_LIST,  /* words separated by commas, each at most once */
	KVLI_OPTION_PAIRS, /* WORD=NUMBER separated by commas, each word at most once */
};

enum kvli_option_rule {
	KVLI_RULE_NONE,
	KVLI_RULE_POWER2, /* a power of two */
	KVLI_RULE_ZERO,   /* 0 is a value: "0" in text, KVL_NO_WORKERS in the struct, 0 once resolved */
};

#define KVLI_MIB (UINT64_C(1) << 20)
#define KVLI_GIB (UINT64_C(1) << 30)
#define KVLI_VA  (UINT64_C(1) << 56) /* the most that a user address space can hold (five-level paging) */

/* clang-format off */
/* X(member, kind, rule, default as text, min, max, words, help) */
#define KVLI_OPTION_LIST(X)                                                                             \
	X(wire, WORD, NONE, "auto", 0, 0, "auto|local|sim",                                             \
	  "what carries the chunks; auto takes local")                                                  \
	X(local_paths, LIST, NONE, "map,copy,slot", 0, 0, "map|copy|slot",                              \
	  "ways the local wire may take, best first")                                                   \
	X(sim, PAIRS, NONE, "seed=1,delay=8,again=0,error=0,reorder=1", 0, 0,                           \
	  "seed|delay|again|error|reorder", "behaviour of the sim wire")                                \
	X(workers, COUNT, ZERO, "1", 0, 64, "",                                                         \
	  "background progress threads; 0: only callers drive progress")                                \
	X(lanes, COUNT, NONE, "4", 1, 64, "",                                                           \
	  "lanes per peer")                                                                             \
	X(latency_lanes, COUNT, NONE, "1", 1, 63, "",                                                   \
	  "how many of the lanes are for small requests; fewer than lanes")                             \
	X(queue_depth, COUNT, POWER2, "1024", 2, 65536, "",                                             \
	  "posted requests per lane")                                                                   \
	X(max_requests, COUNT, NONE, "16384", 1, 1048576, "",                                           \
	  "requests alive")                                                                             \
	X(max_regions, COUNT, NONE, "65536", 1, 1048576, "",                                            \
	  "memory regions registered")                                                                  \
	X(max_peers, COUNT, NONE, "1024", 1, 65536, "",                                                 \
	  "peers connected")                                                                            \
	X(max_region_bytes, SIZE, NONE, "64p", 1, KVLI_VA, "",                                    \
	  "longest memory region")                                                                      \
	X(small_bytes, SIZE, NONE, "64k", 1, KVLI_VA, "",                                               \
	  "longest request that goes to a latency lane")                                                \
	X(chunk_bytes, SIZE, NONE, "256k", 4096, KVLI_GIB, "",                                          \
	  "longest piece handed to the wire at once")                                                   \
	X(window, COUNT, NONE, "16", 1, 1024, "",                                                       \
	  "chunks in flight per lane")                                                                  \
	X(ring_bytes, SIZE, POWER2, "64k", 4096, 16 * KVLI_MIB, "",                                     \
	  "shared ring per lane and direction")                                                         \
	X(notif_max_bytes, SIZE, NONE, "1m", KVLI_MIB, KVLI_GIB, "",                                    \
	  "longest notification")                                                                       \
	X(notif_queue_bytes, SIZE, NONE, "64m", KVLI_MIB, 1024 * KVLI_GIB, "",                          \
	  "notifications received and not read, beyond which senders wait; at least notif_max_bytes")   \
	X(deadline_ms, COUNT, NONE, "30000", 1, UINT64_C(31536000000), "",                              \
	  "deadline of requests that name none, ms")                                                    \
	X(connect_timeout_ms, COUNT, NONE, "5000", 1, 86400000, "",                                     \
	  "time-out of connects that name none, ms")                                                    \
	X(retire_order, ENUM, NONE, "lane", 0, 0, "lane|global",                                        \
	  "lane: a request waits for older ones of its lane only; global: of all lanes")
/* clang-format on */

struct kvli_option {
	const char *name;
	uint16_t offset, width; /* of the member of struct kvl_config, bytes */
	enum kvli_option_kind kind;
	enum kvli_option_rule rule;
	const char *def;
	uint64_t min, max;
	const char *words, *help; /* words: separated by '|' */
};

/* A value on its way between text and struct: text kinds use text (not owned), the others number. */
struct kvli_option_value {
	uint64_t number;
	const char *text;
};

/* All functions below: any thread, never block, allocate nothing. */

#define KVLI_OPTIONS_MAX 64

size_t kvli_option_count(void);
const struct kvli_option *kvli_option_at(size_t index); /* index < count */
const struct kvli_option *kvli_option_find(const char *name);
int kvli_option_is_text(const struct kvli_option *option);

/* KVL_ERR_OPTION for a name that is no option; suggests the nearest one. */
int kvli_option_unknown(const char *name);

/* From text to what the struct holds. KVL_ERR_OPTION names the option, the text and what is allowed. */
int kvli_option_parse(const struct kvli_option *option, const char *text, struct kvli_option_value *out);

/*
 * From what the struct holds (0 and NULL: default) to the value in force. KVL_ERR_OPTION names the option,
 * the value and what is allowed.
 */
int kvli_option_resolve(const struct kvli_option *option, struct kvli_option_value held,
			struct kvli_option_value *out);

/* 1 when the member lies inside config->size: callers built against an older header have a shorter struct. */
int kvli_option_present(const struct kvli_option *option, const struct kvl_config *config);

/* The member, as it is; it must be present. */
struct kvli_option_value kvli_option_get(const struct kvli_option *option, const struct kvl_config *config);
void kvli_option_put(const struct kvli_option *option, struct kvli_option_value value,
		     struct kvl_config *config);

#endif
