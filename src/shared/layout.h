/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVLI_LAYOUT_H
#define KVLI_LAYOUT_H

/*
 * Words with different writers lie on different lines: 128 bytes, because x86 prefetches lines in pairs and a
 * GPU's line is 128.
 */
#define KVLI_LINE 128

#ifdef __cplusplus
#define KVLI_ASSERT_LAYOUT(condition, consequence) static_assert(condition, consequence)
#else
#define KVLI_ASSERT_LAYOUT(condition, consequence) _Static_assert(condition, consequence)
#endif

#endif
