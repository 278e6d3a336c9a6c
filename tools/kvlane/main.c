/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kvlane/kvlane.h>

#include "bench.h"
#include "command.h"
#include "fail.h"

struct command {
	const char *name, *purpose;
	int (*run)(int argc, char **argv);
};

static const struct command commands[] = {
	{ "demo", "move a model's paged KV cache between two processes, and prove every byte", demo_main },
	{ "bench", "measure: shapes scatter, single, mixed, post and idle", bench_main },
	{ "info", "what this build can do here: wires, paths, limits, options", info_main },
};

#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void help_print(void)
{
	printf("Usage: kvlane COMMAND [OPTION...]\n"
	       "Moves paged KV caches between processes of one host.\n"
	       "\n"
	       "Commands:\n");
	for (size_t i = 0; i < N_COMMANDS; i++)
		printf("  %-6s  %s\n", commands[i].name, commands[i].purpose);
	printf("\n"
	       "  kvlane COMMAND --help    what a command does, its options with units and defaults\n"
	       "  kvlane --version         version of program and library\n"
	       "\n"
	       "Examples:\n"
	       "  kvlane demo\n"
	       "  kvlane demo --model DeepSeek-V3 --op read\n"
	       "  kvlane bench scatter --block 16KiB --json scatter.json\n"
	       "\n"
	       "Environment: options of the library (kvlane info lists them) are also taken from it, as in\n"
	       "KVLANE_WORKERS=2, and from the file that KVLANE_CONFIG names, one NAME=VALUE a line; a\n"
	       "variable wins over the file, an option of the command over both. The processes that a\n"
	       "command starts meet in a directory in TMPDIR, default " P_tmpdir ".\n"
	       "\n"
	       "Exit codes: 0 success; 1 failed or wrong bytes; 2 bad usage; 77 skipped, not possible "
	       "here.\n");
}

static const struct command *command_find(const char *name)
{
	for (size_t i = 0; i < N_COMMANDS; i++) {
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	}
	return NULL;
}

static int usage_fail(const char *what, const char *why)
{
	fprintf(stderr, "kvlane: %s%s (see kvlane --help)\n", fail_value(what), why);
	return EXIT_USAGE;
}

static int command_run(const struct command *c, int argc, char **argv)
{
	static char name[16]; /* what messages begin with, until the process ends */

	snprintf(name, sizeof(name), "kvlane %s", c->name);
	program_invocation_name = name;
	return c->run(argc, argv);
}

static int command_help(const char *name)
{
	const struct command *c = command_find(name);
	char copy[16], help[] = "--help";
	char *argv[] = { copy, help, NULL };

	if (!c)
		return usage_fail(name, ": no such command");
	snprintf(copy, sizeof(copy), "%s", name);
	return command_run(c, 2, argv);
}

static int main_dispatch(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "";
	const struct command *c = command_find(word);

	if (c)
		return command_run(c, argc - 1, argv + 1);
	if (argc > 2 && !strcmp(word, "help"))
		return command_help(argv[2]);
	if (!strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "help")) {
		help_print();
		return EXIT_OK;
	}
	if (!strcmp(word, "--version") || !strcmp(word, "-V")) {
		printf("kvlane %d.%d.%d\n", KVL_VERSION_MAJOR, KVL_VERSION_MINOR, KVL_VERSION_PATCH);
		return EXIT_OK;
	}
	if (argc < 2)
		return usage_fail("no command", "");
	return usage_fail(word, *word == '-' ? ": no such option" : ": no such command");
}

/* ---------------------------------------------------------------------------------- standard descriptors */

/*
 * A descriptor that the caller closed would be the next one that is opened: figures would land in a socket.
 * Standard output becomes one that refuses every write, so that what is lost is noticed.
 */
static void streams_open(void)
{
	static const int flags[] = { O_RDONLY, O_RDONLY, O_WRONLY };

	for (int fd = 0; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", flags[fd]) != fd)
			_exit(EXIT_FAILED);
	}
}

/* Why standard output failed: stdio keeps no more than the fact. Writes nothing. */
static const char *output_reason(void)
{
	return write(STDOUT_FILENO, "", 0) < 0 ? strerror(errno) : "a write failed";
}

/* A full disk must not look like a good run, whoever called exit(). Forked processes leave it be. */
static void output_check(int status, void *arg)
{
	const char *reason;

	if (getpid() != *(pid_t *)arg)
		return;
	errno = 0;
	if (!fflush(stdout) && !ferror(stdout) && !fclose(stdout))
		return;
	reason = errno ? strerror(errno) : output_reason();
	fprintf(stderr, "%s: standard output: cannot be written: %s\n", program_invocation_name, reason);
	_exit(status ? status : EXIT_FAILED);
}

int main(int argc, char **argv)
{
	static char name[] = "kvlane";
	static pid_t self;

	streams_open();
	self = getpid();
	program_invocation_name = name;
	if (on_exit(output_check, &self)) {
		fprintf(stderr, "kvlane: cannot prepare the exit: out of memory\n");
		return EXIT_FAILED;
	}
	return main_dispatch(argc, argv);
}
