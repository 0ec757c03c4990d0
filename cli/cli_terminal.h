/* SPDX-License-Identifier: Apache-2.0 */
/* cli_terminal.h: the operator's terminal while it is connected to a remote command. Runs in: cli.
 */
#ifndef DROVER_CLI_CLI_TERMINAL_H
#define DROVER_CLI_CLI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

/* Passes every key to the remote command, also ^C. The terminal is restored when this process ends
 * by exit(3) or by a signal that can be caught. Does nothing if stdin is not a terminal. */
int cli_terminal_raw(struct err *e);
void cli_terminal_restore(void);
/* False if stdin is not a terminal. */
bool cli_terminal_size(unsigned *ret_rows, unsigned *ret_columns);

/* Filters typed input for escapes: at the start of a line, ~. closes the session and ~~ is a single
 * ~. c is the escape character; 0 disables escapes. */
struct cli_escape {
	char c;
	bool in_line, pending;
};

/* Writes the bytes to send to out, which holds 2 * len bytes. Returns their number, or -1 to close
 * the session. */
long cli_escape_filter(struct cli_escape *s, const char *in, size_t len, char *out);

#endif
