/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rendezvous by directory. An entry is a file <name>.kvlane: one line that says what it is, then metadata
 * bytes. Its publisher holds a write lock on its first byte for as long as that process lives, so an entry
 * without that lock is stale, whatever killed its publisher and in whichever PID namespace it ran.
 *
 * The locks are those of open file descriptions (F_OFD_SETLK): unlike flock() they can be asked about without
 * being taken (F_OFD_GETLK), so a lookup never makes an entry look alive to another; unlike process locks
 * (F_SETLK) they survive a close() of the same file elsewhere in the process. Like flock() they are shared
 * with forked children: descriptors are O_CLOEXEC, but a child that never calls exec keeps its dead parent's
 * entry alive, and connecting to it is then what fails.
 *
 * Entries are written under a temporary name, locked, and only then linked to their own name, which fails
 * when it is taken: two publishers of one name cannot both win. A stale file is removed only by the holder of
 * a lock on its second byte who still finds it under that name, so that nobody removes the entry that has
 * just replaced it.
 */
#ifndef KVLI_RENDEZVOUS_DIR_H
#define KVLI_RENDEZVOUS_DIR_H

#include <stddef.h>
#include <stdint.h>

struct kvli_dir_entry; /* one publication, held open; one thread at a time */

/*
 * entry: NULL-initialised or an earlier publication of the same agent in the same dir, which it replaces
 * without a moment of absence. Removes what dead publishers left in dir; creates no directory.
 * KVL_ERR_EXISTS: a live agent has the name. KVL_ERR_NOT_FOUND, _PERMISSION: the directory. On failure
 * nothing has changed. Blocks on the file system, and at most 1 s for a process that was stopped while
 * removing a leftover (then KVL_ERR_BUSY).
 */
int kvli_dir_publish(const char *dir, const char *name, const void *bytes, size_t len,
		     struct kvli_dir_entry **entry);

/* Removes the entry, unless somebody else has put another in its place, and frees it. NULL is allowed. */
void kvli_dir_withdraw(struct kvli_dir_entry *entry);

/*
 * As kvl_lookup; *buf by malloc, set only on success. Waits with inotify, and looks again now and then for
 * file systems that report nothing. KVL_ERR_NOT_FOUND says whether the entry was absent or stale, or names
 * the missing directory (at once: it is not waited for). Any thread.
 */
int kvli_dir_lookup(const char *dir, const char *name, uint64_t timeout_ns, void **buf, size_t *len);

#endif
