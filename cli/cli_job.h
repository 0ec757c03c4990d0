/* SPDX-License-Identifier: Apache-2.0 */
/* cli_job.h: functions that the commands about jobs share. Runs in: cli. */
#ifndef DROVER_CLI_CLI_JOB_H
#define DROVER_CLI_CLI_JOB_H

#include <jansson.h>

#include "cli/cli.h"
#include "model/engine/containers.h"

/* How a job file is read: -var, -var-file and -hcl2-strict. */
extern struct cli_job_input {
	struct strings vars, var_files;
	bool strict;
} cli_job_input;

#define CLI_JOB_FILE_FLAGS                                                                         \
	{ "hcl2-strict", CLI_FLAG_BOOL, &cli_job_input.strict, NULL,                               \
		"refuse values for variables that the job file does not declare (default true)" }, \
	    { "vault-namespace", CLI_FLAG_REFUSED, NULL, NULL,                                     \
		    "drover does not work with Vault" },                                           \
	    { "var", CLI_FLAG_STRINGS, &cli_job_input.vars, "NAME=VALUE",                          \
		    "set a variable of the job file; repeat for each" },                           \
	{                                                                                          \
		"var-file", CLI_FLAG_STRINGS, &cli_job_input.var_files, "FILE",                    \
		    "set the variables that this file has; repeat for each"                        \
	}

/* Reads a job from path ("-": stdin), in HCL or as JSON, and leaves the request that registers it,
 * {"Job": {…}}, as a new reference, and in *ret_submission (may be NULL) its source, as the
 * request's Submission, as another. Prints each problem of HCL on stderr. 0 or -errno with the
 * sentence. */
int cli_job_read(const char *path, json_t **ret, json_t **ret_submission, struct err *e);
/* cli_job_template.c: returns a line for each template in the request's job that has no valid text,
 * NULL if there is none. The caller frees it. */
char *cli_job_template_problems(const json_t *request);
/* Prints the warnings of an answer, or those in text, one per line; nothing if there are none. */
void cli_job_warn(const struct cli *cli, const char *text);
void cli_job_say_warnings(const struct cli *cli, const json_t *answer);
/* Prints the answer if -json is set, and the agent's warnings. */
int cli_job_show_answer(struct cli *cli, const json_t *answer, struct err *e);
/* To be called after a job was accepted: prints the answer if -json is set and the warnings, and
 * follows the evaluation until the allocations run, unless detach. Returns an exit code, or -errno
 * with a sentence. */
int cli_job_follow(
    struct cli *cli, const char *job_id, const json_t *answer, bool detach, struct err *e);

/* As cli_job_follow(), with the -detach of cli_job_change_flags. */
int cli_job_follow_change(struct cli *cli, const char *job_id, const json_t *answer, struct err *e);
/* Prints the differences that the API reports as a "Diff", one line for each field. */
void cli_job_print_diff(const json_t *diff);
/* cli_eval.c: prints a table of evaluations. */
void cli_print_evals(const struct cli *cli, const json_t *list);
/* Returns the infix of the ids of the job's children ("/dispatch-"); NULL if it is not a parent. */
const char *cli_job_infix(const json_t *job);
/* Prints the status of a parameterized or periodic job. Returns 0 or -errno with a sentence. */
int cli_job_print_parent(struct cli *cli, const json_t *job, struct err *e);

#endif
