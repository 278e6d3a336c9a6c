/* SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* F_OFD_SETLK */
#endif
#include "rendezvous/entry.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "control/metadata.h"

int kvli_entry_fail(const char *dir, const char *what, int system)
{
	int code = KVL_ERR_SYSTEM;

	if (system == ENOENT || system == ENOTDIR)
		code = KVL_ERR_NOT_FOUND;
	if (system == EACCES || system == EPERM || system == EROFS)
		code = KVL_ERR_PERMISSION;
	return kvli_fail(code, KVL_NO_ENTRY, system, "the directory can be used", "directory \"%.150s\": %s",
			 dir, what);
}

int kvli_entry_check(const char *dir, const char *name, int rest)
{
	if (!dir || !rest)
		return kvli_fail(KVL_ERR_INVALID, KVL_NO_ENTRY, 0, "no argument is NULL", "%s is NULL",
				 dir ? "an argument" : "the directory");
	if (!kvli_name_valid(name))
		return kvli_fail(KVL_ERR_INVALID, KVL_NO_ENTRY, 0, "a name is 1 to 63 of [A-Za-z0-9._-]",
				 "\"%.80s\" is not an agent name", name ? name : "");
	return 0;
}

int kvli_entry_dir(const char *dir, int *out)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return kvli_entry_fail(dir, "cannot be opened", errno);
	*out = fd;
	return 0;
}

int kvli_entry_lock(int fd, off_t byte)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1 };

	return fcntl(fd, F_OFD_SETLK, &lock);
}

int kvli_entry_held(int fd, off_t byte)
{
	struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1 };

	if (fcntl(fd, F_OFD_GETLK, &lock) != 0)
		return -1;
	return lock.l_type != F_UNLCK;
}

int kvli_entry_named(int dir, const char *file, dev_t dev, ino_t ino)
{
	struct stat st;

	return fstatat(dir, file, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev == dev && st.st_ino == ino;
}

static int name_ends(const char *file, const char *suffix)
{
	size_t n = strlen(file), s = strlen(suffix);

	return n > s && strcmp(file + n - s, suffix) == 0;
}

static int name_temporary(const char *file)
{
	return file[0] == '.' && name_ends(file, KVLI_ENTRY_TEMPORARY);
}

int kvli_entry_line(int fd)
{
	char line[KVLI_ENTRY_LINE_LEN];

	return pread(fd, line, sizeof(line), 0) == (ssize_t)sizeof(line) &&
	       memcmp(line, KVLI_ENTRY_LINE, sizeof(line)) == 0;
}

/* The file is open and may be a leftover: removes it if it is stale. */
static enum kvli_leftover leftover_judge(int dir, const char *file, int fd)
{
	struct stat st;
	int held;

	if (fstat(fd, &st) != 0)
		return KVLI_LEFTOVER_ERROR;
	/* A writer that died early leaves a temporary file without its line. */
	if (!S_ISREG(st.st_mode) || (!name_temporary(file) && !kvli_entry_line(fd)))
		return KVLI_LEFTOVER_FOREIGN;
	held = kvli_entry_held(fd, KVLI_ENTRY_LIVE);
	if (held)
		return held < 0 ? KVLI_LEFTOVER_ERROR : KVLI_LEFTOVER_LIVE;
	if (kvli_entry_lock(fd, KVLI_ENTRY_REMOVING) != 0)
		return errno == EAGAIN || errno == EACCES ? KVLI_LEFTOVER_BUSY : KVLI_LEFTOVER_ERROR;
	/* Only now: the holder before us may have removed it, and a live entry may have its name. */
	if (kvli_entry_named(dir, file, st.st_dev, st.st_ino) && unlinkat(dir, file, 0) != 0 &&
	    errno != ENOENT)
		return KVLI_LEFTOVER_ERROR;
	return KVLI_LEFTOVER_GONE;
}

enum kvli_leftover kvli_entry_remove(int dir, const char *file)
{
	/* Whatever lies there, a FIFO or a link, must neither block nor lead elsewhere. */
	int fd = openat(dir, file, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	enum kvli_leftover result;
	int saved;

	if (fd < 0 && (errno == ELOOP || errno == EISDIR || errno == ENXIO))
		return KVLI_LEFTOVER_FOREIGN;
	if (fd < 0)
		return errno == ENOENT ? KVLI_LEFTOVER_GONE : KVLI_LEFTOVER_ERROR;
	result = leftover_judge(dir, file, fd);
	saved = errno;
	close(fd);
	errno = saved;
	return result;
}

void kvli_entry_clean(int dir)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *item;
	DIR *list;

	if (fd < 0)
		return;
	list = fdopendir(fd);
	if (!list) {
		close(fd);
		return;
	}
	while ((item = readdir(list)))
		if (name_ends(item->d_name, KVLI_ENTRY_SUFFIX) || name_temporary(item->d_name))
			kvli_entry_remove(dir, item->d_name);
	closedir(list);
}
