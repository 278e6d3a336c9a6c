/* SPDX-License-Identifier: Apache-2.0 */
/* Answers about regions: each goes to its own question, and what nobody asked for is dropped, descriptors too. */
#include "testing_process.h"
#include "testing_raw.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define LEN 4096

static const struct word32 never;

/* A target with two regions of shared memory: the first full of 1, the second of 2. */
struct asked {
	struct raw_target raw;
	int fd[RAW_REGIONS];
	kvl_agent_t agent;
	kvl_peer_t peer;
};

static int region_make(unsigned char value)
{
	unsigned char page[LEN];
	int fd = memfd_create("kvlane-region", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	memset(page, value, sizeof(page));
	must(fd >= 0 && write(fd, page, sizeof(page)) == sizeof(page));
	must(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0);
	return fd;
}

/* Connected while the target had no region. */
static void asked_open(struct asked *a)
{
	const uint64_t addr[RAW_REGIONS] = { 0x10000, 0x20000 };
	struct kvl_config config;

	raw_target_open(&a->raw, addr, RAW_REGIONS, LEN);
	for (size_t i = 0; i < RAW_REGIONS; i++) {
		a->fd[i] = region_make((unsigned char)(i + 1));
		a->raw.region[i].mappable = 1;
	}
	raw_target_encode(&a->raw, 0);
	kvl_config_init(&config);
	config.connect_timeout_ms = 50;
	assert_ok(kvl_agent_open("asking", &config, &a->agent));
	a->peer = raw_target_connect(&a->raw, a->agent);
}

static void asked_close(struct asked *a)
{
	assert_ok(kvl_agent_close(a->agent, SECOND));
	raw_target_close(&a->raw);
	for (size_t i = 0; i < RAW_REGIONS; i++)
		close(a->fd[i]);
}

/* Takes the next question and answers it rightly. */
static void answer_one(struct asked *a)
{
	int fd[MESSAGE_FDS] = { -1, -1 };
	struct message m;
	uint32_t slot;

	must_ok(kvli_message_wait(a->raw.sock, &m, fd, kvl_now() + PATIENCE, &never));
	must(m.type == MESSAGE_MAP && m.slot < RAW_REGIONS);
	slot = m.slot;
	m.type = MESSAGE_MAPPED;
	m.len = LEN;
	must_ok(kvli_message_send(a->raw.sock, &m, &a->fd[slot], 1));
}

static void *answer_main(void *arg)
{
	answer_one(arg);
	return NULL;
}

TEST(late_answer_is_not_taken_for_the_next_one)
{
	struct asked a;
	pthread_t thread;
	void *at = NULL;

	asked_open(&a);
	raw_target_encode(&a.raw, 1);
	assert_refused(kvl_peer_update(a.agent, a.peer, a.raw.bytes, a.raw.len), KVL_ERR_TIMED_OUT);
	answer_one(&a); /* too late */
	a.raw.region[0] = a.raw.region[1];
	raw_target_encode(&a.raw, 1); /* now only the second region is asked about */
	assert_int_equal(pthread_create(&thread, NULL, answer_main, &a), 0);
	assert_ok(kvl_peer_update(a.agent, a.peer, a.raw.bytes, a.raw.len));
	pthread_join(thread, NULL);
	assert_ok(kvl_peer_map(a.agent, a.peer, 0x20000, LEN, &at));
	assert_int_equal(bytes_not(at, LEN, 2), 0);
	asked_close(&a);
}

/* More descriptors than a message has, in messages that nobody asked for. */
static void send_surplus(int sock)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = { 0 };
	struct message m;
	struct iovec iov = { &m, sizeof(m) };
	struct msghdr h = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&h);
	int fd[8];

	kvli_message_init(&m, MESSAGE_MAPPED, 0);
	m.slot = RAW_EXPORTS;
	for (size_t i = 0; i < COUNT(fd); i++)
		fd[i] = sock;
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), fd, sizeof(fd));
	must(sendmsg(sock, &h, MSG_NOSIGNAL) == (ssize_t)sizeof(m));
}

TEST(descriptors_that_nobody_asked_for_are_closed)
{
	pthread_t thread;
	struct asked a;
	size_t before;
	void *at = NULL;

	asked_open(&a);
	before = process_descriptors();
	for (int i = 0; i < 5; i++)
		send_surplus(a.raw.sock);
	raw_target_encode(&a.raw, 1);
	assert_int_equal(pthread_create(&thread, NULL, answer_main, &a), 0);
	assert_ok(kvl_peer_update(a.agent, a.peer, a.raw.bytes, a.raw.len));
	pthread_join(thread, NULL);
	assert_ok(kvl_peer_map(a.agent, a.peer, 0x10000, LEN, &at));
	assert_int_equal(bytes_not(at, LEN, 1), 0);
	assert_int_equal(process_descriptors(), before);
	asked_close(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(late_answer_is_not_taken_for_the_next_one),
		cmocka_unit_test(descriptors_that_nobody_asked_for_are_closed),
	};

	return TESTING_RUN(tests, 30);
}
