/* SPDX-License-Identifier: Apache-2.0 */
/* The options that every shape of `kvlane bench` takes, and the way it reports what went wrong. */
#ifndef KVLANE_TOOL_BENCH_OPTIONS_H
#define KVLANE_TOOL_BENCH_OPTIONS_H

#include <argp.h>
#include <jansson.h>
#include <kvlane/kvlane.h>
#include <stddef.h>
#include <stdint.h>

#include "fail.h"

#define BENCH_MAX_ROUNDS 10000000u
#define BENCH_MAX_BYTES  (1ull << 40) /* of one pool */
#define BENCH_MAX_BLOCK  (1ull << 30) /* what one vectored system call is sure to take */

struct bench_options {
	const char *shape; /* set by the caller, as are the defaults of rounds and warmup */
	char wire[16];     /* default "local" */
	const char *json;  /* NULL: no file */
	int json_stdout; /* with --json -: the real standard output, all else goes to standard error; or -1 */
	uint64_t rounds, warmup;
	uint64_t seed;            /* below 2^63; random unless given */
	int user_memory;          /* 1: plain memory that is only registered; 0: of kvl_mem_alloc */
	struct kvl_config config; /* of every agent: the wire and each --set */
	json_t *set;              /* what --set and the environment set, by name */
};

/* A child parser; its input is a struct bench_options. Bad values end the program with exit code 2. */
extern const struct argp bench_options_argp;

/* Keys of the shapes' own options start here. */
#define BENCH_KEY 0x200

/* Undoes what --json - did to standard output, before the object is written there. */
void bench_options_stdout(struct bench_options *o);

/* Parses, with the program named "kvlane bench SHAPE" in messages. Undo with bench_options_fini. */
void bench_options_parse(const struct argp *argp, int argc, char **argv, struct bench_options *o,
			 void *input);
void bench_options_fini(struct bench_options *o);

/*
 * Whether agents of these options can be opened here: EXIT_OK, or, after saying why, EXIT_SKIPPED (no such
 * wire on this machine), EXIT_USAGE (options that do not go together), EXIT_FAILED.
 */
int bench_ready(const struct bench_options *o);

/* Values of options; out of [min, max] or no such value: a message that says so, exit code 2. */
uint64_t bench_arg_size(const struct argp_state *state, const char *option, const char *text, uint64_t min,
			uint64_t max);
uint64_t bench_arg_count(const struct argp_state *state, const char *option, const char *text, uint64_t min,
			 uint64_t max);

/* "write" or "read". */
enum kvl_op bench_arg_op(const struct argp_state *state, const char *text);

/* What the JSON of every shape starts with: shape, wire, and config holding the common options. */
json_t *bench_options_json(const struct bench_options *o);

/* "kvlane bench: ..." on standard error. */
void bench_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same for a failed kvl_ call of this thread: what was tried, the error's name and detail. Returns code.
 */
int bench_error_kvl(const char *what, int code);

#endif
