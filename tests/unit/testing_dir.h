/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the rendezvous directory share: a directory of their own, and what may lie in it. */
#ifndef KVLANE_TESTING_DIR_H
#define KVLANE_TESTING_DIR_H

#include "testing.h"

#include "rendezvous/dir.h"

#define ENTRY_LINE "kvlane-entry 1\n" /* how the file of an entry starts */

/* Rules of a lookup that finds nothing. */
#define ABSENT "an entry of that name exists"
#define STALE  "the publisher lives"

/* Around each test: an empty directory; afterwards nothing may be left, in it or among the descriptors. */
extern char dir_folder[256];
int dir_setup(void **state);
int dir_teardown(void **state);
#define IN_FOLDER(name) cmocka_unit_test_setup_teardown(name, dir_setup, dir_teardown)

/* Valid until the next call. */
const char *dir_path(const char *file);
size_t dir_files(void);
int dir_has(const char *file);
/* A file as a dead publisher would leave it, or any other. */
void dir_plant(const char *file, const char *text);

/* These must succeed. */
void dir_publish(const char *name, const char *text, struct kvli_dir_entry **entry);
void dir_found(const char *name, const char *text);
/* A lookup that does not wait finds nothing, for that reason. */
void dir_not_found(const char *name, const char *rule);

/* A child that publishes and stays; returns once the entry is there. */
pid_t dir_publisher(const char *name, const char *text);
void dir_kill(pid_t pid);

#endif
