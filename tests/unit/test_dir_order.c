/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The narrow moments of the rendezvous directory, each met on purpose: this program's fcntl() stands in front
 * of the C library's, so that what a rival would do between two system calls is done exactly there.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* F_OFD_SETLK */
#endif
#include "testing_dir.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BYTE_LIVE   0
#define BYTE_REMOVE 1

/* What happens just before the next lock call of that kind on that byte; once. */
static struct {
	void (*act)(void);
	int command;
	off_t byte;
} moment;

static struct kvli_dir_entry *mine, *theirs;

int fcntl(int fd, int command, ...)
{
	struct flock *lock;
	va_list args;
	void *arg;

	va_start(args, command);
	arg = va_arg(args, void *);
	va_end(args);
	lock = arg;
	if (moment.act && command == moment.command && lock->l_start == moment.byte) {
		void (*act)(void) = moment.act;

		moment.act = NULL;
		act();
	}
	return (int)syscall(SYS_fcntl, fd, command, arg);
}

static void before(int command, off_t byte, void (*act)(void))
{
	moment.act = act;
	moment.command = command;
	moment.byte = byte;
}

/* Otherwise the test has not tested anything. */
static void assert_happened(void)
{
	assert_null(moment.act);
}

static void end(void)
{
	kvli_dir_withdraw(mine);
	kvli_dir_withdraw(theirs);
	mine = theirs = NULL;
	assert_int_equal(dir_files(), 0);
}

static void rival_publishes(void)
{
	dir_publish("a", "theirs", &theirs);
}

/* The stale entry that is about to be removed has just been replaced by a live one. */
TEST(test_removal_after_replacement)
{
	dir_plant("a.kvlane", ENTRY_LINE "dead");
	before(F_OFD_SETLK, BYTE_REMOVE, rival_publishes);
	dir_publish("b", "mine", &mine);
	assert_happened();
	dir_found("a", "theirs");
	dir_found("b", "mine");
	end();
}

/* Two see the same stale entry; the other one is faster. */
TEST(test_rival_is_faster)
{
	before(F_OFD_SETLK, BYTE_LIVE, rival_publishes);
	assert_refused(kvli_dir_publish(dir_folder, "a", "mine", 4, &mine), KVL_ERR_EXISTS);
	assert_happened();
	assert_null(mine);
	dir_found("a", "theirs");
	assert_int_equal(dir_files(), 1);
	end();

	dir_plant("a.kvlane", ENTRY_LINE "dead");
	before(F_OFD_SETLK, BYTE_REMOVE, rival_publishes);
	assert_refused(kvli_dir_publish(dir_folder, "a", "mine", 4, &mine), KVL_ERR_EXISTS);
	assert_happened();
	assert_null(mine);
	dir_found("a", "theirs");
	assert_int_equal(dir_files(), 1);
	end();
}

static void stranger_publishes(void)
{
	dir_publish("b", "theirs", &theirs);
}

/* A temporary file that is not locked yet looks like a dead writer's, and is removed. */
TEST(test_newborn_removed)
{
	before(F_OFD_SETLK, BYTE_LIVE, stranger_publishes);
	dir_publish("a", "mine", &mine);
	assert_happened();
	dir_found("a", "mine");
	dir_found("b", "theirs");
	assert_int_equal(dir_files(), 2);
	end();
}

static void newborn_is_removed(void)
{
	struct kvli_dir_entry *other = NULL;

	dir_publish("b", "theirs", &other);
	kvli_dir_withdraw(other);
}

TEST(test_newborn_removed_in_refresh)
{
	dir_publish("a", "1", &mine);
	before(F_OFD_SETLK, BYTE_LIVE, newborn_is_removed);
	dir_publish("a", "22", &mine);
	assert_happened();
	dir_found("a", "22");
	assert_int_equal(dir_files(), 1);
	end();
}

static int held = -1;

/* A publisher of the name has come and died since we cleaned up. */
static void another_dies(void)
{
	dir_plant("a.kvlane", ENTRY_LINE "dead");
}

static void removal_ends(void)
{
	assert_int_equal(close(held), 0);
}

static void removal_goes_on(void)
{
	before(F_OFD_SETLK, BYTE_REMOVE, removal_ends);
}

/* The same, and a third process is removing what it left: its lock is there, then it is not. */
static void another_dies_and_is_removed(void)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = BYTE_REMOVE, .l_len = 1 };

	another_dies();
	held = open(dir_path("a.kvlane"), O_RDWR | O_CLOEXEC);
	assert_true(held >= 0);
	assert_int_equal(fcntl(held, F_OFD_SETLK, &lock), 0);
	before(F_OFD_SETLK, BYTE_REMOVE, removal_goes_on);
}

TEST(test_name_taken_by_the_dead)
{
	before(F_OFD_SETLK, BYTE_LIVE, another_dies);
	dir_publish("a", "mine", &mine);
	assert_happened();
	dir_found("a", "mine");
	end();

	before(F_OFD_SETLK, BYTE_LIVE, another_dies_and_is_removed);
	dir_publish("a", "mine", &mine);
	assert_happened();
	dir_found("a", "mine");
	end();
}

static void owner_refreshes(void)
{
	dir_publish("a", "22", &mine);
}

/* The file that a lookup has open is replaced and unlocked before its lock is asked for. */
TEST(test_lookup_during_refresh)
{
	dir_publish("a", "1", &mine);
	before(F_OFD_GETLK, BYTE_LIVE, owner_refreshes);
	dir_found("a", "22");
	assert_happened();
	end();
}

static void owner_withdraws(void)
{
	kvli_dir_withdraw(mine);
	mine = NULL;
}

/* A withdrawal is not a death. */
TEST(test_lookup_during_withdrawal)
{
	dir_publish("a", "1", &mine);
	before(F_OFD_GETLK, BYTE_LIVE, owner_withdraws);
	dir_not_found("a", ABSENT);
	assert_happened();
	end();
}

static void stale_is_removed(void)
{
	assert_int_equal(unlink(dir_path("a.kvlane")), 0);
}

static void stale_is_seen(void)
{
	before(F_OFD_GETLK, BYTE_LIVE, stale_is_removed);
}

/* Stale at the first look, gone at the second: what counts is how it ended. */
TEST(test_lookup_of_stale_that_goes)
{
	void *buf;
	size_t len;

	dir_plant("a.kvlane", ENTRY_LINE "dead");
	before(F_OFD_GETLK, BYTE_LIVE, stale_is_seen);
	assert_refused(kvli_dir_lookup(dir_folder, "a", MS, &buf, &len), KVL_ERR_NOT_FOUND);
	assert_happened();
	assert_rule(ABSENT);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_FOLDER(test_removal_after_replacement), IN_FOLDER(test_rival_is_faster),
		IN_FOLDER(test_newborn_removed),           IN_FOLDER(test_newborn_removed_in_refresh),
		IN_FOLDER(test_name_taken_by_the_dead),    IN_FOLDER(test_lookup_of_stale_that_goes),
		IN_FOLDER(test_lookup_during_refresh),     IN_FOLDER(test_lookup_during_withdrawal),
	};

	return TESTING_RUN(tests, 60);
}
