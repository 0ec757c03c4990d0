/* SPDX-License-Identifier: Apache-2.0 */
/* cli_table.h: tables that fit the terminal. Runs in: cli. */
#ifndef DROVER_CLI_CLI_TABLE_H
#define DROVER_CLI_CLI_TABLE_H

#include <jansson.h>
#include <stddef.h>

#include "common/mem.h"

/*
 * A table: add rows, then cells from left to right. cli_table_print() prints and frees it. An empty
 * cell is "-". On a terminal that is too narrow for the table, texts are wrapped between words; if
 * that is not enough, columns whose head begins with '?' (not part of the head) are left out, the
 * last first; and if that is not enough either, each row becomes a list of "Head = cell".
 */
struct cli_table;
struct cli_table *cli_table_new(const char *const *heads, size_t n);
/* Adds a column after the others, before the first row. */
void cli_table_column(struct cli_table *t, const char *head);
void cli_table_row(struct cli_table *t);
void cli_cell(struct cli_table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Fills cells with members of the object that are texts, which the NULL-terminated list names. */
void cli_text_cells(struct cli_table *t, const json_t *object, const char *const names[]);
#define CLI_TEXT_CELLS(t, object, ...)                                                             \
	cli_text_cells(t, object, (const char *const[]){ __VA_ARGS__, NULL })
void cli_table_print(struct cli_table *t);
/* As cli_table_print(), below this heading; an empty table prints nothing. */
void cli_table_print_under(struct cli_table *t, const char *head);
#define CLI_TABLE(...)                                                                             \
	cli_table_new((const char *const[]){ __VA_ARGS__ },                                        \
	    ELEMENTSOF(((const char *const[]){ __VA_ARGS__ })))

#endif
