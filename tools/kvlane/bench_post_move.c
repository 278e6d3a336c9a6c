/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_post.h"

#include <string.h>
#include <time.h>

int post_prepare(struct post *s, size_t n, kvl_xfer_t *out)
{
	int rc = kvl_xfer_prepare_indexed(s->pp.local.agent, s->op, s->pp.local_list,
					  pool_pair_local_index(&s->pp), s->pp.remote_list,
					  pool_pair_remote_index(&s->pp), n, NULL, out);

	return rc < 0 ? bench_error_kvl("preparing the request", rc) : 0;
}

static int post_release(struct post *s, kvl_xfer_t xfer)
{
	int rc = kvl_xfer_release(s->pp.local.agent, xfer);

	return rc < 0 ? bench_error_kvl("releasing the request", rc) : 0;
}

static uint64_t post_cpu(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Posts and waits; adds to what the metrics hold. */
static int post_again(struct post *s, kvl_xfer_t xfer, uint64_t t[POST_METRICS])
{
	uint64_t cpu = post_cpu(), start = kvl_now();
	int rc = kvl_xfer_post(s->pp.local.agent, xfer, NULL);

	t[POST_POST_NS] = kvl_now() - start;
	t[POST_CPU_NS] += post_cpu() - cpu;
	if (rc < 0)
		return bench_error_kvl("posting the request", rc);
	rc = bench_wait(s->pp.local.agent, xfer);
	t[POST_WHOLE_NS] += kvl_now() - start;
	return rc;
}

static int post_prepared(struct post *s, size_t n, uint64_t t[POST_METRICS])
{
	uint64_t cpu = post_cpu(), start = kvl_now();
	kvl_xfer_t xfer;

	if (post_prepare(s, n, &xfer))
		return -1;
	t[POST_PREPARE_NS] = kvl_now() - start;
	t[POST_CPU_NS] = post_cpu() - cpu;
	t[POST_WHOLE_NS] = t[POST_PREPARE_NS];
	return post_again(s, xfer, t) ? -1 : post_release(s, xfer);
}

static void post_describe(struct kvl_desc *desc, uint64_t base, uint64_t block, const uint32_t *index,
			  size_t n)
{
	for (size_t i = 0; i < n; i++)
		desc[i] = (struct kvl_desc){ .addr = base + index[i] * block, .len = block };
}

static int post_unprepared(struct post *s, size_t n, uint64_t t[POST_METRICS])
{
	kvl_agent_t agent = s->pp.local.agent;
	uint64_t cpu, start;
	kvl_xfer_t xfer;
	int rc;

	post_describe(s->local, (uintptr_t)s->pp.local.memory.addr, s->block, pool_pair_local_index(&s->pp),
		      n);
	post_describe(s->remote, s->pp.remote, s->block, pool_pair_remote_index(&s->pp), n);
	cpu = post_cpu();
	start = kvl_now();
	if (s->op == KVL_WRITE)
		rc = kvl_write(agent, s->pp.peer, s->local, s->remote, n, NULL, &xfer);
	else
		rc = kvl_read(agent, s->pp.peer, s->local, s->remote, n, NULL, &xfer);
	t[POST_POST_NS] = kvl_now() - start;
	t[POST_CPU_NS] = post_cpu() - cpu;
	if (rc < 0)
		return bench_error_kvl("posting an unprepared list", rc);
	rc = bench_wait(agent, xfer);
	t[POST_WHOLE_NS] = kvl_now() - start;
	return rc ? rc : post_release(s, xfer);
}

int post_move(struct post *s, enum post_kind kind, enum post_size size, uint64_t t[POST_METRICS])
{
	int rc;

	memset(t, 0, POST_METRICS * sizeof(*t));
	if (kind == POST_PREPARED)
		rc = post_prepared(s, s->n[size], t);
	else if (kind == POST_REPOST)
		rc = post_again(s, s->repost[size], t);
	else
		rc = post_unprepared(s, s->n[size], t);
	t[POST_CALLER_NS] = t[POST_PREPARE_NS] + t[POST_POST_NS];
	return rc;
}
