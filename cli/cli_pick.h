/* SPDX-License-Identifier: Apache-2.0 */
/* cli_pick.h: finds an allocation of a job, for commands that need one of several. Runs in: cli. */
#ifndef DROVER_CLI_CLI_PICK_H
#define DROVER_CLI_CLI_PICK_H

#include "cli/cli.h"

/* Flags of verbs whose word ALLOC may be a job. */
extern struct cli_pick_options {
	bool job;
	const char *group;
} cli_pick_options;
#define CLI_PICK_FLAGS                                                                             \
	{ "group", CLI_FLAG_STRING, &cli_pick_options.group, "GROUP",                              \
		"with -job: an allocation of this group" },                                        \
	{                                                                                          \
		"job", CLI_FLAG_BOOL, &cli_pick_options.job, NULL,                                 \
		    "ALLOC is a job: use its newest allocation, preferably one that runs"          \
	}

/* Finds the newest running allocation of a job, which a word names, and of the group (NULL: any);
 * with ended, one that does not run if none does. Returns 0 with its id, which the caller frees, or
 * -errno with *e. */
int cli_pick_of_job(
    struct cli *cli, const char *job, const char *group, bool ended, char **ret, struct err *e);
/* As cli_id_resolve() for an allocation, or with -job as cli_pick_of_job(). */
int cli_pick_alloc(struct cli *cli, const char *word, char **ret, struct err *e);

#endif
