/* SPDX-License-Identifier: Apache-2.0 */
#include "testing_raw.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire/local/address.h"

static const struct word32 never; /* nothing here is ever being closed */

static void *shared_make(size_t len, int *fd)
{
	void *at;

	*fd = memfd_create("kvlane-raw", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	must(*fd >= 0 && ftruncate(*fd, (off_t)len) == 0);
	must(fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0);
	at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	must(at != MAP_FAILED);
	return at;
}

/* ------------------------------------------------------------------------------------------ an initiator */

int raw_knock(const void *metadata, size_t len)
{
	struct kvli_md md;
	int sock = -1;

	must_ok(kvli_md_decode(metadata, len, &md));
	must_ok(kvli_address_connect(md.address, kvl_now() + PATIENCE, &never, &sock));
	kvli_md_fini(&md);
	return sock;
}

static void hello_send(struct raw_initiator *raw, const struct kvli_md *md, int segment, int bell)
{
	const int fd[2] = { segment, bell };
	struct message m;

	kvli_message_init(&m, MESSAGE_HELLO, 0);
	memcpy(m.expected.name, md->name, sizeof(m.expected.name));
	memcpy(m.expected.incarnation, md->incarnation, sizeof(m.expected.incarnation));
	memcpy(m.self.name, "raw", sizeof("raw"));
	m.lanes = raw->lanes;
	m.ring_bytes = raw->ring_bytes;
	must_ok(kvli_message_send(raw->sock, &m, fd, 2));
}

static void welcome_take(struct raw_initiator *raw)
{
	int fd[MESSAGE_FDS] = { -1, -1 };
	struct message m;

	raw->status = kvli_message_wait(raw->sock, &m, fd, kvl_now() + PATIENCE, &never);
	must(raw->status == 0 || raw->status == KVL_ERR_PEER_LOST);
	if (raw->status)
		return;
	kvli_message_close_fds(fd);
	must(m.type == MESSAGE_WELCOME);
	raw->status = m.status;
}

void raw_initiator_open(struct raw_initiator *raw, const void *metadata, size_t len, uint32_t lanes,
			uint32_t ring_bytes, int bell_type)
{
	int segment, pair[2];
	struct kvli_md md;

	*raw = (struct raw_initiator){ .lanes = lanes, .ring_bytes = ring_bytes };
	must_ok(kvli_md_decode(metadata, len, &md));
	raw->sock = raw_knock(metadata, len);
	raw->segment_len = segment_bytes(lanes, ring_bytes);
	raw->segment = shared_make(raw->segment_len, &segment);
	must(socketpair(AF_UNIX, bell_type | SOCK_CLOEXEC, 0, pair) == 0);
	raw->bell = pair[0];
	hello_send(raw, &md, segment, pair[1]);
	close(segment);
	close(pair[1]);
	welcome_take(raw);
	kvli_md_fini(&md);
}

void raw_initiator_open_to(struct raw_initiator *raw, kvl_agent_t to, uint32_t lanes, uint32_t ring_bytes)
{
	size_t len;
	void *bytes = metadata_of(to, &len);

	raw_initiator_open(raw, bytes, len, lanes, ring_bytes, SOCK_SEQPACKET);
	must(raw->status == 0);
	free(bytes);
}

void raw_initiator_close(struct raw_initiator *raw)
{
	close(raw->sock);
	close(raw->bell);
	munmap(raw->segment, raw->segment_len);
}

void raw_initiator_busy(struct raw_initiator *raw, uint32_t lane, uint64_t busy)
{
	word64_exchange_seq_sys(&segment_lane(raw->segment, lane)->busy, busy);
}

static void frames_put(struct raw_initiator *raw, uint32_t lane, struct ring_frame frame, size_t n)
{
	struct ring_producer ring = {
		.words = &segment_lane(raw->segment, lane)->forward,
		.data = segment_ring(raw->segment, raw->lanes, raw->ring_bytes, lane, 0),
		.size = raw->ring_bytes,
	};
	uint32_t at;
	void *to;

	for (size_t i = 0; i < n; i++) {
		must(ring_reserve(&ring, frame.len, &at, &to) == 0);
		ring_commit(&ring, at, frame);
	}
	kvli_bell_ring(raw->bell);
}

void raw_initiator_notify(struct raw_initiator *raw, uint32_t lane, size_t n, uint32_t len)
{
	frames_put(raw, lane, (struct ring_frame){ len, FRAME_NOTIF, FRAME_FIRST | FRAME_LAST, len }, n);
}

void raw_initiator_corrupt(struct raw_initiator *raw, uint32_t lane)
{
	frames_put(raw, lane, (struct ring_frame){ 0, 999, 0, 0 }, 1);
}

/* --------------------------------------------------------------------------------------------- a target */

void raw_target_encode(struct raw_target *raw, uint32_t n_regions)
{
	raw->len = sizeof(raw->bytes);
	raw->md.region = raw->region;
	raw->md.n_regions = n_regions;
	must_ok(kvli_md_encode(&raw->md, raw->bytes, &raw->len));
}

void raw_target_open(struct raw_target *raw, const uint64_t *addr, size_t n, uint64_t len)
{
	*raw = (struct raw_target){ .sock = -1, .bell = -1 };
	must(n <= RAW_REGIONS);
	memcpy(raw->md.name, "raw", sizeof("raw"));
	memcpy(raw->md.wire, "local", sizeof("local"));
	must(getrandom(raw->md.incarnation, KVL_INCARNATION, 0) == KVL_INCARNATION);
	memcpy(raw->md.address, raw->md.incarnation, KVL_INCARNATION);
	raw->md.address_len = KVL_INCARNATION;
	raw->table = shared_make(RAW_EXPORTS * sizeof(*raw->table), &raw->table_fd);
	for (uint32_t i = 0; i < n; i++) {
		raw->region[i] = (struct kvli_md_region){
			.slot = i,
			.rights = KVL_REMOTE_READ | KVL_REMOTE_WRITE,
			.generation = i + 1,
			.base = addr[i],
			.len = len,
		};
		word64_exchange_seq_sys(&raw->table[i], i + 1);
	}
	raw_target_encode(raw, (uint32_t)n);
	must_ok(kvli_address_listen(raw->md.incarnation, 16, &raw->listen));
}

static void hello_take(struct raw_target *raw)
{
	int fd[MESSAGE_FDS] = { -1, -1 };
	struct message m;

	must_ok(kvli_message_wait(raw->sock, &m, fd, kvl_now() + PATIENCE, &never));
	must(m.type == MESSAGE_HELLO && fd[0] >= 0 && fd[1] >= 0);
	raw->segment_len = segment_bytes(m.lanes, m.ring_bytes);
	raw->segment = mmap(NULL, raw->segment_len, PROT_READ | PROT_WRITE, MAP_SHARED, fd[0], 0);
	must(raw->segment != MAP_FAILED);
	close(fd[0]);
	raw->bell = fd[1];
}

void raw_target_accept(struct raw_target *raw)
{
	struct pollfd p = { .fd = raw->listen, .events = POLLIN };

	must(poll(&p, 1, (int)(PATIENCE / MS)) == 1);
	raw->sock = accept4(raw->listen, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	must(raw->sock >= 0);
	hello_take(raw);
}

void raw_target_welcome(struct raw_target *raw)
{
	struct message m;

	kvli_message_init(&m, MESSAGE_WELCOME, 0);
	memcpy(m.self.name, raw->md.name, sizeof(m.self.name));
	memcpy(m.self.incarnation, raw->md.incarnation, sizeof(m.self.incarnation));
	m.exports = RAW_EXPORTS;
	m.notif_max_bytes = MIB;
	must_ok(kvli_message_send(raw->sock, &m, &raw->table_fd, 1));
}

void raw_target_hang_up(struct raw_target *raw)
{
	close(raw->sock);
	close(raw->bell);
	munmap(raw->segment, raw->segment_len);
	raw->sock = raw->bell = -1;
}

void raw_target_close(struct raw_target *raw)
{
	if (raw->sock >= 0)
		raw_target_hang_up(raw);
	close(raw->listen);
	close(raw->table_fd);
	munmap(raw->table, RAW_EXPORTS * sizeof(*raw->table));
}

static void *connect_main(void *arg)
{
	raw_target_accept(arg);
	raw_target_welcome(arg);
	return NULL;
}

kvl_peer_t raw_target_connect(struct raw_target *raw, kvl_agent_t from)
{
	kvl_peer_t peer = 0;
	pthread_t thread;

	must(pthread_create(&thread, NULL, connect_main, raw) == 0);
	must_ok(kvl_peer_connect(from, raw->bytes, raw->len, PATIENCE, &peer));
	must(pthread_join(thread, NULL) == 0);
	return peer;
}
