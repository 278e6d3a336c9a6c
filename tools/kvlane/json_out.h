/* SPDX-License-Identifier: Apache-2.0 */
/* The file of --json FILE. Both calls print their own error ("kvlane: FILE: ..."). */
#ifndef KVLANE_TOOL_JSON_OUT_H
#define KVLANE_TOOL_JSON_OUT_H

#include <jansson.h>

/* Before the work starts: 0 when path can be written ("-": standard output), -1 otherwise. Creates nothing.
 */
int json_out_check(const char *path);

/*
 * Writes root, keys in the order they were set. A file appears whole or not at all: it is written under
 * another name and renamed. 0 or -1; takes no reference.
 */
int json_out_write(const char *path, const json_t *root);

#endif
