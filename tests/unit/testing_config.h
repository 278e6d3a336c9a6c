/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of options share: a value for each option, and what must come of it. */
#ifndef KVLANE_TESTING_CONFIG_H
#define KVLANE_TESTING_CONFIG_H

#include "testing.h"

struct option_row {
	const char *name, *text; /* what is set */
	size_t offset, width;    /* of the member; width 0: a string */
	uint64_t number, number_def;
	const char *string, *string_def; /* what comes out, and the documented default */
};

/* In the order of kvl_option_info(). */
extern const struct option_row option_rows[];
extern const size_t option_rows_count;

/* The config resolves; its first n options are as in option_rows, the others have their defaults. */
void options_resolve_to(const struct kvl_config *config, size_t n);

/* A test after which no copy of an option's text may be left. */
#define OPTIONS_TEST(name) cmocka_unit_test_teardown(name, options_teardown)
int options_teardown(void **state);

#endif
