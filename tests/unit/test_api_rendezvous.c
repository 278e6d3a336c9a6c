/* SPDX-License-Identifier: Apache-2.0 */
/* Finding each other by directory: publish, look up, refresh, and what a dead publisher leaves. */
#include "testing.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char dir[128];

static size_t entries(void)
{
	DIR *handle = opendir(dir);
	size_t n = 0;

	assert_non_null(handle);
	while (readdir(handle))
		n++;
	closedir(handle);
	return n - 2;
}

static int dir_make(void **unused)
{
	const char *base = getenv("TMPDIR");

	(void)unused;
	snprintf(dir, sizeof(dir), "%s/kvlane-test-XXXXXX", base ? base : P_tmpdir);
	return mkdtemp(dir) ? 0 : -1;
}

static int dir_remove(void **unused)
{
	(void)unused;
	/* Fails when a test left something in it. */
	return rmdir(dir);
}

static void not_found(const char *name)
{
	void *bytes = NULL;
	size_t len = 0;
	uint64_t start = kvl_now();

	assert_refused(kvl_lookup(dir, name, 20 * MS, &bytes, &len), KVL_ERR_NOT_FOUND);
	assert_message(name);
	assert_true(kvl_now() - start >= 20 * MS);
	assert_null(bytes);
}

TEST(rendezvous_publish_and_find)
{
	struct kvl_peer_info info = { .size = sizeof(info) };
	struct duo duo;
	kvl_peer_t peer;
	void *bytes, *own;
	size_t len, own_len;

	duo_open(&duo, NULL);
	not_found("duo-b");
	assert_ok(kvl_publish(duo.b, dir));
	assert_ok(kvl_lookup(dir, "duo-b", 0, &bytes, &len));
	own = metadata_of(duo.b, &own_len);
	assert_int_equal(len, own_len);
	assert_memory_equal(bytes, own, len);
	free(bytes);
	free(own);
	assert_ok(kvl_peer_find(duo.a, dir, "duo-b", 0, &peer));
	assert_ok(kvl_peer_info(duo.a, peer, &info));
	assert_string_equal(info.name, "duo-b");
	duo_close(&duo);
	assert_int_equal(entries(), 0);
	not_found("duo-b");
}

TEST(rendezvous_refresh)
{
	static unsigned char memory[64];
	struct kvl_mem mem = memory_of(memory, sizeof(memory), 0);
	struct kvl_peer_info info = { .size = sizeof(info) };
	struct duo duo;
	kvl_peer_t peer;
	kvl_mr_t mr;
	void *bytes;
	size_t len;

	duo_open(&duo, NULL);
	assert_ok(kvl_publish(duo.b, dir));
	assert_ok(kvl_peer_find(duo.a, dir, "duo-b", 0, &peer));
	assert_ok(kvl_mem_register(duo.b, &mem, 1, &mr));
	assert_ok(kvl_publish(duo.b, dir));
	assert_ok(kvl_lookup(dir, "duo-b", 0, &bytes, &len));
	assert_ok(kvl_peer_update(duo.a, peer, bytes, len));
	assert_ok(kvl_peer_info(duo.a, peer, &info));
	assert_int_equal(info.regions, 1);
	free(bytes);
	duo_close(&duo);
}

TEST(rendezvous_names_are_unique)
{
	kvl_agent_t first, second;

	assert_ok(kvl_agent_open("same", NULL, &first));
	assert_ok(kvl_agent_open("same", NULL, &second));
	assert_ok(kvl_publish(first, dir));
	assert_refused(kvl_publish(second, dir), KVL_ERR_EXISTS);
	assert_message("same");
	assert_ok(kvl_agent_close(first, SECOND));
	assert_ok(kvl_publish(second, dir));
	assert_ok(kvl_agent_close(second, SECOND));
}

TEST(rendezvous_bad_directory)
{
	kvl_agent_t agent;
	void *bytes = NULL;
	size_t len;

	assert_ok(kvl_agent_open("alone", NULL, &agent));
	assert_true(kvl_publish(agent, "/no/such/dir") < 0);
	assert_message("/no/such/dir");
	assert_true(kvl_lookup("/no/such/dir", "x", 0, &bytes, &len) < 0);
	assert_message("/no/such/dir");
	assert_refused(kvl_lookup(dir, "../x", 0, &bytes, &len), KVL_ERR_INVALID);
	assert_null(bytes);
	assert_ok(kvl_agent_close(agent, SECOND));
}

static void publisher(int sock, void *arg)
{
	kvl_agent_t agent;
	char byte;

	must_ok(kvl_agent_open("mortal", NULL, &agent));
	must_ok(kvl_publish(agent, dir));
	sock_put(sock, "x", 1);
	sock_get(sock, &byte, 1, 1);
	(void)arg;
}

/* A killed publisher's entry is no live agent, and the next of its name takes its place. */
TEST(rendezvous_killed_publisher)
{
	struct other other;
	kvl_agent_t agent;
	char byte;
	void *bytes;
	size_t len;

	other_start(&other, publisher, NULL);
	sock_get(other.sock, &byte, 1, 1);
	assert_ok(kvl_lookup(dir, "mortal", PATIENCE, &bytes, &len));
	free(bytes);
	other_kill(&other);
	other_end(&other);
	not_found("mortal");
	assert_ok(kvl_agent_open("mortal", NULL, &agent));
	assert_ok(kvl_publish(agent, dir));
	assert_ok(kvl_lookup(dir, "mortal", 0, &bytes, &len));
	free(bytes);
	assert_ok(kvl_agent_close(agent, SECOND));
	assert_int_equal(entries(), 0);
}

/* The look-up waits for one that comes later. */
TEST(rendezvous_wait_for_a_publisher)
{
	struct other other;
	void *bytes;
	size_t len;

	other_start(&other, publisher, NULL);
	assert_ok(kvl_lookup(dir, "mortal", PATIENCE, &bytes, &len));
	free(bytes);
	other_kill(&other);
	other_end(&other);
	not_found("mortal");
}

/* What the dead left is removed by the next publisher of any name. */
TEST(rendezvous_leftovers_are_removed)
{
	kvl_agent_t agent;

	assert_ok(kvl_agent_open("living", NULL, &agent));
	assert_ok(kvl_publish(agent, dir));
	assert_int_equal(entries(), 1);
	assert_ok(kvl_agent_close(agent, SECOND));
	assert_int_equal(entries(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rendezvous_publish_and_find),
		cmocka_unit_test(rendezvous_refresh),
		cmocka_unit_test(rendezvous_names_are_unique),
		cmocka_unit_test(rendezvous_bad_directory),
		cmocka_unit_test(rendezvous_killed_publisher),
		cmocka_unit_test(rendezvous_wait_for_a_publisher),
		cmocka_unit_test(rendezvous_leftovers_are_removed),
	};

	testing_begin(30);
	return testing_end(cmocka_run_group_tests_name(__FILE__, tests, dir_make, dir_remove));
}
