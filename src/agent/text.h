/* SPDX-License-Identifier: Apache-2.0 */
/* Strings that may lie beside the caller's own in a struct kvl_config. Any thread; short locks, no blocking.
 */
#ifndef KVLI_TEXT_H
#define KVLI_TEXT_H

/* A copy that kvli_text_drop() knows; NULL with KVL_ERR_NOMEM recorded. */
const char *kvli_text_copy(const char *text);

/* Frees the text if it came from kvli_text_copy(); NULL and a caller's own strings are left alone. */
void kvli_text_drop(const char *text);

#endif
