/* SPDX-License-Identifier: Apache-2.0 */
/* Metadata and peers: identity, incarnation, updates in both directions, and bytes that nobody should trust.
 */
#include "testing.h"

#include <stdlib.h>
#include <string.h>

#define LEN (64 * KIB)

static struct kvl_peer_info info_of(kvl_agent_t agent, kvl_peer_t peer)
{
	struct kvl_peer_info info = { .size = sizeof(info) };

	assert_ok(kvl_peer_info(agent, peer, &info));
	return info;
}

TEST(peers_info)
{
	static const uint8_t zero[KVL_INCARNATION];
	struct kvl_peer_info info, other;
	struct buffer remote[BUFFER_KINDS];
	struct duo duo;

	duo_open(&duo, NULL);
	for (int kind = 0; kind < BUFFER_KINDS; kind++)
		buffer_open(&remote[kind], duo.b, (enum buffer_kind)kind, LEN, 0);
	duo_connect(&duo);
	info = info_of(duo.a, duo.ab);
	other = info_of(duo.b, duo.ba);
	assert_string_equal(info.name, "duo-b");
	assert_string_equal(other.name, "duo-a");
	assert_memory_not_equal(info.incarnation, zero, KVL_INCARNATION);
	assert_memory_not_equal(info.incarnation, other.incarnation, KVL_INCARNATION);
	assert_string_equal(info.wire, "local");
	assert_string_equal(info.path, "map");
	assert_string_equal(info.path_reason, "");
	assert_int_equal(info.connected, 1);
	assert_int_equal(info.lanes, 4);
	assert_int_equal(info.latency_lanes, 1);
	assert_int_equal(info.regions, 3);
	assert_int_equal(info.mapped_regions, 2);
	buffer_close(&remote[BUFFER_FD]);
	buffer_close(&remote[BUFFER_PLAIN]);
	duo_close(&duo);
}

TEST(peers_metadata_length)
{
	kvl_agent_t agent;
	unsigned char *bytes;
	size_t len, room;

	assert_ok(kvl_agent_open("alone", NULL, &agent));
	bytes = metadata_of(agent, &len);
	room = len - 1;
	memset(bytes, 7, len);
	assert_refused(kvl_agent_metadata(agent, bytes, &room), KVL_ERR_LIMIT);
	assert_int_equal(room, len);
	assert_int_equal(bytes_not(bytes, len, 7), 0);
	assert_ok(kvl_agent_metadata(agent, bytes, &room));
	assert_refused(kvl_agent_metadata(agent, bytes, NULL), KVL_ERR_INVALID);
	free(bytes);
	assert_ok(kvl_agent_close(agent, SECOND));
}

TEST(peers_connected_twice)
{
	kvl_peer_t again = 0, self;
	struct duo duo;
	size_t len;
	void *bytes;

	duo_open(&duo, NULL);
	duo_connect(&duo);
	bytes = metadata_of(duo.b, &len);
	assert_refused(kvl_peer_connect(duo.a, bytes, len, 0, &again), KVL_ERR_EXISTS);
	assert_int_equal(again, 0);
	free(bytes);
	self = connect_to(duo.a, duo.a);
	bytes = metadata_of(duo.a, &len);
	assert_refused(kvl_peer_connect(duo.a, bytes, len, 0, &again), KVL_ERR_EXISTS);
	free(bytes);
	assert_string_equal(info_of(duo.a, self).name, "duo-a");
	assert_ok(kvl_peer_close(duo.a, self));
	self = connect_to(duo.a, duo.a);
	duo_close(&duo);
}

/* An agent of the same name is another life; the bytes of the earlier one are stale. */
TEST(peers_of_an_earlier_life)
{
	kvl_agent_t agent, first, second;
	kvl_peer_t peer = 0;
	void *old, *old_again;
	size_t len;
	int code;

	assert_ok(kvl_agent_open("alone", NULL, &agent));
	assert_ok(kvl_agent_open("same", NULL, &first));
	old = metadata_of(first, &len);
	assert_ok(kvl_agent_close(first, SECOND));
	assert_refused(kvl_peer_connect(agent, old, len, 0, &peer), KVL_ERR_STALE);
	assert_ok(kvl_agent_open("same", NULL, &second));
	code = kvl_peer_connect(agent, old, len, 0, &peer);
	assert_true(code == KVL_ERR_STALE || code == KVL_ERR_IDENTITY);
	assert_int_equal(peer, 0);
	peer = connect_to(agent, second);
	old_again = metadata_of(second, &len);
	assert_refused(kvl_peer_update(agent, peer, old, len), KVL_ERR_STALE);
	assert_ok(kvl_peer_update(agent, peer, old_again, len));
	free(old);
	free(old_again);
	assert_ok(kvl_agent_close(second, SECOND));
	assert_ok(kvl_agent_close(agent, SECOND));
}

TEST(peers_truncated_metadata)
{
	kvl_peer_t peer = 0;
	struct duo duo;
	size_t len;
	unsigned char *bytes;

	duo_open(&duo, NULL);
	bytes = metadata_of(duo.b, &len);
	for (size_t n = 0; n < len; n++) {
		unsigned char *copy =
			malloc(n ? n : 1); /* its own block: a checker sees a byte read too far */

		assert_non_null(copy);
		memcpy(copy, bytes, n);
		assert_refused(kvl_peer_connect(duo.a, copy, n, 0, &peer), KVL_ERR_CORRUPT);
		free(copy);
	}
	assert_refused(kvl_peer_connect(duo.a, NULL, 0, 0, &peer), KVL_ERR_INVALID);
	assert_int_equal(peer, 0);
	duo_connect(&duo);
	free(bytes);
	duo_close(&duo);
}

/* Any byte may be wrong. Whatever comes of it, it is never a connection to someone else. */
TEST(peers_damaged_metadata)
{
	struct buffer buffer;
	struct duo duo;
	size_t len, connected = 0;
	unsigned char *bytes, *copy;

	duo_open(&duo, NULL);
	buffer_open(&buffer, duo.b, BUFFER_ALLOC, LEN, 0);
	bytes = metadata_of(duo.b, &len);
	copy = malloc(len);
	assert_non_null(copy);
	for (size_t i = 0; i < len; i += testing_rounds(2) == 1 ? 7 : 1) {
		kvl_peer_t peer = 0;

		memcpy(copy, bytes, len);
		copy[i] ^= (unsigned char)(1u << (i % 8));
		if (kvl_peer_connect(duo.a, copy, len, 100 * MS, &peer)) {
			assert_int_equal(peer, 0);
			continue;
		}
		connected++;
		assert_ok(kvl_peer_close(duo.a, peer));
	}
	print_message("%zu of %zu damaged metadata still led to their agent\n", connected, len);
	duo_connect(&duo);
	free(bytes);
	free(copy);
	duo_close(&duo);
}

TEST(peers_update_adds_and_retracts)
{
	struct kvl_desc from, to;
	struct buffer local, first, second;
	struct duo duo;
	kvl_list_t list = 0;

	duo_open(&duo, NULL);
	buffer_open(&local, duo.a, BUFFER_ALLOC, LEN, 0);
	duo_connect(&duo);
	assert_int_equal(info_of(duo.a, duo.ab).regions, 0);
	buffer_open(&first, duo.b, BUFFER_ALLOC, LEN, 0);
	from = desc_of(local.data, LEN);
	to = desc_of(first.data, LEN);
	/* Not known before the update. */
	assert_refused_at(kvl_list_create(duo.a, duo.ab, &to, 1, &list), KVL_ERR_RANGE, 0);
	duo_update(&duo);
	assert_int_equal(duo_move(&duo, KVL_WRITE, &local, &from, &first, &to, 1, 1, NULL, NULL), 0);
	buffer_open(&second, duo.b, BUFFER_PLAIN, LEN, 0);
	buffer_close(&first);
	duo_update(&duo);
	assert_int_equal(info_of(duo.a, duo.ab).regions, 1);
	assert_refused_at(kvl_list_create(duo.a, duo.ab, &to, 1, &list), KVL_ERR_RANGE, 0);
	to = desc_of(second.data, LEN);
	assert_int_equal(duo_move(&duo, KVL_READ, &local, &from, &second, &to, 1, 2, NULL, NULL), 0);
	buffer_close(&second);
	duo_close(&duo);
}

/* Regions come and go while requests to another region are in flight all the time. */
TEST(peers_update_in_flight)
{
	struct buffer local, remote, extra;
	struct kvl_desc from, to;
	struct duo duo;
	kvl_xfer_t xfer;

	duo_open(&duo, NULL);
	buffer_open(&local, duo.a, BUFFER_ALLOC, 4 * MIB, 0);
	buffer_open(&remote, duo.b, BUFFER_ALLOC, 4 * MIB, 0);
	duo_connect(&duo);
	from = desc_of(local.data, 4 * MIB);
	to = desc_of(remote.data, 4 * MIB);
	for (uint64_t i = 0; i < testing_rounds(50); i++) {
		bytes_fill(local.data, 4 * MIB, 1, 0, i);
		assert_ok(kvl_write(duo.a, duo.ab, &from, &to, 1, NULL, &xfer));
		buffer_open(&extra, duo.b, (enum buffer_kind)(i % BUFFER_KINDS), LEN, 0);
		duo_update(&duo);
		buffer_close(&extra);
		duo_update(&duo);
		assert_int_equal(duo_wait(&duo, xfer), 0);
		assert_int_equal(bytes_wrong(remote.data, 4 * MIB, 1, 0, i), 0);
		assert_ok(kvl_xfer_release(duo.a, xfer));
	}
	duo_close(&duo);
}

TEST(peers_map)
{
	struct buffer remote[BUFFER_KINDS];
	struct duo duo;
	void *addr = NULL;

	duo_open(&duo, NULL);
	for (int kind = 0; kind < BUFFER_KINDS; kind++)
		buffer_open(&remote[kind], duo.b, (enum buffer_kind)kind, LEN, 0);
	duo_connect(&duo);
	for (int kind = 0; kind < BUFFER_PLAIN; kind++) {
		bytes_fill(remote[kind].data, LEN, 1, 0, 1);
		assert_ok(kvl_peer_map(duo.a, duo.ab, buffer_addr(&remote[kind]) + 3, LEN - 3, &addr));
		assert_ptr_not_equal(addr, remote[kind].data + 3);
		assert_int_equal(bytes_wrong(addr, LEN - 3, 1, 3, 1), 0);
		memset(addr, 8, 1);
		assert_int_equal(remote[kind].data[3], 8);
		assert_refused(kvl_peer_map(duo.a, duo.ab, buffer_addr(&remote[kind]), LEN + 1, &addr),
			       KVL_ERR_RANGE);
		assert_refused(kvl_peer_map(duo.a, duo.ab, buffer_addr(&remote[kind]), UINT64_MAX, &addr),
			       KVL_ERR_RANGE);
	}
	assert_refused(kvl_peer_map(duo.a, duo.ab, buffer_addr(&remote[BUFFER_PLAIN]), LEN, &addr),
		       KVL_ERR_UNSUPPORTED);
	buffer_close(&remote[BUFFER_FD]);
	buffer_close(&remote[BUFFER_PLAIN]);
	duo_close(&duo);
}

/* Each side may close; the other one's requests end, now and later, and it can connect again. */
TEST(peers_closed_agent_is_lost)
{
	struct buffer local, remote;
	struct kvl_desc from, to;
	struct duo duo;
	kvl_xfer_t xfer;
	uint64_t limit = kvl_now() + PATIENCE;
	int code;

	duo_open(&duo, NULL);
	buffer_open(&local, duo.a, BUFFER_ALLOC, LEN, 0);
	buffer_open(&remote, duo.b, BUFFER_PLAIN, LEN, 0);
	duo_connect(&duo);
	from = desc_of(local.data, LEN);
	to = desc_of(remote.data, LEN);
	assert_ok(kvl_agent_close(duo.b, SECOND));
	while (info_of(duo.a, duo.ab).connected)
		assert_true(kvl_now() < limit);
	code = kvl_write(duo.a, duo.ab, &from, &to, 1, NULL, &xfer);
	if (code == 0)
		code = kvl_xfer_wait(duo.a, xfer, PATIENCE);
	assert_int_equal(code, KVL_ERR_PEER_LOST);
	assert_ok(kvl_peer_close(duo.a, duo.ab));
	assert_ok(kvl_agent_open("duo-b", NULL, &duo.b));
	duo.ab = connect_to(duo.a, duo.b);
	assert_int_equal(info_of(duo.a, duo.ab).connected, 1);
	buffer_free(&remote);
	duo_close(&duo);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peers_info),
		cmocka_unit_test(peers_metadata_length),
		cmocka_unit_test(peers_connected_twice),
		cmocka_unit_test(peers_of_an_earlier_life),
		cmocka_unit_test(peers_truncated_metadata),
		cmocka_unit_test(peers_damaged_metadata),
		cmocka_unit_test(peers_update_adds_and_retracts),
		cmocka_unit_test(peers_update_in_flight),
		cmocka_unit_test(peers_map),
		cmocka_unit_test(peers_closed_agent_is_lost),
	};

	return TESTING_RUN(tests, 60);
}
