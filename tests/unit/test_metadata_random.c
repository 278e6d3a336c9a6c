/* SPDX-License-Identifier: Apache-2.0 */
/* Random metadata goes through the codec unharmed; random damage never gets through it unseen. */
#include "testing.h"

#include <stdlib.h>
#include <string.h>

#include "control/metadata.h"

#define ROUND_TRIPS 2000
#define MUTATIONS   20000
#define SEED        UINT64_C(0x6b766c616e65) /* fixed, so that a failure can be repeated */
#define ROOM        8192

static void md_assert_equal(const struct kvli_md *a, const struct kvli_md *b)
{
	assert_string_equal(a->name, b->name);
	assert_memory_equal(a->incarnation, b->incarnation, sizeof(a->incarnation));
	assert_string_equal(a->wire, b->wire);
	assert_int_equal(a->address_len, b->address_len);
	assert_memory_equal(a->address, b->address, sizeof(a->address));
	assert_int_equal(a->n_regions, b->n_regions);
	for (size_t i = 0; i < a->n_regions; i++) {
		const struct kvli_md_region *x = &a->region[i], *y = &b->region[i];

		assert_int_equal(x->slot, y->slot);
		assert_int_equal(x->rights, y->rights);
		assert_true(x->generation == y->generation && x->base == y->base && x->len == y->len);
		assert_int_equal(x->device, y->device);
		assert_int_equal(x->mappable, y->mappable);
	}
}

static void random_text(uint64_t *seed, char *out, size_t most)
{
	static const char chars[] = "abcXYZ019_-";
	size_t n = 1 + random_next(seed) % most;

	for (size_t i = 0; i < n; i++)
		out[i] = chars[random_next(seed) % (sizeof(chars) - 1)];
	out[n] = '\0';
}

static void random_region(uint64_t *seed, struct kvli_md_region *region, uint32_t slot)
{
	*region = (struct kvli_md_region){ .slot = slot,
					   .rights = (uint32_t)(random_next(seed) & 3),
					   .generation = random_next(seed) >> random_next(seed) % 64,
					   .base = random_next(seed) >> random_next(seed) % 64,
					   .device = (uint32_t)(random_next(seed) >>
								(32 + random_next(seed) % 32)),
					   .mappable = (uint32_t)(random_next(seed) & 1) };
	region->len = 1 + random_next(seed) % (UINT64_MAX - region->base);
}

/* region: the caller's array of most entries. */
static struct kvli_md random_md(uint64_t *seed, struct kvli_md_region *region, size_t most)
{
	struct kvli_md md = { .region = region };
	uint32_t slot = (uint32_t)(random_next(seed) % 1000);

	random_text(seed, md.name, KVL_NAME_MAX - 1);
	random_text(seed, md.wire, sizeof(md.wire) - 1);
	md.address_len = (uint32_t)(random_next(seed) % (KVLI_MD_ADDRESS_MAX + 1));
	for (size_t i = 0; i < md.address_len; i++)
		md.address[i] = (uint8_t)random_next(seed);
	for (size_t i = 0; i < sizeof(md.incarnation); i++)
		md.incarnation[i] = (uint8_t)random_next(seed);
	md.n_regions = (uint32_t)(random_next(seed) % (most + 1));
	for (size_t i = 0; i < md.n_regions; i++) {
		random_region(seed, &region[i], slot);
		slot += 1 + (uint32_t)(random_next(seed) % 1000);
	}
	return md;
}

TEST(test_round_trip)
{
	struct kvli_md_region region[64];
	uint64_t seed = SEED;

	for (int i = 0; i < ROUND_TRIPS; i++) {
		struct kvli_md md = random_md(&seed, region, 64), out;
		uint8_t bytes[ROOM];
		size_t len = sizeof(bytes);

		assert_ok(kvli_md_encode(&md, bytes, &len));
		assert_ok(kvli_md_decode(bytes, len, &out));
		md_assert_equal(&md, &out);
		kvli_md_fini(&out);
	}
}

/* One of: change, drop, double a byte, cut the end, add to the end. Returns the new length. */
static size_t mutate(uint64_t *seed, uint8_t *bytes, size_t len)
{
	size_t at = random_next(seed) % len;

	switch (random_next(seed) % 5) {
	case 0:
		memmove(bytes + at, bytes + at + 1, len - at - 1);
		return len - 1;
	case 1:
		memmove(bytes + at + 1, bytes + at, len - at);
		return len + 1;
	case 2:
		return at + 1;
	case 3:
		bytes[len] = (uint8_t)random_next(seed);
		return len + 1;
	default:
		bytes[at] = (uint8_t)random_next(seed);
		return len;
	}
}

/* Refused with a reason, or taken and then written again as the same bytes: there is no second form. */
TEST(test_mutations)
{
	struct kvli_md_region region[8];
	uint64_t seed = SEED;
	int taken = 0;

	for (int i = 0; i < MUTATIONS; i++) {
		struct kvli_md md = random_md(&seed, region, 8), out;
		uint8_t bytes[ROOM], again[ROOM], *exact;
		size_t len = sizeof(bytes), len_again = sizeof(again);
		int rc;

		assert_ok(kvli_md_encode(&md, bytes, &len));
		for (uint64_t n = 1 + random_next(&seed) % 3; n > 0 && len > 0; n--)
			len = mutate(&seed, bytes, len);
		exact = malloc(len ? len : 1);
		assert_non_null(exact);
		memcpy(exact, bytes, len);
		rc = kvli_md_decode(exact, len, &out);
		free(exact);
		if (rc) {
			assert_true(rc == KVL_ERR_CORRUPT || rc == KVL_ERR_VERSION);
			continue;
		}
		taken++;
		assert_ok(kvli_md_encode(&out, again, &len_again));
		assert_int_equal(len_again, len);
		assert_memory_equal(again, bytes, len);
		kvli_md_fini(&out);
	}
	/* Both sides of the decision have been seen. */
	assert_in_range(taken, MUTATIONS / 100, MUTATIONS / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_mutations),
	};

	return TESTING_RUN(tests, 60);
}
