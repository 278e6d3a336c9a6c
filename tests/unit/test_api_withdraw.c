/* SPDX-License-Identifier: Apache-2.0 */
/* Once a deregister has returned no peer touches the memory, and a key of before is stale for ever. */
#include "testing.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#define LEN (256 * KIB)

static const char *const paths[] = { "map,copy,slot", "copy,slot", "slot" };

static void duo_open_paths(struct duo *duo, const char *allowed)
{
	struct kvl_config config;

	kvl_config_init(&config);
	config.local_paths = allowed;
	config.small_bytes = 4096;
	config.chunk_bytes = 32 * KIB;
	duo_open(duo, &config);
}

/* ------------------------------------------------------------------- deregister while a peer writes */

struct writer {
	struct duo *duo;
	struct kvl_desc local, remote;
	atomic_size_t ends;
};

/* 0, or the one answer that a withdrawn region may give. */
static int writer_once(struct writer *w)
{
	kvl_xfer_t xfer;
	int code = kvl_write(w->duo->a, w->duo->ab, &w->local, &w->remote, 1, NULL, &xfer);

	must(code == 0 || code == KVL_ERR_STALE || code == KVL_ERR_RANGE);
	if (code)
		return code;
	code = kvl_xfer_wait(w->duo->a, xfer, PATIENCE);
	must(code == 0 || code == KVL_ERR_STALE);
	must_ok(kvl_xfer_release(w->duo->a, xfer));
	return code;
}

/* Writes until the region is gone. */
static void *writer_main(void *arg)
{
	struct writer *w = arg;

	while (writer_once(w) == 0)
		atomic_fetch_add(&w->ends, 1);
	return NULL;
}

static void withdraw_once(struct duo *duo, struct buffer *local, unsigned char *memory, uint64_t round)
{
	struct writer w = { .duo = duo, .local = desc_of(local->data, LEN), .remote = desc_of(memory, LEN) };
	struct kvl_mem mem = memory_of(memory, LEN, 0);
	pthread_t thread;
	kvl_mr_t mr;

	assert_ok(kvl_mem_register(duo->b, &mem, 1, &mr));
	connect_update(duo->a, duo->ab, duo->b);
	assert_int_equal(pthread_create(&thread, NULL, writer_main, &w), 0);
	while (atomic_load(&w.ends) < round % 4)
		sched_yield();
	assert_ok(kvl_mem_deregister(duo->b, &mr, 1));
	memset(memory, 0xee, LEN);
	pthread_join(thread, NULL);
	assert_int_equal(bytes_not(memory, LEN, 0xee), 0);
}

TEST(withdraw_while_a_peer_writes)
{
	unsigned char *memory = malloc(LEN);

	assert_non_null(memory);
	for (size_t i = 0; i < COUNT(paths); i++) {
		struct buffer local;
		struct duo duo;

		duo_open_paths(&duo, paths[i]);
		buffer_open(&local, duo.a, BUFFER_ALLOC, LEN, 0);
		memset(local.data, 1, LEN);
		duo_connect(&duo);
		for (uint64_t round = 0; round < testing_rounds(200); round++)
			withdraw_once(&duo, &local, memory, round);
		duo_close(&duo);
	}
	free(memory);
}

/* The same for memory that the peer has mapped: the mapping outlives the region, the right to use it does
 * not. */
TEST(withdraw_mapped_memory_while_a_peer_writes)
{
	struct buffer local, remote;
	struct duo duo;

	duo_open_paths(&duo, "map");
	buffer_open(&local, duo.a, BUFFER_ALLOC, LEN, 0);
	memset(local.data, 1, LEN);
	duo_connect(&duo);
	for (uint64_t round = 0; round < testing_rounds(200); round++) {
		struct writer w = { .duo = &duo, .local = desc_of(local.data, LEN) };
		pthread_t thread;

		buffer_open(&remote, duo.b, BUFFER_FD, LEN, 0);
		w.remote = desc_of(remote.data, LEN);
		connect_update(duo.a, duo.ab, duo.b);
		assert_int_equal(pthread_create(&thread, NULL, writer_main, &w), 0);
		while (atomic_load(&w.ends) < round % 4)
			sched_yield();
		assert_ok(kvl_mem_deregister(duo.b, &remote.mr, 1));
		memset(remote.data, 0xee, LEN);
		pthread_join(thread, NULL);
		assert_int_equal(bytes_not(remote.data, LEN, 0xee), 0);
		buffer_free(&remote);
	}
	duo_close(&duo);
}

/* Another process: takes metadata for each round, writes until the region is gone, says so. */
static void remote_writer(int sock, void *arg)
{
	unsigned char bytes[4 * KIB], *data = calloc(1, LEN);
	struct kvl_mem mem = memory_of(data, LEN, 0);
	struct duo duo = { 0 };
	struct kvl_config config;
	struct writer w;
	kvl_mr_t mr;
	void *addr;

	must(data != NULL);
	memset(data, 1, LEN);
	kvl_config_init(&config);
	config.local_paths = arg;
	config.chunk_bytes = 32 * KIB;
	must_ok(kvl_agent_open("writer", &config, &duo.a));
	must_ok(kvl_mem_register(duo.a, &mem, 1, &mr));
	sock_get(sock, &addr, sizeof(addr), sizeof(addr));
	duo.ab = sock_get_agent(sock, duo.a);
	w = (struct writer){ .duo = &duo, .local = desc_of(data, LEN), .remote = desc_of(addr, LEN) };
	for (;;) {
		size_t len = sock_get(sock, bytes, sizeof(bytes), 0);

		if (len == 1) /* that was the last round */
			break;
		must_ok(kvl_peer_update(duo.a, duo.ab, bytes, len));
		must(writer_once(&w) == 0);
		sock_put(sock, "once", 4);
		writer_main(&w);
		sock_put(sock, "gone", 4);
	}
	must_ok(kvl_agent_close(duo.a, SECOND));
	free(data);
}

static void withdraw_from_process(const char *allowed)
{
	unsigned char *memory = malloc(LEN);
	struct kvl_mem mem = memory_of(memory, LEN, 0);
	char allowed_copy[32], word[4];
	struct kvl_config config;
	struct other other;
	kvl_agent_t agent;
	kvl_mr_t mr;

	assert_non_null(memory);
	snprintf(allowed_copy, sizeof(allowed_copy), "%s", allowed);
	other_start(&other, remote_writer, allowed_copy);
	kvl_config_init(&config);
	config.local_paths = allowed;
	assert_ok(kvl_agent_open("owner", &config, &agent));
	sock_put(other.sock, &memory, sizeof(memory));
	sock_put_agent(other.sock, agent);
	for (size_t round = 0; round < testing_rounds(100); round++) {
		memset(memory, 0, LEN);
		assert_ok(kvl_mem_register(agent, &mem, 1, &mr));
		sock_put_agent(other.sock, agent);
		sock_get(other.sock, word, 4, 4); /* one request has gone through, others follow */
		assert_ok(kvl_mem_deregister(agent, &mr, 1));
		memset(memory, 0xee, LEN);
		sock_get(other.sock, word, 4, 4);
		assert_int_equal(bytes_not(memory, LEN, 0xee), 0);
	}
	sock_put(other.sock, "x", 1);
	assert_int_equal(other_end(&other), 0);
	assert_ok(kvl_agent_close(agent, SECOND));
	free(memory);
}

TEST(withdraw_while_another_process_writes)
{
	for (size_t i = 0; i < COUNT(paths); i++)
		withdraw_from_process(paths[i]);
}

/* --------------------------------------------------------------------------------------------- stale keys */

struct keyed {
	struct duo duo;
	struct buffer local;
	unsigned char *memory;
	kvl_mr_t mr;
	kvl_xfer_t write, read; /* prepared with the first key */
};

static void keyed_register(struct keyed *k)
{
	struct kvl_mem mem = memory_of(k->memory, LEN, 0);

	assert_ok(kvl_mem_register(k->duo.b, &mem, 1, &k->mr));
}

static void keyed_open(struct keyed *k, const char *allowed)
{
	struct kvl_desc local, remote;
	kvl_list_t lists[2];

	k->memory = malloc(LEN);
	assert_non_null(k->memory);
	duo_open_paths(&k->duo, allowed);
	buffer_open(&k->local, k->duo.a, BUFFER_ALLOC, LEN, 0);
	keyed_register(k);
	duo_connect(&k->duo);
	local = desc_of(k->local.data, LEN);
	remote = desc_of(k->memory, LEN);
	assert_ok(kvl_list_create(k->duo.a, KVL_LOCAL, &local, 1, &lists[0]));
	assert_ok(kvl_list_create(k->duo.a, k->duo.ab, &remote, 1, &lists[1]));
	assert_ok(kvl_xfer_prepare(k->duo.a, KVL_WRITE, lists[0], lists[1], NULL, &k->write));
	assert_ok(kvl_xfer_prepare(k->duo.a, KVL_READ, lists[0], lists[1], NULL, &k->read));
	memset(k->local.data, 1, LEN);
	memset(k->memory, 2, LEN);
}

static void keyed_close(struct keyed *k)
{
	duo_close(&k->duo);
	free(k->memory);
}

/* Refused at the post or ended, the code is the same; nothing has moved either way. */
static void is_stale(struct keyed *k, kvl_xfer_t xfer)
{
	int code = kvl_xfer_post(k->duo.a, xfer, NULL);

	if (code == 0)
		code = duo_wait(&k->duo, xfer);
	assert_int_equal(code, KVL_ERR_STALE);
	assert_int_equal(bytes_not(k->local.data, LEN, 1), 0);
	assert_int_equal(bytes_not(k->memory, LEN, 2), 0);
}

TEST(withdraw_key_after_deregister)
{
	for (size_t i = 0; i < COUNT(paths); i++) {
		struct keyed k;

		keyed_open(&k, paths[i]);
		assert_ok(kvl_mem_deregister(k.duo.b, &k.mr, 1));
		is_stale(&k, k.write);
		is_stale(&k, k.read);
		connect_update(k.duo.a, k.duo.ab, k.duo.b);
		is_stale(&k, k.write);
		is_stale(&k, k.read);
		keyed_close(&k);
	}
}

/* A new region at the same address is another region, before and after the peer hears of it. */
TEST(withdraw_key_after_registering_again)
{
	for (size_t i = 0; i < COUNT(paths); i++) {
		struct kvl_desc local, remote;
		struct keyed k;
		kvl_xfer_t xfer;

		keyed_open(&k, paths[i]);
		assert_ok(kvl_mem_deregister(k.duo.b, &k.mr, 1));
		keyed_register(&k);
		is_stale(&k, k.write);
		is_stale(&k, k.read);
		connect_update(k.duo.a, k.duo.ab, k.duo.b);
		is_stale(&k, k.write);
		is_stale(&k, k.read);
		local = desc_of(k.local.data, LEN);
		remote = desc_of(k.memory, LEN);
		duo_settle(k.duo.b);
		assert_ok(kvl_write(k.duo.a, k.duo.ab, &local, &remote, 1, NULL, &xfer));
		assert_int_equal(duo_wait(&k.duo, xfer), 0);
		duo_settle(k.duo.b);
		assert_int_equal(bytes_not(k.memory, LEN, 1), 0);
		keyed_close(&k);
	}
}

/* The owner's own side: its region is gone, so its prepared requests are. */
TEST(withdraw_own_region)
{
	for (size_t i = 0; i < COUNT(paths); i++) {
		struct keyed k;

		keyed_open(&k, paths[i]);
		assert_ok(kvl_mem_deregister(k.duo.a, &k.local.mr, 1));
		/* Unmapped by now; what is_stale() looks at in its place is memory that nobody registered. */
		k.local.data = malloc(LEN);
		assert_non_null(k.local.data);
		memset(k.local.data, 1, LEN);
		is_stale(&k, k.write);
		is_stale(&k, k.read);
		free(k.local.data);
		keyed_close(&k);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(withdraw_while_a_peer_writes),
		cmocka_unit_test(withdraw_mapped_memory_while_a_peer_writes),
		cmocka_unit_test(withdraw_while_another_process_writes),
		cmocka_unit_test(withdraw_key_after_deregister),
		cmocka_unit_test(withdraw_key_after_registering_again),
		cmocka_unit_test(withdraw_own_region),
	};

	return TESTING_RUN(tests, 40);
}
