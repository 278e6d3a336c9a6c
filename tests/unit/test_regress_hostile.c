/* SPDX-License-Identifier: Apache-2.0 */
/* What the other end of a connection does can not crash an agent, stall it, or use up its CPU or descriptors. */
#include "testing_process.h"
#include "testing_raw.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* ------------------------------------------------------------------------------------- a flooded doorbell */

/* Takes metadata, connects with a byte stream for a bell, and fills it for ever. */
static void flooder_main(int sock, void *arg)
{
	static unsigned char bytes[200 * KIB];
	const int room =
		4 * (int)MIB; /* as much as the system allows: the reader has to find more each time */
	struct raw_initiator raw;
	size_t len;

	(void)arg;
	len = sock_get(sock, bytes, sizeof(bytes), 0);
	raw_initiator_open(&raw, bytes, len, 1, 4096, SOCK_STREAM);
	must(setsockopt(raw.bell, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)) == 0);
	ignored(send(raw.bell, bytes, sizeof(bytes),
		     MSG_NOSIGNAL)); /* once at least before the others begin */
	sock_put(sock, "x", 1);
	while (send(raw.bell, bytes, sizeof(bytes), MSG_NOSIGNAL) > 0)
		;
	for (;;) /* refused: that is as good */
		pause();
}

TEST(flooded_doorbell_stalls_nobody)
{
	kvl_agent_t target, healthy;
	struct other other;
	uint64_t start;
	kvl_peer_t peer;
	char byte;

	other_start(&other, flooder_main, NULL);
	assert_ok(kvl_agent_open("target", NULL, &target));
	assert_ok(kvl_agent_open("healthy", NULL, &healthy));
	sock_put_agent(other.sock, target);
	sock_get(other.sock, &byte, 1, 1);
	start = kvl_now();
	peer = connect_to(healthy, target);
	assert_ok(kvl_notify(healthy, peer, "x", 1, NULL));
	assert_int_equal(assert_ok(kvl_agent_wait(target, PATIENCE)), 1);
	assert_ok(kvl_agent_close(target, SECOND));
	assert_true(kvl_now() - start < 2 * SECOND);
	other_kill(&other);
	other_end(&other);
	assert_ok(kvl_agent_close(healthy, SECOND));
}

/* ------------------------------------------------------------------------------ closed after the welcome */

#define CLOSINGS 400

/* Hangs up at once, or a little later, each time. */
static void *closing_main(void *arg)
{
	struct raw_target *raw = arg;
	size_t rounds = testing_rounds(CLOSINGS);

	for (size_t i = 0; i < rounds; i++) {
		raw_target_accept(raw);
		raw_target_welcome(raw);
		for (size_t k = 0; k < i % 64; k++)
			kvli_pause();
		raw_target_hang_up(raw);
	}
	return NULL;
}

TEST(target_that_closes_after_its_welcome_is_a_lost_peer)
{
	struct raw_target raw;
	pthread_t thread;
	kvl_agent_t agent;
	size_t before;

	raw_target_open(&raw, NULL, 0, 0);
	assert_ok(kvl_agent_open("agent", NULL, &agent));
	before = process_descriptors();
	assert_int_equal(pthread_create(&thread, NULL, closing_main, &raw), 0);
	for (size_t i = 0; i < testing_rounds(CLOSINGS); i++) {
		kvl_peer_t peer = 0;
		int code = kvl_peer_connect(agent, raw.bytes, raw.len, PATIENCE, &peer);

		assert_true(code == 0 || code == KVL_ERR_PEER_LOST);
		if (code == 0)
			assert_ok(kvl_peer_close(agent, peer));
	}
	pthread_join(thread, NULL);
	assert_int_equal(process_descriptors(), before);
	assert_ok(kvl_agent_close(agent, SECOND));
	raw_target_close(&raw);
}

/* --------------------------------------------------------------------------------- no descriptors left */

#define DESCRIPTORS 48
#define HALF_OPEN   60
#define WATCHED     (500 * MS)

static uint64_t cpu_ns(void)
{
	struct rusage u;

	must(getrusage(RUSAGE_SELF, &u) == 0);
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * SECOND +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
}

/* An agent with few descriptors. Told to, measures its own CPU time for a while in which nobody sends it anything. */
static void poor_main(int sock, void *arg)
{
	struct rlimit limit = { DESCRIPTORS, DESCRIPTORS };
	struct pollfd p = { .fd = sock, .events = POLLIN };
	kvl_agent_t agent;
	uint64_t used;
	char byte;

	(void)arg;
	must(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	must_ok(kvl_agent_open("poor", NULL, &agent));
	sock_put_agent(sock, agent);
	sock_get(sock, &byte, 1, 1);
	used = cpu_ns();
	must(poll(&p, 1, (int)(WATCHED / MS)) == 0);
	used = cpu_ns() - used;
	sock_put(sock, &used, sizeof(used));
	sock_get(sock, &byte, 1, 1);
}

TEST(half_open_connections_burn_no_cpu_and_a_later_connect_works)
{
	unsigned char bytes[4 * KIB];
	int knock[HALF_OPEN];
	struct other other;
	kvl_agent_t agent;
	kvl_peer_t peer = 0;
	uint64_t used, start;
	size_t len;
	int code;

	other_start(&other, poor_main, NULL);
	assert_ok(kvl_agent_open("later", NULL, &agent));
	len = sock_get(other.sock, bytes, sizeof(bytes), 0);
	for (size_t i = 0; i < HALF_OPEN; i++)
		knock[i] = raw_knock(bytes, len);
	sock_put(other.sock, "x", 1);
	sock_get(other.sock, &used, sizeof(used), sizeof(used));
	assert_true(used < WATCHED / 2);
	for (size_t i = 0; i < HALF_OPEN; i++)
		close(knock[i]);
	start = kvl_now();
	/* the target finds the closed ones one after the other */
	while ((code = kvl_peer_connect(agent, bytes, len, SECOND, &peer)) && kvl_now() - start < 5 * SECOND)
		;
	assert_ok(code);
	sock_put(other.sock, "x", 1);
	assert_int_equal(other_end(&other), 0);
	assert_ok(kvl_agent_close(agent, SECOND));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(half_open_connections_burn_no_cpu_and_a_later_connect_works),
		cmocka_unit_test(flooded_doorbell_stalls_nobody),
		cmocka_unit_test(target_that_closes_after_its_welcome_is_a_lost_peer),
	};

	return TESTING_RUN(tests, 30);
}
