/* SPDX-License-Identifier: Apache-2.0 */
/* F05: registrations are counted; a region works until its last deregister and is refused after it. */
#include "testing.h"

#include <string.h>

#define LEN (16 * KIB)

struct fixture {
	struct duo duo; /* a writes to b's region */
	struct buffer local;
	unsigned char target[LEN];
	kvl_mr_t mr;
};

static kvl_mr_t reg(struct fixture *f)
{
	struct kvl_mem mem = memory_of(f->target, LEN, 0);
	kvl_mr_t mr = 0;

	assert_ok(kvl_mem_register(f->duo.b, &mem, 1, &mr));
	if (f->mr)
		assert_int_equal(mr, f->mr);
	f->mr = mr;
	return mr;
}

static void fixture_open(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	duo_open(&f->duo, NULL);
	buffer_open(&f->local, f->duo.a, BUFFER_PLAIN, LEN, 0);
	reg(f);
	reg(f);
	duo_connect(&f->duo);
}

static void fixture_close(struct fixture *f)
{
	buffer_close(&f->local);
	duo_close(&f->duo);
}

static void write_once(struct fixture *f, kvl_xfer_t xfer, uint64_t epoch)
{
	bytes_fill(f->local.data, LEN, 1, 0, epoch);
	memset(f->target, 0, LEN);
	assert_ok(kvl_xfer_post(f->duo.a, xfer, NULL));
	assert_int_equal(duo_wait(&f->duo, xfer), 0);
	assert_int_equal(bytes_wrong(f->target, LEN, 1, 0, epoch), 0);
}

static kvl_xfer_t request_of(struct fixture *f)
{
	struct kvl_desc local = desc_of(f->local.data, LEN), remote = desc_of(f->target, LEN);
	kvl_list_t lists[2];
	kvl_xfer_t xfer;

	assert_ok(kvl_list_create(f->duo.a, KVL_LOCAL, &local, 1, &lists[0]));
	assert_ok(kvl_list_create(f->duo.a, f->duo.ab, &remote, 1, &lists[1]));
	assert_ok(kvl_xfer_prepare(f->duo.a, KVL_WRITE, lists[0], lists[1], NULL, &xfer));
	return xfer;
}

/* After the last deregister: the post is refused or the request ends, with the same code, and nothing moves.
 */
static void refused_after(struct fixture *f, kvl_xfer_t xfer)
{
	struct kvl_desc remote = desc_of(f->target, LEN);
	kvl_list_t list = 0;
	int code;

	memset(f->target, 7, LEN);
	code = kvl_xfer_post(f->duo.a, xfer, NULL);
	if (code == 0)
		code = duo_wait(&f->duo, xfer);
	assert_int_equal(code, KVL_ERR_STALE);
	assert_ok(kvl_xfer_release(f->duo.a, xfer));
	assert_int_equal(bytes_not(f->target, LEN, 7), 0);
	assert_refused_at(kvl_list_create(f->duo.b, KVL_LOCAL, &remote, 1, &list), KVL_ERR_RANGE, 0);
	connect_update(f->duo.a, f->duo.ab, f->duo.b);
	assert_refused_at(kvl_list_create(f->duo.a, f->duo.ab, &remote, 1, &list), KVL_ERR_RANGE, 0);
	assert_refused(kvl_mem_deregister(f->duo.b, &f->mr, 1), KVL_ERR_STALE);
}

TEST(f05_one_call_drops_both_counts)
{
	struct fixture f;
	kvl_xfer_t xfer;

	fixture_open(&f);
	xfer = request_of(&f);
	write_once(&f, xfer, 1);
	assert_ok(kvl_mem_deregister(f.duo.b, (kvl_mr_t[]){ f.mr, f.mr }, 2));
	refused_after(&f, xfer);
	fixture_close(&f);
}

TEST(f05_usable_until_the_last_deregister)
{
	struct fixture f;
	kvl_xfer_t xfer;

	fixture_open(&f);
	xfer = request_of(&f);
	assert_ok(kvl_mem_deregister(f.duo.b, &f.mr, 1));
	write_once(&f, xfer, 1);
	assert_ok(kvl_mem_deregister(f.duo.b, &f.mr, 1));
	refused_after(&f, xfer);
	fixture_close(&f);
}

/* One name too many in the list: none of the counts is dropped. */
TEST(f05_one_deregister_too_many_changes_nothing)
{
	struct fixture f;
	kvl_xfer_t xfer;

	fixture_open(&f);
	xfer = request_of(&f);
	assert_refused_at(kvl_mem_deregister(f.duo.b, (kvl_mr_t[]){ f.mr, f.mr, f.mr }, 3), KVL_ERR_STALE, 2);
	write_once(&f, xfer, 1);
	assert_ok(kvl_mem_deregister(f.duo.b, &f.mr, 1));
	write_once(&f, xfer, 2);
	assert_ok(kvl_mem_deregister(f.duo.b, &f.mr, 1));
	refused_after(&f, xfer);
	fixture_close(&f);
}

/* The same entry twice in one registration is two counts too. */
TEST(f05_named_twice_in_one_registration)
{
	struct fixture f;
	struct kvl_mem mem[2];
	kvl_mr_t mr[2], again;

	memset(&f, 0, sizeof(f));
	duo_open(&f.duo, NULL);
	mem[0] = mem[1] = memory_of(f.target, LEN, 0);
	assert_ok(kvl_mem_register(f.duo.b, mem, 2, mr));
	assert_int_equal(mr[0], mr[1]);
	assert_ok(kvl_mem_deregister(f.duo.b, &mr[0], 1));
	f.mr = mr[0];
	again = reg(&f);
	assert_int_equal(again, mr[0]);
	assert_ok(kvl_mem_deregister(f.duo.b, mr, 2));
	assert_refused(kvl_mem_deregister(f.duo.b, mr, 1), KVL_ERR_STALE);
	duo_close(&f.duo);
}

TEST(f05_counts_of_allocated_memory)
{
	kvl_agent_t agent;
	struct kvl_mem mem;
	unsigned char *data = NULL;
	void *addr;
	kvl_mr_t mr, again;

	assert_ok(kvl_agent_open("alone", NULL, &agent));
	assert_ok(kvl_mem_alloc(agent, LEN, 0, &addr, &mr));
	data = addr;
	assert_int_equal(bytes_not(data, LEN, 0), 0);
	mem = memory_of(addr, LEN, 0);
	assert_ok(kvl_mem_register(agent, &mem, 1, &again));
	assert_int_equal(again, mr);
	assert_ok(kvl_mem_deregister(agent, &mr, 1));
	memset(data, 1, LEN); /* still mapped */
	assert_ok(kvl_mem_deregister(agent, &mr, 1));
	assert_ok(kvl_agent_close(agent, SECOND));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(f05_one_call_drops_both_counts),
		cmocka_unit_test(f05_usable_until_the_last_deregister),
		cmocka_unit_test(f05_one_deregister_too_many_changes_nothing),
		cmocka_unit_test(f05_named_twice_in_one_registration),
		cmocka_unit_test(f05_counts_of_allocated_memory),
	};

	return TESTING_RUN(tests, 30);
}
