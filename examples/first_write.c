/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The smallest whole transfer: two agents of one process, and one WRITE from the memory of the one into the
 * memory of the other. Between two processes only the way of the metadata differs: see prefill_decode.c.
 */
#include "example.h"

#define BYTES 4096

int main(void)
{
	kvl_agent_t alice, bob;
	kvl_mr_t mr;
	kvl_peer_t peer;
	kvl_xfer_t xfer;
	void *source, *target;
	char metadata[4096];
	size_t len = sizeof(metadata);

	/* An agent is one end of a transfer; peers reach what it registers, within its rights. */
	must(kvl_agent_open("alice", NULL, &alice));
	must(kvl_agent_open("bob", NULL, &bob));
	must(kvl_mem_alloc(alice, BYTES, KVL_LOCAL_ONLY, &source, &mr));
	must(kvl_mem_alloc(bob, BYTES, KVL_REMOTE_WRITE, &target, &mr));

	/* These bytes are all that alice needs of bob. */
	must(kvl_agent_metadata(bob, metadata, &len));
	must(kvl_peer_connect(alice, metadata, len, 0, &peer));

	/* From here to the end of the request, source belongs to the library ... */
	struct kvl_desc local = { .addr = (uintptr_t)source, .len = BYTES };
	struct kvl_desc remote = { .addr = (uintptr_t)target, .len = BYTES };

	memset(source, 'k', BYTES);
	must(kvl_write(alice, peer, &local, &remote, 1, NULL, &xfer));

	/* ... and its end means that the bytes are in bob's memory, where bob sees them. */
	must(kvl_xfer_wait(alice, xfer, KVL_FOREVER));
	bytes_check(target, 'k', BYTES);
	must(kvl_xfer_release(alice, xfer));

	must(kvl_agent_close(alice, KVL_FOREVER));
	must(kvl_agent_close(bob, KVL_FOREVER));
	printf("%d bytes written and compared\n", BYTES);
	return 0;
}
