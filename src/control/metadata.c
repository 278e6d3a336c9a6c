/* SPDX-License-Identifier: Apache-2.0 */
#include "control/metadata.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"

static const uint8_t md_magic[4] = { 'K', 'V', 'L', 'M' };

#define MD_READ     KVL_REMOTE_READ
#define MD_WRITE    KVL_REMOTE_WRITE
#define MD_MAPPABLE 4u
#define MD_FLAGS    7u

/* One byte for each of slot, flags, generation, base, length and device. */
#define MD_REGION_LEAST 6

#define MD_RULE_SLOT "slots ascend, each once, below 1048576"

/* Spelt out: isalnum() follows the locale, and names are compared by peers that may have another one. */
static int name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
	       c == '_' || c == '-';
}

/* The length of a valid name that ends within room bytes, 0 otherwise. */
static size_t name_length(const char *name, size_t room)
{
	size_t n = 0;

	while (n < room && name_char(name[n]))
		n++;
	if (n == room || name[n] != '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return 0;
	return n;
}

int kvli_name_valid(const char *name)
{
	return name && name_length(name, KVL_NAME_MAX) > 0;
}

/* The rule that a region breaks, or NULL. before: its predecessor or NULL. */
static const char *region_rule(const struct kvli_md_region *region, const struct kvli_md_region *before)
{
	if (region->slot >= KVLI_MD_SLOTS || (before && region->slot <= before->slot))
		return MD_RULE_SLOT;
	if (region->rights & ~(uint32_t)(KVL_REMOTE_READ | KVL_REMOTE_WRITE))
		return "rights are read, write or both";
	if (region->mappable > 1)
		return "mappable is 0 or 1";
	if (region->len == 0)
		return "length >= 1";
	if (region->len > UINT64_MAX - region->base)
		return "base + length does not wrap";
	return NULL;
}

static int md_refuse(const char *rule)
{
	return kvli_fail(KVL_ERR_INVALID, KVL_NO_ENTRY, 0, rule, "metadata cannot be made: %s", rule);
}

static int md_check(const struct kvli_md *md)
{
	if (!kvli_name_valid(md->name))
		return md_refuse("a name is 1 to 63 of [A-Za-z0-9._-]");
	if (!name_length(md->wire, sizeof(md->wire)))
		return md_refuse("a wire is 1 to 15 of [A-Za-z0-9._-]");
	if (md->address_len > KVLI_MD_ADDRESS_MAX)
		return md_refuse("an address has at most 128 bytes");
	for (size_t i = 0; i < md->n_regions; i++) {
		const char *rule = region_rule(&md->region[i], i ? &md->region[i - 1] : NULL);

		if (rule)
			return kvli_fail_at(md_refuse(rule), i);
	}
	return 0;
}

static void put_text(struct kvli_writer *w, const void *bytes, size_t n)
{
	kvli_put_varint(w, n);
	kvli_put_bytes(w, bytes, n);
}

static void put_region(struct kvli_writer *w, const struct kvli_md_region *region, uint32_t slot_before)
{
	kvli_put_varint(w, region->slot - slot_before);
	kvli_put_u8(w, (uint8_t)(region->rights | (region->mappable ? MD_MAPPABLE : 0)));
	kvli_put_varint(w, region->generation);
	kvli_put_varint(w, region->base);
	kvli_put_varint(w, region->len);
	kvli_put_varint(w, region->device);
}

int kvli_md_encode(const struct kvli_md *md, void *buf, size_t *len)
{
	struct kvli_writer w;
	size_t room = *len;
	int rc = md_check(md);

	if (rc)
		return rc;
	kvli_writer_init(&w, buf, room);
	kvli_put_bytes(&w, md_magic, sizeof(md_magic));
	kvli_put_u16(&w, KVLI_MD_VERSION);
	kvli_put_bytes(&w, md->incarnation, sizeof(md->incarnation));
	put_text(&w, md->name, strlen(md->name));
	put_text(&w, md->wire, strlen(md->wire));
	put_text(&w, md->address, md->address_len);
	kvli_put_varint(&w, md->n_regions);
	for (size_t i = 0; i < md->n_regions; i++)
		put_region(&w, &md->region[i], i ? md->region[i - 1].slot : 0);
	*len = w.len;
	if (kvli_writer_short(&w))
		return kvli_fail(KVL_ERR_LIMIT, KVL_NO_ENTRY, 0, "the metadata fits in the room",
				 "metadata takes %zu bytes, the room has %zu", w.len, room);
	return 0;
}

/* Turns a reader's failure into the caller's error. where: what was being read. */
static int md_corrupt(const struct kvli_reader *r, const char *where)
{
	return kvli_fail(KVL_ERR_CORRUPT, KVL_NO_ENTRY, 0, r->broken, "metadata, %s at byte %zu of %zu: %s",
			 where, kvli_reader_offset(r), (size_t)(r->end - r->begin), r->broken);
}

/* At most room bytes; *n gets how many. */
static void get_text(struct kvli_reader *r, void *out, size_t room, size_t *n, const char *rule)
{
	const uint8_t *bytes;

	*n = (size_t)kvli_get_varint_max(r, room, rule);
	bytes = kvli_get_bytes(r, *n);
	if (bytes && *n > 0)
		memcpy(out, bytes, *n);
}

static void get_name(struct kvli_reader *r, char *out, size_t room, const char *rule)
{
	size_t n;

	get_text(r, out, room - 1, &n, rule);
	/* A NUL among the bytes would leave a valid but shorter name. */
	if (!r->broken && (n == 0 || name_length(out, room) != n))
		kvli_reader_fail(r, rule);
}

static int get_head(struct kvli_reader *r, struct kvli_md *md)
{
	const uint8_t *bytes = kvli_get_bytes(r, sizeof(md_magic));
	uint16_t version;
	size_t n;

	if (bytes && memcmp(bytes, md_magic, sizeof(md_magic)) != 0)
		kvli_reader_fail(r, "metadata starts with KVLM");
	version = kvli_get_u16(r);
	if (!r->broken && version != KVLI_MD_VERSION)
		return kvli_fail(KVL_ERR_VERSION, KVL_NO_ENTRY, 0, "both sides speak the same version",
				 "metadata has version %u, this library reads version %u", version,
				 KVLI_MD_VERSION);
	bytes = kvli_get_bytes(r, sizeof(md->incarnation));
	if (bytes)
		memcpy(md->incarnation, bytes, sizeof(md->incarnation));
	if (r->broken)
		return md_corrupt(r, "head");
	get_name(r, md->name, sizeof(md->name), "a name is 1 to 63 of [A-Za-z0-9._-]");
	get_name(r, md->wire, sizeof(md->wire), "a wire is 1 to 15 of [A-Za-z0-9._-]");
	get_text(r, md->address, sizeof(md->address), &n, "an address has at most 128 bytes");
	md->address_len = (uint32_t)n;
	return r->broken ? md_corrupt(r, "name, wire or address") : 0;
}

static void get_region(struct kvli_reader *r, struct kvli_md_region *region,
		       const struct kvli_md_region *before)
{
	uint8_t flags;
	const char *rule;

	region->slot = (uint32_t)kvli_get_varint_max(r, KVLI_MD_SLOTS - 1, MD_RULE_SLOT);
	if (before)
		region->slot += before->slot;
	flags = kvli_get_u8(r);
	if (flags & ~MD_FLAGS)
		kvli_reader_fail(r, "flags are read, write, mappable");
	region->rights = flags & (MD_READ | MD_WRITE);
	region->mappable = (flags & MD_MAPPABLE) != 0;
	region->generation = kvli_get_varint(r);
	region->base = kvli_get_varint(r);
	region->len = kvli_get_varint(r);
	region->device = (uint32_t)kvli_get_varint_max(r, UINT32_MAX, "a device fits in 32 bits");
	rule = region_rule(region, before);
	if (rule)
		kvli_reader_fail(r, rule);
}

static int get_regions(struct kvli_reader *r, struct kvli_md *md)
{
	uint64_t n = kvli_get_varint_max(r, KVLI_MD_SLOTS, "there are at most 1048576 regions");

	/* Before the allocation: a count that the bytes cannot hold must not cost memory. */
	if (n > kvli_reader_left(r) / MD_REGION_LEAST)
		kvli_reader_fail(r, "the regions counted are there");
	if (r->broken)
		return md_corrupt(r, "number of regions");
	if (n == 0)
		return 0;
	md->region = calloc((size_t)n, sizeof(*md->region));
	if (!md->region)
		return kvli_fail(KVL_ERR_NOMEM, KVL_NO_ENTRY, 0, "memory for the regions",
				 "no memory for %zu regions of metadata", (size_t)n);
	md->n_regions = (uint32_t)n;
	for (size_t i = 0; i < n; i++) {
		get_region(r, &md->region[i], i ? &md->region[i - 1] : NULL);
		if (r->broken)
			return kvli_fail_at(md_corrupt(r, "a region"), i);
	}
	return 0;
}

int kvli_md_decode(const void *buf, size_t len, struct kvli_md *out)
{
	struct kvli_md md = { .n_regions = 0 };
	struct kvli_reader r;
	int rc;

	kvli_reader_init(&r, buf, len);
	rc = get_head(&r, &md);
	if (!rc)
		rc = get_regions(&r, &md);
	if (!rc && kvli_reader_left(&r) > 0) {
		kvli_reader_fail(&r, "nothing follows the regions");
		rc = md_corrupt(&r, "end");
	}
	if (rc) {
		kvli_md_fini(&md);
		return rc;
	}
	*out = md;
	return 0;
}

void kvli_md_fini(struct kvli_md *md)
{
	if (!md)
		return;
	free(md->region);
	md->region = NULL;
	md->n_regions = 0;
}
