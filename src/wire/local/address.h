/* SPDX-License-Identifier: Apache-2.0 */
/* Where a target listens: an abstract Unix socket, which leaves nothing behind. */
#ifndef KVLI_LOCAL_ADDRESS_H
#define KVLI_LOCAL_ADDRESS_H

#include <stdint.h>

#include "kvlane/kvlane.h"
#include "shared/word.h"

int kvli_address_listen(const uint8_t incarnation[KVL_INCARNATION], int backlog, int *sock);

/* KVL_ERR_STALE: nobody listens there any more. KVL_ERR_CLOSED: the agent closes. */
int kvli_address_connect(const uint8_t incarnation[KVL_INCARNATION], uint64_t deadline_ns,
			 const struct word32 *closing, int *sock);

/* A pidfd of the process at the other end, -1 when it has no number in this PID namespace. */
int kvli_address_pidfd(int sock);

/* Whether the process at the other end runs as this user or as root. */
int kvli_address_same_user(int sock);

#endif
