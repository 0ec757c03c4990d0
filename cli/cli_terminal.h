/* SPDX-License-Identifier: Apache-2.0 */
/* cli_terminal.h: the operator's terminal, while another program's is shown on it. Runs in: drover.
 */
#ifndef DROVER_CLI_CLI_TERMINAL_H
#define DROVER_CLI_CLI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

/*
 * Gives every key to the program at the other end, also what would interrupt. However this process
 * ends, by a signal that can be caught or by exit(3), the terminal is as it was before. Nothing if
 * stdin is none.
 */
int cli_terminal_raw(struct err *e);
void cli_terminal_restore(void);
/* False: there is no terminal. */
bool cli_terminal_size(unsigned *ret_rows, unsigned *ret_columns);

/*
 * What was typed, less what is meant for this command: at the beginning of a line ~. leaves, and ~~
 * is one ~. c is 0: no such thing.
 */
struct cli_escape {
	char c;
	bool in_line, pending;
};

/* Writes what is to be sent to out, which has room for 2 * len bytes; its length, or -1: leave. */
long cli_escape_filter(struct cli_escape *s, const char *in, size_t len, char *out);

#endif
