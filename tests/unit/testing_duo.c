/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ------------------------------------------------------------------------------------------------ memory */

/* Where a handed-over memfd's region starts, so that nothing is page-aligned by luck. */
#define FD_OFFSET (4096 + 72)
/* The same for malloc. */
#define PLAIN_OFFSET 13

const char *buffer_kind_name(enum buffer_kind kind)
{
	static const char *const name[BUFFER_KINDS] = { "alloc", "memfd", "plain" };

	return name[kind];
}

struct kvl_mem memory_of(const void *addr, uint64_t len, uint32_t rights)
{
	return (struct kvl_mem){ .addr = (void *)(uintptr_t)addr, .len = len, .rights = rights, .fd = -1 };
}

struct kvl_desc desc_of(const void *addr, uint64_t len)
{
	return (struct kvl_desc){ .addr = (uintptr_t)addr, .len = len };
}

uint64_t buffer_addr(const struct buffer *buffer)
{
	return (uintptr_t)buffer->data;
}

static void buffer_open_fd(struct buffer *buffer)
{
	buffer->block_len = FD_OFFSET + buffer->len;
	buffer->fd = memfd_create("kvlane-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_true(buffer->fd >= 0);
	assert_int_equal(ftruncate(buffer->fd, (off_t)buffer->block_len), 0);
	buffer->block = mmap(NULL, buffer->block_len, PROT_READ | PROT_WRITE, MAP_SHARED, buffer->fd, 0);
	assert_ptr_not_equal(buffer->block, MAP_FAILED);
	buffer->data = (unsigned char *)buffer->block + FD_OFFSET;
}

static void buffer_open_plain(struct buffer *buffer)
{
	buffer->block = calloc(1, buffer->len + PLAIN_OFFSET);
	assert_non_null(buffer->block);
	buffer->data = (unsigned char *)buffer->block + PLAIN_OFFSET;
}

void buffer_open(struct buffer *buffer, kvl_agent_t agent, enum buffer_kind kind, uint64_t len,
		 uint32_t rights)
{
	struct kvl_mem mem;

	*buffer = (struct buffer){ .len = len, .agent = agent, .kind = kind, .fd = -1 };
	if (kind == BUFFER_ALLOC) {
		void *addr = NULL;

		assert_ok(kvl_mem_alloc(agent, len, rights, &addr, &buffer->mr));
		buffer->data = addr;
		return;
	}
	if (kind == BUFFER_FD)
		buffer_open_fd(buffer);
	else
		buffer_open_plain(buffer);
	mem = memory_of(buffer->data, len, rights);
	if (kind == BUFFER_FD) {
		mem.flags = KVL_MEM_FD;
		mem.fd = buffer->fd;
		mem.fd_offset = FD_OFFSET;
	}
	assert_ok(kvl_mem_register(agent, &mem, 1, &buffer->mr));
}

void buffer_free(struct buffer *buffer)
{
	if (buffer->kind == BUFFER_FD) {
		munmap(buffer->block, buffer->block_len);
		close(buffer->fd);
	} else if (buffer->kind == BUFFER_PLAIN) {
		free(buffer->block);
	}
	buffer->data = NULL;
}

void buffer_close(struct buffer *buffer)
{
	assert_ok(kvl_mem_deregister(buffer->agent, &buffer->mr, 1));
	buffer_free(buffer);
}

void buffer_scatter(const struct buffer *buffer, const uint64_t *len, size_t n, uint64_t seed,
		    struct kvl_desc *desc)
{
	uint32_t *order = calloc(n ? n : 1, sizeof(*order));
	uint64_t at = buffer_addr(buffer), state = seed, total = 0, room;

	assert_non_null(order);
	for (size_t i = 0; i < n; i++)
		total += len[i];
	assert_true(total <= buffer->len);
	room = buffer->len - total;
	random_shuffle(order, n, &state);
	for (size_t i = 0; i < n; i++) {
		uint64_t share = 2 * room / (n - i), gap = share > 64 ? 64 : share;

		gap = random_range(&state, 0, 3) ? random_range(&state, 0, gap < room ? gap : room) : 0;
		room -= gap;
		at += gap;
		desc[order[i]] = (struct kvl_desc){ .addr = at, .len = len[order[i]] };
		at += len[order[i]];
	}
	free(order);
}

/* ----------------------------------------------------------------------------------- two connected agents */

static int metadata_get(kvl_agent_t agent, void **bytes, size_t *len)
{
	int code;

	*len = 0;
	*bytes = NULL;
	code = kvl_agent_metadata(agent, NULL, len);
	if (code != KVL_ERR_LIMIT)
		return code;
	*bytes = malloc(*len);
	return kvl_agent_metadata(agent, *bytes, len);
}

void *metadata_of(kvl_agent_t agent, size_t *len)
{
	void *bytes;

	assert_ok(metadata_get(agent, &bytes, len));
	assert_non_null(bytes);
	return bytes;
}

/* These return their errors: a test that is left by a failed check would leave its driver thread running. */
static int connect_try(kvl_agent_t from, kvl_agent_t to, kvl_peer_t *peer)
{
	size_t len;
	void *bytes;
	int code = metadata_get(to, &bytes, &len);

	if (code == 0)
		code = kvl_peer_connect(from, bytes, len, 0, peer);
	free(bytes);
	return code;
}

static int update_try(kvl_agent_t from, kvl_peer_t peer, kvl_agent_t to)
{
	size_t len;
	void *bytes;
	int code = metadata_get(to, &bytes, &len);

	if (code == 0)
		code = kvl_peer_update(from, peer, bytes, len);
	free(bytes);
	return code;
}

kvl_peer_t connect_to(kvl_agent_t from, kvl_agent_t to)
{
	kvl_peer_t peer = 0;

	assert_ok(connect_try(from, to, &peer));
	return peer;
}

void connect_update(kvl_agent_t from, kvl_peer_t peer, kvl_agent_t to)
{
	assert_ok(update_try(from, peer, to));
}

void duo_open(struct duo *duo, const struct kvl_config *config)
{
	*duo = (struct duo){ .driven = config && config->workers == KVL_NO_WORKERS };
	assert_ok(kvl_agent_open("duo-a", config, &duo->a));
	assert_ok(kvl_agent_open("duo-b", config, &duo->b));
}

/* Connecting waits for an answer of the other side, which has no thread of its own in a driven duo. */
struct driver {
	struct duo *duo;
	atomic_int stop;
};

static void *driver_main(void *arg)
{
	struct driver *driver = arg;

	while (!atomic_load(&driver->stop))
		if (!duo_drive(driver->duo))
			sched_yield();
	return NULL;
}

static int with_driver(struct duo *duo, int (*body)(struct duo *duo))
{
	struct driver driver = { .duo = duo };
	pthread_t thread;
	int code;

	if (!duo->driven)
		return body(duo);
	assert_int_equal(pthread_create(&thread, NULL, driver_main, &driver), 0);
	code = body(duo);
	atomic_store(&driver.stop, 1);
	pthread_join(thread, NULL);
	return code;
}

static int connect_both(struct duo *duo)
{
	int code = connect_try(duo->a, duo->b, &duo->ab);

	return code ? code : connect_try(duo->b, duo->a, &duo->ba);
}

static int update_both(struct duo *duo)
{
	int code = update_try(duo->a, duo->ab, duo->b);

	return code ? code : update_try(duo->b, duo->ba, duo->a);
}

void duo_connect(struct duo *duo)
{
	assert_ok(with_driver(duo, connect_both));
}

void duo_update(struct duo *duo)
{
	assert_ok(with_driver(duo, update_both));
}

void duo_close(struct duo *duo)
{
	assert_ok(kvl_agent_close(duo->a, 5 * SECOND));
	assert_ok(kvl_agent_close(duo->b, 5 * SECOND));
}

int duo_drive(struct duo *duo)
{
	int moved = kvl_progress(duo->a) + kvl_progress(duo->b);

	return moved > 0 ? moved : 0;
}

int duo_wait(struct duo *duo, kvl_xfer_t xfer)
{
	uint64_t end = kvl_now() + PATIENCE;
	int code;

	if (!duo->driven)
		return kvl_xfer_wait(duo->a, xfer, PATIENCE);
	while ((code = kvl_xfer_poll(duo->a, xfer)) == KVL_PENDING && kvl_now() < end)
		duo_drive(duo);
	return code;
}

struct kvl_notif *duo_notif(struct duo *duo, kvl_agent_t agent)
{
	uint64_t end = kvl_now() + PATIENCE;
	struct kvl_notif *notif = NULL;
	int code;

	while ((code = kvl_notif_next(agent, &notif)) == KVL_ERR_AGAIN && kvl_now() < end) {
		if (duo->driven)
			duo_drive(duo);
		else
			ignored(kvl_agent_wait(agent, 10 * MS));
	}
	return code == 0 ? notif : NULL;
}

/* A stand-alone notification on every lane arrives after all that was sent before it there. */
int duo_quiet(struct duo *duo, kvl_agent_t agent)
{
	kvl_agent_t from = agent == duo->b ? duo->a : duo->b;
	kvl_peer_t peer = agent == duo->b ? duo->ab : duo->ba;
	struct kvl_limits limits = { .size = sizeof(limits) };
	struct kvl_xfer_opts opts = { .size = sizeof(opts) };
	static const char last[] = "the last one of this lane";
	int quiet = 1;

	assert_ok(kvl_agent_limits(from, &limits));
	for (uint32_t i = 0; i < limits.lanes; i++) {
		opts.lane = KVL_LANE(i);
		assert_ok(kvl_notify(from, peer, last, sizeof(last), &opts));
	}
	for (uint32_t i = 0; i < limits.lanes; i++) {
		struct kvl_notif *notif = duo_notif(duo, agent);

		assert_non_null(notif);
		quiet = quiet && notif->len == sizeof(last) && !memcmp(notif->data, last, sizeof(last));
		kvl_notif_free(notif);
	}
	return quiet;
}

/* ------------------------------------------------------------------------------------- one transfer */

#if defined(__SANITIZE_THREAD__)
#define SETTLES 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SETTLES 1
#endif
#endif

void duo_settle(kvl_agent_t agent)
{
#ifdef SETTLES
	static unsigned char byte;
	struct kvl_mem mem = memory_of(&byte, 1, KVL_LOCAL_ONLY);
	kvl_mr_t mr;

	must_ok(kvl_mem_register(agent, &mem, 1, &mr));
	must_ok(kvl_mem_deregister(agent, &mr, 1));
#else
	(void)agent;
#endif
}

static void model_apply(unsigned char *model, const struct buffer *to, const struct kvl_desc *to_desc,
			const struct buffer *from, const struct kvl_desc *from_desc, size_t n)
{
	for (size_t i = 0; i < n; i++)
		memcpy(model + (to_desc[i].addr - buffer_addr(to)),
		       from->data + (from_desc[i].addr - buffer_addr(from)), to_desc[i].len);
}

static int move_run(struct duo *duo, enum kvl_op op, const struct kvl_desc *local,
		    const struct kvl_desc *remote, size_t n, const struct kvl_xfer_opts *opts,
		    struct kvl_report *report)
{
	struct kvl_report own = { .size = sizeof(own) };
	kvl_xfer_t xfer = 0;
	int code;

	if (op == KVL_WRITE)
		assert_ok(kvl_write(duo->a, duo->ab, local, remote, n, opts, &xfer));
	else
		assert_ok(kvl_read(duo->a, duo->ab, local, remote, n, opts, &xfer));
	code = duo_wait(duo, xfer);
	assert_ok(kvl_xfer_report(duo->a, xfer, &own));
	assert_int_equal(own.status, code);
	assert_ok(kvl_xfer_release(duo->a, xfer));
	if (report)
		*report = own;
	return code;
}

int duo_move(struct duo *duo, enum kvl_op op, struct buffer *local, const struct kvl_desc *local_desc,
	     struct buffer *remote, const struct kvl_desc *remote_desc, size_t n, uint64_t epoch,
	     const struct kvl_xfer_opts *opts, struct kvl_report *report)
{
	struct buffer *from = op == KVL_WRITE ? local : remote, *to = op == KVL_WRITE ? remote : local;
	const struct kvl_desc *from_desc = op == KVL_WRITE ? local_desc : remote_desc;
	const struct kvl_desc *to_desc = op == KVL_WRITE ? remote_desc : local_desc;
	unsigned char *model = malloc(to->len);
	int code;

	assert_non_null(model);
	bytes_fill(from->data, from->len, 1, 0, epoch);
	bytes_fill(to->data, to->len, 2, 0, epoch);
	memcpy(model, to->data, to->len);
	model_apply(model, to, to_desc, from, from_desc, n);
	duo_settle(duo->b);
	code = move_run(duo, op, local_desc, remote_desc, n, opts, report);
	duo_settle(duo->b);
	assert_int_equal(bytes_wrong(from->data, from->len, 1, 0, epoch), 0);
	if (code == 0)
		assert_memory_equal(to->data, model, to->len);
	free(model);
	return code;
}
