/* SPDX-License-Identifier: Apache-2.0 */
/* A text table: cells are added row by row, columns get the width of their longest cell. */
#ifndef KVLANE_TOOL_TABLE_H
#define KVLANE_TOOL_TABLE_H

#include <stddef.h>
#include <stdio.h>

struct table_column {
	const char *title;
	int right; /* align numbers to the right */
};

struct table {
	const struct table_column *column; /* the caller's, kept */
	size_t n_columns, n_cells, room;
	char **cell;
	int failed; /* out of memory: printing says so */
};

/* Undo with table_fini. */
void table_init(struct table *t, const struct table_column *column, size_t n_columns);
void table_fini(struct table *t);

/* Adds the next cell; the row ends by itself after n_columns cells. */
void table_cell(struct table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Titles, then rows. 0, or -1 when a cell was lost for lack of memory (nothing is printed then). */
int table_print(const struct table *t, FILE *out);

#endif
