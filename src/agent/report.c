/* SPDX-License-Identifier: Apache-2.0 */
/* What a request did. */
#include <string.h>

#include "agent/agent.h"
#include "agent/post.h"
#include "base/sized.h"

static int report_status(uint64_t record)
{
	switch (record_state(record)) {
	case RECORD_ENDED:
		return record_error(record);
	case RECORD_PREPARED:
		return KVL_ERR_NOT_POSTED;
	default:
		return KVL_PENDING;
	}
}

static void report_path(const struct kvli_request *r, struct kvl_report *out)
{
	const char *path = r->result.path ? r->result.path : "none";
	struct kvli_peer *peer = r->peer;

	strncpy(out->path, path, sizeof(out->path) - 1);
	if (r->total_bytes == 0)
		strncpy(out->reason, "empty lists", sizeof(out->reason) - 1);
	else if (strcmp(path, peer->path.path) == 0 && peer->path.reason[0])
		memcpy(out->reason, peer->path.reason, sizeof(out->reason) - 1);
	else if (r->result.path)
		strncpy(out->reason, "best for this memory", sizeof(out->reason) - 1);
}

static void report_ended(const struct kvli_request *r, struct kvl_report *out)
{
	const struct kvli_result *result = &r->result;

	out->provider = result->provider;
	out->bytes = result->bytes;
	out->chunks = result->chunks;
	out->ticket = result->ticket;
	out->post_ns = result->post_ns;
	out->issue_ns = result->issue_ns;
	out->wire_ns = result->wire_ns;
	out->end_ns = result->end_ns;
	if (result->failed_segment < r->n_segments)
		out->failed_entry = r->segment[result->failed_segment].entry;
	report_path(r, out);
}

/* Under events->lock. A request that is being posted is its poster's: only what no post changes is read. */
static void report_fill(const struct kvli_request *r, uint64_t record, struct kvl_report *out)
{
	out->status = report_status(record);
	out->total_bytes = r->total_bytes;
	out->descriptors = r->n_entries;
	out->pieces = r->n_segments;
	out->failed_entry = KVL_NO_ENTRY;
	out->lane = r->lane->index;
	if (record_state(record) == RECORD_ENDED)
		report_ended(r, out);
	else if (record_state(record) == RECORD_PENDING)
		out->post_ns = r->job.post_ns;
	out->start_ns = r->start_tag == record_tag(record) && r->start_ns ? r->start_ns : out->post_ns;
}

int kvl_xfer_report(kvl_agent_t handle, kvl_xfer_t xfer, struct kvl_report *out)
{
	struct kvli_agent *agent = kvli_agent_enter(handle);
	struct kvl_report report = { .size = sizeof(report) };
	struct kvli_request *r;
	uint64_t record;

	if (agent == NULL)
		return kvli_agent_refused(handle);
	pthread_mutex_lock(&agent->events.lock);
	r = kvli_agent_request(agent, xfer, &record); /* can not be released while the lock is held */
	if (r)
		report_fill(r, record, &report);
	pthread_mutex_unlock(&agent->events.lock);
	if (r == NULL)
		return kvli_agent_return(agent, kvli_handle_code(xfer, KVLI_XFER));
	return kvli_agent_return(agent, kvli_sized_copy(out, &report, sizeof(report)));
}

static void stamp_start(struct kvli_request *r, uint64_t record, uint64_t at)
{
	r->start_ns = at;
	r->start_tag = record_tag(record);
}

int kvl_xfer_stamp(kvl_agent_t handle, kvl_xfer_t xfer, enum kvl_stamp stamp, uint64_t time_ns)
{
	struct kvli_agent *agent = kvli_agent_enter(handle);
	struct kvli_request *r;
	uint64_t record, at = time_ns ? time_ns : kvli_now();
	int rc = 0;

	if (agent == NULL)
		return kvli_agent_refused(handle);
	if (stamp != KVL_STAMP_START && stamp != KVL_STAMP_END)
		return kvli_agent_return(agent, kvli_fail(KVL_ERR_INVALID, KVL_NO_ENTRY, 0, "stamp",
							  "unknown stamp %d", (int)stamp));
	pthread_mutex_lock(&agent->events.lock);
	r = kvli_agent_request(agent, xfer, &record); /* can not be released while the lock is held */
	if (r == NULL)
		rc = kvli_handle_code(xfer, KVLI_XFER);
	else if (stamp == KVL_STAMP_START)
		stamp_start(r, record, at);
	else if (record_state(record) == RECORD_ENDED)
		r->result.end_ns = at;
	else
		rc = kvli_fail(KVL_ERR_BUSY, KVL_NO_ENTRY, 0, "ended",
			       "an end is stamped only after the end");
	pthread_mutex_unlock(&agent->events.lock);
	return kvli_agent_return(agent, rc);
}
