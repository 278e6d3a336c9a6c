/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Sanitizers cost a factor in time; the same tests run there with fewer rounds and later watchdogs. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SLOWER 8
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SLOWER 8
#endif
#endif
#ifndef SLOWER
#define SLOWER 1
#endif

static unsigned watchdog_seconds = 60;
static int skipped;

/* ------------------------------------------------------------------------------------------- the program */

void testing_watchdog(void)
{
	alarm(watchdog_seconds);
}

void testing_begin(unsigned seconds)
{
	watchdog_seconds = SLOWER > 1 ? seconds * 4 : seconds;
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGPIPE, SIG_IGN);
	testing_watchdog();
}

int testing_end(int failed)
{
	if (failed)
		return 1;
	return skipped ? 77 : 0;
}

void testing_skip(const char *reason)
{
	skipped = 1;
	print_message("skipped: %s\n", reason);
	skip();
}

size_t testing_rounds(size_t n)
{
	const char *text = getenv("KVL_TEST_SCALE");
	unsigned long scale = text ? strtoul(text, NULL, 10) : 1;

	n /= SLOWER * (scale ? scale : 1);
	return n ? n : 1;
}

/* ------------------------------------------------------------------------------------------------ checks */

static void detail_print(const char *call, int64_t code)
{
	struct kvl_error_detail detail;

	kvl_error_detail(&detail);
	print_error("%s = %lld %s\n\tdetail: %s, entry %zd, errno %d, rule \"%s\", \"%s\"\n", call,
		    (long long)code, code < 0 ? kvl_error_name((int)code) : "", kvl_error_name(detail.code),
		    (ssize_t)detail.entry, detail.system, detail.rule, detail.message);
}

int64_t testing_ok(int64_t code, const char *call, const char *file, int line)
{
	if (code >= 0)
		return code;
	detail_print(call, code);
	_fail(file, line);
	return code;
}

static void refused_check(int64_t got, int code, const char *call, const char *file, int line)
{
	if (got == code)
		return;
	print_error("expected %s: ", kvl_error_name(code));
	detail_print(call, got);
	_fail(file, line);
}

void testing_refused(int64_t got, int code, const char *call, const char *file, int line)
{
	struct kvl_error_detail detail;

	refused_check(got, code, call, file, line);
	kvl_error_detail(&detail);
	if (detail.code == code && detail.message[0])
		return;
	print_error("the detail does not belong to the refusal: ");
	detail_print(call, got);
	_fail(file, line);
}

void testing_refused_at(int64_t got, int code, size_t entry, const char *call, const char *file, int line)
{
	struct kvl_error_detail detail;

	testing_refused(got, code, call, file, line);
	kvl_error_detail(&detail);
	if (detail.entry == entry && detail.rule[0])
		return;
	print_error("expected entry %zd and a rule: ", (ssize_t)entry);
	detail_print(call, got);
	_fail(file, line);
}

void testing_rule(const char *text, const char *file, int line)
{
	struct kvl_error_detail detail;

	kvl_error_detail(&detail);
	if (strstr(detail.rule, text))
		return;
	print_error("\"%s\" expected in the rule \"%s\" (%s)\n", text, detail.rule, detail.message);
	_fail(file, line);
}

void testing_message(const char *text, const char *file, int line)
{
	struct kvl_error_detail detail;

	kvl_error_detail(&detail);
	if (strstr(detail.message, text))
		return;
	print_error("\"%s\" expected in the message \"%s\"\n", text, detail.message);
	_fail(file, line);
}

void testing_die(const char *what, const char *file, int line)
{
	struct kvl_error_detail detail;

	kvl_error_detail(&detail);
	fprintf(stderr, "%s:%d: process %d: not so: %s (last error here: %s, \"%s\")\n", file, line,
		(int)getpid(), what, kvl_error_name(detail.code), detail.message);
	fflush(stderr);
	abort();
}

int64_t testing_must(int64_t code, const char *call, const char *file, int line)
{
	if (code < 0) {
		fprintf(stderr, "%s\n", kvl_error_name((int)code));
		testing_die(call, file, line);
	}
	return code;
}

/* ------------------------------------------------------------------------------------------------ oracle */

__attribute__((no_sanitize("thread", "address"))) static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

#define BLOCK 4096u /* of the stream, made at a time */

/*
 * Plain arithmetic on the tests' own stack: not instrumented, so that sanitizer builds stay usable. What it
 * is copied to and compared with goes through memcpy() and memcmp(), which are.
 */
__attribute__((no_sanitize("thread", "address"))) static void block_make(uint64_t *block, uint64_t seed,
									 uint64_t word, uint64_t epoch)
{
	uint64_t base = mix(seed + 0x9e3779b97f4a7c15u) ^ mix(~epoch);

	for (size_t i = 0; i < BLOCK / 8; i++)
		block[i] = mix(base ^ mix(word + i + 0x632be59bd9b4e019u));
}

/* Length of the next step of a walk through the stream that makes a block at a time. */
static size_t block_step(uint64_t offset, size_t len)
{
	size_t room = BLOCK - (size_t)(offset % BLOCK);

	return room < len ? room : len;
}

void bytes_fill(void *dst, size_t len, uint64_t seed, uint64_t offset, uint64_t epoch)
{
	uint64_t block[BLOCK / 8];
	unsigned char *to = dst;

	while (len) {
		size_t n = block_step(offset, len);

		block_make(block, seed, offset / BLOCK * (BLOCK / 8), epoch);
		memcpy(to, (const unsigned char *)block + offset % BLOCK, n);
		to += n;
		offset += n;
		len -= n;
	}
}

static size_t count_different(const unsigned char *a, const unsigned char *b, size_t n)
{
	size_t wrong = 0;

	if (memcmp(a, b, n) == 0)
		return 0;
	for (size_t i = 0; i < n; i++)
		wrong += a[i] != b[i];
	return wrong;
}

size_t bytes_wrong(const void *src, size_t len, uint64_t seed, uint64_t offset, uint64_t epoch)
{
	uint64_t block[BLOCK / 8];
	const unsigned char *from = src;
	size_t wrong = 0;

	while (len) {
		size_t n = block_step(offset, len);

		block_make(block, seed, offset / BLOCK * (BLOCK / 8), epoch);
		wrong += count_different(from, (const unsigned char *)block + offset % BLOCK, n);
		from += n;
		offset += n;
		len -= n;
	}
	return wrong;
}

size_t bytes_not(const void *src, size_t len, unsigned char value)
{
	unsigned char block[BLOCK];
	const unsigned char *from = src;
	size_t wrong = 0;

	memset(block, value, sizeof(block));
	for (size_t n; len; from += n, len -= n) {
		n = len < BLOCK ? len : BLOCK;
		wrong += count_different(from, block, n);
	}
	return wrong;
}

uint64_t random_next(uint64_t *state)
{
	*state += 0x9e3779b97f4a7c15u;
	return mix(*state);
}

uint64_t random_range(uint64_t *state, uint64_t low, uint64_t high)
{
	return low + random_next(state) % (high - low + 1);
}

void random_shuffle(uint32_t *index, size_t n, uint64_t *state)
{
	for (size_t i = 0; i < n; i++)
		index[i] = (uint32_t)i;
	for (size_t i = n; i > 1; i--) {
		size_t j = random_next(state) % i;
		uint32_t keep = index[i - 1];

		index[i - 1] = index[j];
		index[j] = keep;
	}
}

/* --------------------------------------------------------------------------------------- second processes */

static void child_run(int sock, void (*body)(int sock, void *arg), void *arg)
{
	/* cmocka's handlers would jump back into a test that belongs to the parent. */
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	signal(SIGSYS, SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	testing_watchdog();
	body(sock, arg);
	_exit(0);
}

void other_start(struct other *other, void (*body)(int sock, void *arg), void *arg)
{
	int pair[2];

	must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	fflush(NULL);
	other->pid = fork();
	must(other->pid >= 0);
	if (other->pid == 0) {
		close(pair[0]);
		child_run(pair[1], body, arg);
	}
	close(pair[1]);
	other->sock = pair[0];
}

int other_end(struct other *other)
{
	int status = -1;

	must(waitpid(other->pid, &status, 0) == other->pid);
	close(other->sock);
	return status;
}

void other_kill(struct other *other)
{
	must(kill(other->pid, SIGKILL) == 0);
}

void sock_put(int sock, const void *msg, size_t len)
{
	must(send(sock, msg, len, MSG_NOSIGNAL) == (ssize_t)len);
}

size_t sock_get(int sock, void *msg, size_t room, size_t len)
{
	ssize_t got;

	do
		got = recv(sock, msg, room, 0);
	while (got < 0 && errno == EINTR);
	must(got > 0);
	must(len == 0 || (size_t)got == len);
	return (size_t)got;
}

void sock_put_agent(int sock, kvl_agent_t agent)
{
	static _Thread_local unsigned char bytes[32 * KIB];
	size_t len = sizeof(bytes);

	must_ok(kvl_agent_metadata(agent, bytes, &len));
	sock_put(sock, bytes, len);
}

kvl_peer_t sock_get_agent(int sock, kvl_agent_t agent)
{
	static _Thread_local unsigned char bytes[32 * KIB];
	kvl_peer_t peer = 0;
	size_t len = sock_get(sock, bytes, sizeof(bytes), 0);

	must_ok(kvl_peer_connect(agent, bytes, len, 0, &peer));
	return peer;
}
