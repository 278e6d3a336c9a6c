/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/local/local.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "wire/local/map.h"

static int local_available(char *reason, size_t len)
{
	snprintf(reason, len, "processes of this host");
	return 1;
}

/* ------------------------------------------------------------------------------------------- open and close */

static int paths_parse(const char *text, uint32_t *out)
{
	static const struct {
		const char *name;
		uint32_t bit;
	} known[] = { { kvli_path_map, PATH_MAP },
		      { kvli_path_copy, PATH_COPY },
		      { kvli_path_slot, PATH_SLOT } };

	*out = 0;
	while (*text) {
		size_t n = strcspn(text, ","), i = 0;

		while (i < 3 && (strlen(known[i].name) != n || strncmp(known[i].name, text, n)))
			i++;
		if (i == 3)
			return kvli_fail(KVL_ERR_OPTION, KVL_NO_ENTRY, 0, "local_paths",
					 "local_paths: '%.*s' is not one of map, copy, slot", (int)n, text);
		*out |= known[i].bit;
		text += n + (text[n] == ',');
	}
	return *out ? 0
		    : kvli_fail(KVL_ERR_OPTION, KVL_NO_ENTRY, 0, "local_paths", "local_paths names no path");
}

/* Sealed so that peers can map it but never write it, whatever they do with the descriptor. */
static int table_make(struct kvli_wire *wire)
{
	size_t len = wire->max_regions * sizeof(struct word64);

	wire->table_fd = memfd_create("kvlane-exports", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (wire->table_fd < 0 || ftruncate(wire->table_fd, (off_t)len))
		goto fail;
	wire->table = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, wire->table_fd, 0);
	if (wire->table == MAP_FAILED)
		goto fail;
	if (fcntl(wire->table_fd, F_ADD_SEALS,
		  F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) == 0)
		return 0;
	munmap(wire->table, len);
fail:
	wire->table = NULL;
	return kvli_fail(KVL_ERR_SYSTEM, KVL_NO_ENTRY, errno, "shared memory",
			 "can not make the export table");
}

static void wire_free(struct kvli_wire *wire)
{
	if (wire->table)
		munmap(wire->table, wire->max_regions * sizeof(struct word64));
	if (wire->table_fd >= 0)
		close(wire->table_fd);
	if (wire->resume_fd >= 0)
		close(wire->resume_fd);
	for (uint32_t i = 0; wire->export && i < wire->max_regions; i++)
		if (wire->export[i].generation && wire->export[i].fd >= 0)
			close(wire->export[i].fd);
	free(wire->export);
	pthread_mutex_destroy(&wire->serve_lock);
	free(wire);
}

static int local_open(const struct kvli_wire_host *host, const struct kvl_config *config,
		      struct kvli_wire **out)
{
	struct kvli_wire *wire = calloc(1, sizeof(*wire));
	int rc;

	if (wire == NULL)
		return kvli_fail(KVL_ERR_NOMEM, KVL_NO_ENTRY, 0, "memory", "no memory for the local wire");
	pthread_mutex_init(&wire->serve_lock, NULL);
	wire->host = host;
	wire->lanes = config->lanes;
	wire->ring_bytes = config->ring_bytes;
	wire->window = config->window;
	wire->max_regions = config->max_regions;
	wire->notif_max_bytes = config->notif_max_bytes;
	wire->table_fd = -1;
	wire->resume_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	wire->export = calloc(wire->max_regions, sizeof(*wire->export));
	rc = paths_parse(config->local_paths, &wire->paths);
	if (rc == 0 && (wire->resume_fd < 0 || wire->export == NULL))
		rc = kvli_fail(KVL_ERR_SYSTEM, KVL_NO_ENTRY, errno, "resources",
			       "can not open the local wire");
	if (rc == 0)
		rc = table_make(wire);
	if (rc == 0)
		rc = kvli_serve_open(wire);
	if (rc)
		wire_free(wire);
	else
		*out = wire;
	return rc;
}

static void local_close(struct kvli_wire *wire)
{
	kvli_serve_close(wire);
	wire_free(wire);
}

static void local_info(struct kvli_wire *wire, struct kvli_wire_info *out)
{
	(void)wire;
	*out = (struct kvli_wire_info){ .needs_poll = 0, .max_chunk = UINT64_C(1) << 30 };
}

static int local_address(struct kvli_wire *wire, void *buf, uint32_t *len)
{
	if (*len < KVL_INCARNATION)
		return KVL_ERR_LIMIT;
	memcpy(buf, wire->host->self.incarnation, KVL_INCARNATION);
	*len = KVL_INCARNATION;
	return 0;
}

static void local_resume(struct kvli_wire *wire)
{
	uint64_t one = 1;
	ssize_t n = write(wire->resume_fd, &one, sizeof(one));

	(void)n; /* a full counter is readable too */
}

/* ----------------------------------------------------------------------------------------------- owner side */

/*
 * What peers get to map the region: without the write right a descriptor that can only be read. -1: peers
 * can not map it.
 */
static int export_fd(const struct kvl_mem *mem)
{
	char path[32];

	if (!(mem->flags & KVL_MEM_FD) || kvli_map_seal(mem->fd))
		return -1;
	if (mem->rights == 0 || (mem->rights & KVL_REMOTE_WRITE))
		return fcntl(mem->fd, F_DUPFD_CLOEXEC, 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", mem->fd);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static int local_expose(struct kvli_wire *wire, uint32_t slot, uint64_t generation, const struct kvl_mem *mem,
			uint32_t *mappable)
{
	struct export e = { generation, export_fd(mem), mem->fd_offset, mem->len };

	if (slot >= wire->max_regions)
		return kvli_fail(KVL_ERR_LIMIT, KVL_NO_ENTRY, 0, "max_regions", "region slot %u", slot);
	*mappable = e.fd >= 0;
	pthread_mutex_lock(&wire->serve_lock);
	wire->export[slot] = e;
	pthread_mutex_unlock(&wire->serve_lock);
	word64_exchange_seq_sys(&wire->table[slot], generation); /* E7 */
	return 0;
}

/* The lock makes the slot path's copies, which run under it, part of the fence. */
static int local_revoke(struct kvli_wire *wire, uint32_t slot, uint64_t timeout_ns)
{
	struct export *e = &wire->export[slot];

	word64_exchange_seq_sys(&wire->table[slot], 0); /* E7 */
	pthread_mutex_lock(&wire->serve_lock);
	if (e->generation && e->fd >= 0)
		close(e->fd);
	e->generation = 0;
	pthread_mutex_unlock(&wire->serve_lock);
	return kvli_serve_fence(wire, timeout_ns);
}

/* ------------------------------------------------------------------------------------------- initiator's side */

static void local_path(struct kvli_conn *conn, struct kvli_path_info *out)
{
	*out = conn->path;
}

static struct kvli_wire_lane *local_lane(struct kvli_conn *conn, uint32_t lane)
{
	return &conn->lane[lane];
}

static int local_poll(struct kvli_wire_lane *lane, struct kvli_completion *out, int max)
{
	int n = 0;

	if (lane->op_first != lane->op_next)
		kvli_slot_poll(lane);
	for (; n < max && lane->n_done; n++, lane->n_done--)
		out[n] = lane->done[lane->done_first++ & lane->op_mask];
	return n;
}

static void local_reopen(struct kvli_wire_lane *lane)
{
	(void)lane; /* a failed copy leaves nothing to mend */
}

const struct kvli_wire_ops kvli_wire_local = {
	.name = "local",
	.available = local_available,
	.open = local_open,
	.close = local_close,
	.info = local_info,
	.address = local_address,
	.expose = local_expose,
	.revoke = local_revoke,
	.connect = kvli_conn_open,
	.abandon = kvli_conn_break,
	.disconnect = kvli_conn_close,
	.path = local_path,
	.import = kvli_conn_import,
	.forget = kvli_conn_forget,
	.lane = local_lane,
	.issue = kvli_local_issue,
	.poll = local_poll,
	.notify = kvli_local_notify,
	.fence = kvli_slot_fence,
	.reopen = local_reopen,
	.resume = local_resume,
};
