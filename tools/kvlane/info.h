/* SPDX-License-Identifier: Apache-2.0 */
/* What `kvlane info` finds out, apart from how it is shown. */
#ifndef KVLANE_TOOL_INFO_H
#define KVLANE_TOOL_INFO_H

#include <kvlane/kvlane.h>

#define INFO_PATHS 3

struct info_path {
	const char *name, *what;
	int works;
	char reason[256]; /* why not */
};

struct info {
	struct kvl_limits limits; /* of an agent with the defaults and the environment */
	struct info_path path[INFO_PATHS];
};

/* Tries each path of the local wire against an agent of a second process. 0, or an exit code (said). */
int info_gather(struct info *info);

/* A part of kvlane that this build does not have. NULL past the end. */
struct info_part {
	const char *name, *reason;
};
const struct info_part *info_missing(size_t index);

#endif
