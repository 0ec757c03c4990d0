/* SPDX-License-Identifier: Apache-2.0 */
/* cli_job.h: functions that the commands about jobs share. Runs in: drover. */
#ifndef DROVER_CLI_CLI_JOB_H
#define DROVER_CLI_CLI_JOB_H

#include <jansson.h>

#include "cli/cli.h"

/* Reads a job from path ("-": stdin). Leaves new references: the file, and the request that
 * registers it. 0 or -errno with the sentence. */
int cli_job_read(const char *path, json_t **file, json_t **ret, struct err *e);
/* To be called after a job was accepted: prints the answer if -json is set and the warnings, and
 * follows the evaluation until the allocations run, unless detach. Returns an exit code, or -errno
 * with a sentence. */
int cli_job_follow(
    struct cli *cli, const char *job_id, const json_t *answer, bool detach, struct err *e);

/* As cli_job_follow(), with the -detach of cli_job_change_flags. */
int cli_job_follow_change(struct cli *cli, const char *job_id, const json_t *answer, struct err *e);
/* Returns the infix of the ids of the job's children ("/dispatch-"); NULL if it is not a parent. */
const char *cli_job_infix(const json_t *job);
/* Prints the status of a parameterized or periodic job. Returns 0 or -errno with a sentence. */
int cli_job_print_parent(struct cli *cli, const json_t *job, struct err *e);

#endif
