/* SPDX-License-Identifier: Apache-2.0 */
#include "table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void table_init(struct table *t, const struct table_column *column, size_t n_columns)
{
	*t = (struct table){ .column = column, .n_columns = n_columns };
}

void table_fini(struct table *t)
{
	for (size_t i = 0; i < t->n_cells; i++)
		free(t->cell[i]);
	free(t->cell);
	*t = (struct table){ 0 };
}

static int table_grow(struct table *t)
{
	size_t room = t->room ? 2 * t->room : 64;
	char **cell;

	if (t->n_cells < t->room)
		return 0;
	cell = realloc(t->cell, room * sizeof(*cell));
	if (!cell)
		return -1;
	t->cell = cell;
	t->room = room;
	return 0;
}

void table_cell(struct table *t, const char *format, ...)
{
	va_list args;
	int n;

	if (t->failed || table_grow(t)) {
		t->failed = 1;
		return;
	}
	va_start(args, format);
	n = vasprintf(&t->cell[t->n_cells], format, args);
	va_end(args);
	if (n < 0)
		t->failed = 1;
	else
		t->n_cells++;
}

static int table_width(const struct table *t, size_t column)
{
	size_t width = strlen(t->column[column].title);

	for (size_t i = column; i < t->n_cells; i += t->n_columns) {
		if (strlen(t->cell[i]) > width)
			width = strlen(t->cell[i]);
	}
	return (int)width;
}

/* The last column is not padded: no blanks at line ends. */
static void table_put(const struct table *t, size_t column, const char *text, FILE *out)
{
	int last = column + 1 == t->n_columns, width = table_width(t, column);

	if (!t->column[column].right)
		width = last ? 0 : -width;
	fprintf(out, "%s%*s%s", column ? "  " : "", width, text, last ? "\n" : "");
}

int table_print(const struct table *t, FILE *out)
{
	if (t->failed)
		return -1;
	for (size_t i = 0; i < t->n_columns; i++)
		table_put(t, i, t->column[i].title, out);
	for (size_t i = 0; i < t->n_cells; i++)
		table_put(t, i % t->n_columns, t->cell[i], out);
	return 0;
}
