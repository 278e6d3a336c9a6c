/* SPDX-License-Identifier: Apache-2.0 */
#include "rendezvous/dir.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "rendezvous/entry.h"

#define REMOVE_WAIT_NS (1 * KVLI_NS_PER_S)
#define REMOVE_STEP_NS (1 * KVLI_NS_PER_MS)
#define ATTEMPTS       100

struct kvli_dir_entry {
	int dir, fd;
	dev_t dev; /* dev and ino tell our file from another that took its name */
	ino_t ino;
	char file[KVLI_ENTRY_FILE_MAX];
};

struct publication {
	const char *dir, *name;
	const void *bytes;
	size_t len;
	const struct kvli_dir_entry *before; /* the publication to replace, or NULL */
	struct kvli_dir_entry next;
	char temporary[KVLI_ENTRY_FILE_MAX];
};

static int write_all(int fd, const void *bytes, size_t len)
{
	const char *at = bytes;

	while (len > 0) {
		ssize_t put = write(fd, at, len);

		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return -1;
		at += put;
		len -= (size_t)put;
	}
	return 0;
}

static int temporary_fill(struct publication *p)
{
	struct stat st;

	if (kvli_entry_lock(p->next.fd, KVLI_ENTRY_LIVE) != 0)
		return kvli_entry_fail(p->dir, "an entry cannot be locked", errno);
	if (write_all(p->next.fd, KVLI_ENTRY_LINE, KVLI_ENTRY_LINE_LEN) != 0 ||
	    write_all(p->next.fd, p->bytes, p->len) != 0 || fstat(p->next.fd, &st) != 0)
		return kvli_entry_fail(p->dir, "an entry cannot be written", errno);
	p->next.dev = st.st_dev;
	p->next.ino = st.st_ino;
	return 0;
}

/*
 * The name is taken: 0 when linking is worth another try. The few system calls of another process that is
 * removing the stale holder of the name are waited for.
 */
static int name_free(const struct publication *p, uint64_t deadline)
{
	struct timespec step = { .tv_nsec = REMOVE_STEP_NS };

	switch (kvli_entry_remove(p->next.dir, p->next.file)) {
	case KVLI_LEFTOVER_BUSY:
		nanosleep(&step, NULL);
		break;
	case KVLI_LEFTOVER_GONE:
		break;
	case KVLI_LEFTOVER_LIVE:
		return kvli_fail(KVL_ERR_EXISTS, KVL_NO_ENTRY, 0, "one live agent of a name",
				 "a live agent \"%s\" is published in \"%.150s\"", p->name, p->dir);
	case KVLI_LEFTOVER_FOREIGN:
		return kvli_fail(KVL_ERR_EXISTS, KVL_NO_ENTRY, 0, "entries are files made by kvlane",
				 "\"%.130s\" has \"%s\", which is not an entry", p->dir, p->next.file);
	case KVLI_LEFTOVER_ERROR:
		return kvli_entry_fail(p->dir, "an entry of the same name cannot be examined", errno);
	}
	if (kvli_now() < deadline)
		return 0;
	return kvli_fail(KVL_ERR_BUSY, KVL_NO_ENTRY, 0, "leftovers are removed within 1 s",
			 "directory \"%.130s\": a stopped process is removing the stale entry \"%s\"", p->dir,
			 p->name);
}

/*
 * Gives the temporary file its name. KVL_ERR_AGAIN, not recorded: it was taken for a leftover and removed, in
 * the moment before it was locked.
 */
static int temporary_place(struct publication *p)
{
	const struct kvli_dir_entry *before = p->before;
	uint64_t deadline = kvli_now() + REMOVE_WAIT_NS;
	int dir = p->next.dir, rc;

	if (before && kvli_entry_named(dir, p->next.file, before->dev, before->ino)) {
		/* Our own live entry: nobody else may touch it, so it can be replaced in one step. */
		if (renameat(dir, p->temporary, dir, p->next.file) == 0)
			return 0;
		return errno == ENOENT ? KVL_ERR_AGAIN
				       : kvli_entry_fail(p->dir, "an entry cannot be renamed", errno);
	}
	while (linkat(dir, p->temporary, dir, p->next.file, 0) != 0) {
		if (errno == ENOENT)
			return KVL_ERR_AGAIN;
		if (errno != EEXIST)
			return kvli_entry_fail(p->dir, "an entry cannot be linked", errno);
		rc = name_free(p, deadline);
		if (rc)
			return rc;
	}
	unlinkat(dir, p->temporary, 0);
	return 0;
}

static int publication_try(struct publication *p)
{
	uint64_t id;
	int rc = kvli_random_bytes(&id, sizeof(id));

	if (rc)
		return rc;
	snprintf(p->temporary, sizeof(p->temporary), ".%s.%016" PRIx64 KVLI_ENTRY_TEMPORARY, p->name, id);
	p->next.fd = openat(p->next.dir, p->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (p->next.fd < 0)
		return kvli_entry_fail(p->dir, "an entry cannot be created", errno);
	rc = temporary_fill(p);
	if (!rc)
		rc = temporary_place(p);
	if (!rc)
		return 0;
	unlinkat(p->next.dir, p->temporary, 0);
	close(p->next.fd);
	return rc;
}

static int publication_run(struct publication *p)
{
	int rc = KVL_ERR_AGAIN;

	kvli_entry_clean(p->next.dir);
	for (int i = 0; rc == KVL_ERR_AGAIN && i < ATTEMPTS; i++)
		rc = publication_try(p);
	if (rc == KVL_ERR_AGAIN)
		return kvli_fail(KVL_ERR_BUSY, KVL_NO_ENTRY, 0, "new files are left alone",
				 "directory \"%.150s\": new files keep disappearing", p->dir);
	return rc;
}

/* A refresh must name the agent and the directory of the publication that it replaces. */
static int before_check(const struct publication *p)
{
	struct stat now, then;

	if (!p->before)
		return 0;
	if (fstat(p->next.dir, &now) != 0 || fstat(p->before->dir, &then) != 0)
		return kvli_entry_fail(p->dir, "cannot be examined", errno);
	if (now.st_dev == then.st_dev && now.st_ino == then.st_ino &&
	    strcmp(p->next.file, p->before->file) == 0)
		return 0;
	return kvli_fail(KVL_ERR_INVALID, KVL_NO_ENTRY, 0, "an agent is published in one place",
			 "\"%s\" in \"%.110s\" cannot replace the publication of \"%.71s\"", p->name, p->dir,
			 p->before->file);
}

int kvli_dir_publish(const char *dir, const char *name, const void *bytes, size_t len,
		     struct kvli_dir_entry **entry)
{
	struct publication p = { .dir = dir, .name = name, .bytes = bytes, .len = len };
	struct kvli_dir_entry *made = NULL;
	int rc = kvli_entry_check(dir, name, bytes && entry);

	if (rc)
		return rc;
	if (len == 0 || len > KVLI_ENTRY_BYTES_MAX)
		return kvli_fail(KVL_ERR_LIMIT, KVL_NO_ENTRY, 0, "1 byte to 64 MiB", "an entry of %zu bytes",
				 len);
	p.before = *entry;
	snprintf(p.next.file, sizeof(p.next.file), "%s" KVLI_ENTRY_SUFFIX, name);
	rc = kvli_entry_dir(dir, &p.next.dir);
	if (rc)
		return rc;
	rc = before_check(&p);
	if (rc)
		goto close_dir;
	made = malloc(sizeof(*made));
	if (!made) {
		rc = kvli_fail(KVL_ERR_NOMEM, KVL_NO_ENTRY, 0, "memory for an entry", "no memory to publish");
		goto close_dir;
	}
	rc = publication_run(&p);
	if (rc)
		goto free_made;
	*made = p.next;
	if (*entry) {
		close((*entry)->fd);
		close((*entry)->dir);
		free(*entry);
	}
	*entry = made;
	return 0;

free_made:
	free(made);
close_dir:
	close(p.next.dir);
	return rc;
}

void kvli_dir_withdraw(struct kvli_dir_entry *entry)
{
	if (!entry)
		return;
	/* Before the close, which is what makes it removable by others. */
	if (kvli_entry_named(entry->dir, entry->file, entry->dev, entry->ino))
		unlinkat(entry->dir, entry->file, 0);
	close(entry->fd);
	close(entry->dir);
	free(entry);
}
