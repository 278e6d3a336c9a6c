/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/local/address.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"

static socklen_t address_fill(const uint8_t incarnation[KVL_INCARNATION], struct sockaddr_un *un)
{
	static const char prefix[] = "kvlane-";
	char *at = un->sun_path + 1; /* the leading 0 makes it abstract */

	memset(un, 0, sizeof(*un));
	un->sun_family = AF_UNIX;
	memcpy(at, prefix, sizeof(prefix) - 1);
	at += sizeof(prefix) - 1;
	for (int i = 0; i < KVL_INCARNATION; i++, at += 2)
		snprintf(at, 3, "%02x", incarnation[i]);
	return (socklen_t)(at - (char *)un);
}

int kvli_address_listen(const uint8_t incarnation[KVL_INCARNATION], int backlog, int *sock)
{
	struct sockaddr_un un;
	socklen_t len = address_fill(incarnation, &un);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0 && bind(fd, (struct sockaddr *)&un, len) == 0 && listen(fd, backlog) == 0) {
		*sock = fd;
		return 0;
	}
	kvli_fail(KVL_ERR_SYSTEM, KVL_NO_ENTRY, errno, "listen", "can not listen for peers");
	if (fd >= 0)
		close(fd);
	return KVL_ERR_SYSTEM;
}

/* A full backlog answers EAGAIN and has nothing to wait on: look again shortly. */
static int connect_until(int fd, const struct sockaddr_un *un, socklen_t len, uint64_t deadline,
			 const struct word32 *closing)
{
	const struct timespec nap = { 0, 1000000 };

	while (connect(fd, (const struct sockaddr *)un, len)) {
		if (errno == ECONNREFUSED || errno == ENOENT)
			return KVL_ERR_STALE;
		if (errno != EAGAIN && errno != EINTR)
			return KVL_ERR_SYSTEM;
		if (word32_load_acquire_sys(closing)) /* a flag */
			return KVL_ERR_CLOSED;
		if (kvli_now() >= deadline)
			return KVL_ERR_TIMED_OUT;
		nanosleep(&nap, NULL);
	}
	return 0;
}

int kvli_address_connect(const uint8_t incarnation[KVL_INCARNATION], uint64_t deadline_ns,
			 const struct word32 *closing, int *sock)
{
	struct sockaddr_un un;
	socklen_t len = address_fill(incarnation, &un);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc;

	if (fd < 0)
		return kvli_fail(KVL_ERR_SYSTEM, KVL_NO_ENTRY, errno, "socket", "can not make a socket");
	rc = connect_until(fd, &un, len, deadline_ns, closing);
	if (rc == 0)
		*sock = fd;
	else
		close(fd);
	return rc;
}

int kvli_address_pidfd(int sock)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) || cred.pid <= 0)
		return -1;
	return (int)syscall(SYS_pidfd_open, cred.pid, 0);
}

int kvli_address_same_user(int sock)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 &&
	       (cred.uid == geteuid() || cred.uid == 0);
}
