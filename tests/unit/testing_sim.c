/* SPDX-License-Identifier: Apache-2.0 */
#include "testing_sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int host_deliver(void *agent, struct kvli_notif *notif)
{
	struct sim_end *end = agent;

	if (end->resumes_inside)
		kvli_wire_sim.resume(end->wire);
	if (end->n_notifs == end->room) {
		end->refusals++;
		return KVL_ERR_AGAIN;
	}
	end->notif[end->n_notifs++] = notif;
	return 0;
}

static int host_may_touch(void *agent, uint32_t slot, uint64_t generation, uint64_t addr, uint64_t len,
			  uint32_t right)
{
	(void)agent, (void)slot, (void)generation, (void)addr, (void)len, (void)right;
	return 1;
}

static void host_lost(void *peer)
{
	((struct sim_end *)peer)->lost++;
}

static void host_kick(void *peer)
{
	((struct sim_end *)peer)->kicks++;
}

struct kvl_config sim_config(const char *sim)
{
	return (struct kvl_config){
		.size = sizeof(struct kvl_config), .sim = sim, .lanes = LANES, .window = WINDOW
	};
}

struct kvli_identity sim_identity(const char *name)
{
	static uint32_t lives;
	struct kvli_identity self = { .incarnation = { 1 } };

	lives++;
	snprintf(self.name, sizeof(self.name), "%s", name);
	memcpy(self.incarnation + 8, &lives, sizeof(lives));
	return self;
}

void sim_end_open(struct sim_end *end, const char *name, const char *sim)
{
	struct kvl_config config = sim_config(sim);

	*end = (struct sim_end){ .room = COUNT(end->notif) };
	end->host = (struct kvli_wire_host){
		.agent = end,
		.self = sim_identity(name),
		.deliver = host_deliver,
		.may_touch = host_may_touch,
		.lost = host_lost,
		.kick = host_kick,
	};
	end->data = calloc(1, MEMORY);
	assert_non_null(end->data);
	assert_ok(kvli_wire_sim.open(&end->host, &config, &end->wire));
	sim_end_expose(end, LIFE, KVL_REMOTE_ALL);
}

void sim_end_close(struct sim_end *end)
{
	if (end->wire)
		kvli_wire_sim.close(end->wire);
	end->wire = NULL;
	for (size_t i = 0; i < end->n_notifs; i++)
		kvl_notif_free(&end->notif[i]->pub);
	end->n_notifs = 0;
	free(end->data);
	end->data = NULL;
}

void sim_end_expose(struct sim_end *end, uint64_t generation, uint32_t rights)
{
	struct kvl_mem mem = memory_of(end->data, MEMORY, rights);
	uint32_t mappable = 0;

	assert_ok(kvli_wire_sim.expose(end->wire, SLOT, generation, &mem, &mappable));
	assert_int_equal(mappable, 1);
}

int sim_connect(struct sim_end *from, const struct sim_end *to, struct kvli_conn **out)
{
	return kvli_wire_sim.connect(from->wire, &to->host.self, to->host.self.incarnation, KVL_INCARNATION,
				     0, from, out);
}

void sim_link_open(struct sim_link *link, const char *sim)
{
	memset(link, 0, sizeof(*link));
	sim_end_open(&link->a, "sim-a", sim);
	sim_end_open(&link->b, "sim-b", sim);
	assert_ok(sim_connect(&link->a, &link->b, &link->conn));
	link->remote = (struct kvli_remote){
		.base = (uintptr_t)link->b.data,
		.len = MEMORY,
		.generation = LIFE,
		.slot = SLOT,
		.rights = KVL_REMOTE_ALL,
	};
	assert_ok(kvli_wire_sim.import(link->conn, &link->remote, 1, 0));
}

void sim_link_close(struct sim_link *link)
{
	kvli_wire_sim.forget(link->conn, &link->remote);
	kvli_wire_sim.disconnect(link->conn);
	sim_end_close(&link->a);
	sim_end_close(&link->b);
}

struct kvli_wire_lane *sim_lane(const struct sim_link *link, uint32_t lane)
{
	return kvli_wire_sim.lane(link->conn, lane);
}

struct kvli_segment sim_segment(struct sim_link *link, uint64_t offset, uint64_t len)
{
	return (struct kvli_segment){
		.local = (uintptr_t)link->a.data + offset,
		.remote = link->remote.base + offset,
		.len = len,
		.region = &link->remote,
	};
}

int64_t sim_issue(struct sim_link *link, uint32_t lane, enum kvl_op op, uint64_t offset, uint64_t len,
		  uint64_t cookie)
{
	struct kvli_segment segment[2] = {
		sim_segment(link, offset, len / 3),
		sim_segment(link, offset + len / 3, len - len / 3),
	};
	size_t n = len < 3 ? 1 : 2;
	struct kvli_cursor cursor = { .segment = segment + 2 - n, .n = n };
	const char *path = NULL;
	int provider = 0;
	int64_t taken = kvli_wire_sim.issue(sim_lane(link, lane), op, &cursor, len, cookie, &path, &provider);

	if (taken < 0) {
		assert_int_equal(cursor.at, 0);
		assert_int_equal(cursor.offset, 0);
		return taken;
	}
	assert_int_equal(taken, len);
	assert_int_equal(cursor.at, n);
	assert_string_equal(path, "sim");
	return taken;
}

void sim_fill(struct sim_link *link)
{
	bytes_fill(link->a.data, MEMORY, 1, 0, 0);
	for (size_t i = 0; i < MEMORY; i++)
		link->a.data[i] |= link->a.data[i] == 0;
}

int64_t sim_issue_block(struct sim_link *link, uint32_t lane, uint32_t block)
{
	return sim_issue(link, lane, KVL_WRITE, block * BLOCK, BLOCK, block);
}

size_t sim_arrived(const struct sim_link *link, uint32_t block)
{
	const unsigned char *to = link->b.data + block * BLOCK;
	size_t n = BLOCK;

	while (n && to[n - 1] == 0)
		n--;
	assert_memory_equal(to, link->a.data + block * BLOCK, n);
	return n;
}

int sim_poll(struct sim_link *link, uint32_t lane, struct kvli_completion *out)
{
	return kvli_wire_sim.poll(sim_lane(link, lane), out, 1);
}

struct kvli_completion sim_next(struct sim_link *link, uint32_t lane)
{
	struct kvli_completion done = { 0, 0, 0 };
	uint32_t ticks = 0;

	while (sim_poll(link, lane, &done) == 0)
		assert_true(++ticks < 1000000);
	return done;
}

int sim_notify(struct sim_link *link, uint32_t lane, const void *data, uint64_t len)
{
	uint64_t sent = 0;
	int rc = kvli_wire_sim.notify(sim_lane(link, lane), data, len, &sent);

	assert_int_equal(sent, rc ? 0 : len);
	return rc;
}
