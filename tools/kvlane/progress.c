/* SPDX-License-Identifier: Apache-2.0 */
#include "progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kvlane/kvlane.h>

#define BAR_CELLS   30
#define INTERVAL_NS 50000000u

void progress_start(struct progress *p, const char *title, uint64_t total)
{
	const char *term = getenv("TERM");

	*p = (struct progress){ .title = title, .total = total };
	p->on = total && isatty(STDERR_FILENO) && term && strcmp(term, "dumb");
	progress_update(p, 0);
}

void progress_update(struct progress *p, uint64_t done)
{
	char bar[BAR_CELLS + 1];
	int cells;

	if (!p->on || kvl_now() < p->next_ns)
		return;
	if (done > p->total)
		done = p->total;
	cells = (int)((double)done / (double)p->total * BAR_CELLS);
	for (int i = 0; i < BAR_CELLS; i++)
		bar[i] = i < cells ? '#' : '.';
	bar[BAR_CELLS] = 0;
	fprintf(stderr, "\r%s [%s] %3d %%", p->title, bar, (int)((double)done / (double)p->total * 100));
	fflush(stderr);
	p->next_ns = kvl_now() + INTERVAL_NS;
}

void progress_end(struct progress *p)
{
	if (p->on)
		fputs("\r\033[K", stderr);
	p->on = 0;
}
