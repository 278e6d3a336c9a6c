/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of the public API share: checks that print the error detail, a data oracle, memory of every
 * kind, pairs of connected agents in one process, and second processes in lock-step. Uses only kvlane.h.
 */
#ifndef KVLANE_TESTING_H
#define KVLANE_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cmocka.h>

#include <kvlane/kvlane.h>

#define KIB    1024ul
#define MIB    (1024ul * 1024)
#define MS     1000000ull
#define SECOND 1000000000ull

/* What a test waits for at most before it says that an event never came. */
#define PATIENCE (20 * SECOND)

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define TEST(name) static void name(void **unused __attribute__((unused)))

/* ------------------------------------------------------------------------------------------- the program */

/*
 * Every main() returns TESTING_RUN(array, seconds): 0, 1, or 77 when nothing failed and testing_skip() was
 * called. The process is killed after that many seconds (more under a sanitizer).
 */
#define TESTING_RUN(tests, seconds) \
	(testing_begin(seconds), testing_end(cmocka_run_group_tests_name(__FILE__, tests, NULL, NULL)))
void testing_begin(unsigned seconds);
int testing_end(int failed);

/* Prints the reason and leaves the running test. Not for children or threads. */
void testing_skip(const char *reason);

/* How many rounds to run where n are wanted: fewer under a sanitizer, divided by $KVL_TEST_SCALE; at least 1.
 */
size_t testing_rounds(size_t n);

/* Lets a child process be killed like its parent. */
void testing_watchdog(void);

/* ------------------------------------------------------------------------------------------------ checks */

/* In the test itself: success (returns the value), or the one error that is expected. */
#define assert_ok(call)                   testing_ok((call), #call, __FILE__, __LINE__)
#define assert_refused(call, code)        testing_refused((call), (code), #call, __FILE__, __LINE__)
#define assert_refused_at(call, code, at) testing_refused_at((call), (code), (at), #call, __FILE__, __LINE__)
#define assert_rule(text)                 testing_rule((text), __FILE__, __LINE__)
#define assert_message(text)              testing_message((text), __FILE__, __LINE__)
int64_t testing_ok(int64_t code, const char *call, const char *file, int line);
/* Also checks that the detail has this code and a sentence. */
void testing_refused(int64_t got, int code, const char *call, const char *file, int line);
void testing_refused_at(int64_t got, int code, size_t entry, const char *call, const char *file, int line);
/* The last detail's rule or message contains the text. */
void testing_rule(const char *text, const char *file, int line);
void testing_message(const char *text, const char *file, int line);

/* In threads and children, where cmocka can not go: the process ends with a message. */
#define must(condition) ((condition) ? (void)0 : testing_die(#condition, __FILE__, __LINE__))
#define must_ok(call)   testing_must((call), #call, __FILE__, __LINE__)
void testing_die(const char *what, const char *file, int line) __attribute__((noreturn));
int64_t testing_must(int64_t code, const char *call, const char *file, int line);

/* For results that a test does not care about. */
static inline void ignored(int64_t result)
{
	(void)result;
}

/* ------------------------------------------------------------------------------------------------ oracle */

/* The byte at each offset follows from all 64 bits of {seed, offset, epoch}. */
void bytes_fill(void *dst, size_t len, uint64_t seed, uint64_t offset, uint64_t epoch);
/* Number of bytes that differ from it. */
size_t bytes_wrong(const void *src, size_t len, uint64_t seed, uint64_t offset, uint64_t epoch);
/* Number of bytes that are not `value`. */
size_t bytes_not(const void *src, size_t len, unsigned char value);
uint64_t random_next(uint64_t *state);
/* In [low, high]. */
uint64_t random_range(uint64_t *state, uint64_t low, uint64_t high);
void random_shuffle(uint32_t *index, size_t n, uint64_t *state);

/* ------------------------------------------------------------------------------------------------ memory */

enum buffer_kind {
	BUFFER_ALLOC, /* kvl_mem_alloc: peers map it */
	BUFFER_FD,    /* a memfd handed over, at an odd place of it */
	BUFFER_PLAIN, /* malloc: no one maps it */
	BUFFER_KINDS,
};

struct buffer {
	unsigned char *data; /* zeroed */
	uint64_t len;
	kvl_mr_t mr;
	kvl_agent_t agent;
	enum buffer_kind kind;
	void *block; /* what was mapped or allocated */
	size_t block_len;
	int fd;
};

const char *buffer_kind_name(enum buffer_kind kind);
void buffer_open(struct buffer *buffer, kvl_agent_t agent, enum buffer_kind kind, uint64_t len,
		 uint32_t rights);
/* Deregisters and frees. */
void buffer_close(struct buffer *buffer);
/* Frees what a deregister or the agent's close has left to its owner. */
void buffer_free(struct buffer *buffer);
uint64_t buffer_addr(const struct buffer *buffer);

/* n entries with the lengths of `len`, at disjoint places in random order, some touching, most apart. */
void buffer_scatter(const struct buffer *buffer, const uint64_t *len, size_t n, uint64_t seed,
		    struct kvl_desc *desc);

/* The struct for plain memory with all rights. */
struct kvl_mem memory_of(const void *addr, uint64_t len, uint32_t rights);
struct kvl_desc desc_of(const void *addr, uint64_t len);

/* ----------------------------------------------------------------------------------- two connected agents */

struct duo {
	kvl_agent_t a, b;
	kvl_peer_t ab; /* b, as a sees it */
	kvl_peer_t ba;
	int driven; /* no workers: duo_wait and duo_drive make the progress of both */
};

/* KVL_NO_WORKERS in config makes the duo driven. duo_connect comes after the first registrations. */
void duo_open(struct duo *duo, const struct kvl_config *config);
void duo_connect(struct duo *duo);
/* Gives each side the other's newer metadata. */
void duo_update(struct duo *duo);
void duo_close(struct duo *duo);
/* Chunks moved. */
int duo_drive(struct duo *duo);
/* The end of a's request: 0 or the error. KVL_PENDING when it did not come within PATIENCE. */
int duo_wait(struct duo *duo, kvl_xfer_t xfer);
/* The next notification of `agent`, or NULL when none came within PATIENCE. */
struct kvl_notif *duo_notif(struct duo *duo, kvl_agent_t agent);
/*
 * For ThreadSanitizer, before and after `agent`'s memory is looked at by hand without a call of that agent in
 * between. The rings between two agents are mapped once for each: in one process it sees no edge from a store to
 * one mapping to a load from the other. A deregister waits for every copy into this agent's memory under the
 * lock that those copies are made under, which is an edge that it does see.
 */
void duo_settle(kvl_agent_t agent);
/* 1 when nothing more can be taken although everything sent before has arrived. */
int duo_quiet(struct duo *duo, kvl_agent_t agent);

/* Metadata of an agent; *len gets its length. By malloc. */
void *metadata_of(kvl_agent_t agent, size_t *len);
kvl_peer_t connect_to(kvl_agent_t from, kvl_agent_t to);
void connect_update(kvl_agent_t from, kvl_peer_t peer, kvl_agent_t to);

/*
 * One request of a's memory `local` and b's memory `remote`; before it the source is filled for the epoch and
 * the destination with canaries, after it every byte of both is compared with a model. Returns the
 * request's end. report may be NULL.
 */
int duo_move(struct duo *duo, enum kvl_op op, struct buffer *local, const struct kvl_desc *local_desc,
	     struct buffer *remote, const struct kvl_desc *remote_desc, size_t n, uint64_t epoch,
	     const struct kvl_xfer_opts *opts, struct kvl_report *report);

/* --------------------------------------------------------------------------------------- second processes */

struct other {
	pid_t pid;
	int sock; /* SOCK_SEQPACKET */
};

/* Call before any agent is open. The body ends the child by returning (exit 0) or by must(). */
void other_start(struct other *other, void (*body)(int sock, void *arg), void *arg);
/* Waits for its end; returns the status of waitpid. */
int other_end(struct other *other);
void other_kill(struct other *other);

/* Lock-step messages; both use must(). sock_get returns the length and insists on it when len is not 0. */
void sock_put(int sock, const void *msg, size_t len);
size_t sock_get(int sock, void *msg, size_t room, size_t len);
/* Sends the agent's metadata; connects to the agent whose metadata comes. */
void sock_put_agent(int sock, kvl_agent_t agent);
kvl_peer_t sock_get_agent(int sock, kvl_agent_t agent);

#endif
