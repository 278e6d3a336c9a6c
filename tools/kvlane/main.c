/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

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
	{ "bench", "measure: scattered blocks, single requests, small requests beside bulk", bench_main },
	{ "info", "what this build can do here: wires, paths, limits, options", info_main },
};

#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void help_print(void)
{
	printf("Usage: kvlane COMMAND [OPTION...]\n"
	       "Moves paged KV caches between processes, GPUs and hosts.\n"
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
	       "Options of the library are also taken from the environment, as in KVLANE_WORKERS=2 (kvlane "
	       "info\n"
	       "lists them).\n"
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
	fprintf(stderr, "kvlane: %s%s (see kvlane --help)\n", what, why);
	return EXIT_USAGE;
}

static int command_help(const char *name)
{
	const struct command *c = command_find(name);
	char copy[16], help[] = "--help";
	char *argv[] = { copy, help, NULL };

	if (!c)
		return usage_fail(name, ": no such command");
	snprintf(copy, sizeof(copy), "%s", name);
	return c->run(2, argv);
}

static int main_dispatch(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "";
	const struct command *c = command_find(word);

	if (c)
		return c->run(argc - 1, argv + 1);
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

int main(int argc, char **argv)
{
	int code = main_dispatch(argc, argv);

	/* A full disk must not look like a good run. */
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "kvlane: standard output: cannot be written\n");
		return code ? code : EXIT_FAILED;
	}
	return code;
}
