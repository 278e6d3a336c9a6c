/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>

#include "base/error.h"

int kvli_random_bytes(void *buf, size_t len)
{
	uint8_t *at = buf;

	while (len > 0) {
		ssize_t got = getrandom(at, len, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return kvli_fail(KVL_ERR_SYSTEM, KVL_NO_ENTRY, errno, "random bytes are needed",
					 "getrandom of %zu bytes", len);
		at += got;
		len -= (size_t)got;
	}
	return 0;
}
