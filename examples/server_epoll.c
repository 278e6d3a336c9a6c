/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server with 100 peers on one thread: one descriptor in its epoll loop stands for all of them.
 * Notifications come in, WRITEs go out, their ends are collected together.
 */
#include <sys/epoll.h>
#include "example.h"

#define PROCESSES 4
#define CLIENTS   25 /* in each process */
#define BYTES     65536
#define CONTENT   'k'

static void clients(const char *dir)
{
	kvl_agent_t agent[CLIENTS];
	kvl_peer_t server;
	char *memory[CLIENTS], name[KVL_NAME_MAX];

	for (int i = 0; i < CLIENTS; i++) {
		snprintf(name, sizeof(name), "client-%d-%d", getpid(), i);
		agent[i] = agent_join(dir, name, "server", BYTES, &memory[i], &server);
		must(kvl_notify(agent[i], server, &memory[i], sizeof(memory[i]), NULL));
	}
	for (int i = 0; i < CLIENTS; i++) {
		kvl_notif_free(notif_wait(agent[i]));
		bytes_check(memory[i], CONTENT, BYTES);
		must(kvl_agent_close(agent[i], KVL_FOREVER));
	}
}

/* Posts the answer to where the client wants it; the loop below sees the end. */
static void answer(kvl_agent_t agent, const char *dir, const struct kvl_notif *notif, const void *content)
{
	if (notif->len != sizeof(uint64_t))
		errx(1, "%s sent no address", notif->peer);

	struct kvl_desc local = { .addr = (uintptr_t)content, .len = BYTES };
	struct kvl_desc remote = { .addr = *(const uint64_t *)notif->data, .len = BYTES };
	struct kvl_xfer_opts opts = { .size = sizeof(opts), .flags = KVL_XFER_NOTIFY };
	kvl_peer_t client;
	kvl_xfer_t xfer;

	must(kvl_peer_find(agent, dir, notif->peer, KVL_FOREVER, &client));
	must(kvl_write(agent, client, &local, &remote, 1, &opts, &xfer));
}

static void server(const char *dir)
{
	struct epoll_event event = { .events = EPOLLIN };
	int epoll = epoll_create1(EPOLL_CLOEXEC), left = PROCESSES * CLIENTS;
	struct kvl_notif *notif;
	struct kvl_end end[100];
	kvl_agent_t agent;
	void *content;
	kvl_mr_t mr;

	must(kvl_agent_open("server", NULL, &agent));
	must(kvl_mem_alloc(agent, BYTES, KVL_LOCAL_ONLY, &content, &mr));
	memset(content, CONTENT, BYTES);
	must(kvl_publish(agent, dir));
	epoll_ctl(epoll, EPOLL_CTL_ADD, must(kvl_agent_fd(agent)), &event);
	while (left > 0 && epoll_wait(epoll, &event, 1, -1) > 0) {
		while (kvl_notif_next(agent, &notif) == KVL_OK) {
			answer(agent, dir, notif, content);
			kvl_notif_free(notif);
		}
		for (int i = 0, n = must(kvl_poll_many(agent, end, 100, 0)); i < n; i++, left--) {
			must(end[i].status);
			must(kvl_xfer_release(agent, end[i].xfer));
		}
	}
	must(kvl_agent_close(agent, KVL_FOREVER));
}

int main(void)
{
	return processes_run(PROCESSES, clients, server);
}
