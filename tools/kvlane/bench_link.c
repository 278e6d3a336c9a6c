/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINK_REPLY_NS  120000000000ull /* filling or checking a pool on a busy machine */
#define LINK_FINISH_NS 10000000000ull
#define LINK_IDLE_NS   3600000000000ull /* a dead initiator is seen at once, not by this */

/* ------------------------------------------------------------------------------------------------- start,
 * end */

static void *link_thread(void *arg)
{
	struct bench_link *link = arg;

	link->rc = link->target_main(&link->target, link->arg);
	shutdown(link->target.sock, SHUT_RDWR); /* as the death of a process would */
	return NULL;
}

static int link_start_thread(struct bench_link *link)
{
	int sock[2], error;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock))
		return -errno;
	link->threaded = 1;
	link->pair.sock = sock[0];
	link->target.sock = sock[1];
	error = pthread_create(&link->thread, NULL, link_thread, link);
	if (error) {
		close(sock[0]);
		close(sock[1]);
	}
	return -error;
}

int bench_link_start(struct bench_link *link, const struct bench_options *o,
		     int (*target_main)(struct pair *pair, void *arg), void *arg)
{
	int error;

	memset(link, 0, sizeof(*link));
	link->target_main = target_main;
	link->arg = arg;
	error = strcmp(o->wire, "sim") ? pair_start(&link->pair, target_main, arg) : link_start_thread(link);
	if (error)
		bench_error("cannot start the target: %s", pair_reason(error));
	return error ? -1 : 0;
}

int bench_link_finish(struct bench_link *link)
{
	struct bench_command quit = { .verb = BENCH_QUIT };
	int rc;

	/* A target that is gone already has said why. */
	(void)pair_send(&link->pair, &quit, sizeof(quit));
	if (!link->threaded) {
		rc = pair_finish(&link->pair, LINK_FINISH_NS);
	} else {
		pthread_join(link->thread, NULL);
		close(link->pair.sock);
		close(link->target.sock);
		rc = link->rc;
	}
	if (rc)
		bench_error("the target ended with exit code %d", rc);
	return rc ? -1 : 0;
}

/* ----------------------------------------------------------------------------------------------- commands */

int bench_tell(struct bench_link *link, const struct bench_command *command)
{
	int error = pair_send(&link->pair, command, sizeof(*command));

	if (error)
		bench_error("the target does not listen: %s", strerror(-error));
	return error ? -1 : 0;
}

int bench_hear(struct bench_link *link, struct bench_reply *reply)
{
	int error = pair_recv(&link->pair, reply, sizeof(*reply), LINK_REPLY_NS);

	if (error)
		bench_error("the target does not answer: %s", strerror(-error));
	return error || reply->status ? -1 : 0;
}

int bench_ask(struct bench_link *link, const struct bench_command *command, struct bench_reply *reply)
{
	return bench_tell(link, command) ? -1 : bench_hear(link, reply);
}

int bench_serve(struct pair *pair,
		void (*handle)(void *ctx, const struct bench_command *command, struct bench_reply *reply),
		void *ctx)
{
	struct bench_command command;
	struct bench_reply reply;

	for (;;) {
		if (pair_recv(pair, &command, sizeof(command), LINK_IDLE_NS))
			return EXIT_FAILED;
		if (command.verb == BENCH_QUIT)
			return EXIT_OK;
		memset(&reply, 0, sizeof(reply));
		handle(ctx, &command, &reply);
		if (pair_send(pair, &reply, sizeof(reply)))
			return EXIT_FAILED;
	}
}

/* ------------------------------------------------------------------------------------------------- offers */

/* The metadata of an agent, to be freed. 0 or a kvl_error. */
static int offer_metadata(kvl_agent_t agent, void **out, size_t *len)
{
	int rc;

	*out = NULL;
	*len = 0;
	rc = kvl_agent_metadata(agent, NULL, len);
	if (rc != KVL_ERR_LIMIT)
		return rc < 0 ? rc : KVL_ERR_CORRUPT;
	*out = malloc(*len);
	if (!*out)
		return KVL_ERR_NOMEM;
	rc = kvl_agent_metadata(agent, *out, len);
	if (rc < 0)
		free(*out);
	return rc;
}

int bench_offer_send(struct pair *pair, kvl_agent_t agent, const struct bench_memory *memory)
{
	struct bench_offer offer = { .addr = (uintptr_t)memory->addr, .len = memory->len, .pid = getpid() };
	void *metadata;
	size_t len;
	int rc = offer_metadata(agent, &metadata, &len);

	if (rc < 0)
		return bench_error_kvl("metadata of the target", rc);
	offer.metadata_len = len;
	rc = pair_send(pair, &offer, sizeof(offer));
	if (!rc)
		rc = pair_send(pair, metadata, len);
	free(metadata);
	if (rc)
		bench_error("the initiator does not listen: %s", strerror(-rc));
	return rc;
}

int bench_offer_recv(struct pair *pair, struct bench_offer *out)
{
	int rc = pair_recv(pair, out, sizeof(*out), LINK_REPLY_NS);

	out->metadata = NULL;
	if (!rc) {
		out->metadata = malloc(out->metadata_len);
		rc = out->metadata ? pair_recv(pair, out->metadata, out->metadata_len, LINK_REPLY_NS)
				   : -ENOMEM;
	}
	if (!rc)
		return 0;
	bench_offer_free(out);
	bench_error("the target did not start: %s", strerror(-rc));
	return rc;
}

void bench_offer_free(struct bench_offer *offer)
{
	free(offer->metadata);
	offer->metadata = NULL;
}

int bench_offer_connect(const struct bench_offer *offer, kvl_agent_t agent, kvl_peer_t *out)
{
	int rc = kvl_peer_connect(agent, offer->metadata, offer->metadata_len, 0, out);

	return rc < 0 ? bench_error_kvl("connecting to the target", rc) : 0;
}
