/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVLANE_TOOL_BENCH_H
#define KVLANE_TOOL_BENCH_H

/* `kvlane bench ...`: argv[1] and on are its arguments. Returns the exit code. */
int bench_main(int argc, char **argv);

#endif
