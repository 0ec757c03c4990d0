/* SPDX-License-Identifier: Apache-2.0 */
/* cli_status.h: the page of drover status and the problems on it. Runs in: cli. */
#ifndef DROVER_CLI_CLI_STATUS_H
#define DROVER_CLI_CLI_STATUS_H

#include <jansson.h>

#include "cli/cli.h"

/* The parts of the page, in the order of the requests. */
enum cli_part {
	PART_SELF,
	PART_HEALTH,
	PART_PROBLEMS,
	PART_NODE,
	PART_JOBS,
	PART_DEPLOYMENTS,
	PART_ALLOCS,
	PART_VOLUMES,
	PART_PLUGINS,
	PART_LEAKS,
	PARTS
};

struct cli_page {
	struct cli *cli;
	json_t *parts[PARTS]; /* the API's answers; NULL: the agent could not answer */
	json_t *problems;     /* sentences */
};

/* Adds a sentence to the page's problems. */
void cli_problem_add(struct cli_page *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Returns the agent's problem of this kind ("servers"), or NULL. */
const json_t *cli_problem_of(const struct cli_page *p, const char *kind);
/* Adds the problems that the parts show, the most important first. */
void cli_problems_find(struct cli_page *p);

#endif
