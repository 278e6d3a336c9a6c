/* SPDX-License-Identifier: Apache-2.0 */
/* The subcommands. argv[0] is the subcommand's name; the result is the exit code (fail.h). */
#ifndef KVLANE_TOOL_COMMAND_H
#define KVLANE_TOOL_COMMAND_H

int demo_main(int argc, char **argv);
int info_main(int argc, char **argv);

#endif
