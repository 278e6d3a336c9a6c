/* SPDX-License-Identifier: Apache-2.0 */
/* Registered memory of this agent. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/mem.h"
#include "base/shmap.h"

/* ----------------------------------------------------------------------------------------------- checking */

static int mem_check_range(const struct kvli_agent *agent, const struct kvl_mem *m, size_t i)
{
	uint64_t base = (uintptr_t)m->addr;

	if (m->addr == NULL)
		return kvli_fail(KVL_ERR_INVALID, i, 0, "address is not NULL", "region %zu has address NULL",
				 i);
	if (m->len == 0)
		return kvli_fail(KVL_ERR_INVALID, i, 0, "length >= 1", "region %zu has length 0", i);
	if (base + (m->len - 1) < base)
		return kvli_fail(KVL_ERR_RANGE, i, 0, "no wrap of the address space",
				 "region %zu, %p + %" PRIu64 ", wraps around the address space", i, m->addr,
				 m->len);
	if (m->len > agent->config.max_region_bytes)
		return kvli_fail(KVL_ERR_LIMIT, i, 0, "max_region_bytes",
				 "region %zu is %" PRIu64 " bytes, option max_region_bytes allows %" PRIu64,
				 i, m->len, agent->config.max_region_bytes);
	return 0;
}

static int mem_check_fd(const struct kvl_mem *m, size_t i)
{
	struct stat st;

	if (fstat(m->fd, &st))
		return kvli_fail(KVL_ERR_INVALID, i, errno, "fd is open",
				 "region %zu: descriptor %d is not usable", i, m->fd);
	if (m->fd_offset > UINT64_MAX - m->len || (uint64_t)st.st_size < m->fd_offset + m->len)
		return kvli_fail(KVL_ERR_RANGE, i, 0, "fd_offset + length <= size of the fd",
				 "region %zu ends past the %" PRIu64 " bytes of descriptor %d", i,
				 (uint64_t)st.st_size, m->fd);
	return 0;
}

/* Finds holes: the library must not learn of them by a fault in the middle of a transfer. */
static int mem_check_mapped(const struct kvl_mem *m, size_t i)
{
	unsigned char seen[4096];
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)m->addr & ~(page - 1);
	uintptr_t last = ((uintptr_t)m->addr + (m->len - 1)) & ~(page - 1);

	for (;;) {
		uintptr_t pages = (last - at) / page + 1;

		if (pages > sizeof(seen))
			pages = sizeof(seen);
		if (mincore((void *)at, pages * page, seen))
			return kvli_fail(KVL_ERR_INVALID, i, errno, "memory is mapped",
					 "region %zu, %p + %" PRIu64 ", is not mapped as a whole", i, m->addr,
					 m->len);
		if (last - at < pages * page)
			return 0;
		at += pages * page;
	}
}

static int mem_check(const struct kvli_agent *agent, const struct kvl_mem *m, size_t i)
{
	int rc = mem_check_range(agent, m, i);

	if (rc)
		return rc;
	if (m->rights & ~(uint32_t)(KVL_REMOTE_ALL | KVL_LOCAL_ONLY) ||
	    ((m->rights & KVL_LOCAL_ONLY) && (m->rights & KVL_REMOTE_ALL)))
		return kvli_fail(KVL_ERR_INVALID, i, 0, "rights", "region %zu has rights %#x", i, m->rights);
	if (m->flags & ~KVL_MEM_FD)
		return kvli_fail(KVL_ERR_INVALID, i, 0, "flags", "region %zu has flags %#x", i, m->flags);
	if (m->device != KVL_HOST)
		return kvli_fail(KVL_ERR_UNSUPPORTED, i, 0, "device",
				 "region %zu is on GPU %u: the CUDA part is not in this build", i,
				 m->device - 1);
	rc = m->flags & KVL_MEM_FD ? mem_check_fd(m, i) : 0;
	return rc ? rc : mem_check_mapped(m, i);
}

/* ---------------------------------------------------------------------------------------- adding, removing */

static uint32_t mem_rights(const struct kvl_mem *m)
{
	return m->rights ? m->rights : KVL_REMOTE_ALL;
}

static const char *overlap_rule(const struct kvli_region *r, uint64_t base, uint64_t len)
{
	uint64_t end = base + (len - 1), r_end = r->at.base + (r->at.len - 1);

	if (base >= r->at.base && end <= r_end)
		return "no sub-range of a registered region";
	if (base <= r->at.base && end >= r_end)
		return "no superset of a registered region";
	return "no partial overlap with a registered region";
}

static int mem_repeat(struct kvli_region *r, const struct kvl_mem *m, size_t i, kvl_mr_t *out)
{
	uint64_t base = (uintptr_t)m->addr;

	if (r->at.base != base || r->at.len != m->len)
		return kvli_fail(KVL_ERR_OVERLAP, i, 0, overlap_rule(r, base, m->len),
				 "region %zu, %p + %" PRIu64 ", overlaps the registered %#" PRIx64
				 " + %" PRIu64,
				 i, m->addr, m->len, r->at.base, r->at.len);
	if (r->at.rights != mem_rights(m) || r->at.device != m->device)
		return kvli_fail(KVL_ERR_RIGHTS, i, 0, "same rights as registered",
				 "region %zu, %p + %" PRIu64 ", is registered with rights %#x, not %#x", i,
				 m->addr, m->len, r->at.rights, mem_rights(m));
	if (r->withdrawn)
		return kvli_fail(KVL_ERR_BUSY, i, 0, "withdrawn regions are gone first",
				 "region %zu is being deregistered and a peer is still inside it", i);
	r->counted++;
	*out = r->handle;
	return 0;
}

static void region_free_memory(struct kvli_region *r)
{
	if (r->mem.flags & KVL_MEM_FD)
		close(r->mem.fd);
	if (r->owned)
		munmap(r->mem.addr, (size_t)r->mem.len);
	r->mem.flags = 0;
	r->owned = 0;
}

void kvli_region_forget(struct kvli_agent *agent, struct kvli_region *r)
{
	pthread_mutex_lock(&agent->regions.lock);
	kvli_table_remove(&agent->region_table, r->handle);
	region_free_memory(r);
	kvli_region_set_remove(&agent->regions, r);
	pthread_mutex_unlock(&agent->regions.lock);
}

static int region_new(const struct kvl_mem *m, size_t i, struct kvli_region **out)
{
	struct kvli_region *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return kvli_fail(KVL_ERR_NOMEM, i, 0, "memory", "no memory for region %zu", i);
	r->mem = *m;
	r->mem.fd = m->flags & KVL_MEM_FD ? fcntl(m->fd, F_DUPFD_CLOEXEC, 0) : -1;
	if ((m->flags & KVL_MEM_FD) && r->mem.fd < 0) {
		kvli_fail(KVL_ERR_SYSTEM, i, errno, "dup", "region %zu: can not duplicate descriptor %d", i,
			  m->fd);
		free(r);
		return KVL_ERR_SYSTEM;
	}
	r->at.base = (uintptr_t)m->addr;
	r->at.len = m->len;
	r->at.rights = mem_rights(m);
	r->at.device = m->device;
	r->counted = 1;
	*out = r;
	return 0;
}

/* Under memory_lock. */
static int region_add(struct kvli_agent *agent, struct kvli_region *r, kvl_mr_t *out)
{
	int rc = kvli_table_add(&agent->region_table, r, out);

	if (rc)
		return rc;
	r->handle = *out;
	r->at.slot = kvli_handle_index(*out);
	r->at.generation = kvli_handle_life(*out);
	if (r->at.rights & KVL_REMOTE_ALL)
		rc = agent->ops->expose(agent->wire, r->at.slot, r->at.generation, &r->mem, &r->mappable);
	if (rc)
		goto remove;
	pthread_mutex_lock(&agent->regions.lock);
	rc = kvli_region_set_add(&agent->regions, r);
	pthread_mutex_unlock(&agent->regions.lock);
	if (rc == 0)
		return 0;
	agent->ops->revoke(agent->wire, r->at.slot, 0); /* no peer knows of it */
remove:
	kvli_table_remove(&agent->region_table, *out);
	return rc;
}

/* Under memory_lock. */
static int mem_register_one(struct kvli_agent *agent, const struct kvl_mem *m, size_t i, int owned,
			    kvl_mr_t *out)
{
	struct kvli_region *r;
	int rc = mem_check(agent, m, i);

	if (rc)
		return rc;
	pthread_mutex_lock(&agent->regions.lock);
	r = kvli_region_set_touch(&agent->regions, (uintptr_t)m->addr, m->len);
	pthread_mutex_unlock(&agent->regions.lock);
	if (r) /* stays: regions come and go under memory_lock */
		return mem_repeat(r, m, i, out);
	rc = region_new(m, i, &r);
	if (rc)
		return rc;
	r->owned = owned;
	rc = region_add(agent, r, out);
	if (rc == 0)
		return 0;
	r->owned = 0; /* stays the caller's */
	region_free_memory(r);
	free(r);
	return kvli_fail_at(rc, i);
}

struct kvli_region *kvli_region_get(struct kvli_agent *agent, kvl_mr_t mr, size_t i)
{
	return kvli_table_get(&agent->region_table, mr, i, NULL);
}

/* Under memory_lock. Undoes a registration of the same call: no peer, and no request, can know it. */
static void mem_undo(struct kvli_agent *agent, kvl_mr_t mr)
{
	struct kvli_region *r = kvli_region_get(agent, mr, KVL_NO_ENTRY);

	if (--r->counted)
		return;
	kvli_region_force_close(r);
	agent->ops->revoke(agent->wire, r->at.slot, 0);
	kvli_region_forget(agent, r);
}

int kvl_mem_register(kvl_agent_t handle, const struct kvl_mem *mem, size_t n, kvl_mr_t *out)
{
	struct kvli_agent *agent = kvli_agent_enter(handle);
	struct kvl_error_detail detail;
	kvl_mr_t *done;
	int rc = 0;

	if (agent == NULL)
		return kvli_agent_refused(handle);
	if (n && (mem == NULL || out == NULL))
		return kvli_agent_return(
			agent, kvli_fail(KVL_ERR_INVALID, KVL_NO_ENTRY, 0, "mem, out", "mem or out is NULL"));
	done = calloc(n ? n : 1, sizeof(*done)); /* out is written only on success */
	if (done == NULL)
		return kvli_agent_return(agent,
					 kvli_fail(KVL_ERR_NOMEM, KVL_NO_ENTRY, 0, "memory", "no memory"));
	pthread_mutex_lock(&agent->memory_lock);
	for (size_t i = 0; i < n && rc == 0; i++) {
		rc = mem_register_one(agent, &mem[i], i, 0, &done[i]);
		if (rc == 0)
			continue;
		kvl_error_detail(&detail);
		while (i-- > 0)
			mem_undo(agent, done[i]);
		kvli_error_put(&detail);
		break;
	}
	pthread_mutex_unlock(&agent->memory_lock);
	if (rc == 0 && n)
		memcpy(out, done, n * sizeof(*done));
	free(done);
	return kvli_agent_return(agent, rc);
}

/* ------------------------------------------------------------------------------------------------ the rest */

static void *alloc_map(uint64_t len, int *fd)
{
	void *addr = NULL;

	*fd = memfd_create("kvlane", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0)
		return NULL;
	if (ftruncate(*fd, (off_t)len) == 0)
		addr = kvli_shmap(*fd, 0, (size_t)len, PROT_READ | PROT_WRITE);
	if (addr == NULL)
		close(*fd);
	return addr;
}

int kvl_mem_alloc(kvl_agent_t handle, uint64_t len, uint32_t rights, void **addr, kvl_mr_t *out)
{
	struct kvli_agent *agent = kvli_agent_enter(handle);
	struct kvl_mem mem = { .len = len, .rights = rights, .flags = KVL_MEM_FD };
	int rc;

	if (agent == NULL)
		return kvli_agent_refused(handle);
	if (addr == NULL || out == NULL || len == 0 || len > INT64_MAX)
		return kvli_agent_return(agent, kvli_fail(KVL_ERR_INVALID, KVL_NO_ENTRY, 0, "length >= 1",
							  "can not allocate %" PRIu64 " bytes", len));
	mem.addr = alloc_map(len, &mem.fd);
	if (mem.addr == NULL)
		return kvli_agent_return(
			agent, kvli_fail(KVL_ERR_NOMEM, KVL_NO_ENTRY, errno, "memory",
					 "can not allocate %" PRIu64 " bytes of shared memory", len));
	pthread_mutex_lock(&agent->memory_lock);
	rc = mem_register_one(agent, &mem, 0, 1, out);
	pthread_mutex_unlock(&agent->memory_lock);
	close(mem.fd); /* the region has its own */
	if (rc) {
		munmap(mem.addr, (size_t)len);
		return kvli_agent_return(agent, rc);
	}
	*addr = mem.addr;
	return kvli_agent_return(agent, 0);
}

static void region_pin(void *region)
{
	kvli_region_pin(region);
}

int kvli_agent_region_may_touch(void *arg, uint32_t slot, uint64_t generation, uint64_t addr, uint64_t len,
				uint32_t right)
{
	struct kvli_agent *agent = arg;
	uint64_t handle = kvli_handle_make(KVLI_REGION, agent->index, generation, slot);
	struct kvli_region *r = kvli_table_peek(&agent->region_table, handle, region_pin);
	int may;

	if (r == NULL)
		return 0;
	may = !kvli_region_closed(r) && (r->at.rights & right) && kvli_region_holds(r, addr, len);
	kvli_region_unpin(r);
	return may;
}
