/* SPDX-License-Identifier: Apache-2.0 */
/* A post that is refused has changed nothing: not the request, not its earlier end, not the peer. */
#include "testing_raw.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* -------------------------------------------------------------------------------- the peer's notif_max_bytes */

struct unequal {
	kvl_agent_t from, to;
	kvl_peer_t peer;
	struct buffer local, remote;
	struct kvl_desc local_desc, remote_desc;
	unsigned char *data; /* 2 MiB: sent by one, not taken by the other */
};

static void unequal_open(struct unequal *u)
{
	struct kvl_config config;

	kvl_config_init(&config);
	config.notif_max_bytes = 4 * MIB;
	assert_ok(kvl_agent_open("from", &config, &u->from));
	assert_ok(kvl_agent_open("to", NULL, &u->to));
	buffer_open(&u->local, u->from, BUFFER_ALLOC, 64, 0);
	buffer_open(&u->remote, u->to, BUFFER_ALLOC, 64, 0);
	u->local_desc = desc_of(u->local.data, 64);
	u->remote_desc = desc_of(u->remote.data, 64);
	u->peer = connect_to(u->from, u->to);
	u->data = calloc(1, 2 * MIB);
	assert_non_null(u->data);
}

static void unequal_close(struct unequal *u)
{
	free(u->data);
	assert_ok(kvl_agent_close(u->from, SECOND));
	assert_ok(kvl_agent_close(u->to, SECOND));
}

static void still_good(struct unequal *u, kvl_xfer_t xfer)
{
	struct kvl_peer_info info = { .size = sizeof(info) };
	struct kvl_notif *notif = NULL;

	memset(u->local.data, 7, 64);
	assert_ok(kvl_xfer_post(u->from, xfer, NULL));
	assert_int_equal(kvl_xfer_wait(u->from, xfer, PATIENCE), 0);
	duo_settle(u->to);
	assert_int_equal(bytes_not(u->remote.data, 64, 7), 0);
	assert_ok(kvl_notify(u->from, u->peer, u->data, MIB, NULL));
	assert_ok(kvl_notif_wait(u->to, PATIENCE, &notif));
	assert_int_equal(notif->len, MIB);
	kvl_notif_free(notif);
	assert_ok(kvl_peer_info(u->from, u->peer, &info));
	assert_int_equal(info.connected, 1);
}

TEST(notification_that_the_peer_does_not_take_is_refused)
{
	struct kvl_xfer_opts opts = { .size = sizeof(opts) };
	struct kvl_post post = { .size = sizeof(post) };
	kvl_xfer_t xfer = 0, none = 0;
	struct unequal u;

	unequal_open(&u);
	assert_ok(kvl_write(u.from, u.peer, &u.local_desc, &u.remote_desc, 1, NULL, &xfer));
	assert_int_equal(kvl_xfer_wait(u.from, xfer, PATIENCE), 0);
	assert_refused(kvl_notify(u.from, u.peer, u.data, 2 * MIB, NULL), KVL_ERR_LIMIT);
	opts.notif = post.notif = u.data;
	opts.notif_len = post.notif_len = MIB + 1;
	assert_refused(kvl_write(u.from, u.peer, &u.local_desc, &u.remote_desc, 1, &opts, &none),
		       KVL_ERR_LIMIT);
	assert_refused(kvl_xfer_post(u.from, xfer, &post), KVL_ERR_LIMIT);
	still_good(&u, xfer);
	unequal_close(&u);
}

/* --------------------------------------------------------------------- requests of a lane whose queue is full */

/* The target never answers, so that the queue stays full; x has ended before, by its deadline. */
struct full {
	struct raw_target raw;
	kvl_agent_t agent;
	kvl_peer_t peer;
	struct buffer local;
	struct kvl_desc from, to;
	kvl_xfer_t x;
	int end; /* of x */
};

static void full_fill(struct full *f)
{
	struct kvl_xfer_opts longer = { .size = sizeof(longer), .deadline_ns = PATIENCE };
	kvl_xfer_t filling;

	for (int i = 0; i < 2; i++)
		assert_ok(kvl_write(f->agent, f->peer, &f->from, &f->to, 1, &longer, &filling));
}

static void full_open(struct full *f)
{
	struct kvl_xfer_opts soon = { .size = sizeof(soon), .deadline_ns = MS };
	const uint64_t addr = 0x10000;
	struct kvl_config config;

	kvl_config_init(&config);
	config.local_paths = "slot";
	config.workers = KVL_NO_WORKERS;
	config.queue_depth = 2;
	config.lanes = 1;
	raw_target_open(&f->raw, &addr, 1, 4096);
	assert_ok(kvl_agent_open("agent", &config, &f->agent));
	buffer_open(&f->local, f->agent, BUFFER_ALLOC, 4096, 0);
	f->peer = raw_target_connect(&f->raw, f->agent);
	f->from = desc_of(f->local.data, 64);
	f->to = (struct kvl_desc){ .addr = addr, .len = 64 };
	assert_ok(kvl_write(f->agent, f->peer, &f->from, &f->to, 1, &soon, &f->x));
	f->end = kvl_xfer_wait(f->agent, f->x, PATIENCE);
	assert_int_equal(f->end, KVL_ERR_TIMED_OUT);
}

static void full_close(struct full *f)
{
	assert_ok(kvl_agent_close(f->agent, SECOND));
	raw_target_close(&f->raw);
}

/* A page that holds up whoever reads it, until it is let go. */
static struct {
	unsigned char *page;
	sem_t caught;
	int go[2];
} trap;

static void trap_fault(int number, siginfo_t *info, void *context)
{
	char byte;

	(void)number;
	(void)context;
	if ((unsigned char *)info->si_addr < trap.page || (unsigned char *)info->si_addr >= trap.page + 4096)
		_exit(99);
	sem_post(&trap.caught);
	while (read(trap.go[0], &byte, 1) != 1)
		;
	mprotect(trap.page, 4096, PROT_READ);
}

static void trap_open(struct sigaction *before)
{
	struct sigaction action = { .sa_sigaction = trap_fault, .sa_flags = SA_SIGINFO };

	trap.page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(trap.page, MAP_FAILED);
	assert_int_equal(sem_init(&trap.caught, 0, 0), 0);
	assert_int_equal(pipe(trap.go), 0);
	assert_int_equal(sigaction(SIGSEGV, &action, before), 0);
}

static void trap_close(const struct sigaction *before)
{
	assert_int_equal(sigaction(SIGSEGV, before, NULL), 0);
	munmap(trap.page, 4096);
	sem_destroy(&trap.caught);
	close(trap.go[0]);
	close(trap.go[1]);
}

static void *refused_main(void *arg)
{
	struct kvl_post post = { .size = sizeof(post), .notif = trap.page, .notif_len = 4096 };
	struct full *f = arg;

	must(kvl_xfer_post(f->agent, f->x, &post) == KVL_ERR_AGAIN);
	return NULL;
}

static size_t times_listed(struct full *f)
{
	struct kvl_end end[4];
	size_t times = 0;
	int64_t n;

	while ((n = assert_ok(kvl_poll_many(f->agent, end, COUNT(end), 0))) > 0)
		for (int64_t i = 0; i < n; i++)
			times += end[i].xfer == f->x && end[i].status == f->end;
	return times;
}

/* The post is in the middle of copying its notification when the ends are taken; then it is refused. */
TEST(end_before_a_refused_post_is_listed_once)
{
	struct sigaction before;
	pthread_t thread;
	struct full f;
	size_t times;

	full_open(&f);
	full_fill(&f);
	trap_open(&before);
	assert_int_equal(pthread_create(&thread, NULL, refused_main, &f), 0);
	while (sem_wait(&trap.caught))
		;
	times = times_listed(&f);
	assert_int_equal(write(trap.go[1], "x", 1), 1);
	pthread_join(thread, NULL);
	trap_close(&before);
	assert_int_equal(kvl_xfer_poll(f.agent, f.x), f.end);
	assert_int_equal(times + times_listed(&f), 1);
	full_close(&f);
}

TEST(report_is_kept_by_a_refused_post)
{
	struct kvl_report first = { .size = sizeof(first) }, second = { .size = sizeof(second) };
	struct full f;

	full_open(&f);
	full_fill(&f);
	assert_ok(kvl_xfer_report(f.agent, f.x, &first));
	assert_refused(kvl_xfer_post(f.agent, f.x, NULL), KVL_ERR_AGAIN);
	assert_ok(kvl_xfer_report(f.agent, f.x, &second));
	assert_int_equal(first.status, f.end);
	assert_memory_equal(&first, &second, sizeof(first));
	full_close(&f);
}

/* ------------------------------------------------------------------------- cancels that aim at refused posts */

struct canceler {
	kvl_agent_t agent;
	kvl_xfer_t xfer;
	atomic_int stop;
};

static void *cancel_main(void *arg)
{
	struct canceler *c = arg;

	while (!atomic_load(&c->stop))
		ignored(kvl_xfer_cancel(c->agent, c->xfer));
	return NULL;
}

/* Nothing of it is pending while the other thread cancels: the posts are all refused, the queue being full. */
static void cancel_refused_posts(struct duo *duo, kvl_xfer_t xfer, size_t posts)
{
	struct canceler c = { .agent = duo->a, .xfer = xfer };
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, cancel_main, &c), 0);
	for (size_t i = 0; i < posts; i++)
		must(kvl_xfer_post(duo->a, xfer, NULL) == KVL_ERR_AGAIN);
	atomic_store(&c.stop, 1);
	pthread_join(thread, NULL);
}

/* Driven by hand, a lane of two; no post executes its request itself. */
struct narrow {
	struct duo duo;
	struct buffer local, remote;
	struct kvl_desc from, to;
};

static void narrow_open(struct narrow *n)
{
	struct kvl_config config;

	kvl_config_init(&config);
	config.workers = KVL_NO_WORKERS;
	config.queue_depth = 2;
	config.lanes = 1;
	config.small_bytes = 1;
	duo_open(&n->duo, &config);
	buffer_open(&n->local, n->duo.a, BUFFER_ALLOC, 64, 0);
	buffer_open(&n->remote, n->duo.b, BUFFER_ALLOC, 64, 0);
	duo_connect(&n->duo);
	n->from = desc_of(n->local.data, 64);
	n->to = desc_of(n->remote.data, 64);
}

static kvl_xfer_t narrow_post(struct narrow *n)
{
	kvl_xfer_t xfer = 0;

	assert_ok(kvl_write(n->duo.a, n->duo.ab, &n->from, &n->to, 1, NULL, &xfer));
	return xfer;
}

static void narrow_end(struct narrow *n, kvl_xfer_t xfer)
{
	assert_int_equal(duo_wait(&n->duo, xfer), 0);
	assert_ok(kvl_xfer_release(n->duo.a, xfer));
}

TEST(cancel_of_a_refused_post_spares_the_next_post)
{
	kvl_xfer_t xfer, filling[2];
	struct narrow n;

	narrow_open(&n);
	for (int round = 0; round < 150; round++) {
		xfer = narrow_post(&n);
		assert_int_equal(duo_wait(&n.duo, xfer), 0);
		filling[0] = narrow_post(&n);
		filling[1] = narrow_post(&n);
		cancel_refused_posts(&n.duo, xfer, testing_rounds(2000));
		narrow_end(&n, filling[0]);
		narrow_end(&n, filling[1]);
		assert_ok(kvl_xfer_post(n.duo.a, xfer, NULL));
		narrow_end(&n, xfer);
	}
	duo_close(&n.duo);
}

/* Posts are told apart by a count of 12 bits: one turn of it must not bring an old cancel back. */
TEST(cancel_of_one_post_spares_all_later_ones)
{
	struct narrow n;
	kvl_xfer_t xfer;

	narrow_open(&n);
	xfer = narrow_post(&n);
	assert_ok(kvl_xfer_cancel(n.duo.a, xfer));
	assert_int_equal(duo_wait(&n.duo, xfer), KVL_ERR_CANCELED);
	for (size_t i = 0; i < 4100; i++) {
		assert_ok(kvl_xfer_post(n.duo.a, xfer, NULL));
		assert_int_equal(duo_wait(&n.duo, xfer), 0);
	}
	narrow_end(&n, xfer);
	duo_close(&n.duo);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(notification_that_the_peer_does_not_take_is_refused),
		cmocka_unit_test(end_before_a_refused_post_is_listed_once),
		cmocka_unit_test(report_is_kept_by_a_refused_post),
		cmocka_unit_test(cancel_of_a_refused_post_spares_the_next_post),
		cmocka_unit_test(cancel_of_one_post_spares_all_later_ones),
	};

	return TESTING_RUN(tests, 30);
}
