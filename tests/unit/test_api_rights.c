/* SPDX-License-Identifier: Apache-2.0 */
/* Rights: what a region does not allow is refused when the request is prepared, and by the page tables too.
 */
#include "testing.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define LEN (16 * KIB)

enum rights_case {
	READ_ONLY,
	WRITE_ONLY,
	BOTH,
	LOCAL_ONLY,
	CASES
};

static const uint32_t rights_of[CASES] = { KVL_REMOTE_READ, KVL_REMOTE_WRITE, KVL_REMOTE_ALL,
					   KVL_LOCAL_ONLY };

static const char *const paths[] = { "map,copy,slot", "copy,slot", "slot" };

struct fixture {
	struct duo duo;
	struct buffer local, remote[CASES];
};

static void fixture_open(struct fixture *f, enum buffer_kind kind, const char *allowed)
{
	struct kvl_config config;

	kvl_config_init(&config);
	config.local_paths = allowed;
	duo_open(&f->duo, &config);
	buffer_open(&f->local, f->duo.a, BUFFER_ALLOC, LEN, 0);
	for (int i = 0; i < CASES; i++)
		buffer_open(&f->remote[i], f->duo.b, kind, LEN, rights_of[i]);
	duo_connect(&f->duo);
}

static void fixture_close(struct fixture *f)
{
	for (int i = 0; i < CASES; i++)
		buffer_close(&f->remote[i]);
	duo_close(&f->duo);
}

static void move(struct fixture *f, enum kvl_op op, enum rights_case which)
{
	struct kvl_desc local = desc_of(f->local.data, LEN), remote = desc_of(f->remote[which].data, LEN);

	assert_int_equal(
		duo_move(&f->duo, op, &f->local, &local, &f->remote[which], &remote, 1, 3, NULL, NULL), 0);
}

static void refuse(struct fixture *f, enum kvl_op op, enum rights_case which, int code)
{
	struct kvl_desc local[2] = { desc_of(f->local.data, 8), desc_of(f->local.data + 8, 8) };
	struct kvl_desc remote[2] = { desc_of(f->remote[BOTH].data, 8), desc_of(f->remote[which].data, 8) };
	kvl_xfer_t xfer = 0;

	memset(f->remote[which].data, 4, LEN);
	if (op == KVL_WRITE)
		assert_refused_at(kvl_write(f->duo.a, f->duo.ab, local, remote, 2, NULL, &xfer), code, 1);
	else
		assert_refused_at(kvl_read(f->duo.a, f->duo.ab, local, remote, 2, NULL, &xfer), code, 1);
	assert_int_equal(xfer, 0);
	assert_int_equal(bytes_not(f->remote[which].data, LEN, 4), 0);
}

TEST(rights_of_the_peer_at_prepare)
{
	for (size_t i = 0; i < COUNT(paths); i++)
		for (int kind = 0; kind < BUFFER_KINDS; kind++) {
			struct fixture f;

			fixture_open(&f, (enum buffer_kind)kind, paths[i]);
			move(&f, KVL_WRITE, BOTH);
			move(&f, KVL_READ, BOTH);
			move(&f, KVL_READ, READ_ONLY);
			move(&f, KVL_WRITE, WRITE_ONLY);
			refuse(&f, KVL_WRITE, READ_ONLY, KVL_ERR_RIGHTS);
			refuse(&f, KVL_READ, WRITE_ONLY, KVL_ERR_RIGHTS);
			/* Not exported: for the peer there is no such region. */
			refuse(&f, KVL_WRITE, LOCAL_ONLY, KVL_ERR_RANGE);
			refuse(&f, KVL_READ, LOCAL_ONLY, KVL_ERR_RANGE);
			fixture_close(&f);
		}
}

/* A list is made for either direction; the rights of its entries decide when a request is made of it. */
TEST(rights_are_checked_per_request)
{
	struct kvl_desc local, remote;
	struct fixture f;
	kvl_list_t lists[2];
	kvl_xfer_t xfer = 0;
	uint32_t index = 0;

	fixture_open(&f, BUFFER_ALLOC, NULL);
	local = desc_of(f.local.data, 8);
	remote = desc_of(f.remote[READ_ONLY].data, 8);
	assert_ok(kvl_list_create(f.duo.a, KVL_LOCAL, &local, 1, &lists[0]));
	assert_ok(kvl_list_create(f.duo.a, f.duo.ab, &remote, 1, &lists[1]));
	assert_refused_at(kvl_xfer_prepare(f.duo.a, KVL_WRITE, lists[0], lists[1], NULL, &xfer),
			  KVL_ERR_RIGHTS, 0);
	assert_refused_at(kvl_xfer_prepare_indexed(f.duo.a, KVL_WRITE, lists[0], &index, lists[1], &index, 1,
						   NULL, &xfer),
			  KVL_ERR_RIGHTS, 0);
	assert_ok(kvl_xfer_prepare(f.duo.a, KVL_READ, lists[0], lists[1], NULL, &xfer));
	fixture_close(&f);
}

/* The rights are what peers may do: the owner uses all of its regions as source and destination. */
TEST(rights_do_not_bind_the_owner)
{
	for (int which = 0; which < CASES; which++) {
		struct buffer own, remote;
		struct kvl_desc local, far;
		struct duo duo;

		duo_open(&duo, NULL);
		buffer_open(&own, duo.a, BUFFER_ALLOC, LEN, rights_of[which]);
		buffer_open(&remote, duo.b, BUFFER_ALLOC, LEN, 0);
		duo_connect(&duo);
		local = desc_of(own.data, LEN);
		far = desc_of(remote.data, LEN);
		assert_int_equal(duo_move(&duo, KVL_WRITE, &own, &local, &remote, &far, 1, 1, NULL, NULL), 0);
		assert_int_equal(duo_move(&duo, KVL_READ, &own, &local, &remote, &far, 1, 2, NULL, NULL), 0);
		duo_close(&duo);
	}
}

TEST(rights_seen_by_the_peer)
{
	struct kvl_peer_info info = { .size = sizeof(info) };
	struct fixture f;
	void *addr = NULL;

	fixture_open(&f, BUFFER_ALLOC, NULL);
	assert_ok(kvl_peer_info(f.duo.a, f.duo.ab, &info));
	assert_int_equal(info.regions, CASES - 1);
	assert_true(info.mapped_regions <= CASES - 1);
	assert_true(kvl_peer_map(f.duo.a, f.duo.ab, buffer_addr(&f.remote[LOCAL_ONLY]), 1, &addr) < 0);
	assert_null(addr);
	fixture_close(&f);
}

/* ------------------------------------------------------------------------ the page tables of a peer */

enum intrusion {
	READS,
	MPROTECTS,
	WRITES
};

static void *page_of(unsigned char *at)
{
	return at - (uintptr_t)at % 4096;
}

/* Another process maps the region read-only: it can look, and dies when it writes. */
static void intruder(int sock, void *arg)
{
	unsigned char *mapped;
	kvl_agent_t agent;
	kvl_peer_t peer;
	void *addr;

	must_ok(kvl_agent_open("intruder", NULL, &agent));
	sock_get(sock, &addr, sizeof(addr), sizeof(addr));
	peer = sock_get_agent(sock, agent);
	must_ok(kvl_peer_map(agent, peer, (uintptr_t)addr, LEN, &addr));
	mapped = addr;
	must(bytes_wrong(mapped, LEN, 1, 0, 1) == 0);
	sock_put(sock, "read", 4);
	/* Handed over as a descriptor that can only be read: the page tables can not be talked into more. */
	if (*(enum intrusion *)arg == MPROTECTS)
		must(mprotect(page_of(mapped), 4096, PROT_READ | PROT_WRITE) == -1 && errno == EACCES);
	if (*(enum intrusion *)arg == WRITES)
		memset(mapped, 0, 1);
	must_ok(kvl_agent_close(agent, SECOND));
}

static void intrude(uint32_t rights, enum buffer_kind kind, enum intrusion does, int status)
{
	struct buffer buffer;
	struct other other;
	kvl_agent_t agent;
	char word[4];

	other_start(&other, intruder, &does);
	assert_ok(kvl_agent_open("owner", NULL, &agent));
	buffer_open(&buffer, agent, kind, LEN, rights);
	bytes_fill(buffer.data, LEN, 1, 0, 1);
	sock_put(other.sock, &buffer.data, sizeof(void *));
	sock_put_agent(other.sock, agent);
	sock_get(other.sock, word, sizeof(word), sizeof(word));
	assert_int_equal(other_end(&other), status);
	if (status)
		assert_int_equal(bytes_wrong(buffer.data, LEN, 1, 0, 1), 0);
	buffer_close(&buffer);
	assert_ok(kvl_agent_close(agent, SECOND));
}

TEST(rights_read_only_region_can_not_be_written_through_its_mapping)
{
	intrude(KVL_REMOTE_READ, BUFFER_ALLOC, READS, 0);
	intrude(KVL_REMOTE_READ, BUFFER_ALLOC, MPROTECTS, 0);
	intrude(KVL_REMOTE_READ, BUFFER_FD, MPROTECTS, 0);
	intrude(KVL_REMOTE_READ, BUFFER_ALLOC, WRITES, SIGSEGV);
	intrude(KVL_REMOTE_READ, BUFFER_FD, WRITES, SIGSEGV);
	intrude(KVL_REMOTE_ALL, BUFFER_ALLOC, WRITES, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rights_of_the_peer_at_prepare),
		cmocka_unit_test(rights_are_checked_per_request),
		cmocka_unit_test(rights_do_not_bind_the_owner),
		cmocka_unit_test(rights_seen_by_the_peer),
		cmocka_unit_test(rights_read_only_region_can_not_be_written_through_its_mapping),
	};

	return TESTING_RUN(tests, 30);
}
