/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench_scatter.h"

static void scatter_path(struct scatter *s, kvl_xfer_t xfer)
{
	struct kvl_report report = { .size = sizeof(report) };

	if (!s->path[0] && kvl_xfer_report(s->pp.local.agent, xfer, &report) == 0)
		snprintf(s->path, sizeof(s->path), "%s", report.path);
}

static int scatter_direct(struct scatter *s, size_t n, struct scatter_time *t)
{
	kvl_agent_t agent = s->pp.local.agent;
	uint64_t start, prepared, posted;
	kvl_xfer_t xfer;
	int rc, released;

	start = kvl_now();
	rc = kvl_xfer_prepare_indexed(agent, s->op, s->pp.local_list, pool_pair_local_index(&s->pp),
				      s->pp.remote_list, pool_pair_remote_index(&s->pp), n, NULL, &xfer);
	prepared = kvl_now();
	if (rc < 0)
		return bench_error_kvl("preparing the request", rc);
	rc = kvl_xfer_post(agent, xfer, NULL);
	posted = kvl_now();
	if (rc < 0)
		bench_error_kvl("posting the request", rc);
	else
		rc = bench_wait(agent, xfer);
	t->move = kvl_now() - prepared;
	t->prepare = prepared - start;
	t->post = posted - prepared;
	scatter_path(s, xfer);
	released = kvl_xfer_release(agent, xfer);
	if (rc == 0 && released < 0)
		return bench_error_kvl("releasing the request", released);
	return rc;
}

static int scatter_memcpy(struct scatter *s, struct bench_arm *arm, size_t n, struct scatter_time *t)
{
	const uint32_t *local_index = pool_pair_local_index(&s->pp);
	const uint32_t *remote_index = pool_pair_remote_index(&s->pp);
	unsigned char *local = s->pp.local.memory.addr, *remote = s->pp.map;
	uint64_t block = s->block, start;

	if (!remote) {
		bench_arm_skip(arm, "the target's pool is not mapped here: %s", s->pp.map_refused);
		return 0;
	}
	start = kvl_now();
	if (s->op == KVL_WRITE) {
		for (size_t i = 0; i < n; i++)
			memcpy(remote + remote_index[i] * block, local + local_index[i] * block, block);
	} else {
		for (size_t i = 0; i < n; i++)
			memcpy(local + local_index[i] * block, remote + remote_index[i] * block, block);
	}
	t->move = kvl_now() - start;
	return 0;
}

static int scatter_raw(struct scatter *s, struct bench_arm *arm, size_t n, struct scatter_time *t)
{
	uint64_t start = kvl_now();
	int rc = raw_copy_move(&s->raw, pool_pair_local_index(&s->pp), pool_pair_remote_index(&s->pp), n);

	t->move = kvl_now() - start;
	if (rc == -EPERM || rc == -ENOSYS) {
		bench_arm_skip(arm, "bare cross-process copies are refused here: %s", strerror(-rc));
		return 0;
	}
	if (rc)
		bench_error("bare cross-process copy: %s", strerror(-rc));
	return rc;
}

int scatter_move(struct scatter *s, struct bench_arm *arm, size_t n, struct scatter_time *t)
{
	switch ((enum scatter_kind)arm->kind) {
	case SCATTER_DIRECT:
		return scatter_direct(s, n, t);
	case SCATTER_MEMCPY:
		return scatter_memcpy(s, arm, n, t);
	case SCATTER_RAW:
		return scatter_raw(s, arm, n, t);
	}
	return -1;
}
