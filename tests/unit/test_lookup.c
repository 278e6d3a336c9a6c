/* SPDX-License-Identifier: Apache-2.0 */
/* Looking up in a directory: waiting, and what may lie there instead of an entry. */
#include "testing_dir.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 300

/* Looking does not lend life: nor does the end of a look end it. */
TEST(test_lookup_takes_nothing)
{
	struct kvli_dir_entry *entry = NULL;
	int status;
	pid_t pid;

	dir_publish("a", "1", &entry);
	dir_found("a", "1");
	dir_found("a", "1");
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		size_t len;
		void *buf;

		_exit(kvli_dir_lookup(dir_folder, "a", 0, &buf, &len) != 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	dir_found("a", "1");
	kvli_dir_withdraw(entry);
}

struct watcher {
	int stop, looks;
};

static void *watch_stale(void *arg)
{
	struct watcher *w = arg;

	while (!__atomic_load_n(&w->stop, __ATOMIC_ACQUIRE)) {
		size_t len;
		void *buf;

		w->looks++;
		if (kvli_dir_lookup(dir_folder, "a", 0, &buf, &len) == 0)
			free(buf);
	}
	return NULL;
}

TEST(test_lookup_beside_publish)
{
	struct kvli_dir_entry *entry = NULL;
	struct watcher watcher = { 0 };
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, watch_stale, &watcher), 0);
	for (int i = 0; i < ROUNDS; i++) {
		dir_plant("a.kvlane", ENTRY_LINE "dead");
		dir_publish("a", "1", &entry);
		kvli_dir_withdraw(entry);
		entry = NULL;
	}
	__atomic_store_n(&watcher.stop, 1, __ATOMIC_RELEASE);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(watcher.looks > 0);
	assert_int_equal(dir_files(), 0);
}

struct waiter {
	const char *name;
	uint64_t timeout_ns;
	int rc;
	void *buf;
	size_t len;
	struct kvl_error_detail detail;
};

static void *wait_for_entry(void *arg)
{
	struct waiter *w = arg;

	w->rc = kvli_dir_lookup(dir_folder, w->name, w->timeout_ns, &w->buf, &w->len);
	kvl_error_detail(&w->detail);
	return NULL;
}

/* 1 while this process has an inotify descriptor: a lookup that found nothing is on its way to wait. */
static int lookup_waits(void)
{
	DIR *list = opendir("/proc/self/fd");
	struct dirent *item;
	int seen = 0;

	assert_non_null(list);
	while ((item = readdir(list))) {
		char target[64] = "";

		if (readlinkat(dirfd(list), item->d_name, target, sizeof(target) - 1) > 0)
			seen |= strstr(target, "inotify") != NULL;
	}
	closedir(list);
	return seen;
}

static void waiter_start(pthread_t *thread, struct waiter *w)
{
	assert_false(lookup_waits());
	assert_int_equal(pthread_create(thread, NULL, wait_for_entry, w), 0);
	while (!lookup_waits())
		sched_yield();
}

/* ns from the publication to the end of the wait for it. */
static uint64_t wait_once(void)
{
	struct waiter w = { .name = "late", .timeout_ns = PATIENCE };
	struct kvli_dir_entry *entry = NULL, *other = NULL;
	pthread_t thread;
	uint64_t start;

	waiter_start(&thread, &w);
	dir_publish("other", "1", &other);
	start = kvl_now();
	dir_publish("late", "2", &entry);
	assert_int_equal(pthread_join(thread, NULL), 0);
	start = kvl_now() - start;
	assert_int_equal(w.rc, 0);
	assert_int_equal(w.len, 1);
	assert_memory_equal(w.buf, "2", 1);
	free(w.buf);
	kvli_dir_withdraw(entry);
	kvli_dir_withdraw(other);
	return start;
}

TEST(test_wait)
{
	uint64_t fastest = UINT64_MAX;

	for (int i = 0; i < 8; i++) {
		uint64_t took;

		if (i % 2)
			dir_plant("late.kvlane", ENTRY_LINE "dead");
		took = wait_once();
		fastest = took < fastest ? took : fastest;
	}
	/* Woken by the event: looking again by the clock alone would take most of half a second each time. */
	assert_true(fastest < UINT64_C(250000000));
}

TEST(test_wait_in_vain)
{
	const uint64_t timeout = 30 * UINT64_C(1000000);
	uint64_t start = kvl_now();
	void *buf;
	size_t len;

	assert_refused(kvli_dir_lookup(dir_folder, "a", timeout, &buf, &len), KVL_ERR_NOT_FOUND);
	assert_true(kvl_now() - start >= timeout);
	assert_rule(ABSENT);
	assert_message("30 ms");
	dir_plant("a.kvlane", ENTRY_LINE "dead");
	assert_refused(kvli_dir_lookup(dir_folder, "a", timeout, &buf, &len), KVL_ERR_NOT_FOUND);
	assert_rule(STALE);
	assert_message("30 ms");
	assert_int_equal(unlink(dir_path("a.kvlane")), 0);
}

/* The directory goes away under a waiting lookup, which says so at once. */
TEST(test_wait_directory_removed)
{
	struct waiter w = { .name = "a", .timeout_ns = UINT64_MAX };
	pthread_t thread;

	waiter_start(&thread, &w);
	assert_int_equal(rmdir(dir_folder), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(mkdir(dir_folder, 0700), 0);
	assert_int_equal(w.rc, KVL_ERR_NOT_FOUND);
	assert_non_null(strstr(w.detail.message, dir_folder));
	assert_string_equal(w.detail.rule, "the directory can be used");
}

TEST(test_arguments)
{
	static const char *const names[] = { "", ".", "..", "a/b", "../a", "a b", NULL };
	struct kvli_dir_entry *entry = NULL;
	void *buf;
	size_t len;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_refused(kvli_dir_publish(dir_folder, names[i], "1", 1, &entry), KVL_ERR_INVALID);
		assert_message(names[i] ? names[i] : "");
		assert_refused(kvli_dir_lookup(dir_folder, names[i], 0, &buf, &len), KVL_ERR_INVALID);
	}
	assert_refused(kvli_dir_publish(NULL, "a", "1", 1, &entry), KVL_ERR_INVALID);
	assert_refused(kvli_dir_publish(dir_folder, "a", NULL, 1, &entry), KVL_ERR_INVALID);
	assert_refused(kvli_dir_publish(dir_folder, "a", "1", 1, NULL), KVL_ERR_INVALID);
	assert_refused(kvli_dir_publish(dir_folder, "a", "1", 0, &entry), KVL_ERR_LIMIT);
	assert_refused(kvli_dir_lookup(NULL, "a", 0, &buf, &len), KVL_ERR_INVALID);
	assert_refused(kvli_dir_lookup(dir_folder, "a", 0, NULL, &len), KVL_ERR_INVALID);
	assert_refused(kvli_dir_lookup(dir_folder, "a", 0, &buf, NULL), KVL_ERR_INVALID);
	assert_int_equal(dir_files(), 0);
}

static void refused_directory(const char *dir, int code)
{
	struct kvli_dir_entry *entry = NULL;
	uint64_t start = kvl_now();
	void *buf;
	size_t len;

	assert_refused(kvli_dir_publish(dir, "a", "1", 1, &entry), code);
	assert_null(entry);
	assert_message(dir);
	assert_refused(kvli_dir_lookup(dir, "a", PATIENCE, &buf, &len), code);
	assert_message(dir);
	assert_true(kvl_now() - start < PATIENCE);
}

TEST(test_directory)
{
	char dir[300];
	struct stat st;

	snprintf(dir, sizeof(dir), "%s/missing", dir_folder);
	refused_directory(dir, KVL_ERR_NOT_FOUND);
	assert_int_not_equal(stat(dir, &st), 0);
	dir_plant("plain", "x");
	snprintf(dir, sizeof(dir), "%s/plain", dir_folder);
	refused_directory(dir, KVL_ERR_NOT_FOUND);
	assert_int_equal(unlink(dir), 0);
}

/* 1 when the last failure names the directory. */
static int names_folder(void)
{
	struct kvl_error_detail detail;

	kvl_error_detail(&detail);
	return strstr(detail.message, dir_folder) != NULL;
}

/* In a child: no directory is closed to root. Its exit status: 0; 1: still root; 2, 3: that check failed. */
static int closed_directory(void)
{
	struct kvli_dir_entry *entry = NULL;
	void *buf;
	size_t len;

	if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
		return 1;
	if (kvli_dir_publish(dir_folder, "a", "1", 1, &entry) != KVL_ERR_PERMISSION || !names_folder())
		return 2;
	if (kvli_dir_lookup(dir_folder, "a", PATIENCE, &buf, &len) != KVL_ERR_PERMISSION || !names_folder())
		return 3;
	return 0;
}

TEST(test_permission)
{
	static const mode_t modes[] = { 0, 0111 };
	int status;

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		pid_t pid;

		assert_int_equal(chmod(dir_folder, modes[i]), 0);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0)
			_exit(closed_directory());
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(chmod(dir_folder, 0700), 0);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 1)
			testing_skip(
				"root here cannot become another user, and no directory is closed to root");
		assert_int_equal(status, 0);
	}
	assert_int_equal(dir_files(), 0);
}

static void refused_file(const char *rule)
{
	struct kvli_dir_entry *entry = NULL;
	void *buf;
	size_t len;

	assert_refused(kvli_dir_publish(dir_folder, "a", "1", 1, &entry), KVL_ERR_EXISTS);
	assert_message("a.kvlane");
	assert_message(dir_folder);
	assert_refused(kvli_dir_lookup(dir_folder, "a", PATIENCE, &buf, &len), KVL_ERR_CORRUPT);
	assert_message("a.kvlane");
	if (rule)
		assert_rule(rule);
	assert_int_equal(dir_files(), 1);
}

static void refused_link(void)
{
	struct kvli_dir_entry *entry = NULL;
	void *buf;
	size_t len;

	assert_refused(kvli_dir_publish(dir_folder, "a", "1", 1, &entry), KVL_ERR_EXISTS);
	assert_refused(kvli_dir_lookup(dir_folder, "a", 0, &buf, &len), KVL_ERR_CORRUPT);
	assert_true(dir_has("a.kvlane") && dir_has("b"));
}

/* Things of that name that no publisher made are neither used, followed, waited for nor removed. */
TEST(test_foreign)
{
	dir_plant("a.kvlane", "notes of mine, long enough");
	refused_file("it starts with the line that entries have");
	dir_plant("a.kvlane", "");
	refused_file(NULL);
	assert_int_equal(unlink(dir_path("a.kvlane")), 0);
	assert_int_equal(mkdir(dir_path("a.kvlane"), 0700), 0);
	refused_file(NULL);
	assert_int_equal(rmdir(dir_path("a.kvlane")), 0);
	assert_int_equal(mkfifo(dir_path("a.kvlane"), 0600), 0);
	refused_file(NULL);
	assert_int_equal(unlink(dir_path("a.kvlane")), 0);
	assert_int_equal(symlink("b", dir_path("a.kvlane")), 0);
	refused_file("it is a regular file");
	/* Even where it leads to a leftover. */
	dir_plant("b", ENTRY_LINE "dead");
	refused_link();
	assert_int_equal(unlink(dir_path("a.kvlane")), 0);
	assert_int_equal(unlink(dir_path("b")), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_FOLDER(test_lookup_takes_nothing),
		IN_FOLDER(test_lookup_beside_publish),
		IN_FOLDER(test_wait),
		IN_FOLDER(test_wait_in_vain),
		IN_FOLDER(test_wait_directory_removed),
		IN_FOLDER(test_arguments),
		IN_FOLDER(test_directory),
		IN_FOLDER(test_permission),
		IN_FOLDER(test_foreign),
	};

	return TESTING_RUN(tests, 60);
}
