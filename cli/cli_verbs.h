/* SPDX-License-Identifier: Apache-2.0 */
/* cli_verbs.h: the table of all verbs, and the functions and flags of each. Runs in: cli. */
#ifndef DROVER_CLI_CLI_VERBS_H
#define DROVER_CLI_CLI_VERBS_H

#include "cli/cli.h"

#define VERB(noun, verb, run, flags, ...)                                                          \
	int run(struct cli *cli, int argc, char **argv);                                           \
	extern const struct cli_flag flags[];
#define ALIAS(word, noun, verb)
#include "cli/cli_verbs.def"

extern const struct cli_verb cli_verbs[]; /* in the order of the help; ends with a NULL noun */
extern const struct cli_flag cli_common_flags[];

/* The short forms of verbs, as Nomad has them; ends with a NULL word. */
extern const struct cli_alias {
	const char *word, *noun, *verb;
} cli_aliases[];

/* Finds the verb that the first words name, also by a short form; *ret_words is the number of these
 * words. NULL if they name none. */
const struct cli_verb *cli_verb_find(int argc, char **argv, int *ret_words);
/* Returns whether the name of the verb begins with all these words. */
bool cli_verb_begins(const struct cli_verb *v, int argc, char **argv);

/* cli_help.c */
bool cli_is_help(const char *word); /* -h, -help */
void cli_help_print(const struct cli_verb *v);
/* For words that name no verb: prints the verbs whose names begin with them, else one sentence on
 * stderr. Returns the exit code. */
int cli_help_unknown(int argc, char **argv);

#endif
