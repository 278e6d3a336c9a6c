/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages on a connection's socket (SOCK_SEQPACKET: whole or not at all, descriptors attached). Both ends run
 * on one host, so numbers are in its byte order; the version is checked before anything else is looked at.
 */
#ifndef KVLI_LOCAL_MESSAGE_H
#define KVLI_LOCAL_MESSAGE_H

#include "shared/word.h"
#include "wire/wire.h"

#define LOCAL_MAGIC   0x314c564bu /* "KVL1" */
#define LOCAL_VERSION 1u

enum message_type {
	MESSAGE_HELLO = 1,
	MESSAGE_WELCOME = 2,
	MESSAGE_MAP = 3,
	MESSAGE_MAPPED = 4
};

struct message {
	uint32_t magic, version, type;
	int32_t status; /* of an answer: 0 or a negative kvl_error */
	/* HELLO: the initiator; WELCOME: the target */
	struct kvli_identity self;
	struct kvli_identity expected; /* HELLO: whom the initiator wants */
	uint32_t lanes, ring_bytes;    /* HELLO, with the segment and a bell socket */
	uint32_t exports;              /* WELCOME, with the export table: its slots */
	uint32_t slot;                 /* MAP, and repeated in its answer */
	uint64_t probe;                /* WELCOME: where the target keeps its incarnation */
	uint64_t notif_max_bytes;      /* WELCOME */
	uint64_t generation;           /* likewise */
	uint64_t offset, len;          /* MAPPED, with the region's descriptor */
};

#define MESSAGE_FDS 2

/* A message with the fixed members set. */
void kvli_message_init(struct message *m, enum message_type type, int status);

/* Sends whole or not: 0, KVL_ERR_AGAIN, or KVL_ERR_PEER_LOST. Never blocks, never raises SIGPIPE. */
int kvli_message_send(int sock, const struct message *m, const int *fd, int n_fds);

/*
 * Receives one: 0, KVL_ERR_AGAIN, KVL_ERR_PEER_LOST (closed), or KVL_ERR_CORRUPT. Descriptors beyond those that
 * came are -1; they are the caller's.
 */
int kvli_message_recv(int sock, struct message *m, int fd[MESSAGE_FDS]);

/* The same, waiting until the deadline (KVL_ERR_TIMED_OUT) or until the agent closes (KVL_ERR_CLOSED). */
int kvli_message_wait(int sock, struct message *m, int fd[MESSAGE_FDS], uint64_t deadline_ns,
		      const struct word32 *closing);

void kvli_message_close_fds(int fd[MESSAGE_FDS]);

/* Doorbell sockets: one byte; a full socket is a rung bell. */
int kvli_bell_valid(int sock); /* what a peer passed is such a socket */
void kvli_bell_ring(int sock);
/* Takes what there is, within bounds: 1, or 0 when the other end is closed. */
int kvli_bell_take(int sock);

#endif
