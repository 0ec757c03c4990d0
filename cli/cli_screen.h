/* SPDX-License-Identifier: Apache-2.0 */
/* cli_screen.h: what the output can show: its width, colours, wrapped lines, a line of progress.
 * Runs in: cli. */
#ifndef DROVER_CLI_CLI_SCREEN_H
#define DROVER_CLI_CLI_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum cli_colour { CLI_PLAIN, CLI_BOLD, CLI_RED, CLI_YELLOW, CLI_GREEN };

/* Each f is stdout or stderr. */

/* Returns the columns of the terminal behind f; 0, which means no limit, if it is none. COLUMNS
 * overrides the terminal's own size. */
size_t cli_screen_width(FILE *f);
/* Returns the colour of a status such as "failed"; CLI_PLAIN for other words. */
enum cli_colour cli_status_colour(const char *status);
/* Return the codes that begin and end a colour; "" for CLI_PLAIN, if f is no terminal, and if
 * NO_COLOR is set. */
const char *cli_colour_on(FILE *f, enum cli_colour colour);
const char *cli_colour_off(FILE *f, enum cli_colour colour);

/* Returns the columns that len bytes of UTF-8 take; codes of colours take none. */
size_t cli_columns(const char *text, size_t len);
/* Returns the columns of the longest word. */
size_t cli_longest_word(const char *text);
/* Returns how many bytes of text fit into the columns without breaking a word, at least one word;
 * *ret_next is where the next line begins, which has `later` columns. A word that does not fit
 * there either stays on this line. */
size_t cli_wrap(const char *text, size_t columns, size_t later, const char **ret_next);

/* Prints text with a newline. On a terminal, lines that are too long are continued on the next line
 * after `indent` spaces; no word is broken. */
void cli_put(FILE *f, size_t indent, const char *text);

/* Shows a line about work in progress on stderr, if that is a terminal, in the place of the last
 * one. The next output of this process, or an empty text, removes it. */
void cli_progress(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void cli_progress_clear(void);

#endif
