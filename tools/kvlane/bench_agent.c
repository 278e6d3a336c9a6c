/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_agent.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

int bench_agent_open(const struct bench_options *o, const char *name, kvl_agent_t *out)
{
	int rc = kvl_agent_open(name, &o->config, out);

	return rc < 0 ? bench_error_kvl("opening an agent", rc) : 0;
}

void bench_agent_close(kvl_agent_t agent)
{
	int rc = agent ? kvl_agent_close(agent, 5000000000ull) : 0;

	if (rc < 0)
		bench_error_kvl("closing an agent", rc);
}

static int memory_user(kvl_agent_t agent, struct bench_memory *m)
{
	struct kvl_mem mem = { .len = m->len };
	int rc;

	mem.addr = mmap(NULL, m->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem.addr == MAP_FAILED) {
		bench_error("no memory for %llu bytes: %s", (unsigned long long)m->len, strerror(errno));
		return KVL_ERR_NOMEM;
	}
	rc = kvl_mem_register(agent, &mem, 1, &m->mr);
	if (rc < 0) {
		munmap(mem.addr, m->len);
		return bench_error_kvl("registering memory", rc);
	}
	m->addr = mem.addr;
	return 0;
}

int bench_memory_open(const struct bench_options *o, kvl_agent_t agent, uint64_t len,
		      struct bench_memory *out)
{
	void *addr;
	int rc;

	*out = (struct bench_memory){ .len = len, .user = o->user_memory };
	if (out->user)
		return memory_user(agent, out);
	rc = kvl_mem_alloc(agent, len, 0, &addr, &out->mr);
	if (rc < 0)
		return bench_error_kvl("allocating memory", rc);
	out->addr = addr;
	return 0;
}

void bench_memory_close(struct bench_memory *memory)
{
	/* The other kind goes with its agent. */
	if (memory->user && memory->addr)
		munmap(memory->addr, memory->len);
	memory->addr = NULL;
}

int bench_wait(kvl_agent_t agent, kvl_xfer_t xfer)
{
	int rc = kvl_xfer_wait(agent, xfer, BENCH_END_NS);

	if (rc == KVL_PENDING) {
		bench_error("a request has not ended in %llu s", BENCH_END_NS / 1000000000ull);
		return KVL_ERR_TIMED_OUT;
	}
	return rc < 0 ? bench_error_kvl("a request", rc) : 0;
}

int bench_must_drive(kvl_agent_t agent)
{
	struct kvl_limits limits = { .size = sizeof(limits) };

	return kvl_agent_limits(agent, &limits) == 0 && !limits.workers;
}

/* The end as such: a lost one must not keep the program for ever. */
static int spin_slow(kvl_agent_t agent, kvl_xfer_t xfer, int drive, uint64_t start)
{
	int rc;

	do {
		for (int i = 0; i < 4096; i++) {
			if (drive)
				kvl_progress(agent);
			rc = kvl_xfer_poll(agent, xfer);
			if (rc != KVL_PENDING)
				return rc;
		}
	} while (kvl_now() - start < BENCH_END_NS);
	return KVL_PENDING;
}

int bench_spin(kvl_agent_t agent, kvl_xfer_t xfer, int drive, uint64_t *end)
{
	int rc = kvl_xfer_poll(agent, xfer);

	if (rc == KVL_PENDING)
		rc = spin_slow(agent, xfer, drive, kvl_now());
	*end = kvl_now();
	if (rc == KVL_PENDING) {
		bench_error("a request has not ended in %llu s", BENCH_END_NS / 1000000000ull);
		return KVL_ERR_TIMED_OUT;
	}
	return rc < 0 ? bench_error_kvl("a request", rc) : 0;
}
