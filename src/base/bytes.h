/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounded cursors over little-endian bytes. A reader never passes its end and remembers its first failure, so
 * a decoder reads a group of fields and checks once; a writer counts past its end, so an encoder learns the
 * length it needs from the same code that writes. One thread per cursor; nothing here allocates.
 */
#ifndef KVLI_BYTES_H
#define KVLI_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define KVLI_VARINT_MAX 10 /* bytes of the longest 64-bit varint */

struct kvli_reader {
	const uint8_t *begin, *at, *end; /* begin <= at <= end; at stays where the first failure happened */
	const char *broken;              /* NULL, or the rule that the first failure broke */
};

static inline void kvli_reader_init(struct kvli_reader *r, const void *buf, size_t len)
{
	r->begin = r->at = (const uint8_t *)buf;
	r->end = r->begin ? r->begin + len : r->begin;
	r->broken = NULL;
}

/* Bytes not yet read. */
static inline size_t kvli_reader_left(const struct kvli_reader *r)
{
	return (size_t)(r->end - r->at);
}

/* Offset of the next byte, or of the first failure. */
static inline size_t kvli_reader_offset(const struct kvli_reader *r)
{
	return (size_t)(r->at - r->begin);
}

/* For rules that the decoder itself checks; the first failure is kept. */
static inline void kvli_reader_fail(struct kvli_reader *r, const char *rule)
{
	if (!r->broken)
		r->broken = rule;
}

/* n bytes inside the buffer, or NULL after a failure. n = 0 gives a pointer that must not be read. */
static inline const uint8_t *kvli_get_bytes(struct kvli_reader *r, size_t n)
{
	const uint8_t *at = r->at;

	if (!r->broken && n > kvli_reader_left(r))
		r->broken = "the bytes end early";
	if (r->broken)
		return NULL;
	r->at += n;
	return at;
}

/* n <= 8 bytes, least significant first; 0 after a failure, as in all kvli_get calls below. */
static inline uint64_t kvli_get_le(struct kvli_reader *r, size_t n)
{
	const uint8_t *at = kvli_get_bytes(r, n);
	uint64_t value = 0;

	for (size_t i = 0; at && i < n; i++)
		value |= (uint64_t)at[i] << (8 * i);
	return value;
}

static inline uint8_t kvli_get_u8(struct kvli_reader *r)
{
	return (uint8_t)kvli_get_le(r, 1);
}

static inline uint16_t kvli_get_u16(struct kvli_reader *r)
{
	return (uint16_t)kvli_get_le(r, 2);
}

static inline uint32_t kvli_get_u32(struct kvli_reader *r)
{
	return (uint32_t)kvli_get_le(r, 4);
}

static inline uint64_t kvli_get_u64(struct kvli_reader *r)
{
	return kvli_get_le(r, 8);
}

/*
 * LEB128: seven bits a byte, least significant first, the top bit says that more follow. Only the shortest
 * form is taken, so that equal values have equal bytes; at is left at the first byte of a bad one.
 */
static inline uint64_t kvli_get_varint(struct kvli_reader *r)
{
	const uint8_t *start = r->at;
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64 && !r->broken; shift += 7) {
		uint8_t byte = kvli_get_u8(r);

		if (shift == 63 && byte > 1)
			break;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		if (byte != 0 || shift == 0)
			return r->broken ? 0 : value;
		kvli_reader_fail(r, "a varint has its shortest form");
	}
	kvli_reader_fail(r, "a varint fits in 64 bits");
	r->at = start;
	return 0;
}

/* A varint no larger than max. */
static inline uint64_t kvli_get_varint_max(struct kvli_reader *r, uint64_t max, const char *rule)
{
	const uint8_t *start = r->at;
	uint64_t value = kvli_get_varint(r);

	if (value <= max)
		return value;
	kvli_reader_fail(r, rule);
	r->at = start;
	return 0;
}

struct kvli_writer {
	uint8_t *buf; /* NULL is allowed with room 0 */
	size_t room;
	size_t len; /* of everything put so far, also of what did not fit: short when len > room */
};

static inline void kvli_writer_init(struct kvli_writer *w, void *buf, size_t room)
{
	w->buf = (uint8_t *)buf;
	w->room = buf ? room : 0;
	w->len = 0;
}

static inline int kvli_writer_short(const struct kvli_writer *w)
{
	return w->len > w->room;
}

static inline void kvli_put_bytes(struct kvli_writer *w, const void *bytes, size_t n)
{
	if (n > 0 && w->len <= w->room && n <= w->room - w->len)
		memcpy(w->buf + w->len, bytes, n);
	w->len = n > SIZE_MAX - w->len ? SIZE_MAX : w->len + n;
}

/* The low n <= 8 bytes of value, least significant first. */
static inline void kvli_put_le(struct kvli_writer *w, uint64_t value, size_t n)
{
	uint8_t bytes[8] = { 0 };

	for (size_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)(value >> (8 * i));
	kvli_put_bytes(w, bytes, n);
}

static inline void kvli_put_u8(struct kvli_writer *w, uint8_t value)
{
	kvli_put_le(w, value, 1);
}

static inline void kvli_put_u16(struct kvli_writer *w, uint16_t value)
{
	kvli_put_le(w, value, 2);
}

static inline void kvli_put_u32(struct kvli_writer *w, uint32_t value)
{
	kvli_put_le(w, value, 4);
}

static inline void kvli_put_u64(struct kvli_writer *w, uint64_t value)
{
	kvli_put_le(w, value, 8);
}

static inline void kvli_put_varint(struct kvli_writer *w, uint64_t value)
{
	uint8_t bytes[KVLI_VARINT_MAX];
	size_t n = 0;

	for (; value >= 0x80; value >>= 7)
		bytes[n++] = (uint8_t)(value | 0x80);
	bytes[n++] = (uint8_t)value;
	kvli_put_bytes(w, bytes, n);
}

#endif
