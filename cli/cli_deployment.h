/* SPDX-License-Identifier: Apache-2.0 */
/* cli_deployment.h: functions that the commands about jobs and deployments share. Runs in: cli. */
#ifndef DROVER_CLI_CLI_DEPLOYMENT_H
#define DROVER_CLI_CLI_DEPLOYMENT_H

#include <jansson.h>

#include "cli/cli.h"

/* Reads the job's newest deployment into a new reference, NULL if it has none. Returns 0 or -errno.
 */
int cli_deployment_of_job(struct cli *cli, const char *job_id, json_t **ret, struct err *e);
/* Prints the deployment's id and state, and a table of its groups. */
void cli_deployment_print(const struct cli *cli, const json_t *deployment);
/* Follows the deployment until it has ended or needs an operator. Returns an exit code (CLI_FAILED
 * if the deployment failed or was cancelled, after printing why) or -errno. */
int cli_deployment_follow(struct cli *cli, const char *id, struct err *e);

#endif
