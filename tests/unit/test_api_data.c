/* SPDX-License-Identifier: Apache-2.0 */
/* WRITE and READ of odd sizes and places between memory of every kind, by every path of the local wire. */
#include "testing.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <fcntl.h>
#include <unistd.h>

#define LEN     (2 * MIB)
#define ENTRIES 200u

struct paths {
	const char *allowed;
	const char *mapped, *plain; /* the path that must be taken, by the kind of the peer's memory */
};

static const struct paths all_paths[] = {
	{ "map,copy,slot", "map", "copy" },
	{ "copy,slot", "copy", "copy" },
	{ "slot", "slot", "slot" },
};

/* 1, primes, powers of two and their neighbours, and a few above a chunk. */
static uint64_t odd_len(uint64_t *random)
{
	static const uint64_t edge[] = { 1,  2,  3,  7,  8,   9,    15,   16,   17,
					 31, 63, 64, 65, 127, 4095, 4096, 4097, 20011 };

	if (random_range(random, 0, 99) == 0)
		return random_range(random, 60000, 300000);
	return edge[random_next(random) % COUNT(edge)];
}

static void lengths(uint64_t len[ENTRIES], uint64_t *random)
{
	uint64_t total = 0;

	for (size_t i = 0; i < ENTRIES; i++) {
		len[i] = odd_len(random);
		if (total + len[i] > LEN / 2)
			len[i] = 1;
		total += len[i];
	}
}

static void move_both(struct duo *duo, struct buffer *local, struct buffer *remote, const char *path,
		      uint64_t *random)
{
	static const enum kvl_op op[] = { KVL_WRITE, KVL_READ };
	struct kvl_report report = { .size = sizeof(report) };
	struct kvl_desc from[ENTRIES], to[ENTRIES];
	uint64_t len[ENTRIES];

	for (size_t i = 0; i < COUNT(op); i++) {
		lengths(len, random);
		buffer_scatter(local, len, ENTRIES, random_next(random), from);
		buffer_scatter(remote, len, ENTRIES, random_next(random), to);
		assert_int_equal(
			duo_move(duo, op[i], local, from, remote, to, ENTRIES, *random, NULL, &report), 0);
		assert_string_equal(report.path, path);
		assert_true(report.reason[0] != 0);
		assert_int_equal(report.bytes, report.total_bytes);
	}
}

static void matrix(const struct paths *paths, uint32_t workers, uint64_t seed)
{
	struct buffer local[BUFFER_KINDS], remote[BUFFER_KINDS];
	uint64_t random = seed;
	struct kvl_config config;
	struct duo duo;

	kvl_config_init(&config);
	config.local_paths = paths->allowed;
	config.workers = workers;
	config.chunk_bytes = 64 * KIB;
	duo_open(&duo, &config);
	for (int kind = 0; kind < BUFFER_KINDS; kind++) {
		buffer_open(&local[kind], duo.a, (enum buffer_kind)kind, LEN, 0);
		buffer_open(&remote[kind], duo.b, (enum buffer_kind)kind, LEN, 0);
	}
	duo_connect(&duo);
	for (int from = 0; from < BUFFER_KINDS; from++)
		for (int to = 0; to < BUFFER_KINDS; to++)
			move_both(&duo, &local[from], &remote[to],
				  to == BUFFER_PLAIN ? paths->plain : paths->mapped, &random);
	for (int kind = 0; kind < BUFFER_KINDS; kind++) {
		buffer_close(&local[kind]);
		buffer_close(&remote[kind]);
	}
	duo_close(&duo);
}

TEST(data_every_memory_by_map)
{
	matrix(&all_paths[0], 1, 1);
	matrix(&all_paths[0], KVL_NO_WORKERS, 2);
}

TEST(data_every_memory_by_copy)
{
	matrix(&all_paths[1], 1, 3);
	matrix(&all_paths[1], KVL_NO_WORKERS, 4);
}

TEST(data_every_memory_by_slot)
{
	matrix(&all_paths[2], 1, 5);
	matrix(&all_paths[2], KVL_NO_WORKERS, 6);
}

/* Every offset and length near the word size, alone. */
TEST(data_single_bytes_at_every_alignment)
{
	for (size_t i = 0; i < COUNT(all_paths); i++) {
		struct kvl_config config;
		struct buffer local, remote;
		struct duo duo;

		kvl_config_init(&config);
		config.local_paths = all_paths[i].allowed;
		duo_open(&duo, &config);
		buffer_open(&local, duo.a, BUFFER_PLAIN, 64, 0);
		buffer_open(&remote, duo.b, BUFFER_ALLOC, 64, 0);
		duo_connect(&duo);
		for (size_t at = 0; at < 9; at++)
			for (uint64_t len = 1; len < 18; len += testing_rounds(2) == 1 ? 4 : 1) {
				struct kvl_desc from = desc_of(local.data + at, len);
				struct kvl_desc to = desc_of(remote.data + 9 - at, len);

				assert_int_equal(duo_move(&duo, KVL_WRITE, &local, &from, &remote, &to, 1,
							  len, NULL, NULL),
						 0);
				assert_int_equal(duo_move(&duo, KVL_READ, &local, &from, &remote, &to, 1, len,
							  NULL, NULL),
						 0);
			}
		buffer_close(&local);
		duo_close(&duo);
	}
}

/* One request over memory of both kinds takes both paths and says so. */
TEST(data_mixed_memory_in_one_request)
{
	struct kvl_report report = { .size = sizeof(report) };
	struct buffer local, remote[2];
	struct kvl_desc from[2], to[2];
	struct duo duo;
	kvl_xfer_t xfer;

	duo_open(&duo, NULL);
	buffer_open(&local, duo.a, BUFFER_PLAIN, LEN, 0);
	buffer_open(&remote[0], duo.b, BUFFER_ALLOC, LEN, 0);
	buffer_open(&remote[1], duo.b, BUFFER_PLAIN, LEN, 0);
	duo_connect(&duo);
	bytes_fill(local.data, LEN, 1, 0, 1);
	for (size_t i = 0; i < 2; i++) {
		from[i] = desc_of(local.data + i * (LEN / 2), LEN / 2);
		to[i] = desc_of(remote[i].data, LEN / 2);
	}
	assert_ok(kvl_write(duo.a, duo.ab, from, to, 2, NULL, &xfer));
	assert_int_equal(duo_wait(&duo, xfer), 0);
	assert_ok(kvl_xfer_report(duo.a, xfer, &report));
	assert_string_equal(report.path, "mixed");
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(bytes_wrong(remote[i].data, LEN / 2, 1, i * (LEN / 2), 1), 0);
	buffer_close(&remote[1]);
	assert_ok(kvl_xfer_release(duo.a, xfer));
	buffer_close(&local);
	duo_close(&duo);
}

/* ------------------------------------------------------------------------------------------ odd memfds */

static void memfd_moves(unsigned flags, int seals, const char *path)
{
	struct kvl_report report = { .size = sizeof(report) };
	struct buffer local;
	struct kvl_desc from, to;
	struct kvl_mem mem;
	struct duo duo;
	void *block;
	kvl_mr_t mr;
	kvl_xfer_t xfer;
	int fd = memfd_create("kvlane-test", MFD_CLOEXEC | flags);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 64 * KIB), 0);
	block = mmap(NULL, 64 * KIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(block, MAP_FAILED);
	if (seals)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	duo_open(&duo, NULL);
	buffer_open(&local, duo.a, BUFFER_ALLOC, 64 * KIB, 0);
	mem = memory_of(block, 64 * KIB, 0);
	mem.flags = KVL_MEM_FD;
	mem.fd = fd;
	assert_ok(kvl_mem_register(duo.b, &mem, 1, &mr));
	close(fd); /* the library keeps a duplicate */
	duo_connect(&duo);
	from = desc_of(local.data, 64 * KIB);
	to = desc_of(block, 64 * KIB);
	bytes_fill(local.data, 64 * KIB, 1, 0, 1);
	assert_ok(kvl_write(duo.a, duo.ab, &from, &to, 1, NULL, &xfer));
	assert_int_equal(duo_wait(&duo, xfer), 0);
	assert_ok(kvl_xfer_report(duo.a, xfer, &report));
	assert_string_equal(report.path, path);
	assert_int_equal(bytes_wrong(block, 64 * KIB, 1, 0, 1), 0);
	duo_close(&duo);
	munmap(block, 64 * KIB);
}

TEST(data_memfd_that_can_be_sealed)
{
	memfd_moves(MFD_ALLOW_SEALING, 0, "map");
	memfd_moves(MFD_ALLOW_SEALING, F_SEAL_SHRINK, "map");
	memfd_moves(MFD_ALLOW_SEALING, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, "map");
}

TEST(data_memfd_that_can_not_be_sealed)
{
	memfd_moves(0, 0, "copy");
	memfd_moves(MFD_ALLOW_SEALING, F_SEAL_SEAL, "copy");
}

static void refuse_fd(kvl_agent_t agent, void *addr, uint64_t len, int fd, uint64_t offset)
{
	struct kvl_mem mem = memory_of(addr, len, 0);
	kvl_mr_t mr = 0;
	int code;

	mem.flags = KVL_MEM_FD;
	mem.fd = fd;
	mem.fd_offset = offset;
	code = kvl_mem_register(agent, &mem, 1, &mr);
	if (code != KVL_ERR_RANGE)
		assert_refused_at(code, KVL_ERR_INVALID, 0);
	assert_int_equal(mr, 0);
}

/* A descriptor that does not back the memory: closed, not a memfd, or too short for it. */
TEST(data_memfd_that_does_not_fit)
{
	kvl_agent_t agent;
	int fd = memfd_create("kvlane-test", MFD_CLOEXEC | MFD_ALLOW_SEALING),
	    null = open("/dev/null", O_RDWR);
	void *block;

	assert_int_equal(ftruncate(fd, 8 * KIB), 0);
	block = mmap(NULL, 8 * KIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(block, MAP_FAILED);
	assert_ok(kvl_agent_open("memfd", NULL, &agent));
	refuse_fd(agent, block, 8 * KIB, -1, 0);
	refuse_fd(agent, block, 8 * KIB, null, 0);
	refuse_fd(agent, block, 8 * KIB, fd, 1);
	refuse_fd(agent, block, 8 * KIB, fd, UINT64_MAX);
	refuse_fd(agent, block, 1, fd, 8 * KIB);
	assert_ok(kvl_agent_close(agent, SECOND));
	munmap(block, 8 * KIB);
	close(fd);
	close(null);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(data_every_memory_by_map),
		cmocka_unit_test(data_every_memory_by_copy),
		cmocka_unit_test(data_every_memory_by_slot),
		cmocka_unit_test(data_single_bytes_at_every_alignment),
		cmocka_unit_test(data_mixed_memory_in_one_request),
		cmocka_unit_test(data_memfd_that_can_be_sealed),
		cmocka_unit_test(data_memfd_that_can_not_be_sealed),
		cmocka_unit_test(data_memfd_that_does_not_fit),
	};

	return TESTING_RUN(tests, 40);
}
