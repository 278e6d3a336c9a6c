/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVLANE_TOOL_DEMO_OPTIONS_H
#define KVLANE_TOOL_DEMO_OPTIONS_H

#include "demo.h"

/* Strings of *out point into argv. Bad usage, help and lists end the program, before it has started anything.
 */
void demo_options_parse(int argc, char **argv, struct demo_options *out);

#endif
