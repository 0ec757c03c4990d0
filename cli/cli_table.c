// SPDX-License-Identifier: Apache-2.0
/* cli_table.c: tables that fit the terminal. Runs in: cli. */
#include "cli/cli_table.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_api.h"
#include "cli/cli_print.h"
#include "cli/cli_screen.h"
#include "common/cleanup.h"

#define GAP          2  /* spaces between columns */
#define LAST_MIN_MAX 30 /* the last column may be this narrow: longer words in it stick out */

struct column {
	char *head;
	bool optional;         /* left out if the terminal is too narrow */
	bool hidden;           /* left out now */
	bool status;           /* its cells are coloured by their words */
	size_t least, natural; /* columns of the longest word, and of the longest cell */
	size_t width;          /* as it is printed */
};

struct cli_table {
	struct column *columns;
	char **cells; /* row by row; NULL: an empty cell */
	size_t n_columns, n_rows;
	size_t at; /* the column of the next cell */
};

static void
measure_cell(struct column *c, const char *text)
{
	size_t natural = cli_columns(text, strlen(text)), least = cli_longest_word(text);

	c->natural = natural > c->natural ? natural : c->natural;
	c->least = least > c->least ? least : c->least;
}

void
cli_table_column(struct cli_table *t, const char *head)
{
	static const char *const of_status[] = { "Status", "State", "Healthy", "Eligibility",
		"Schedulable" };
	struct column c = { .optional = head[0] == '?' };

	c.head = mem_strdup(head + c.optional);
	for (size_t i = 0; i < ELEMENTSOF(of_status); i++)
		c.status |= strcmp(c.head, of_status[i]) == 0;
	measure_cell(&c, c.head);
	t->columns = mem_resize(t->columns, t->n_columns + 1, sizeof *t->columns);
	t->columns[t->n_columns++] = c;
}

struct cli_table *
cli_table_new(const char *const *heads, size_t n)
{
	struct cli_table *t = mem_new(struct cli_table);

	for (size_t i = 0; i < n; i++)
		cli_table_column(t, heads[i]);
	return t;
}

void
cli_table_row(struct cli_table *t)
{
	size_t n = ++t->n_rows * t->n_columns;

	t->cells = mem_resize(t->cells, n, sizeof *t->cells);
	for (size_t i = n - t->n_columns; i < n; i++)
		t->cells[i] = NULL;
	t->at = 0;
}

void
cli_cell(struct cli_table *t, const char *fmt, ...)
{
	char *text;
	va_list ap;

	va_start(ap, fmt);
	text = mem_vprintf(fmt, ap);
	va_end(ap);
	cli_clean(text);
	if (!*text) {
		free(text);
		text = mem_strdup("-");
	}
	measure_cell(&t->columns[t->at], text);
	t->cells[(t->n_rows - 1) * t->n_columns + t->at++] = text;
}

void
cli_text_cells(struct cli_table *t, const json_t *object, const char *const names[])
{
	for (size_t i = 0; names[i]; i++)
		cli_cell(t, "%s", cli_json_str(object, names[i]));
}

/* Returns how narrow the column can be. */
static size_t
least_width(const struct cli_table *t, const struct column *c)
{
	bool last = c == &t->columns[t->n_columns - 1];

	return last && c->least > LAST_MIN_MAX ? LAST_MIN_MAX : c->least;
}

/* Returns the columns of the screen that the table takes, or that it takes at least. */
static size_t
count_width(const struct cli_table *t, bool least)
{
	size_t sum = 0;

	for (size_t i = 0; i < t->n_columns; i++) {
		const struct column *c = &t->columns[i];

		if (!c->hidden)
			sum += (sum ? GAP : 0) + (least ? least_width(t, c) : c->width);
	}
	return sum;
}

/* Takes one column of the screen from the widest column that can be narrower. */
static void
shrink_widest(struct cli_table *t)
{
	struct column *widest = NULL;

	for (size_t i = 0; i < t->n_columns; i++) {
		struct column *c = &t->columns[i];

		if (!c->hidden && c->width > least_width(t, c) &&
		    (!widest || c->width > widest->width))
			widest = c;
	}
	widest->width--;
}

/* Chooses the widths of the columns. Returns false if the table does not fit. */
static bool
fit(struct cli_table *t, size_t screen)
{
	for (size_t i = 0; i < t->n_columns; i++)
		t->columns[i].width = t->columns[i].natural;
	if (screen == 0)
		return true;
	for (size_t i = t->n_columns; i-- > 0 && count_width(t, true) > screen;)
		t->columns[i].hidden = t->columns[i].optional;
	if (count_width(t, true) > screen)
		return false;
	while (count_width(t, false) > screen)
		shrink_widest(t);
	return true;
}

/* Prints the next piece of a cell and the spaces after the one before it. Returns what is left. */
static const char *
print_piece(const struct column *c, const char *text, enum cli_colour colour, size_t *spaces)
{
	const char *next;
	size_t len = cli_wrap(text, c->width, c->width, &next);

	if (len) {
		(void)printf("%*s%s%.*s%s", (int)*spaces, "", cli_colour_on(stdout, colour),
		    (int)len, text, cli_colour_off(stdout, colour));
		*spaces = 0;
	}
	len = cli_columns(text, len);
	*spaces += GAP + (len < c->width ? c->width - len : 0);
	return next;
}

/* Prints a row, which takes more than one line if cells are wrapped. head: the heads instead. */
static void
print_row(const struct cli_table *t, char *const *cells, bool head)
{
	cleanup_free const char **left = mem_zeroed(t->n_columns, sizeof(char *));
	bool more = true;

	for (size_t i = 0; i < t->n_columns; i++)
		left[i] = head ? t->columns[i].head : cells[i] ?: "";
	while (more) {
		size_t spaces = 0;

		more = false;
		for (size_t i = 0; i < t->n_columns; i++) {
			const struct column *c = &t->columns[i];

			if (c->hidden)
				continue;
			left[i] = print_piece(c, left[i],
			    head        ? CLI_BOLD
			    : c->status ? cli_status_colour(left[i])
					: CLI_PLAIN,
			    &spaces);
			more |= *left[i] != '\0';
		}
		(void)putchar('\n');
	}
}

/* Prints each row as a list, for a screen that is too narrow for the table. */
static void
print_lists(const struct cli_table *t)
{
	for (size_t row = 0; row < t->n_rows; row++) {
		if (row)
			(void)putchar('\n');
		for (size_t i = 0; i < t->n_columns; i++)
			cli_field(t->columns[i].head, "%s", t->cells[row * t->n_columns + i] ?: "");
	}
}

static void
free_table(struct cli_table *t)
{
	for (size_t i = 0; i < t->n_columns; i++)
		free(t->columns[i].head);
	for (size_t i = 0; i < t->n_rows * t->n_columns; i++)
		free(t->cells[i]);
	free(t->columns);
	free(t->cells);
	free(t);
}

void
cli_table_print(struct cli_table *t)
{
	cli_progress_clear();
	if (t->n_rows && fit(t, cli_screen_width(stdout))) {
		print_row(t, NULL, true);
		for (size_t row = 0; row < t->n_rows; row++)
			print_row(t, t->cells + row * t->n_columns, false);
	} else {
		print_lists(t);
	}
	free_table(t);
}

void
cli_table_print_under(struct cli_table *t, const char *head)
{
	if (t->n_rows == 0) {
		free_table(t);
		return;
	}
	cli_head("%s", head);
	cli_table_print(t);
}
