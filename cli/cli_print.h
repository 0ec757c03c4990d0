/* SPDX-License-Identifier: Apache-2.0 */
/* cli_print.h: what the operator sees: tables, fields, times and sizes. Runs in: drover. */
#ifndef DROVER_CLI_CLI_PRINT_H
#define DROVER_CLI_CLI_PRINT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/cli.h"

/*
 * Names and messages come from jobs and plugins: what a terminal would obey is replaced, in place.
 * The first takes newlines too, the second leaves them and drops those at the end.
 */
void cli_clean(char *text);
void cli_clean_lines(char *text);

/* A table: rows, then cells from left to right. It is printed when it is freed by
 * cli_table_print(), without colours; on a terminal the last column is wrapped to its width. An
 * empty cell is "-". */
struct cli_table;
struct cli_table *cli_table_new(const char *const *heads, size_t n);
void cli_table_row(struct cli_table *t);
void cli_cell(struct cli_table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void cli_table_print(struct cli_table *t);
#define CLI_TABLE(...)                                                                             \
	cli_table_new((const char *const[]){ __VA_ARGS__ },                                        \
	    ELEMENTSOF(((const char *const[]){ __VA_ARGS__ })))

/* "Name   = text"; nothing at all when the text is empty. */
void cli_field(const char *name, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A heading with an empty line before it. */
void cli_head(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* One line of a page. */
void cli_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* One line of progress, at once; on stderr when stdout is for JSON. */
void cli_say(const struct cli *cli, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define CLI_TIME_SIZE 48
/* "3m12s ago", or with -verbose the time itself; "" for 0. buf is returned. */
const char *cli_time(const struct cli *cli, int64_t time_ns, char buf[CLI_TIME_SIZE]);
/* value units in what a unit is made of; 0 for what is too large to be true. */
int64_t cli_scale(int64_t value, int64_t unit);
/* "1h5m" of nanoseconds. */
const char *cli_span(int64_t span_ns, char buf[CLI_TIME_SIZE]);
/* "1.5 GiB" of bytes. */
const char *cli_bytes(int64_t bytes, char buf[CLI_TIME_SIZE]);
const char *cli_yes(bool value);

void cli_sleep_ms(unsigned ms);

#endif
