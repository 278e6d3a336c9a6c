/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/local/message.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

/* How soon a waiter notices that its agent is being closed. */
#define SLICE_MS 20

/* Taken at once from a bell: a peer that rings without end must not hold the control thread. */
#define BELL_BYTES 16

void kvli_message_init(struct message *m, enum message_type type, int status)
{
	memset(m, 0, sizeof(*m));
	m->magic = LOCAL_MAGIC;
	m->version = LOCAL_VERSION;
	m->type = (uint32_t)type;
	m->status = status;
}

int kvli_message_send(int sock, const struct message *m, const int *fd, int n_fds)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(MESSAGE_FDS * sizeof(int))];
	struct message copy = *m;
	struct iovec iov = { &copy, sizeof(copy) };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;

	memset(control, 0, sizeof(control));
	if (n_fds) {
		h.msg_control = control;
		h.msg_controllen = CMSG_SPACE((size_t)n_fds * sizeof(int));
		c = CMSG_FIRSTHDR(&h);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN((size_t)n_fds * sizeof(int));
		memcpy(CMSG_DATA(c), fd, (size_t)n_fds * sizeof(int));
	}
	if (sendmsg(sock, &h, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof(*m))
		return 0;
	return errno == EAGAIN || errno == EWOULDBLOCK ? KVL_ERR_AGAIN : KVL_ERR_PEER_LOST;
}

/* Every descriptor that came is taken, so that surplus ones of an odd peer are not leaked. */
static void message_take_fds(struct msghdr *h, int fd[MESSAGE_FDS])
{
	int taken = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		size_t n = c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS
				   ? (c->cmsg_len - CMSG_LEN(0)) / sizeof(int)
				   : 0;

		for (size_t i = 0; i < n; i++) {
			int one;

			memcpy(&one, CMSG_DATA(c) + i * sizeof(int), sizeof(one));
			if (taken < MESSAGE_FDS)
				fd[taken++] = one;
			else
				close(one);
		}
	}
}

int kvli_message_recv(int sock, struct message *m, int fd[MESSAGE_FDS])
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))];
	struct iovec iov = { m, sizeof(*m) };
	struct msghdr h = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)
	};
	ssize_t n;

	for (int i = 0; i < MESSAGE_FDS; i++)
		fd[i] = -1;
	do
		n = recvmsg(sock, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK ? KVL_ERR_AGAIN : KVL_ERR_PEER_LOST;
	message_take_fds(&h, fd);
	if (n == 0)
		return KVL_ERR_PEER_LOST;
	if ((size_t)n == sizeof(*m) && m->magic == LOCAL_MAGIC && m->version == LOCAL_VERSION &&
	    !(h.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) && memchr(m->self.name, 0, sizeof(m->self.name)) &&
	    memchr(m->expected.name, 0, sizeof(m->expected.name)))
		return 0;
	kvli_message_close_fds(fd);
	return KVL_ERR_CORRUPT;
}

int kvli_message_wait(int sock, struct message *m, int fd[MESSAGE_FDS], uint64_t deadline_ns,
		      const struct word32 *closing)
{
	struct pollfd p = { sock, POLLIN, 0 };
	int rc;

	while ((rc = kvli_message_recv(sock, m, fd)) == KVL_ERR_AGAIN) {
		uint64_t now = kvli_now(), left = now < deadline_ns ? deadline_ns - now : 0;

		if (left == 0)
			return KVL_ERR_TIMED_OUT;
		if (word32_load_acquire_sys(closing)) /* a flag */
			return KVL_ERR_CLOSED;
		poll(&p, 1, (int)(left / 1000000 < SLICE_MS ? left / 1000000 + 1 : SLICE_MS));
	}
	return rc;
}

void kvli_message_close_fds(int fd[MESSAGE_FDS])
{
	for (int i = 0; i < MESSAGE_FDS; i++) {
		if (fd[i] >= 0)
			close(fd[i]);
		fd[i] = -1;
	}
}

void kvli_bell_ring(int sock)
{
	char byte = 1;
	ssize_t n = send(sock, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);

	(void)n; /* full: the other end has wake-ups to take; closed: its watch tells */
}

int kvli_bell_valid(int sock)
{
	int domain, type;
	socklen_t len = sizeof(int);

	if (getsockopt(sock, SOL_SOCKET, SO_DOMAIN, &domain, &len) || domain != AF_UNIX)
		return 0;
	len = sizeof(int);
	return getsockopt(sock, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_SEQPACKET;
}

int kvli_bell_take(int sock)
{
	char byte[64];
	ssize_t n = 1;

	for (int i = 0; n > 0 && i < BELL_BYTES; i++)
		do
			n = recv(sock, byte, sizeof(byte), MSG_DONTWAIT);
		while (n < 0 && errno == EINTR);
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
}
