/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptor for epoll is a level: readable exactly while something can be taken. kvl_agent_wait too. */
#include "testing.h"

#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

struct fixture {
	struct duo duo;
	struct buffer local, remote;
	int epoll_a, epoll_b; /* each watches one agent's descriptor */
};

static int watch(kvl_agent_t agent)
{
	struct epoll_event event = { .events = EPOLLIN };
	int epoll = epoll_create1(EPOLL_CLOEXEC), fd = (int)assert_ok(kvl_agent_fd(agent));

	assert_true(epoll >= 0);
	assert_int_equal(kvl_agent_fd(agent), fd);
	assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
	return epoll;
}

static void fixture_open(struct fixture *f)
{
	duo_open(&f->duo, NULL);
	buffer_open(&f->local, f->duo.a, BUFFER_ALLOC, 4096, 0);
	buffer_open(&f->remote, f->duo.b, BUFFER_ALLOC, 4096, 0);
	duo_connect(&f->duo);
	f->epoll_a = watch(f->duo.a);
	f->epoll_b = watch(f->duo.b);
}

static void fixture_close(struct fixture *f)
{
	duo_close(&f->duo);
	close(f->epoll_a);
	close(f->epoll_b);
}

static int readable(int epoll, int timeout_ms)
{
	struct epoll_event event;

	return epoll_wait(epoll, &event, 1, timeout_ms);
}

static void becomes_readable(int epoll)
{
	assert_int_equal(readable(epoll, 10000), 1);
	assert_int_equal(readable(epoll, 0), 1); /* still: a level */
}

/* Ends before and after descriptors of an agent were asked for are both seen. */
TEST(events_fd_for_ends)
{
	struct kvl_desc from, to;
	struct fixture f;
	struct kvl_end end;
	kvl_xfer_t xfer;

	fixture_open(&f);
	from = desc_of(f.local.data, 4096);
	to = desc_of(f.remote.data, 4096);
	assert_int_equal(readable(f.epoll_a, 0), 0);
	for (size_t i = 0; i < testing_rounds(200); i++) {
		assert_ok(kvl_write(f.duo.a, f.duo.ab, &from, &to, 1, NULL, &xfer));
		becomes_readable(f.epoll_a);
		assert_int_equal(kvl_poll_many(f.duo.a, &end, 1, 0), 1);
		assert_int_equal(end.xfer, xfer);
		assert_int_equal(kvl_poll_many(f.duo.a, &end, 1, 0), 0);
		assert_int_equal(readable(f.epoll_a, 0), 0);
		assert_ok(kvl_xfer_release(f.duo.a, xfer));
	}
	assert_int_equal(readable(f.epoll_b, 0), 0);
	fixture_close(&f);
}

/* A release takes the end out of the list: nothing is left to take, and the level falls. */
TEST(events_fd_after_release)
{
	struct kvl_desc from, to;
	struct fixture f;
	kvl_xfer_t xfer;

	fixture_open(&f);
	from = desc_of(f.local.data, 4096);
	to = desc_of(f.remote.data, 4096);
	assert_ok(kvl_write(f.duo.a, f.duo.ab, &from, &to, 1, NULL, &xfer));
	becomes_readable(f.epoll_a);
	assert_ok(kvl_xfer_release(f.duo.a, xfer));
	assert_int_equal(kvl_agent_wait(f.duo.a, 0), 0);
	assert_int_equal(readable(f.epoll_a, 0), 0);
	fixture_close(&f);
}

TEST(events_fd_for_notifications)
{
	struct kvl_notif *notif;
	struct fixture f;

	fixture_open(&f);
	assert_int_equal(readable(f.epoll_b, 0), 0);
	for (size_t i = 0; i < testing_rounds(200); i++) {
		for (int k = 0; k < 3; k++)
			assert_ok(kvl_notify(f.duo.a, f.duo.ab, &k, sizeof(k), NULL));
		for (int k = 0; k < 3; k++) {
			becomes_readable(f.epoll_b);
			assert_ok(kvl_notif_next(f.duo.b, &notif));
			assert_memory_equal(notif->data, &k, sizeof(k));
			kvl_notif_free(notif);
		}
		assert_int_equal(kvl_notif_next(f.duo.b, &notif), KVL_ERR_AGAIN);
		assert_int_equal(readable(f.epoll_b, 0), 0);
	}
	fixture_close(&f);
}

/* Of two kinds, taking one leaves the level up for the other. */
TEST(events_fd_for_both_kinds)
{
	struct kvl_notif *notif;
	struct fixture f;
	struct kvl_end end;
	kvl_xfer_t xfer;

	fixture_open(&f);
	assert_ok(kvl_write(f.duo.a, f.duo.ab, NULL, NULL, 0, NULL, &xfer));
	assert_ok(kvl_notify(f.duo.b, f.duo.ba, "x", 1, NULL));
	assert_int_equal(kvl_xfer_wait(f.duo.a, xfer, PATIENCE), 0);
	becomes_readable(f.epoll_a);
	assert_int_equal(kvl_poll_many(f.duo.a, &end, 1, PATIENCE), 1);
	becomes_readable(f.epoll_a);
	notif = duo_notif(&f.duo, f.duo.a);
	assert_non_null(notif);
	kvl_notif_free(notif);
	assert_int_equal(readable(f.epoll_a, 0), 0);
	fixture_close(&f);
}

TEST(events_wait)
{
	struct kvl_notif *notif;
	struct fixture f;
	struct kvl_end end;
	kvl_xfer_t xfer;
	uint64_t start = kvl_now();

	fixture_open(&f);
	assert_int_equal(kvl_agent_wait(f.duo.a, 0), 0);
	assert_int_equal(kvl_agent_wait(f.duo.a, 20 * MS), 0);
	assert_true(kvl_now() - start >= 20 * MS);
	assert_ok(kvl_write(f.duo.a, f.duo.ab, NULL, NULL, 0, NULL, &xfer));
	assert_int_equal(kvl_agent_wait(f.duo.a, PATIENCE), 1);
	assert_int_equal(kvl_agent_wait(f.duo.a, 0), 1);
	assert_int_equal(kvl_poll_many(f.duo.a, &end, 1, 0), 1);
	assert_int_equal(kvl_agent_wait(f.duo.a, 0), 0);
	assert_ok(kvl_notify(f.duo.a, f.duo.ab, "x", 1, NULL));
	assert_int_equal(kvl_agent_wait(f.duo.b, PATIENCE), 1);
	assert_ok(kvl_notif_next(f.duo.b, &notif));
	kvl_notif_free(notif);
	assert_int_equal(kvl_agent_wait(f.duo.b, 0), 0);
	fixture_close(&f);
}

struct sleeper {
	kvl_agent_t agent;
	int result;
};

static void *sleeper_main(void *arg)
{
	struct sleeper *sleeper = arg;

	sleeper->result = kvl_agent_wait(sleeper->agent, PATIENCE);
	return NULL;
}

/* A thread that is already asleep is woken by what comes later. */
TEST(events_wait_is_woken)
{
	struct sleeper sleeper;
	struct kvl_notif *notif;
	pthread_t thread;
	struct fixture f;

	fixture_open(&f);
	for (size_t i = 0; i < testing_rounds(200); i++) {
		sleeper = (struct sleeper){ f.duo.b, -1 };
		assert_int_equal(pthread_create(&thread, NULL, sleeper_main, &sleeper), 0);
		assert_ok(kvl_notify(f.duo.a, f.duo.ab, "x", 1, NULL));
		pthread_join(thread, NULL);
		assert_int_equal(sleeper.result, 1);
		assert_ok(kvl_notif_next(f.duo.b, &notif));
		kvl_notif_free(notif);
	}
	fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_fd_for_ends),
		cmocka_unit_test(events_fd_after_release),
		cmocka_unit_test(events_fd_for_notifications),
		cmocka_unit_test(events_fd_for_both_kinds),
		cmocka_unit_test(events_wait),
		cmocka_unit_test(events_wait_is_woken),
	};

	return TESTING_RUN(tests, 30);
}
