/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVLI_RANDOM_H
#define KVLI_RANDOM_H

#include <stddef.h>

/*
 * Fills buf with bytes of the kernel's generator: good for identities that must never repeat. Blocks only in
 * the first moments of a boot. KVL_ERR_SYSTEM when the kernel refuses; buf is undefined then.
 */
int kvli_random_bytes(void *buf, size_t len);

#endif
