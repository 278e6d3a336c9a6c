/* SPDX-License-Identifier: Apache-2.0 */
/* Strings that may lie beside the caller's own in a struct kvl_config. Any thread; short locks only. */
#ifndef KVLI_TEXT_H
#define KVLI_TEXT_H

#include <stddef.h>

/* A copy that kvli_text_drop() knows; NULL with KVL_ERR_NOMEM recorded. */
const char *kvli_text_copy(const char *text);

/* Frees the text if it came from kvli_text_copy(); NULL and a caller's own strings are left alone. */
void kvli_text_drop(const char *text);

/* Copies not dropped yet. For tests: the list that holds the copies hides a leak from leak checkers. */
size_t kvli_text_alive(void);

#endif
