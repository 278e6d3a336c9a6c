/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sim wires of this process, so that agents find each other by incarnation, and the upcalls between them.
 *
 * An upcall runs without the lock, as it may call back. It is counted while it runs, on the wire or
 * connection whose host it enters, and that wire or connection does not go before the count is 0.
 */
#include "wire/sim/sim.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* The one process-wide state of this wire: it stands for the network. Empty when no agent is open. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t quiet; /* an upcall has ended */
	struct kvli_wire *wires;
} registry = { .lock = PTHREAD_MUTEX_INITIALIZER, .quiet = PTHREAD_COND_INITIALIZER };

static void registry_lock(void)
{
	pthread_mutex_lock(&registry.lock);
}

static void registry_unlock(void)
{
	pthread_mutex_unlock(&registry.lock);
}

static void upcall_end(uint32_t *upcalls)
{
	--*upcalls;
	pthread_cond_broadcast(&registry.quiet);
}

static void upcalls_wait(const uint32_t *upcalls)
{
	while (*upcalls)
		pthread_cond_wait(&registry.quiet, &registry.lock);
}

static struct kvli_wire *wire_find(const void *incarnation)
{
	struct kvli_wire *wire = registry.wires;

	while (wire && memcmp(wire->host.self.incarnation, incarnation, KVL_INCARNATION) != 0)
		wire = wire->next;
	return wire;
}

int kvli_sim_enter(struct kvli_wire *wire)
{
	int rc = 0;

	registry_lock();
	if (wire_find(wire->host.self.incarnation)) {
		rc = KVL_ERR_EXISTS;
	} else {
		wire->refs = 1;
		wire->next = registry.wires;
		registry.wires = wire;
	}
	registry_unlock();
	if (rc)
		return kvli_fail(rc, KVL_NO_ENTRY, 0, "one agent per incarnation",
				 "an agent with the incarnation of \"%s\" is open in this process",
				 wire->host.self.name);
	return 0;
}

/*
 * Makes the owed upcall of one inbound connection, or returns 0 when none is owed. The lock is dropped
 * meanwhile, so the caller starts at the front again.
 */
static int inbound_upcall(struct kvli_wire *wire)
{
	struct kvli_conn *conn = wire->inbound;
	const struct kvli_wire_host *host;
	int lost;

	while (conn && !conn->due_kick && !conn->due_lost)
		conn = conn->next;
	if (conn == NULL)
		return 0;
	lost = conn->due_lost;
	conn->due_kick = conn->due_lost = 0;
	conn->upcalls++;
	host = &conn->owner->host;
	registry_unlock();
	if (lost)
		host->lost(conn->peer);
	else
		host->kick(conn->peer);
	registry_lock();
	upcall_end(&conn->upcalls);
	return 1;
}

static void wire_unlink(struct kvli_wire *wire)
{
	struct kvli_wire **at = &registry.wires;

	while (*at != wire)
		at = &(*at)->next;
	*at = wire->next;
}

void kvli_sim_leave(struct kvli_wire *wire)
{
	registry_lock();
	wire_unlink(wire);
	kvli_sim_serve(wire);
	wire->closed = 1;
	pthread_mutex_unlock(&wire->serve);
	for (struct kvli_conn *conn = wire->inbound; conn; conn = conn->next)
		conn->due_lost = 1;
	while (inbound_upcall(wire))
		;
	upcalls_wait(&wire->upcalls);
	registry_unlock();
}

void kvli_sim_put(struct kvli_wire *wire)
{
	int last;

	registry_lock();
	last = --wire->refs == 0;
	registry_unlock();
	if (!last)
		return;
	kvli_sim_queue_fini(&wire->queue);
	pthread_mutex_destroy(&wire->serve);
	pthread_mutex_destroy(&wire->turn);
	free(wire->region);
	free(wire);
}

static int target_check(const struct kvli_wire *target, const struct kvli_identity *peer)
{
	const struct kvli_identity *self;

	if (target == NULL)
		return kvli_fail(KVL_ERR_STALE, KVL_NO_ENTRY, 0, "the agent is open in this process",
				 "agent \"%s\" with this incarnation is not open in this process",
				 peer->name);
	self = &target->host.self;
	if (strcmp(self->name, peer->name) || memcmp(self->incarnation, peer->incarnation, KVL_INCARNATION))
		return kvli_fail(KVL_ERR_IDENTITY, KVL_NO_ENTRY, 0, "the agent asked for answers",
				 "agent \"%s\" answers where \"%s\" of another life was expected", self->name,
				 peer->name);
	return 0;
}

int kvli_sim_attach(struct kvli_conn *conn, const struct kvli_identity *peer, const void *incarnation)
{
	struct kvli_wire *target;
	int rc;

	registry_lock();
	target = wire_find(incarnation);
	rc = target_check(target, peer);
	if (rc == 0) {
		target->refs++;
		conn->target = target;
		conn->next = target->inbound;
		target->inbound = conn;
	}
	registry_unlock();
	return rc;
}

void kvli_sim_detach(struct kvli_conn *conn)
{
	struct kvli_conn **at;

	registry_lock();
	conn->due_kick = conn->due_lost = conn->blocked = 0;
	upcalls_wait(&conn->upcalls);
	for (at = &conn->target->inbound; *at != conn; at = &(*at)->next)
		;
	*at = conn->next;
	registry_unlock();
	kvli_sim_put(conn->target);
}

/* Opens the gate into the target's host; *resumes is what a refusal is compared with. */
static int deliver_begin(struct kvli_wire *target, uint64_t *resumes)
{
	int rc;

	registry_lock();
	rc = target->closed ? KVL_ERR_PEER_LOST : 0;
	if (rc == 0)
		target->upcalls++;
	*resumes = target->resumes;
	registry_unlock();
	return rc;
}

int kvli_sim_deliver(struct kvli_conn *conn, struct kvli_notif *notif)
{
	struct kvli_wire *target = conn->target;
	uint64_t resumes;
	int missed = 0, rc = deliver_begin(target, &resumes);

	if (rc)
		return rc;
	rc = target->host.deliver(target->host.agent, notif);
	registry_lock();
	if (rc == KVL_ERR_AGAIN) {
		/* Room that came between the refusal and here would wake nobody. */
		missed = target->resumes != resumes;
		conn->blocked |= !missed;
	}
	upcall_end(&target->upcalls);
	registry_unlock();
	if (missed)
		conn->owner->host.kick(conn->peer);
	return rc;
}

void kvli_sim_resume(struct kvli_wire *wire)
{
	registry_lock();
	wire->resumes++;
	for (struct kvli_conn *conn = wire->inbound; conn; conn = conn->next) {
		conn->due_kick |= conn->blocked;
		conn->blocked = 0;
	}
	while (inbound_upcall(wire))
		;
	registry_unlock();
}
