/* SPDX-License-Identifier: Apache-2.0 */
/* cli_exec.h: a command inside a task, talked with over a websocket. Runs in: drover. */
#ifndef DROVER_CLI_CLI_EXEC_H
#define DROVER_CLI_CLI_EXEC_H

#include "cli/cli.h"

extern struct cli_exec_options {
	bool input;
	union {
		bool on;
		unsigned char said; /* neither 0 nor 1: the flag was not given */
	} tty;
	const char *task, *escape;
} cli_exec_options;

/* The flags that stand for them, but for the task's. */
#define CLI_EXEC_FLAGS                                                                             \
	{ "e", CLI_FLAG_STRING, &cli_exec_options.escape, "CHAR",                                  \
		"at the beginning of a line CHAR and a dot leave a terminal (~); none: nothing "   \
		"does" },                                                                          \
	    { "i", CLI_FLAG_BOOL, &cli_exec_options.input, NULL,                                   \
		    "pass this command's input on (true); -i=false: the command's is empty" },     \
	{                                                                                          \
		"t", CLI_FLAG_BOOL, &cli_exec_options.tty.on, NULL,                                \
		    "give it a terminal (true if this command has one); -t=false: pipes"           \
	}

/* Talks with the command until it ends: its exit code, CLI_FAILED when the terminal was left, or
 * negative with *e. path_and_query has a query. */
int cli_exec_talk(struct cli *cli, const char *path_and_query, struct err *e);

#endif
