/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_complete.h: completes a command line for the shells. `drover __complete WORD...` gets the
 * words after "drover", the last of which is incomplete, and prints one candidate per line: the
 * whole word, and after a tab what it is. The line ":files" stands for the names of files. Commands
 * and flags are those of cli_verbs.def; which values a word can have follows from its name in the
 * usage ("ALLOC", "ask|fail"). Runs in: cli.
 */
#ifndef DROVER_CLI_CLI_COMPLETE_H
#define DROVER_CLI_CLI_COMPLETE_H

#include "cli/cli.h"

#define CLI_LINE_WORDS 64

/* A command line up to the incomplete word. */
struct cli_line {
	struct cli *cli;
	const struct cli_verb *verb;
	const char *word; /* the incomplete word, or its part after "-flag=" */
	int begun;        /* length of that "-flag=", which each candidate begins with */
	const char *whole;
	const struct cli_flag *flag; /* whose value the word is; NULL: of none */
	bool of_job;                 /* -job says that the word ALLOC is a job */
	size_t n_words, n_flags;
	const char *words[CLI_LINE_WORDS]; /* words before that are no flags */
	struct {
		const struct cli_flag *flag;
		const char *value;
	} flags[CLI_LINE_WORDS]; /* flags before that have a value */
};

/* Prints what the words can be continued with. Returns an exit code. */
int cli_complete(struct cli *cli, int argc, char **argv);

/* Prints a candidate if it continues the word. */
void cli_offer(const struct cli_line *line, const char *value, const char *about);
/* Returns the word of the line that its usage or a flag names so, such as "JOB"; NULL if it has
 * none. */
const char *cli_line_value(const struct cli_line *line, const char *name);

/* cli_complete_values.c: offers the values of a word that is called so ("ALLOC"). Returns false if
 * they are unknown. */
bool cli_complete_value(const struct cli_line *line, const char *name);

#endif
