/* SPDX-License-Identifier: Apache-2.0 */
/* cli_exec.h: runs a command inside a task, over a websocket. Runs in: cli. */
#ifndef DROVER_CLI_CLI_EXEC_H
#define DROVER_CLI_CLI_EXEC_H

#include "cli/cli.h"

extern struct cli_exec_options {
	bool input;
	union {
		bool on;
		unsigned char said; /* other than 0 or 1: the flag was not given */
	} tty;
	const char *task, *escape;
} cli_exec_options;

/* The flags of these settings, without the one for the task. */
#define CLI_EXEC_FLAGS                                                                             \
	{ "e", CLI_FLAG_STRING, &cli_exec_options.escape, "CHAR",                                  \
		"at the start of a line, CHAR and a dot close the session (~); none: nothing "     \
		"does" },                                                                          \
	    { "i", CLI_FLAG_BOOL, &cli_exec_options.input, NULL,                                   \
		    "pass stdin on to the command (true); with -i=false it gets no input" },       \
	{                                                                                          \
		"t", CLI_FLAG_BOOL, &cli_exec_options.tty.on, NULL,                                \
		    "allocate a terminal (default: if stdin is one); with -t=false it gets pipes"  \
	}

/* Runs the session until the command ends. Returns its exit code, CLI_FAILED if the operator closed
 * the session, or negative with *e. path_and_query already has a query. */
int cli_exec_talk(struct cli *cli, const char *path_and_query, struct err *e);

#endif
