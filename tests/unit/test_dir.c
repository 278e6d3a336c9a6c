/* SPDX-License-Identifier: Apache-2.0 */
/* Publishing in a directory: refreshes, rivals, and what the dead leave. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* F_OFD_SETLK */
#endif
#include "testing_dir.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define RACES     200
#define REFRESHES 300

TEST(test_publish)
{
	static const char bytes[] = "\0binary\xff\0\n",
			  longest_name[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.";
	struct kvli_dir_entry *entry = NULL, *other = NULL;
	void *buf;
	size_t len;

	dir_not_found("decode", ABSENT);
	assert_ok(kvli_dir_publish(dir_folder, "decode", bytes, sizeof(bytes), &entry));
	assert_ok(kvli_dir_publish(dir_folder, longest_name, "x", 1, &other));
	assert_int_equal(dir_files(), 2);
	assert_true(dir_has("decode.kvlane"));
	assert_ok(kvli_dir_lookup(dir_folder, "decode", 0, &buf, &len));
	assert_int_equal(len, sizeof(bytes));
	assert_memory_equal(buf, bytes, len);
	free(buf);
	dir_found(longest_name, "x");
	kvli_dir_withdraw(entry);
	dir_not_found("decode", ABSENT);
	kvli_dir_withdraw(other);
	kvli_dir_withdraw(NULL);
	assert_int_equal(dir_files(), 0);
}

TEST(test_large)
{
	enum {
		LEN = 3 << 20
	};
	struct kvli_dir_entry *entry = NULL;
	unsigned char *bytes = malloc(LEN);
	void *buf;
	size_t len;

	assert_non_null(bytes);
	for (size_t i = 0; i < LEN; i++)
		bytes[i] = (unsigned char)(i * 2654435761u >> 24);
	assert_ok(kvli_dir_publish(dir_folder, "a", bytes, LEN, &entry));
	assert_ok(kvli_dir_lookup(dir_folder, "a", 0, &buf, &len));
	assert_int_equal(len, LEN);
	assert_int_equal(memcmp(buf, bytes, LEN), 0);
	free(buf);
	kvli_dir_withdraw(entry);
	assert_refused(kvli_dir_publish(dir_folder, "a", bytes, (64u << 20) + 1, &entry), KVL_ERR_LIMIT);
	free(bytes);
}

struct watcher {
	int stop, looks, failures;
};

/* Looks the entry up as fast as it can: "1" to "9", as long as the digit says. */
static void *watch_refreshes(void *arg)
{
	struct watcher *w = arg;

	while (!__atomic_load_n(&w->stop, __ATOMIC_ACQUIRE)) {
		char *buf;
		size_t len;
		void *got;

		w->looks++;
		if (kvli_dir_lookup(dir_folder, "a", 0, &got, &len) != 0) {
			w->failures++;
			continue;
		}
		buf = got;
		w->failures += len != (size_t)(buf[0] - '0') || buf[len - 1] != buf[0];
		free(got);
	}
	return NULL;
}

/* A refresh is never seen as absence, as a stale entry, or half done. */
TEST(test_refresh)
{
	static const char *const texts[] = { "22", "999999999", "1", "55555" };
	struct kvli_dir_entry *entry = NULL;
	struct watcher watcher = { 0 };
	pthread_t thread;

	dir_publish("a", texts[0], &entry);
	assert_int_equal(pthread_create(&thread, NULL, watch_refreshes, &watcher), 0);
	for (int i = 0; i < REFRESHES; i++)
		dir_publish("a", texts[i % 4], &entry);
	__atomic_store_n(&watcher.stop, 1, __ATOMIC_RELEASE);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(watcher.looks > 0);
	assert_int_equal(watcher.failures, 0);
	dir_found("a", texts[(REFRESHES - 1) % 4]);
	assert_int_equal(dir_files(), 1);
	kvli_dir_withdraw(entry);
	assert_int_equal(dir_files(), 0);
}

TEST(test_refresh_elsewhere)
{
	struct kvli_dir_entry *entry = NULL;

	dir_publish("a", "1", &entry);
	assert_refused(kvli_dir_publish(dir_folder, "b", "2", 1, &entry), KVL_ERR_INVALID);
	assert_refused(kvli_dir_publish(P_tmpdir, "a", "2", 1, &entry), KVL_ERR_INVALID);
	dir_found("a", "1");
	/* Removed by hand, it comes back with the next refresh. */
	assert_int_equal(unlink(dir_path("a.kvlane")), 0);
	dir_publish("a", "3", &entry);
	dir_found("a", "3");
	kvli_dir_withdraw(entry);
	assert_int_equal(dir_files(), 0);
}

TEST(test_withdraw_not_ours)
{
	struct kvli_dir_entry *entry = NULL, *other = NULL;

	dir_publish("a", "1", &entry);
	assert_int_equal(unlink(dir_path("a.kvlane")), 0);
	dir_publish("a", "2", &other);
	kvli_dir_withdraw(entry);
	dir_found("a", "2");
	kvli_dir_withdraw(other);
}

TEST(test_second_refused)
{
	struct kvli_dir_entry *entry = NULL, *second = NULL;
	pid_t pid;

	dir_publish("a", "1", &entry);
	assert_refused(kvli_dir_publish(dir_folder, "a", "2", 1, &second), KVL_ERR_EXISTS);
	assert_null(second);
	assert_message("\"a\"");
	assert_message(dir_folder);
	assert_int_equal(dir_files(), 1);
	dir_found("a", "1");
	/* The name is free again afterwards, and another process's entry counts as much. */
	kvli_dir_withdraw(entry);
	pid = dir_publisher("a", "3");
	assert_refused(kvli_dir_publish(dir_folder, "a", "2", 1, &second), KVL_ERR_EXISTS);
	dir_found("a", "3");
	assert_int_equal(dir_files(), 1);
	dir_kill(pid);
	dir_publish("a", "2", &second);
	kvli_dir_withdraw(second);
}

/* A stopped process is not a dead one. */
TEST(test_stopped)
{
	struct kvli_dir_entry *entry = NULL;
	pid_t pid = dir_publisher("a", "1");
	int status;

	assert_int_equal(kill(pid, SIGSTOP), 0);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	dir_found("a", "1");
	assert_refused(kvli_dir_publish(dir_folder, "a", "2", 1, &entry), KVL_ERR_EXISTS);
	dir_kill(pid);
	dir_not_found("a", STALE);
	dir_publish("a", "2", &entry);
	kvli_dir_withdraw(entry);
}

TEST(test_killed)
{
	struct kvli_dir_entry *entry = NULL;
	pid_t pid = dir_publisher("a", "1");

	dir_found("a", "1");
	dir_kill(pid);
	assert_true(dir_has("a.kvlane"));
	dir_not_found("a", STALE);
	dir_publish("a", "22", &entry);
	dir_found("a", "22");
	assert_int_equal(dir_files(), 1);
	kvli_dir_withdraw(entry);
	assert_int_equal(dir_files(), 0);
}

TEST(test_leftovers)
{
	struct kvli_dir_entry *entry = NULL;
	pid_t pid = dir_publisher("live", "1"), dead = dir_publisher("dead", "2");
	char temporary[400];

	dir_kill(dead);
	dir_plant(".gone.0123456789abcdef.kvlane-new", "");
	dir_plant(".half.0123456789abcdef.kvlane-new", ENTRY_LINE "ha");
	dir_plant("old.kvlane", ENTRY_LINE "x");
	/* Died with both names: between taking its own and dropping the temporary one. */
	snprintf(temporary, sizeof(temporary), "%s", dir_path(".old.0123456789abcdef.kvlane-new"));
	assert_int_equal(link(dir_path("old.kvlane"), temporary), 0);
	dir_plant("notes.kvlane", "mine");
	dir_plant("empty.kvlane", "");
	dir_plant("other.kvlane-new", "mine");
	dir_plant("notes.txt", ENTRY_LINE);
	assert_int_equal(mkdir(dir_path("dir_folder.kvlane"), 0700), 0);
	assert_int_equal(mkfifo(dir_path("fifo.kvlane"), 0600), 0);
	dir_publish("a", "1", &entry);
	assert_false(dir_has("dead.kvlane"));
	assert_false(dir_has(".gone.0123456789abcdef.kvlane-new"));
	assert_false(dir_has(".half.0123456789abcdef.kvlane-new"));
	assert_false(dir_has("old.kvlane"));
	assert_false(dir_has(".old.0123456789abcdef.kvlane-new"));
	/* a, live, and what no publisher ever made */
	assert_int_equal(dir_files(), 2 + 6);
	dir_found("live", "1");
	kvli_dir_withdraw(entry);
	dir_kill(pid);
	assert_int_equal(unlink(dir_path("live.kvlane")), 0);
	assert_int_equal(unlink(dir_path("notes.kvlane")), 0);
	assert_int_equal(unlink(dir_path("empty.kvlane")), 0);
	assert_int_equal(unlink(dir_path("other.kvlane-new")), 0);
	assert_int_equal(unlink(dir_path("notes.txt")), 0);
	assert_int_equal(rmdir(dir_path("dir_folder.kvlane")), 0);
	assert_int_equal(unlink(dir_path("fifo.kvlane")), 0);
	assert_int_equal(dir_files(), 0);
}

/* What the two racers share. round: set by the parent, both start when they see it. */
struct race {
	int round, done[2], code[2], release;
};

static void racer(struct race *race, int self)
{
	char text[2] = { (char)('0' + self), '\0' };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	testing_watchdog();
	for (int round = 1; round <= RACES; round++) {
		struct kvli_dir_entry *entry = NULL;

		while (__atomic_load_n(&race->round, __ATOMIC_ACQUIRE) < round)
			sched_yield();
		race->code[self] = kvli_dir_publish(dir_folder, "a", text, 1, &entry);
		__atomic_store_n(&race->done[self], round, __ATOMIC_RELEASE);
		while (__atomic_load_n(&race->release, __ATOMIC_ACQUIRE) < round)
			sched_yield();
		kvli_dir_withdraw(entry);
		__atomic_store_n(&race->done[self], -round, __ATOMIC_RELEASE);
	}
	_exit(0);
}

static void race_wait(struct race *race, int value)
{
	for (int i = 0; i < 2; i++)
		while (__atomic_load_n(&race->done[i], __ATOMIC_ACQUIRE) != value)
			sched_yield();
}

/* Two processes, one name: one winner, whether the name is free or a dead agent has left it behind. */
TEST(test_race)
{
	struct race *race =
		mmap(NULL, sizeof(*race), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid[2];
	int status;

	assert_true(race != MAP_FAILED);
	for (int i = 0; i < 2; i++) {
		pid[i] = fork();
		assert_true(pid[i] >= 0);
		if (pid[i] == 0)
			racer(race, i);
	}
	for (int round = 1; round <= RACES; round++) {
		int winner;

		if (round % 2)
			dir_plant("a.kvlane", ENTRY_LINE "dead");
		__atomic_store_n(&race->round, round, __ATOMIC_RELEASE);
		race_wait(race, round);
		winner = race->code[0] == 0 ? 0 : 1;
		assert_int_equal(race->code[winner], 0);
		assert_int_equal(race->code[1 - winner], KVL_ERR_EXISTS);
		dir_found("a", winner ? "1" : "0");
		assert_int_equal(dir_files(), 1);
		__atomic_store_n(&race->release, round, __ATOMIC_RELEASE);
		race_wait(race, -round);
		assert_int_equal(dir_files(), 0);
	}
	for (int i = 0; i < 2; i++) {
		assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
		assert_int_equal(status, 0);
	}
	munmap(race, sizeof(*race));
}

/* Whoever removes a leftover may be stopped meanwhile: others wait for it, but not for ever. */
TEST(test_removal_stuck)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1, .l_len = 1 };
	struct kvli_dir_entry *entry = NULL;
	int fd;

	dir_plant("a.kvlane", ENTRY_LINE "dead");
	fd = open(dir_path("a.kvlane"), O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
	dir_publish("b", "1", &entry);
	kvli_dir_withdraw(entry);
	entry = NULL;
	assert_refused(kvli_dir_publish(dir_folder, "a", "1", 1, &entry), KVL_ERR_BUSY);
	assert_null(entry);
	assert_message("\"a\"");
	dir_not_found("a", STALE);
	assert_int_equal(dir_files(), 1);
	close(fd);
	dir_publish("a", "1", &entry);
	kvli_dir_withdraw(entry);
}

/* The disk is full, so to say: the new bytes are refused, the old ones stay. */
TEST(test_write_fails)
{
	static char bytes[8192];
	struct kvli_dir_entry *entry = NULL, *other = NULL;
	struct rlimit before, small;

	dir_publish("a", "1", &entry);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = before;
	small.rlim_cur = 4096;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_refused(kvli_dir_publish(dir_folder, "a", bytes, sizeof(bytes), &entry), KVL_ERR_SYSTEM);
	assert_message(dir_folder);
	assert_refused(kvli_dir_publish(dir_folder, "b", bytes, sizeof(bytes), &other), KVL_ERR_SYSTEM);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_null(other);
	assert_int_equal(dir_files(), 1);
	dir_found("a", "1");
	kvli_dir_withdraw(entry);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_FOLDER(test_publish),           IN_FOLDER(test_large),
		IN_FOLDER(test_refresh),           IN_FOLDER(test_refresh_elsewhere),
		IN_FOLDER(test_withdraw_not_ours), IN_FOLDER(test_second_refused),
		IN_FOLDER(test_stopped),           IN_FOLDER(test_killed),
		IN_FOLDER(test_leftovers),         IN_FOLDER(test_race),
		IN_FOLDER(test_removal_stuck),     IN_FOLDER(test_write_fails),
	};

	return TESTING_RUN(tests, 60);
}
