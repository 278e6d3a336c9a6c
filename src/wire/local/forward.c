/* SPDX-License-Identifier: Apache-2.0 */
/* The forward ring, initiator's side, as notifications and the slot path use it; and notifications. */
#include <string.h>

#include "wire/local/local.h"

void kvli_forward_ring(struct kvli_wire_lane *lane)
{
	struct segment_head *head = lane->conn->segment;

	if (word32_exchange_seq_sys(&head->forward_bell, 1) == 0) /* E8 */
		kvli_bell_ring(lane->conn->bell);
}

/* Room for a payload of at least `want` bytes, or the promise of a kick when there is. */
int64_t kvli_forward_room(struct kvli_wire_lane *lane, uint32_t want)
{
	int64_t room = ring_room(&lane->forward);

	if (room >= (int64_t)want || room < 0)
		return room;
	word32_exchange_seq_sys(&lane->words->want_room, 1); /* E9 */
	room = ring_room(&lane->forward);
	if (room >= (int64_t)want)
		word32_exchange_seq_sys(&lane->words->want_room, 0); /* E9 */
	return room >= (int64_t)want || room < 0 ? room : KVL_ERR_AGAIN;
}

int kvli_lane_broken(struct kvli_wire_lane *lane)
{
	kvli_conn_break(lane->conn);
	return KVL_ERR_WIRE;
}

int kvli_local_notify(struct kvli_wire_lane *lane, const void *data, uint64_t len, uint64_t *sent)
{
	int first = *sent == 0, pushed = 0, rc = 0;

	while (rc == 0 && (first || *sent < len)) {
		int64_t room = kvli_forward_room(lane, (uint32_t)kvli_least(len - *sent, FRAME_LEAST) | 1);
		struct ring_frame f = { 0, FRAME_NOTIF, 0, len };
		uint32_t at;
		void *to;

		if (room < 0) {
			rc = room == RING_CORRUPT ? kvli_lane_broken(lane) : KVL_ERR_AGAIN;
			break;
		}
		f.len = (uint32_t)kvli_least(kvli_least(len - *sent, (uint64_t)room),
					     ring_max_payload(lane->forward.size));
		f.flags = (uint16_t)((first ? FRAME_FIRST : 0) | (*sent + f.len == len ? FRAME_LAST : 0));
		rc = ring_reserve(&lane->forward, f.len, &at, &to);
		if (rc) {
			rc = rc == RING_CORRUPT ? kvli_lane_broken(lane) : KVL_ERR_AGAIN;
			break;
		}
		if (f.len)
			memcpy(to, (const uint8_t *)data + *sent, f.len);
		ring_commit(&lane->forward, at, f);
		*sent += f.len;
		first = 0;
		pushed = 1;
	}
	if (pushed)
		kvli_forward_ring(lane);
	return rc;
}
