/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes one agent gives another to connect. Little-endian, versioned; the decoder trusts no length.
 *
 *	"KVLM"  version:u16  incarnation[16]
 *	name, wire, address: each length:varint, bytes
 *	regions:varint, then for each
 *		slot:varint (the first; later ones as the distance from the one before)
 *		flags:u8 (1 peers may read, 2 peers may write, 4 mappable)
 *		generation, base, length, device: varints
 *
 * A varint is LEB128 in its shortest form: one content has one encoding. With slots in order, 32-bit
 *generations and user addresses a region takes at most 24 bytes; 41 is the bound for arbitrary numbers.
 *Everything else takes 30 bytes and the text of name, wire and address.
 */
#ifndef KVLI_METADATA_H
#define KVLI_METADATA_H

#include <stddef.h>
#include <stdint.h>

#include "kvlane/kvlane.h"

#define KVLI_MD_VERSION     1
#define KVLI_MD_ADDRESS_MAX 128
#define KVLI_MD_SLOTS \
	1048576u /* slots are below it (the most that max_regions allows): receivers index by slot */

struct kvli_md_region {
	uint32_t slot;       /* index in the owner's region table; ascending, each once */
	uint32_t rights;     /* KVL_REMOTE_READ | KVL_REMOTE_WRITE */
	uint64_t generation; /* of the slot: another value is another region */
	uint64_t base, len;  /* base + len does not wrap: the decoder refuses it */
	uint32_t device;
	uint32_t mappable; /* 0 or 1: peers of the same host may ask for its memfd */
};

struct kvli_md {
	char name[KVL_NAME_MAX];
	uint8_t incarnation[KVL_INCARNATION];
	char wire[16];                        /* spelt like a name */
	uint8_t address[KVLI_MD_ADDRESS_MAX]; /* the wire's own bytes */
	uint32_t address_len;
	uint32_t n_regions;
	struct kvli_md_region
		*region; /* owned by the caller when encoding; by kvli_md_fini() after decoding */
};

/* 1 when the name is 1 to 63 of [A-Za-z0-9._-] and not "." or "..". NULL is not a name. */
int kvli_name_valid(const char *name);

/*
 * *len is the room and gets the length; KVL_ERR_LIMIT when short, with the length needed in *len and nothing
 * of use in buf (which may be NULL when *len is 0). KVL_ERR_INVALID: something the decoder would refuse; the
 * entry is the region's index.
 */
int kvli_md_encode(const struct kvli_md *md, void *buf, size_t *len);

/*
 * KVL_ERR_CORRUPT or KVL_ERR_VERSION with a detail that says what is wrong and where (the entry is the
 * region's index); *out only on success. Allocates at most 7 bytes for each byte of input. KVL_ERR_NOMEM.
 */
int kvli_md_decode(const void *buf, size_t len, struct kvli_md *out);
void kvli_md_fini(struct kvli_md *md);

#endif
