/* SPDX-License-Identifier: Apache-2.0 */
#include "json_out.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fail.h"

static int json_out_fail(const char *path, int error)
{
	fprintf(stderr, "%s: %s: cannot write JSON: %s\n", program_invocation_name, fail_value(path),
		strerror(error));
	return -1;
}

/* A device or pipe must not be replaced by a file; it is written in place. */
static int json_out_special(const char *path)
{
	struct stat st;

	return !stat(path, &st) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

static int json_out_dir_check(const char *path)
{
	char *copy = strdup(path);
	int error = 0;

	if (!copy)
		return ENOMEM;
	if (access(dirname(copy), W_OK | X_OK))
		error = errno;
	free(copy);
	return error;
}

int json_out_check(const char *path)
{
	struct stat st;
	int error = 0;

	if (!strcmp(path, "-"))
		return 0;
	if (!*path)
		error = ENOENT;
	else if (!stat(path, &st) && S_ISDIR(st.st_mode))
		error = EISDIR;
	else if (json_out_special(path))
		error = access(path, W_OK) ? errno : 0;
	else
		error = json_out_dir_check(path);
	return error ? json_out_fail(path, error) : 0;
}

static int json_out_dump(const json_t *root, FILE *f)
{
	int bad = json_dumpf(root, f, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9));

	bad |= fputc('\n', f) == EOF;
	bad |= fflush(f) == EOF;
	return bad ? -1 : 0;
}

/* Opens, writes, closes; returns an errno, 0 when all bytes are written. */
static int json_out_plain(const char *path, const json_t *root)
{
	FILE *f = fopen(path, "we");
	int error = 0;

	if (!f)
		return errno;
	if (json_out_dump(root, f))
		error = errno ? errno : EIO;
	if (fclose(f) && !error)
		error = errno;
	return error;
}

static int json_out_stdout(const json_t *root)
{
	if (!json_out_dump(root, stdout))
		return 0;
	json_out_fail("standard output", errno);
	clearerr(stdout); /* said: the check at exit must not say it again */
	return -1;
}

int json_out_write(const char *path, const json_t *root)
{
	char *temporary;
	int error;

	if (!strcmp(path, "-"))
		return json_out_stdout(root);
	if (json_out_special(path)) {
		error = json_out_plain(path, root);
		return error ? json_out_fail(path, error) : 0;
	}
	if (asprintf(&temporary, "%s.%d.tmp", path, (int)getpid()) < 0)
		return json_out_fail(path, ENOMEM);
	error = json_out_plain(temporary, root);
	if (!error && rename(temporary, path))
		error = errno;
	if (error)
		unlink(temporary);
	free(temporary);
	return error ? json_out_fail(path, error) : 0;
}
