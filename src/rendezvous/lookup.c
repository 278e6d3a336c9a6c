/* SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* ppoll */
#endif
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "rendezvous/dir.h"
#include "rendezvous/entry.h"

#define LOOK_AGAIN_NS (500 * KVLI_NS_PER_MS) /* with inotify: for changes made on other hosts */
#define LOOK_POLL_NS  (20 * KVLI_NS_PER_MS)  /* without */
#define LOOK_REPLACED 1
#define ATTEMPTS      100

struct lookup {
	const char *dir, *name;
	char file[KVLI_ENTRY_FILE_MAX];
	int notify; /* inotify descriptor, -1 without */
	int stale;  /* what the last look found instead of a live entry */
	void *bytes;
	size_t len;
};

static int lookup_corrupt(const struct lookup *l, const char *rule)
{
	return kvli_fail(KVL_ERR_CORRUPT, KVL_NO_ENTRY, 0, rule, "\"%s\" in \"%.130s\" is not an entry: %s",
			 l->file, l->dir, rule);
}

static int lookup_absent(const struct lookup *l, uint64_t timeout_ns)
{
	uint64_t ms = timeout_ns / KVLI_NS_PER_MS;

	if (l->stale)
		return kvli_fail(KVL_ERR_NOT_FOUND, KVL_NO_ENTRY, 0, "the publisher lives",
				 "the entry of \"%s\" in \"%.80s\" is stale: its publisher is gone, and no "
				 "other came within %" PRIu64 " ms",
				 l->name, l->dir, ms);
	return kvli_fail(KVL_ERR_NOT_FOUND, KVL_NO_ENTRY, 0, "an entry of that name exists",
			 "no entry of \"%s\" in \"%.130s\" within %" PRIu64 " ms", l->name, l->dir, ms);
}

/* The bytes after the line: a file that has its name is complete and never written again. */
static int lookup_read(struct lookup *l, int fd, size_t len)
{
	char *bytes = malloc(len);
	size_t got = 0;

	if (!bytes)
		return kvli_fail(KVL_ERR_NOMEM, KVL_NO_ENTRY, 0, "memory for an entry",
				 "no memory for the %zu bytes of \"%s\"", len, l->file);
	while (got < len) {
		ssize_t n = pread(fd, bytes + got, len - got, (off_t)(KVLI_ENTRY_LINE_LEN + got));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		got += (size_t)n;
	}
	if (got < len) {
		free(bytes);
		return lookup_corrupt(l, "the file can be read to its end");
	}
	l->bytes = bytes;
	l->len = len;
	return 0;
}

/* KVL_ERR_AGAIN, not recorded: the entry is stale. LOOK_REPLACED: another file has its name by now. */
static int lookup_judge(struct lookup *l, int dir, int fd)
{
	struct stat st;
	int held;

	if (fstat(fd, &st) != 0)
		return kvli_entry_fail(l->dir, "an entry cannot be examined", errno);
	if (!S_ISREG(st.st_mode) || !kvli_entry_line(fd))
		return lookup_corrupt(l, "it starts with the line that entries have");
	if (st.st_size <= (off_t)KVLI_ENTRY_LINE_LEN ||
	    st.st_size > (off_t)(KVLI_ENTRY_LINE_LEN + KVLI_ENTRY_BYTES_MAX))
		return lookup_corrupt(l, "it holds 1 byte to 64 MiB");
	held = kvli_entry_held(fd, KVLI_ENTRY_LIVE);
	if (held < 0)
		return kvli_entry_fail(l->dir, "the lock of an entry cannot be examined", errno);
	if (held)
		return lookup_read(l, fd, (size_t)st.st_size - KVLI_ENTRY_LINE_LEN);
	/* A refresh gives the name to the new file before it unlocks the old one; so does a withdrawal. */
	if (!kvli_entry_named(dir, l->file, st.st_dev, st.st_ino))
		return LOOK_REPLACED;
	l->stale = 1;
	return KVL_ERR_AGAIN;
}

static int lookup_file(struct lookup *l, int dir)
{
	int fd = openat(dir, l->file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	int rc;

	if (fd < 0 && errno == ENOENT) {
		l->stale = 0;
		return KVL_ERR_AGAIN;
	}
	if (fd < 0 && (errno == ELOOP || errno == ENXIO))
		return lookup_corrupt(l, "it is a regular file");
	if (fd < 0)
		return kvli_entry_fail(l->dir, "an entry cannot be opened", errno);
	rc = lookup_judge(l, dir, fd);
	close(fd);
	return rc;
}

/* KVL_ERR_AGAIN, not recorded: no live entry now. */
static int lookup_try(struct lookup *l)
{
	int dir, rc = kvli_entry_dir(l->dir, &dir);

	if (rc)
		return rc;
	rc = LOOK_REPLACED;
	for (int i = 0; rc == LOOK_REPLACED && i < ATTEMPTS; i++)
		rc = lookup_file(l, dir);
	close(dir);
	return rc == LOOK_REPLACED ? KVL_ERR_AGAIN : rc;
}

/*
 * Waits until something happened in the directory, the deadline comes, or it is time to look again: 1.
 * 0, without waiting, when the deadline has passed: there is a look after every wait.
 */
static int lookup_wait(const struct lookup *l, uint64_t deadline)
{
	struct pollfd poll = { .fd = l->notify, .events = POLLIN };
	uint64_t now = kvli_now(), wait = l->notify < 0 ? LOOK_POLL_NS : LOOK_AGAIN_NS;
	struct timespec t;
	char events[4096];

	if (now >= deadline)
		return 0;
	if (wait > deadline - now)
		wait = deadline - now;
	t.tv_sec = 0;
	t.tv_nsec = (long)wait;
	if (ppoll(&poll, 1, &t, NULL) > 0)
		while (read(l->notify, events, sizeof(events)) > 0)
			;
	return 1;
}

/* Each time, and before the look: the directory may be another one by now, and no change may be missed. */
static void lookup_watch(struct lookup *l)
{
	const uint32_t events = IN_CREATE | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;

	if (l->notify < 0 || inotify_add_watch(l->notify, l->dir, events) >= 0)
		return;
	close(l->notify);
	l->notify = -1;
}

static int lookup_until(struct lookup *l, uint64_t deadline)
{
	int rc;

	l->notify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	do {
		lookup_watch(l);
		rc = lookup_try(l);
	} while (rc == KVL_ERR_AGAIN && lookup_wait(l, deadline));
	if (l->notify >= 0)
		close(l->notify);
	return rc;
}

int kvli_dir_lookup(const char *dir, const char *name, uint64_t timeout_ns, void **buf, size_t *len)
{
	struct lookup l = { .dir = dir, .name = name, .notify = -1 };
	uint64_t deadline = kvli_deadline(timeout_ns);
	int rc = kvli_entry_check(dir, name, buf && len);

	if (rc)
		return rc;
	snprintf(l.file, sizeof(l.file), "%s" KVLI_ENTRY_SUFFIX, name);
	rc = lookup_try(&l);
	if (rc == KVL_ERR_AGAIN && timeout_ns > 0)
		rc = lookup_until(&l, deadline);
	if (rc == KVL_ERR_AGAIN)
		return lookup_absent(&l, timeout_ns);
	if (rc)
		return rc;
	*buf = l.bytes;
	*len = l.len;
	return 0;
}
