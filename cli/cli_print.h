/* SPDX-License-Identifier: Apache-2.0 */
/* cli_print.h: prints fields, lines, times and sizes. Runs in: cli. */
#ifndef DROVER_CLI_CLI_PRINT_H
#define DROVER_CLI_CLI_PRINT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/cli.h"
#include "cli/cli_table.h"

/* Replace control characters and invalid UTF-8 in place, because names and messages come from jobs
 * and plugins. The first also replaces newlines; the second keeps them but removes those at the
 * end. */
void cli_clean(char *text);
void cli_clean_lines(char *text);

/* Prints "Name = text"; nothing if the text is empty. */
void cli_field(const char *name, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Prints a heading after an empty line. */
void cli_head(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Prints one line; on a terminal it is wrapped. */
void cli_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Prints one line of progress and flushes it; on stderr if stdout is for JSON. */
void cli_say(const struct cli *cli, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define CLI_TIME_SIZE 48
/* Formats "3m12s ago", or with -verbose the time: in UTC, or on a terminal the local time with its
 * zone; "" for 0. Returns buf. */
const char *cli_time(const struct cli *cli, int64_t time_ns, char buf[CLI_TIME_SIZE]);
/* Converts value from units of `unit` to its base; 0 on overflow. */
int64_t cli_scale(int64_t value, int64_t unit);
/* Formats nanoseconds as "1h5m". */
const char *cli_span(int64_t span_ns, char buf[CLI_TIME_SIZE]);
/* Formats bytes as "1.5 GiB". */
const char *cli_bytes(int64_t bytes, char buf[CLI_TIME_SIZE]);
const char *cli_yes(bool value);
/* Joins the strings of a list. The caller frees the result. */
char *cli_join(const json_t *list, const char *between);

/* Appends a space and the word, in quotes if a shell needs them. */
struct text;
void cli_add_word(struct text *t, const char *word);

void cli_sleep_ms(unsigned ms);

#endif
