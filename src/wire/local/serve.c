/* SPDX-License-Identifier: Apache-2.0 */
/* The target's end of connections: admission, questions about regions, and the end. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "wire/local/address.h"
#include "wire/local/local.h"
#include "wire/local/map.h"

#define BACKLOG 128
/* Connections that one agent serves, half-open ones included. */
#define MAX_SERVES 65536
/* Those of them that have not said who they are: the oldest has to make room for one more. */
#define MAX_HALF_OPEN 64

void kvli_serve_hold(struct serve *s)
{
	word32_add_seq_sys(&s->refs, 1); /* no edge: a count */
}

void kvli_serve_drop(struct serve *s)
{
	if (word32_add_seq_sys(&s->refs, UINT32_MAX)) /* no edge: a count */
		return;
	for (uint32_t i = 0; i < s->n_lanes; i++)
		free(s->lane[i].notif);
	free(s->lane);
	if (s->segment)
		munmap(s->segment, s->segment_len);
	free(s);
}

static void serve_close_fds(struct serve *s)
{
	/* a child that was forked may hold them too: the peer is to see the end all the same */
	shutdown(s->sock, SHUT_RDWR);
	close(s->sock);
	if (s->bell >= 0) {
		shutdown(s->bell, SHUT_RDWR);
		close(s->bell);
	}
	if (s->pidfd >= 0)
		close(s->pidfd);
}

static void serve_unwatch(struct serve *s)
{
	kvli_watch_del(s->sock_watch);
	kvli_watch_del(s->bell_watch);
	kvli_watch_del(s->pid_watch);
}

/* In the control thread. The initiator copies no more: it is dead, or closed after its last copy. */
static void serve_end(struct serve *s)
{
	struct kvli_wire *wire = s->wire;
	struct serve **at = &wire->serves;

	word32_store_release_sys(&s->dead, 1); /* a flag */
	serve_unwatch(s);
	pthread_mutex_lock(&wire->serve_lock);
	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	wire->n_serves--;
	pthread_mutex_unlock(&wire->serve_lock);
	serve_close_fds(s);
	kvli_serve_drop(s);
}

/* The initiator is dead or has closed. What it had sent before is still delivered, as the queue takes it. */
static void serve_gone(struct serve *s)
{
	s->gone = 1;
	word32_store_release_sys(&s->dead, 1); /* a flag */
	kvli_watch_mute(s->sock_watch);
	kvli_watch_mute(s->pid_watch);
	kvli_watch_mute(s->bell_watch);
	if (s->bell_watch && !s->failed)
		kvli_watch_again(s->bell_watch);
	else
		serve_end(s);
}

/*
 * It broke the protocol. The initiator finds the connection closed and stops; until it has closed its side too, its
 * lanes may be inside copies, and fences go on looking at them.
 */
static void serve_fail(struct serve *s)
{
	if (s->bell < 0 || s->gone) {
		serve_end(s);
		return;
	}
	s->failed = 1;
	kvli_watch_mute(s->bell_watch);
	shutdown(s->sock, SHUT_WR);
	shutdown(s->bell, SHUT_WR);
}

static int serve_drain_locked(struct serve *s)
{
	int more;

	pthread_mutex_lock(&s->wire->serve_lock);
	more = kvli_serve_drain(s);
	pthread_mutex_unlock(&s->wire->serve_lock);
	return more;
}

static int serve_bell(void *arg, uint32_t events)
{
	struct serve *s = arg;
	struct segment_head *head = s->segment;
	int more;

	(void)events;
	if (!s->gone && !kvli_bell_take(s->bell))
		kvli_watch_mute(s->bell_watch); /* the end of the question socket follows, and counts */
	word32_exchange_seq_sys(&head->forward_bell, 0); /* E8 */
	more = serve_drain_locked(s);
	if (more < 0)
		serve_fail(s);
	else if (s->gone && !more && !s->blocked)
		serve_end(s);
	return more > 0;
}

static int serve_pid(void *arg, uint32_t events)
{
	(void)events; /* readable: the process has ended, whoever else holds its sockets */
	serve_gone(arg);
	return 0;
}

/* ----------------------------------------------------------------------------------------------- admission */

static int serve_map_segment(struct serve *s, const struct message *m, int fd)
{
	struct serve_lane *lane;
	size_t len;

	if (m->lanes < 1 || m->lanes > 64 || m->ring_bytes < 4096 || m->ring_bytes > 1u << 24 ||
	    (m->ring_bytes & (m->ring_bytes - 1)))
		return KVL_ERR_CORRUPT;
	len = segment_bytes(m->lanes, m->ring_bytes);
	s->segment = kvli_map_sealed(fd, len, 1);
	if (s->segment == NULL)
		return KVL_ERR_CORRUPT;
	s->segment_len = len;
	lane = calloc(m->lanes, sizeof(*lane));
	if (lane == NULL)
		return KVL_ERR_NOMEM;
	for (uint32_t i = 0; i < m->lanes; i++) {
		struct segment_lane *words = segment_lane(s->segment, i);

		lane[i].words = words;
		lane[i].forward = (struct ring_consumer){
			.words = &words->forward,
			.data = segment_ring(s->segment, m->lanes, m->ring_bytes, i, 0),
			.size = m->ring_bytes,
		};
		lane[i].back = (struct ring_producer){
			.words = &words->back,
			.data = segment_ring(s->segment, m->lanes, m->ring_bytes, i, 1),
			.size = m->ring_bytes,
		};
	}
	pthread_mutex_lock(&s->wire->serve_lock); /* a fence may be looking */
	s->lane = lane;
	s->n_lanes = m->lanes;
	pthread_mutex_unlock(&s->wire->serve_lock);
	return 0;
}

static int serve_admit(struct serve *s, const struct message *m, int fd[MESSAGE_FDS])
{
	const struct kvli_identity *self = &s->wire->host->self;
	int rc;

	if (s->segment || fd[0] < 0 || fd[1] < 0)
		return KVL_ERR_CORRUPT;
	if (memcmp(m->expected.incarnation, self->incarnation, sizeof(self->incarnation)) ||
	    strcmp(m->expected.name, self->name))
		return KVL_ERR_IDENTITY;
	rc = serve_map_segment(s, m, fd[0]);
	if (rc)
		return rc;
	if (!kvli_bell_valid(fd[1]))
		return KVL_ERR_CORRUPT;
	s->peer = m->self;
	s->bell = fd[1];
	fd[1] = -1;
	rc = kvli_watch_add(s->wire->host->reactor, s->bell, EPOLLIN | EPOLLRDHUP, serve_bell, s,
			    &s->bell_watch);
	if (rc == 0 && s->pidfd >= 0)
		rc = kvli_watch_add(s->wire->host->reactor, s->pidfd, EPOLLIN, serve_pid, s, &s->pid_watch);
	return rc;
}

static int serve_hello(struct serve *s, const struct message *m, int fd[MESSAGE_FDS])
{
	struct kvli_wire *wire = s->wire;
	struct message answer;
	int rc = serve_admit(s, m, fd);

	kvli_message_init(&answer, MESSAGE_WELCOME, rc);
	answer.self = wire->host->self;
	answer.exports = wire->max_regions;
	answer.probe = (uintptr_t)wire->host->self.incarnation;
	answer.notif_max_bytes = wire->notif_max_bytes;
	kvli_message_send(s->sock, &answer, &wire->table_fd, rc == 0);
	return rc;
}

/* The descriptor of a region, if it is the one asked for and can be mapped. */
static int serve_map(struct serve *s, const struct message *m)
{
	struct kvli_wire *wire = s->wire;
	struct message answer;
	struct export *e;

	if (s->segment == NULL)
		return KVL_ERR_CORRUPT;
	kvli_message_init(&answer, MESSAGE_MAPPED, KVL_ERR_STALE);
	answer.slot = m->slot;
	answer.generation = m->generation;
	pthread_mutex_lock(&wire->serve_lock);
	e = m->slot < wire->max_regions ? &wire->export[m->slot] : NULL;
	if (e && e->generation == m->generation && e->generation) {
		answer.status = e->fd >= 0 ? 0 : KVL_ERR_UNSUPPORTED;
		answer.offset = e->offset;
		answer.len = e->len;
	}
	kvli_message_send(s->sock, &answer, e ? &e->fd : NULL, answer.status == 0);
	pthread_mutex_unlock(&wire->serve_lock);
	return 0;
}

static int serve_message(struct serve *s, const struct message *m, int fd[MESSAGE_FDS])
{
	switch (m->type) {
	case MESSAGE_HELLO:
		return serve_hello(s, m, fd);
	case MESSAGE_MAP:
		return serve_map(s, m);
	default:
		return KVL_ERR_CORRUPT;
	}
}

/* The question socket. Its end is the connection's. */
static int serve_sock(void *arg, uint32_t events)
{
	struct serve *s = arg;
	int fd[MESSAGE_FDS], rc;
	struct message m;

	(void)events;
	rc = kvli_message_recv(s->sock, &m, fd);
	if (rc == KVL_ERR_AGAIN)
		return 0;
	if (rc == KVL_ERR_PEER_LOST) {
		serve_gone(s);
		return 0;
	}
	if (rc == 0 && !s->failed)
		rc = serve_message(s, &m, fd);
	kvli_message_close_fds(fd);
	if (rc && !s->failed)
		serve_fail(s);
	return 0;
}

static void serve_refuse(struct kvli_wire *wire, int sock, int error)
{
	struct message refusal;

	kvli_message_init(&refusal, MESSAGE_WELCOME, error);
	refusal.self = wire->host->self;
	kvli_message_send(sock, &refusal, NULL, 0);
	close(sock);
}

/* The listening socket stays readable while no descriptor is left to accept with: that would be a busy loop. */
static void serve_accept_last(struct kvli_wire *wire)
{
	int sock;

	close(wire->spare);
	sock = accept4(wire->listen, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (sock >= 0)
		serve_refuse(wire, sock, KVL_ERR_LIMIT);
	wire->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void serve_bound_half_open(struct kvli_wire *wire)
{
	struct serve *oldest = NULL;
	int n = 0;

	for (struct serve *s = wire->serves; s;
	     s = s->next) { /* newest first; only this thread changes the list */
		if (s->segment)
			continue;
		oldest = s;
		n++;
	}
	if (n > MAX_HALF_OPEN)
		serve_end(oldest);
}

static int serve_new(struct kvli_wire *wire, int sock, struct serve **out)
{
	struct serve *s;

	if (!kvli_address_same_user(sock))
		return KVL_ERR_PERMISSION;
	if (wire->n_serves >= MAX_SERVES)
		return KVL_ERR_LIMIT;
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return KVL_ERR_NOMEM;
	s->wire = wire;
	s->sock = sock;
	s->bell = -1;
	s->pidfd = kvli_address_pidfd(sock);
	word32_store_relaxed_sys(&s->refs, 1); /* not shared yet */
	pthread_mutex_lock(&wire->serve_lock);
	s->next = wire->serves;
	wire->serves = s;
	wire->n_serves++;
	pthread_mutex_unlock(&wire->serve_lock);
	*out = s;
	return 0;
}

static int serve_accept(void *arg, uint32_t events)
{
	struct kvli_wire *wire = arg;
	int sock = accept4(wire->listen, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), rc;
	struct serve *s;

	(void)events;
	if (sock < 0) {
		if (errno == EMFILE || errno == ENFILE)
			serve_accept_last(wire);
		return 0;
	}
	rc = serve_new(wire, sock, &s);
	if (rc)
		serve_refuse(wire, sock, rc);
	else if (kvli_watch_add(wire->host->reactor, sock, EPOLLIN | EPOLLRDHUP, serve_sock, s,
				&s->sock_watch))
		serve_end(s);
	serve_bound_half_open(wire);
	return 1; /* perhaps more are waiting */
}

/* ------------------------------------------------------------------------------------------------- the rest */

static int serve_resume(void *arg, uint32_t events)
{
	struct kvli_wire *wire = arg;
	uint64_t count;
	ssize_t n = read(wire->resume_fd, &count, sizeof(count));

	(void)n;
	(void)events;
	for (struct serve *s = wire->serves, *next; s; s = next) { /* only this thread adds and removes */
		next = s->next;
		if (s->blocked)
			kvli_watch_again(s->bell_watch);
	}
	return 0;
}

int kvli_serve_open(struct kvli_wire *wire)
{
	struct kvli_reactor *reactor = wire->host->reactor;
	int rc = kvli_address_listen(wire->host->self.incarnation, BACKLOG, &wire->listen);

	if (rc)
		return rc;
	wire->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	rc = kvli_watch_add(reactor, wire->listen, EPOLLIN, serve_accept, wire, &wire->listen_watch);
	if (rc)
		goto close_listen;
	rc = kvli_watch_add(reactor, wire->resume_fd, EPOLLIN, serve_resume, wire, &wire->resume_watch);
	if (rc == 0)
		return 0;
	kvli_watch_del(wire->listen_watch);
close_listen:
	close(wire->spare);
	close(wire->listen);
	return rc;
}

/* Initiators find their sockets closed and take this agent for gone. */
void kvli_serve_close(struct kvli_wire *wire)
{
	kvli_reactor_pause(wire->host->reactor);
	kvli_watch_del(wire->listen_watch);
	kvli_watch_del(wire->resume_watch);
	shutdown(wire->listen, SHUT_RDWR); /* a forked child may hold it too */
	close(wire->listen);
	close(wire->spare);
	while (wire->serves) {
		struct serve *s = wire->serves;

		serve_unwatch(s);
		wire->serves = s->next;
		serve_close_fds(s);
		kvli_serve_drop(s);
	}
	kvli_reactor_go_on(wire->host->reactor);
}
