/* SPDX-License-Identifier: Apache-2.0 */
#include "testing_process.h"

#include <dirent.h>
#include <stdio.h>

#include "testing.h"

static size_t entries(const char *path)
{
	DIR *dir = opendir(path);
	size_t n = 0;

	must(dir != NULL);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

size_t process_descriptors(void)
{
	return entries("/proc/self/fd");
}

size_t process_threads(void)
{
	return entries("/proc/self/task");
}

static char thread_state(int tid)
{
	char path[64], state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	file = fopen(path, "r");
	must(file != NULL);
	must(fscanf(file, "%*d (%*[^)]) %c", &state) == 1);
	fclose(file);
	return state;
}

void process_wait_asleep(int tid)
{
	uint64_t start = kvl_now();

	while (thread_state(tid) != 'S')
		must(kvl_now() - start < PATIENCE);
}
