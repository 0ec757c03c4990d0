/* SPDX-License-Identifier: Apache-2.0 */
/* cli_deployment.h: what the commands about jobs and deployments share. Runs in: drover. */
#ifndef DROVER_CLI_DEPLOYMENT_H
#define DROVER_CLI_DEPLOYMENT_H

#include <jansson.h>

#include "cli/cli.h"

/* The job's newest deployment, a new reference; NULL: it has none. 0, or -errno. */
int cli_deployment_of_job(struct cli *cli, const char *job_id, json_t **ret, struct err *e);
/* Its id and state, and a table of its groups. */
void cli_deployment_print(const struct cli *cli, const json_t *deployment);
/*
 * Follows it until it has ended, or waits for an operator. An exit code: CLI_FAILED when it has
 * failed or was cancelled, after saying why; or -errno.
 */
int cli_deployment_follow(struct cli *cli, const char *id, struct err *e);

#endif
