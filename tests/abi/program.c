/* SPDX-License-Identifier: Apache-2.0 */
/* What the install test builds with the installed files alone: a loopback WRITE, and the version it got. */
#include <kvlane/kvlane.h>

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define BYTES  4096
#define SECOND 1000000000ull

static int failed(const char *what, int code)
{
	struct kvl_error_detail detail;

	kvl_error_detail(&detail);
	fprintf(stderr, "%s: %s: %s\n", what, kvl_error_name(code), detail.message);
	return 1;
}

int main(void)
{
	char metadata[4096];
	size_t len = sizeof(metadata);
	kvl_agent_t agent;
	kvl_mr_t mr;
	kvl_peer_t self;
	kvl_xfer_t xfer;
	void *memory;
	int code;

	if ((code = kvl_agent_open("installed", NULL, &agent)))
		return failed("kvl_agent_open", code);
	if ((code = kvl_mem_alloc(agent, 2 * BYTES, KVL_REMOTE_WRITE, &memory, &mr)))
		return failed("kvl_mem_alloc", code);
	if ((code = kvl_agent_metadata(agent, metadata, &len)))
		return failed("kvl_agent_metadata", code);
	if ((code = kvl_peer_connect(agent, metadata, len, 0, &self)))
		return failed("kvl_peer_connect", code);

	struct kvl_desc from = { .addr = (uintptr_t)memory, .len = BYTES };
	struct kvl_desc to = { .addr = (uintptr_t)memory + BYTES, .len = BYTES };

	memset(memory, 'k', BYTES);
	if ((code = kvl_write(agent, self, &from, &to, 1, NULL, &xfer)))
		return failed("kvl_write", code);
	if ((code = kvl_xfer_wait(agent, xfer, 10 * SECOND)))
		return failed("kvl_xfer_wait", code);
	if (memcmp(memory, (char *)memory + BYTES, BYTES) != 0)
		return fprintf(stderr, "the bytes differ\n"), 1;
	if ((code = kvl_xfer_release(agent, xfer)))
		return failed("kvl_xfer_release", code);
	if ((code = kvl_agent_close(agent, SECOND)))
		return failed("kvl_agent_close", code);
	printf("kvlane %d.%d.%d\n", KVL_VERSION_MAJOR, KVL_VERSION_MINOR, KVL_VERSION_PATCH);
	return 0;
}
