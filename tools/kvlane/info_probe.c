/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two processes, not two agents of one: whether memory can be mapped or copied across is decided by the
 * kernel for a pair of processes, and inside one process everything is allowed.
 */
#include <stdio.h>
#include <string.h>

#include "fail.h"
#include "info.h"
#include "pair.h"

#define PROBE_NS  2000000000u
#define FINISH_NS 3000000000u

static const struct info_path paths[INFO_PATHS] = {
	{ .name = "map", .what = "memory of kvl_mem_alloc or a memfd: plain copies into the peer's mapping" },
	{ .name = "copy", .what = "any other memory: vectored copies across processes" },
	{ .name = "slot", .what = "when both are refused: by way of shared slots" },
};

/* An agent that may use one path only, with a region that a peer could map. */
static int probe_open(const char *path, kvl_agent_t *out)
{
	struct kvl_config config;
	void *addr;
	kvl_mr_t mr;
	int code;

	kvl_config_init(&config);
	config.local_paths = path;
	code = kvl_agent_open(path, &config, out);
	kvl_config_fini(&config);
	if (code)
		return code;
	return kvl_mem_alloc(*out, 4096, KVL_REMOTE_ALL, &addr, &mr);
}

static void probe_close(kvl_agent_t agent)
{
	if (agent)
		(void)!kvl_agent_close(agent, PROBE_NS);
}

/* The second process: one agent per path, until the first one has looked. */
static int probe_child(struct pair *pair, void *arg)
{
	kvl_agent_t agent[INFO_PATHS] = { 0 };
	int code = 0;
	char byte;

	(void)arg;
	for (int i = 0; i < INFO_PATHS && !code; i++) {
		code = probe_open(paths[i].name, &agent[i]);
		if (!code)
			code = kvl_publish(agent[i], pair->dir);
	}
	if (!code)
		(void)!pair_recv(pair, &byte, 1, INFO_PATHS * PROBE_NS);
	for (int i = 0; i < INFO_PATHS; i++)
		probe_close(agent[i]);
	return code ? EXIT_FAILED : EXIT_OK;
}

static void probe_refused(struct info_path *path, int code)
{
	struct kvl_error_detail detail;

	kvl_error_detail(&detail);
	snprintf(path->reason, sizeof(path->reason), "%s",
		 detail.code == code && detail.message[0] ? detail.message : kvl_error_text(code));
}

static void probe_path(struct info_path *path, const char *dir)
{
	struct kvl_peer_info peer = { .size = sizeof(peer) };
	kvl_agent_t agent = 0;
	kvl_peer_t id;
	int code = probe_open(path->name, &agent);

	if (!code)
		code = kvl_peer_find(agent, dir, path->name, PROBE_NS, &id);
	if (!code)
		code = kvl_peer_info(agent, id, &peer);
	if (code)
		probe_refused(path, code);
	else if (strcmp(peer.path, path->name))
		snprintf(path->reason, sizeof(path->reason), "%s", peer.path_reason);
	else
		path->works = 1;
	probe_close(agent);
}

static int probe_paths(struct info *info)
{
	struct pair pair;
	int code = pair_start(&pair, probe_child, NULL);

	if (code) {
		fprintf(stderr, "kvlane info: cannot start a second process: %s\n", pair_reason(code));
		return EXIT_FAILED;
	}
	for (int i = 0; i < INFO_PATHS; i++)
		probe_path(&info->path[i], pair.dir);
	(void)!pair_send(&pair, "", 1);
	(void)!pair_finish(&pair, FINISH_NS);
	return 0;
}

static int probe_limits(struct info *info)
{
	struct kvl_config config;
	kvl_agent_t agent = 0;
	int code;

	kvl_config_init(&config);
	code = kvl_config_env(&config);
	if (code) {
		fail_print("info: environment", code);
		kvl_config_fini(&config);
		return EXIT_USAGE;
	}
	if (!code)
		code = kvl_agent_open("info", &config, &agent);
	kvl_config_fini(&config);
	info->limits.size = sizeof(info->limits);
	if (!code)
		code = kvl_agent_limits(agent, &info->limits);
	if (code)
		fail_print("info: cannot open an agent", code);
	probe_close(agent);
	return (int)fail_exit_code(code);
}

int info_gather(struct info *info)
{
	int code;

	memset(info, 0, sizeof(*info));
	memcpy(info->path, paths, sizeof(paths));
	/* The processes first: no agent may be open at the fork. */
	code = probe_paths(info);
	return code ? code : probe_limits(info);
}
