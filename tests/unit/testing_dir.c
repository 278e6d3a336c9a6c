/* SPDX-License-Identifier: Apache-2.0 */
#include "testing_dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

char dir_folder[256];

static size_t descriptors(void)
{
	DIR *list = opendir("/proc/self/fd");
	size_t n = 0;

	assert_non_null(list);
	while (readdir(list))
		n++;
	closedir(list);
	return n;
}

int dir_setup(void **state)
{
	static size_t before;
	const char *base = getenv("TMPDIR");

	snprintf(dir_folder, sizeof(dir_folder), "%s/kvlane-dir-XXXXXX", base ? base : P_tmpdir);
	before = descriptors();
	*state = &before;
	return mkdtemp(dir_folder) ? 0 : -1;
}

/* Nothing is left behind, on disk or among the descriptors. */
int dir_teardown(void **state)
{
	const size_t *before = *state;

	return rmdir(dir_folder) != 0 || descriptors() != *before;
}

const char *dir_path(const char *file)
{
	static char path[400];

	snprintf(path, sizeof(path), "%s/%s", dir_folder, file);
	return path;
}

size_t dir_files(void)
{
	DIR *list = opendir(dir_folder);
	struct dirent *item;
	size_t n = 0;

	assert_non_null(list);
	while ((item = readdir(list)))
		n += strcmp(item->d_name, ".") != 0 && strcmp(item->d_name, "..") != 0;
	closedir(list);
	return n;
}

int dir_has(const char *file)
{
	struct stat st;

	return lstat(dir_path(file), &st) == 0;
}

void dir_plant(const char *file, const char *text)
{
	int fd = open(dir_path(file), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

void dir_publish(const char *name, const char *text, struct kvli_dir_entry **entry)
{
	assert_ok(kvli_dir_publish(dir_folder, name, text, strlen(text), entry));
}

void dir_found(const char *name, const char *text)
{
	size_t len;
	void *buf;

	assert_ok(kvli_dir_lookup(dir_folder, name, 0, &buf, &len));
	assert_int_equal(len, strlen(text));
	assert_memory_equal(buf, text, len);
	free(buf);
}

void dir_not_found(const char *name, const char *rule)
{
	void *buf = &buf;
	size_t len = 77;

	assert_refused(kvli_dir_lookup(dir_folder, name, 0, &buf, &len), KVL_ERR_NOT_FOUND);
	assert_rule(rule);
	assert_message(name);
	assert_message(dir_folder);
	assert_ptr_equal(buf, &buf);
	assert_int_equal(len, 77);
}

pid_t dir_publisher(const char *name, const char *text)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct kvli_dir_entry *entry = NULL;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		testing_watchdog();
		if (kvli_dir_publish(dir_folder, name, text, strlen(text), &entry) == 0 &&
		    write(ready[1], "r", 1) == 1)
			for (;;)
				pause();
		_exit(1);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

void dir_kill(pid_t pid)
{
	int status;

	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}
