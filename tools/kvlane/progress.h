/* SPDX-License-Identifier: Apache-2.0 */
/* A progress bar on standard error when that is a terminal; otherwise every call does nothing. */
#ifndef KVLANE_TOOL_PROGRESS_H
#define KVLANE_TOOL_PROGRESS_H

#include <stdint.h>

struct progress {
	const char *title; /* the caller's, kept */
	uint64_t total, next_ns;
	int on;
};

void progress_start(struct progress *p, const char *title, uint64_t total);
void progress_update(struct progress *p, uint64_t done); /* draws at most 20 times a second */
void progress_end(struct progress *p);                   /* wipes the bar */

#endif
