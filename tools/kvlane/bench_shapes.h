/* SPDX-License-Identifier: Apache-2.0 */
/* The shapes of `kvlane bench`. argv[0] is the shape's name; each returns the program's exit code. */
#ifndef KVLANE_TOOL_BENCH_SHAPES_H
#define KVLANE_TOOL_BENCH_SHAPES_H

int bench_scatter_main(int argc, char **argv);
int bench_single_main(int argc, char **argv);
int bench_mixed_main(int argc, char **argv);
int bench_post_main(int argc, char **argv);
int bench_idle_main(int argc, char **argv);

#endif
