/* SPDX-License-Identifier: Apache-2.0 */
/* The initiator's view of a peer's regions: asking for their descriptors and mapping them. */
#include <inttypes.h>
#include <sys/mman.h>

#include "wire/local/local.h"
#include "wire/local/map.h"

/* Answers to questions that an earlier call gave up waiting for are passed over. */
static int conn_answer(struct kvli_conn *conn, const struct kvli_remote *r, uint64_t deadline,
		       struct message *m, int fd[MESSAGE_FDS])
{
	for (;;) {
		int rc = kvli_message_wait(conn->sock, m, fd, deadline, conn->wire->host->closing);

		if (rc || (m->type == MESSAGE_MAPPED && m->slot == r->slot && m->generation == r->generation))
			return rc;
		kvli_message_close_fds(fd);
	}
}

static int conn_ask(struct kvli_conn *conn, const struct kvli_remote *r, uint64_t deadline, struct message *m,
		    int fd[MESSAGE_FDS])
{
	int rc;

	kvli_message_init(m, MESSAGE_MAP, 0);
	m->slot = r->slot;
	m->generation = r->generation;
	pthread_mutex_lock(&conn->rpc);
	rc = kvli_message_send(conn->sock, m, NULL, 0);
	if (rc == KVL_ERR_AGAIN)
		rc = KVL_ERR_TIMED_OUT; /* a socket full of questions: the peer answers none */
	if (rc == 0)
		rc = conn_answer(conn, r, deadline, m, fd);
	pthread_mutex_unlock(&conn->rpc);
	return rc ? kvli_conn_late(conn, rc, "to a question about a region") : 0;
}

/* A region that can not be mapped is no failure while another path is allowed. */
static int conn_import_unmapped(const struct kvli_conn *conn, const struct kvli_remote *r)
{
	if (conn->wire->paths & (PATH_COPY | PATH_SLOT))
		return 0;
	return kvli_fail(KVL_ERR_UNSUPPORTED, KVL_NO_ENTRY, 0, "local_paths",
			 "the region %#" PRIx64
			 " of '%s' can not be mapped and option local_paths allows map only",
			 r->base, conn->identity.name);
}

int kvli_conn_import(struct kvli_conn *conn, struct kvli_remote *r, int mappable, uint64_t deadline_ns)
{
	int fd[MESSAGE_FDS] = { -1, -1 }, rc;
	struct message m;

	if (!mappable || !(conn->wire->paths & PATH_MAP))
		return conn_import_unmapped(conn, r);
	rc = conn_ask(conn, r, deadline_ns, &m, fd);
	if (rc)
		return rc;
	if (m.status == 0 && m.len == r->len && fd[0] >= 0)
		r->map = kvli_map_range(fd[0], m.offset, m.len, (r->rights & KVL_REMOTE_WRITE) != 0,
					&r->map_start, &r->map_len);
	kvli_message_close_fds(fd);
	/* withdrawn since the metadata was made: kept, so that using it says stale */
	return r->map || m.status == KVL_ERR_STALE ? 0 : conn_import_unmapped(conn, r);
}

void kvli_conn_forget(struct kvli_conn *conn, struct kvli_remote *r)
{
	(void)conn;
	if (r->map)
		munmap(r->map_start, r->map_len);
	r->map = NULL;
	r->generation = 0; /* no region has it: whoever still names it finds it stale */
}
