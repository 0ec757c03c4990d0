// SPDX-License-Identifier: Apache-2.0
/* cli_job_run.c: drover job run: registers a job and follows it. Runs in: cli. */
#include <errno.h>
#include <string.h>

#include "cli/cli_api.h"
#include "cli/cli_deployment.h"
#include "cli/cli_job.h"
#include "cli/cli_namespace.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"
#include "cli/cli_watch.h"
#include "common/cleanup.h"
#include "common/mem.h"

#define STATUS_TOO_LARGE 413

static struct {
	bool detach, output, policy_override, preserve_counts, preserve_resources;
	int64_t check_index; /* -1: at any index */
	int64_t eval_priority;
} options = { .check_index = -1 };

const struct cli_flag cli_job_run_flags[] = {
	{ "check-index", CLI_FLAG_NUMBER, &options.check_index, "INDEX",
	    "register only if the job is unchanged since `job plan` printed this index; 0: only if "
	    "it is new" },
	{ "consul-namespace", CLI_FLAG_REFUSED, NULL, NULL, "drover does not work with Consul" },
	{ "detach", CLI_FLAG_BOOL, &options.detach, NULL,
	    "return as soon as the job is registered" },
	{ "eval-priority", CLI_FLAG_NUMBER, &options.eval_priority, "NUMBER",
	    "priority of the evaluation, 1 to 100 (default: that of the job)" },
	{ "output", CLI_FLAG_BOOL, &options.output, NULL,
	    "print the job as JSON and do not register it" },
	{ "policy-override", CLI_FLAG_BOOL, &options.policy_override, NULL,
	    "override soft Sentinel policies of the servers" },
	{ "preserve-counts", CLI_FLAG_BOOL, &options.preserve_counts, NULL,
	    "keep the counts that the groups have in the registered job" },
	{ "preserve-resources", CLI_FLAG_BOOL, &options.preserve_resources, NULL,
	    "keep the resources that the tasks have in the registered job" },
	{ "ui", CLI_FLAG_REFUSED, NULL, NULL, "drover has no web interface" },
	CLI_JOB_FILE_FLAGS,
	{ 0 },
};

void
cli_job_warn(const struct cli *cli, const char *warnings)
{
	cleanup_free char *text = mem_strdup(warnings);
	char *rest = text;

	for (const char *line; (line = strsep(&rest, "\n"));) {
		/* Servers put "2 warnings:" before a list with asterisks. */
		line += strspn(line, " \t*");
		if (*line && !(line[0] >= '0' && line[0] <= '9' && strstr(line, " warning")))
			cli_say(cli, "Warning: %s", line);
	}
}

void
cli_job_say_warnings(const struct cli *cli, const json_t *answer)
{
	cli_job_warn(cli, cli_json_str(answer, "Warnings"));
}

int
cli_job_show_answer(struct cli *cli, const json_t *answer, struct err *e)
{
	cli_job_say_warnings(cli, answer);
	return cli->json ? cli_json_print(answer, e) : 0;
}

/* Follows the deployment of the registered job, if it has one. An allocation that failed at its
 * start is reported at once, because the deployment may retry it for a long time. */
static int
follow_deployment(
    struct cli *cli, const char *job_id, const json_t *answer, int started, struct err *e)
{
	cleanup_json json_t *deployment = NULL;
	const char *id;
	int r = cli_deployment_of_job(cli, job_id, &deployment, e);

	if (r < 0 || !deployment ||
	    cli_json_int(deployment, "JobSpecModifyIndex") !=
		cli_json_int(answer, "JobModifyIndex"))
		return r < 0 ? r : started;
	id = cli_json_str(deployment, "ID");
	if (started == CLI_OK)
		return cli_deployment_follow(cli, id, e);
	cli_say(cli, "    Deployment \"%.*s\" is %s: drover deployment status %.*s", cli->id_len,
	    id, cli_json_str(deployment, "Status"), cli->id_len, id);
	return started;
}

static int
follow_eval(struct cli *cli, const char *job_id, const json_t *answer, struct err *e)
{
	const char *eval_id = cli_json_str(answer, "EvalID");
	int placed, r;

	placed = cli_watch_eval(cli, eval_id, e);
	if (placed < 0)
		return placed;
	r = cli_watch_start(cli, job_id, eval_id, e);
	/* The placed allocations have been followed; the exit code depends on those that were not
	 * placed. */
	if (r == CLI_OK)
		r = placed;
	return r < 0 ? r : follow_deployment(cli, job_id, answer, r, e);
}

int
cli_job_follow(
    struct cli *cli, const char *job_id, const json_t *answer, bool detach, struct err *e)
{
	const char *eval_id = cli_json_str(answer, "EvalID");
	int r = cli_job_show_answer(cli, answer, e);

	if (r < 0)
		return r;
	if (*eval_id && !detach)
		return follow_eval(cli, job_id, answer, e);
	cli_say(
	    cli, "Job \"%s\" is registered%s%s", job_id, *eval_id ? ", evaluation " : "", eval_id);
	return CLI_OK;
}

/* Adds what the flags ask for. */
static void
add_options(json_t *request)
{
	if (options.check_index >= 0) {
		(void)json_object_set_new(request, "EnforceIndex", json_true());
		(void)json_object_set_new(
		    request, "JobModifyIndex", json_integer(options.check_index));
	}
	if (options.eval_priority > 0)
		(void)json_object_set_new(
		    request, "EvalPriority", json_integer(options.eval_priority));
	if (options.policy_override)
		(void)json_object_set_new(request, "PolicyOverride", json_true());
	if (options.preserve_counts)
		(void)json_object_set_new(request, "PreserveCounts", json_true());
	if (options.preserve_resources)
		(void)json_object_set_new(request, "PreserveResources", json_true());
}

/* Sends the job with its source; without it if the agent does not accept that much. */
static int
register_job(
    struct cli *cli, json_t *request, json_t *submission, json_t **ret_answer, struct err *e)
{
	int r;

	cli_namespace_use(cli, cli_json_get(request, "Job"));
	add_options(request);
	(void)json_object_set(request, "Submission", submission);
	r = cli_api_send(cli, "POST", "/v1/jobs", request, ret_answer, e);
	if (r == 0 || cli->status != STATUS_TOO_LARGE)
		return r;
	cli_say(cli,
	    "Warning: the job's source is not stored, because the request with it is too large");
	(void)json_object_del(request, "Submission");
	return cli_api_send(cli, "POST", "/v1/jobs", request, ret_answer, e);
}

int
cli_job_run(struct cli *cli, int argc, char **argv)
{
	cleanup_json json_t *request = NULL, *submission = NULL, *answer = NULL;
	cleanup_free char *problems = NULL;
	struct err e = { 0 };
	int r;

	(void)argc;
	r = cli_job_read(argv[0], &request, &submission, &e);
	if (r == 0 && options.output) {
		r = cli_json_print(request, &e);
		return r < 0 ? cli_fail(cli, &e) : CLI_OK;
	}
	if (r == 0) {
		problems = cli_job_template_problems(request);
		cli_job_warn(cli, problems ?: "");
		r = register_job(cli, request, submission, &answer, &e);
	}
	if (r == 0)
		r = cli_job_follow(
		    cli, cli_json_str(request, "Job/ID"), answer, options.detach, &e);
	return r < 0 ? cli_fail(cli, &e) : r;
}
