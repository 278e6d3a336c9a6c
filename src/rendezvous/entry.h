/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a rendezvous directory, as publishers and lookups see them. dir.h tells the protocol. */
#ifndef KVLI_RENDEZVOUS_ENTRY_H
#define KVLI_RENDEZVOUS_ENTRY_H

#include <sys/types.h>

#define KVLI_ENTRY_SUFFIX    ".kvlane"
#define KVLI_ENTRY_TEMPORARY ".kvlane-new"
#define KVLI_ENTRY_LINE      "kvlane-entry 1\n" /* a file without it is somebody else's, and never removed */
#define KVLI_ENTRY_LINE_LEN  (sizeof(KVLI_ENTRY_LINE) - 1)
#define KVLI_ENTRY_BYTES_MAX (64u << 20)
#define KVLI_ENTRY_FILE_MAX  128 /* longest file name, with NUL */

#define KVLI_ENTRY_LIVE     0 /* byte locked by the publisher, from before the entry has its name */
#define KVLI_ENTRY_REMOVING 1 /* byte locked by whoever removes a stale file, while it does */

/* What a file in the directory turned out to be. */
enum kvli_leftover {
	KVLI_LEFTOVER_GONE,    /* it was stale and has been removed, or it is not there */
	KVLI_LEFTOVER_LIVE,    /* its publisher lives */
	KVLI_LEFTOVER_BUSY,    /* another process is removing it */
	KVLI_LEFTOVER_FOREIGN, /* not an entry */
	KVLI_LEFTOVER_ERROR,   /* errno says why it could not be examined or removed */
};

/* KVL_ERR_INVALID unless dir and rest (the other pointers) are there and name is an agent's name. */
int kvli_entry_check(const char *dir, const char *name, int rest);

/* Records a failure of the directory: NOT_FOUND, PERMISSION or SYSTEM by errno; what: what went wrong. */
int kvli_entry_fail(const char *dir, const char *what, int system);

/* Opens the directory; the caller closes *out. */
int kvli_entry_dir(const char *dir, int *out);

/* Takes the write lock of one byte if it is free; -1 with errno otherwise. Held until fd is closed. */
int kvli_entry_lock(int fd, off_t byte);

/* 1 when somebody else has that lock, -1 with errno when it cannot be known. Takes nothing. */
int kvli_entry_held(int fd, off_t byte);

/* 1 when the name in the directory still leads to that file. */
int kvli_entry_named(int dir, const char *file, dev_t dev, ino_t ino);

/* 1 when the file starts with KVLI_ENTRY_LINE. */
int kvli_entry_line(int fd);

/* Removes the file if it is stale. Records no error: for most callers this is housekeeping. */
enum kvli_leftover kvli_entry_remove(int dir, const char *file);

/* Removes what the dead left, as far as that goes: nothing found here stands in the way of a publication. */
void kvli_entry_clean(int dir);

#endif
