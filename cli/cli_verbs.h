/* SPDX-License-Identifier: Apache-2.0 */
/* cli_verbs.h: declares the functions and flags of all verbs in cli_verbs.def. Runs in: cli. */
#ifndef DROVER_CLI_CLI_VERBS_H
#define DROVER_CLI_CLI_VERBS_H

#include "cli/cli.h"

#define VERB(noun, verb, run, flags, ...)                                                          \
	int run(struct cli *cli, int argc, char **argv);                                           \
	extern const struct cli_flag flags[];
#include "cli/cli_verbs.def"

#endif
