/* SPDX-License-Identifier: Apache-2.0 */
/* The initiator's connection to one peer. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "wire/local/address.h"
#include "wire/local/local.h"
#include "wire/local/map.h"

const char kvli_path_map[] = "map", kvli_path_copy[] = "copy", kvli_path_slot[] = "slot";

/* ------------------------------------------------------------------------------------------- the peer's end */

static int conn_tell_lost(struct kvli_conn *conn)
{
	kvli_watch_mute(conn->sock_watch);
	kvli_watch_mute(conn->bell_watch);
	if (conn->pid_watch)
		kvli_watch_mute(conn->pid_watch);
	if (word32_exchange_seq_sys(&conn->told, 1) == 0) /* no edge: once */
		conn->wire->host->lost(conn->peer);
	return 0;
}

static int conn_sock(void *arg, uint32_t events)
{
	return events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR) ? conn_tell_lost(arg) : 0;
}

static int conn_pid(void *arg, uint32_t events)
{
	(void)events; /* readable: the process has ended */
	return conn_tell_lost(arg);
}

static int conn_bell(void *arg, uint32_t events)
{
	struct kvli_conn *conn = arg;
	struct segment_head *head = conn->segment;

	(void)events;
	if (!kvli_bell_take(conn->bell))
		return conn_tell_lost(conn);
	word32_exchange_seq_sys(&head->back_bell, 0); /* E8 */
	conn->wire->host->kick(conn->peer);
	return 0;
}

void kvli_conn_break(struct kvli_conn *conn)
{
	shutdown(conn->sock, SHUT_RDWR);
}

/* ---------------------------------------------------------------------------------------------------- making */

static int conn_make_segment(struct kvli_conn *conn, int *fd)
{
	const struct kvli_wire *wire = conn->wire;

	conn->segment_len = segment_bytes(wire->lanes, wire->ring_bytes);
	*fd = memfd_create("kvlane-lanes", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0 || ftruncate(*fd, (off_t)conn->segment_len) ||
	    fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return kvli_fail(KVL_ERR_SYSTEM, KVL_NO_ENTRY, errno, "shared memory",
				 "can not make shared memory for '%s'", conn->identity.name);
	conn->segment = kvli_map_sealed(*fd, conn->segment_len, 1);
	return conn->segment
		       ? 0
		       : kvli_fail(KVL_ERR_NOMEM, KVL_NO_ENTRY, errno, "memory",
				   "can not map %zu bytes for '%s'", conn->segment_len, conn->identity.name);
}

static void lane_init(struct kvli_conn *conn, uint32_t i)
{
	const struct kvli_wire *wire = conn->wire;
	struct kvli_wire_lane *lane = &conn->lane[i];

	lane->conn = conn;
	lane->words = segment_lane(conn->segment, i);
	lane->forward = (struct ring_producer){
		.words = &lane->words->forward,
		.data = segment_ring(conn->segment, wire->lanes, wire->ring_bytes, i, 0),
		.size = wire->ring_bytes,
	};
	lane->back = (struct ring_consumer){
		.words = &lane->words->back,
		.data = segment_ring(conn->segment, wire->lanes, wire->ring_bytes, i, 1),
		.size = wire->ring_bytes,
	};
}

static int conn_make_lanes(struct kvli_conn *conn)
{
	uint32_t n = conn->wire->lanes, room = 1;

	while (room < conn->wire->window)
		room *= 2;
	conn->lane = calloc(n, sizeof(*conn->lane));
	if (conn->lane == NULL)
		goto nomem;
	conn->n_lanes = n;
	for (uint32_t i = 0; i < n; i++) {
		lane_init(conn, i);
		conn->lane[i].op_mask = room - 1;
		conn->lane[i].op = calloc(room, sizeof(*conn->lane[i].op));
		conn->lane[i].done = calloc(room, sizeof(*conn->lane[i].done));
		if (conn->lane[i].op == NULL || conn->lane[i].done == NULL)
			goto nomem;
	}
	return 0;
nomem:
	return kvli_fail(KVL_ERR_NOMEM, KVL_NO_ENTRY, 0, "memory", "no memory for %u lanes", n);
}

static int conn_refused(const struct kvli_conn *conn, const struct message *m)
{
	switch (m->status) {
	case KVL_ERR_IDENTITY:
		return kvli_fail(KVL_ERR_IDENTITY, KVL_NO_ENTRY, 0, "the agent of the metadata answers",
				 "expected '%s' at its address, '%s' answered", conn->identity.name,
				 m->self.name);
	case KVL_ERR_LIMIT:
		return kvli_fail(KVL_ERR_LIMIT, KVL_NO_ENTRY, 0, "connections of the peer",
				 "agent '%s' has no room for another connection", conn->identity.name);
	case KVL_ERR_PERMISSION:
		return kvli_fail(KVL_ERR_PERMISSION, KVL_NO_ENTRY, 0, "same user",
				 "agent '%s' refuses connections of this user", conn->identity.name);
	default:
		return kvli_fail(m->status < 0 && m->status >= KVL_ERR_FATAL ? m->status : KVL_ERR_CORRUPT,
				 KVL_NO_ENTRY, 0, "handshake", "agent '%s' refused the connection",
				 conn->identity.name);
	}
}

static int conn_check_welcome(struct kvli_conn *conn, const struct message *m, int table_fd)
{
	if (m->type != MESSAGE_WELCOME)
		return kvli_fail(KVL_ERR_CORRUPT, KVL_NO_ENTRY, 0, "handshake",
				 "agent '%s' sent message type %u", conn->identity.name, m->type);
	if (m->status)
		return conn_refused(conn, m);
	if (memcmp(m->self.incarnation, conn->identity.incarnation, KVL_INCARNATION) ||
	    strcmp(m->self.name, conn->identity.name))
		return kvli_fail(KVL_ERR_IDENTITY, KVL_NO_ENTRY, 0, "the agent of the metadata answers",
				 "expected '%s' at its address, '%s' answered", conn->identity.name,
				 m->self.name);
	if (m->exports > 1u << 20 || m->notif_max_bytes == 0)
		return kvli_fail(KVL_ERR_CORRUPT, KVL_NO_ENTRY, 0, "handshake",
				 "agent '%s' exports %u regions", conn->identity.name, m->exports);
	conn->table_len = m->exports * sizeof(struct word64);
	errno = 0;
	conn->table = kvli_map_sealed(table_fd, conn->table_len, 0);
	if (conn->table == NULL && errno == ENOMEM)
		return kvli_fail(KVL_ERR_NOMEM, KVL_NO_ENTRY, errno, "memory",
				 "can not map the exports of '%s'", conn->identity.name);
	if (conn->table == NULL)
		return kvli_fail(KVL_ERR_CORRUPT, KVL_NO_ENTRY, 0, "export table",
				 "agent '%s' has no usable export table", conn->identity.name);
	conn->exports = m->exports;
	conn->path.notif_max_bytes = m->notif_max_bytes;
	return 0;
}

int kvli_conn_late(const struct kvli_conn *conn, int rc, const char *when)
{
	if (rc == KVL_ERR_TIMED_OUT)
		return kvli_fail(rc, KVL_NO_ENTRY, 0, "deadline", "agent '%s' did not answer in time %s",
				 conn->identity.name, when);
	if (rc == KVL_ERR_CLOSED)
		return kvli_fail(rc, KVL_NO_ENTRY, 0, "agent is open", "the agent is being closed");
	if (rc == KVL_ERR_PEER_LOST)
		return kvli_fail(rc, KVL_NO_ENTRY, 0, "peer is connected",
				 "agent '%s' closed the connection %s", conn->identity.name, when);
	return kvli_fail(rc, KVL_NO_ENTRY, 0, "handshake",
			 "agent '%s' sent bytes of another protocol or version %s", conn->identity.name,
			 when);
}

/* Trying is the only way to know: containers, hardened kernels and other users all refuse differently. */
static void conn_probe_copy(struct kvli_conn *conn, uint64_t probe)
{
	uint8_t seen[KVL_INCARNATION] = { 0 };
	struct iovec local = { seen, sizeof(seen) }, remote = { (void *)(uintptr_t)probe, sizeof(seen) };
	ssize_t n = conn->pid > 0 ? process_vm_readv(conn->pid, &local, 1, &remote, 1, 0) : -1;
	int error = conn->pid > 0 ? errno : ESRCH;

	if (n == (ssize_t)sizeof(seen) && memcmp(seen, conn->identity.incarnation, sizeof(seen)) == 0) {
		word32_store_release_sys(&conn->copy_works, 1); /* a flag */
		return;
	}
	snprintf(conn->path.reason, sizeof(conn->path.reason), "cross-process copies: %s",
		 n < 0 ? strerror(error) : "another process has its number here");
}

static void conn_choose_path(struct kvli_conn *conn, uint64_t probe)
{
	uint32_t paths = conn->wire->paths;
	const char *best = kvli_path_slot;

	if (paths & PATH_COPY)
		conn_probe_copy(conn, probe);
	else if (!(paths & PATH_MAP))
		snprintf(conn->path.reason, sizeof(conn->path.reason), "option local_paths allows slot only");
	if (paths & PATH_MAP)
		best = kvli_path_map;
	else if (word32_load_relaxed_sys(&conn->copy_works)) /* just set */
		best = kvli_path_copy;
	if (best == kvli_path_copy)
		snprintf(conn->path.reason, sizeof(conn->path.reason), "option local_paths leaves out map");
	memcpy(conn->path.path, best, strlen(best) + 1);
}

static int conn_shake(struct kvli_conn *conn, uint64_t deadline)
{
	int pair[2] = { -1, -1 }, fd[MESSAGE_FDS] = { -1, -1 }, segment = -1, rc;
	struct message m;

	rc = conn_make_segment(conn, &segment);
	if (rc == 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair))
		rc = kvli_fail(KVL_ERR_SYSTEM, KVL_NO_ENTRY, errno, "socketpair", "can not make a doorbell");
	if (rc)
		goto close_fds;
	conn->bell = pair[0];
	kvli_message_init(&m, MESSAGE_HELLO, 0);
	m.self = conn->wire->host->self;
	m.expected = conn->identity;
	m.lanes = conn->wire->lanes;
	m.ring_bytes = conn->wire->ring_bytes;
	fd[0] = segment;
	fd[1] = pair[1];
	rc = kvli_message_send(conn->sock, &m, fd, 2); /* the socket is new: there is room */
	if (rc == 0)
		rc = kvli_message_wait(conn->sock, &m, fd, deadline, conn->wire->host->closing);
	if (rc) {
		fd[0] = fd[1] = -1;
		rc = kvli_conn_late(conn, rc, "to the first message");
		goto close_fds;
	}
	rc = conn_check_welcome(conn, &m, fd[0]);
	kvli_message_close_fds(fd);
	if (rc == 0)
		conn_choose_path(conn, m.probe);
close_fds:
	if (segment >= 0)
		close(segment);
	if (pair[1] >= 0)
		close(pair[1]);
	return rc;
}

static void conn_find_process(struct kvli_conn *conn)
{
	struct ucred cred = { 0, 0, 0 };
	socklen_t len = sizeof(cred);

	if (getsockopt(conn->sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0)
		conn->pid = cred.pid; /* 0 when it has no number in this PID namespace */
	conn->pidfd = kvli_address_pidfd(conn->sock);
}

/*
 * Sockets tell of every end but one: that of a process whose forked child still holds them. Paused, as the first
 * watch may already find the peer lost, and then looks at all three.
 */
static int conn_watch(struct kvli_conn *conn)
{
	struct kvli_reactor *reactor = conn->wire->host->reactor;
	int rc;

	kvli_reactor_pause(reactor);
	rc = kvli_watch_add(reactor, conn->sock, EPOLLRDHUP, conn_sock, conn, &conn->sock_watch);
	if (rc == 0)
		rc = kvli_watch_add(reactor, conn->bell, EPOLLIN | EPOLLRDHUP, conn_bell, conn,
				    &conn->bell_watch);
	if (rc == 0 && conn->pidfd >= 0)
		rc = kvli_watch_add(reactor, conn->pidfd, EPOLLIN, conn_pid, conn, &conn->pid_watch);
	kvli_reactor_go_on(reactor);
	return rc;
}

static int conn_dial(struct kvli_conn *conn, const void *address, uint32_t address_len, uint64_t deadline)
{
	int rc;

	if (address_len != KVL_INCARNATION)
		return kvli_fail(KVL_ERR_CORRUPT, KVL_NO_ENTRY, 0, "address length",
				 "the address of '%s' is %u bytes", conn->identity.name, address_len);
	rc = kvli_address_connect(address, deadline, conn->wire->host->closing, &conn->sock);
	if (rc == KVL_ERR_STALE)
		return kvli_fail(rc, KVL_NO_ENTRY, 0, "agent is alive", "agent '%s' of this metadata is gone",
				 conn->identity.name);
	if (rc == KVL_ERR_TIMED_OUT || rc == KVL_ERR_CLOSED)
		return kvli_conn_late(conn, rc, "to the connect");
	if (rc)
		return kvli_fail(rc, KVL_NO_ENTRY, errno, "connect", "can not connect to '%s'",
				 conn->identity.name);
	if (!kvli_address_same_user(conn->sock))
		return kvli_fail(KVL_ERR_PERMISSION, KVL_NO_ENTRY, 0, "same user",
				 "agent '%s' runs as another user", conn->identity.name);
	conn_find_process(conn);
	return 0;
}

static void conn_free(struct kvli_conn *conn)
{
	for (uint32_t i = 0; i < conn->n_lanes; i++) {
		free(conn->lane[i].op);
		free(conn->lane[i].done);
	}
	free(conn->lane);
	if (conn->segment)
		munmap(conn->segment, conn->segment_len);
	if (conn->table)
		munmap((void *)(uintptr_t)conn->table, conn->table_len);
	if (conn->sock >= 0) {
		shutdown(conn->sock, SHUT_RDWR); /* a forked child may hold it too */
		close(conn->sock);
	}
	if (conn->bell >= 0) {
		shutdown(conn->bell, SHUT_RDWR);
		close(conn->bell);
	}
	if (conn->pidfd >= 0)
		close(conn->pidfd);
	pthread_mutex_destroy(&conn->rpc);
	free(conn);
}

void kvli_conn_close(struct kvli_conn *conn)
{
	kvli_reactor_pause(conn->wire->host->reactor);
	kvli_watch_del(conn->sock_watch);
	kvli_watch_del(conn->bell_watch);
	kvli_watch_del(conn->pid_watch);
	kvli_reactor_go_on(conn->wire->host->reactor);
	conn_free(conn);
}

int kvli_conn_open(struct kvli_wire *wire, const struct kvli_identity *peer, const void *address,
		   uint32_t address_len, uint64_t deadline_ns, void *peer_arg, struct kvli_conn **out)
{
	struct kvli_conn *conn = calloc(1, sizeof(*conn));
	int rc;

	if (conn == NULL)
		return kvli_fail(KVL_ERR_NOMEM, KVL_NO_ENTRY, 0, "memory", "no memory for a connection");
	conn->wire = wire;
	conn->peer = peer_arg;
	conn->identity = *peer;
	conn->sock = conn->bell = conn->pidfd = -1;
	pthread_mutex_init(&conn->rpc, NULL);
	rc = conn_dial(conn, address, address_len, deadline_ns);
	if (rc == 0)
		rc = conn_shake(conn, deadline_ns);
	if (rc == 0)
		rc = conn_make_lanes(conn);
	if (rc) {
		conn_free(conn);
		return rc;
	}
	*out = conn; /* the watches call lost() of a peer that has its connection */
	rc = conn_watch(conn);
	if (rc == 0)
		return 0;
	*out = NULL;
	kvli_conn_close(conn);
	return rc;
}
