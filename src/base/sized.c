/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sized.h"

#include <stdint.h>
#include <string.h>

#include "base/error.h"

static int size_refuse(const char *what, size_t size)
{
	return kvli_fail(KVL_ERR_INVALID, KVL_NO_ENTRY, 0, "size = sizeof", "%s has size = %zu", what, size);
}

int kvli_sized_copy(void *out, const void *from, size_t size)
{
	size_t theirs;

	if (out == NULL)
		return kvli_fail(KVL_ERR_INVALID, KVL_NO_ENTRY, 0, "out", "out is NULL");
	memcpy(&theirs, out, sizeof(theirs));
	if (theirs <= sizeof(theirs))
		return size_refuse("the result struct", theirs);
	if (theirs > size) {
		memset((uint8_t *)out + size, 0, theirs - size);
		theirs = size;
	}
	memcpy((uint8_t *)out + sizeof(theirs), (const uint8_t *)from + sizeof(theirs),
	       theirs - sizeof(theirs));
	return 0;
}

int kvli_sized_read(void *out, size_t size, const void *in, const char *what)
{
	size_t theirs;

	memset(out, 0, size);
	if (in == NULL)
		return 0;
	memcpy(&theirs, in, sizeof(theirs));
	if (theirs <= sizeof(theirs) || theirs > 65536)
		return size_refuse(what, theirs);
	for (size_t i = size; i < theirs; i++)
		if (((const uint8_t *)in)[i])
			return kvli_fail(KVL_ERR_INVALID, KVL_NO_ENTRY, 0, "unknown members are zero",
					 "%s sets a member that this version does not know", what);
	memcpy(out, in, theirs < size ? theirs : size);
	return 0;
}
