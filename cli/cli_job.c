// SPDX-License-Identifier: Apache-2.0
/* cli_job.c: drover job run, stop, status. Runs in: cli. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_alloc.h"
#include "cli/cli_api.h"
#include "cli/cli_deployment.h"
#include "cli/cli_job.h"
#include "cli/cli_list.h"
#include "cli/cli_namespace.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"
#include "cli/cli_watch.h"

static struct {
	bool detach, output, purge, no_shutdown_delay, yes;
	int64_t check_index; /* -1: at any index */
} options = { .check_index = -1 };

const struct cli_flag cli_job_run_flags[] = {
	{ "check-index", CLI_FLAG_NUMBER, &options.check_index, "INDEX",
	    "register only if the job is unchanged since `job plan` printed this index; 0: only if "
	    "it is new" },
	{ "detach", CLI_FLAG_BOOL, &options.detach, NULL,
	    "return as soon as the job is registered" },
	{ "output", CLI_FLAG_BOOL, &options.output, NULL,
	    "print the job as JSON and do not register it" },
	CLI_JOB_FILE_FLAGS,
	{ 0 },
};

const struct cli_flag cli_job_stop_flags[] = {
	{ "detach", CLI_FLAG_BOOL, &options.detach, NULL,
	    "return as soon as the request is accepted" },
	{ "no-shutdown-delay", CLI_FLAG_BOOL, &options.no_shutdown_delay, NULL,
	    "do not wait for shutdown_delay" },
	{ "purge", CLI_FLAG_BOOL, &options.purge, NULL, "also remove the job and its history" },
	{ "yes", CLI_FLAG_BOOL, &options.yes, NULL,
	    "do not ask for confirmation when the id is a prefix" },
	{ 0 },
};

void
cli_job_say_warnings(const struct cli *cli, const json_t *answer)
{
	cleanup_free char *text = mem_strdup(cli_json_str(answer, "Warnings"));
	char *rest = text;

	for (const char *line; (line = strsep(&rest, "\n"));) {
		/* Servers put "2 warnings:" before a list with asterisks. */
		line += strspn(line, " \t*");
		if (*line && !(line[0] >= '0' && line[0] <= '9' && strstr(line, " warning")))
			cli_say(cli, "Warning: %s", line);
	}
}

/* Prints the answer if -json is set, and the agent's warnings. */
static int
show_answer(struct cli *cli, const json_t *answer, struct err *e)
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
	int r = show_answer(cli, answer, e);

	if (r < 0)
		return r;
	if (*eval_id && !detach)
		return follow_eval(cli, job_id, answer, e);
	cli_say(
	    cli, "Job \"%s\" is registered%s%s", job_id, *eval_id ? ", evaluation " : "", eval_id);
	return CLI_OK;
}

/* Adds the condition that the job's modify index is still this one. */
static void
enforce_index(json_t *request, int64_t index)
{
	if (index < 0)
		return;
	(void)json_object_set_new(request, "EnforceIndex", json_true());
	(void)json_object_set_new(request, "JobModifyIndex", json_integer(index));
}

int
cli_job_run(struct cli *cli, int argc, char **argv)
{
	cleanup_json json_t *request = NULL, *answer = NULL;
	struct err e = { 0 };
	int r;

	(void)argc;
	r = cli_job_read(argv[0], &request, &e);
	if (r == 0 && options.output) {
		r = cli_json_print(request, &e);
		return r < 0 ? cli_fail(cli, &e) : CLI_OK;
	}
	if (r == 0) {
		cli_namespace_use(cli, cli_json_get(request, "Job"));
		enforce_index(request, options.check_index);
		r = cli_api_send(cli, "POST", "/v1/jobs", request, &answer, &e);
	}
	if (r == 0)
		r = cli_job_follow(
		    cli, cli_json_str(request, "Job/ID"), answer, options.detach, &e);
	return r < 0 ? cli_fail(cli, &e) : r;
}

static int
stop_job(struct cli *cli, const char *job_id, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/job/%s?purge=%s&no_shutdown_delay=%s", job_id,
	    cli_yes(options.purge), cli_yes(options.no_shutdown_delay));
	struct cli_watch_filter filter = { .job_id = job_id };
	cleanup_json json_t *answer = NULL;
	const char *eval_id;
	int r;

	r = cli_api_send(cli, "DELETE", target, NULL, &answer, e);
	if (r < 0)
		return r;
	r = show_answer(cli, answer, e);
	if (r < 0)
		return r;
	eval_id = cli_json_str(answer, "EvalID");
	if (options.detach) {
		cli_say(cli, "Job \"%s\" is being stopped%s%s", job_id,
		    *eval_id ? ", evaluation " : "", eval_id);
		return CLI_OK;
	}
	if (*eval_id) {
		r = cli_watch_eval(cli, eval_id, e);
		/* Purging a job also removes its evaluations. */
		if (r < 0 && !(r == -ENOENT && options.purge))
			return r;
	}
	r = cli_watch_end(cli, &filter, e);
	if (r < 0)
		return r;
	cli_say(cli, "==> Job \"%s\" is stopped%s", job_id, options.purge ? " and purged" : "");
	return CLI_OK;
}

int
cli_job_stop(struct cli *cli, int argc, char **argv)
{
	cleanup_free char *id = NULL;
	struct err e = { 0 };
	int r;

	(void)argc;
	r = cli_id_resolve(cli, &cli_kind_job, argv[0], &id, &e);
	if (r == 0)
		r = cli_confirm_prefix("job", argv[0], id, options.yes, &e);
	if (r == 0)
		r = stop_job(cli, id, &e);
	return r < 0 ? cli_fail(cli, &e) : r;
}

static const char *
job_status_text(const json_t *job)
{
	const char *status = cli_json_str(job, "Status");

	return cli_json_true(job, "Stop") && strcmp(status, "dead") == 0 ? "dead (stopped)"
									 : status;
}

static void
job_cells(const struct cli *cli, struct cli_table *t, const json_t *job)
{
	char time[CLI_TIME_SIZE];

	cli_cell(t, "%s", cli_json_str(job, "ID"));
	cli_cell(t, "%s%s%s", cli_json_str(job, "Type"),
	    cli_json_true(job, "Periodic") ? "/periodic" : "",
	    cli_json_true(job, "ParameterizedJob") ? "/parameterized" : "");
	cli_cell(t, "%lld", (long long)cli_json_int(job, "Priority"));
	cli_cell(t, "%s", job_status_text(job));
	cli_cell(t, "%s", cli_time(cli, cli_json_time_ns(job, "SubmitTime"), time));
}

static const struct cli_list jobs = {
	.none = "No jobs",
	CLI_HEADS("ID", "?Type", "?Priority", "Status", "?Submitted"),
	.cells = job_cells,
};

static int
list_jobs(struct cli *cli, struct err *e)
{
	return cli_list_get(cli, &jobs, "/v1/jobs", e);
}

static void
print_groups(const json_t *job, const json_t *allocs)
{
	static const char *const states[] = { "pending", "running", "complete", "failed", "lost" };
	struct cli_table *t =
	    CLI_TABLE("Task Group", "Count", "Pending", "Running", "Complete", "Failed", "Lost");
	const json_t *group, *alloc;
	size_t i, j;

	json_array_foreach (cli_json_get(job, "TaskGroups"), i, group) {
		int n[ELEMENTSOF(states)] = { 0 };

		json_array_foreach (allocs, j, alloc) {
			if (strcmp(cli_json_str(alloc, "TaskGroup"), cli_json_str(group, "Name")) !=
			    0)
				continue;
			for (size_t k = 0; k < ELEMENTSOF(states); k++)
				n[k] += strcmp(cli_json_str(alloc, "ClientStatus"), states[k]) == 0;
		}
		cli_table_row(t);
		cli_cell(t, "%s", cli_json_str(group, "Name"));
		cli_cell(t, "%lld", (long long)cli_json_int(group, "Count"));
		for (size_t k = 0; k < ELEMENTSOF(states); k++)
			cli_cell(t, "%d", n[k]);
	}
	cli_table_print(t);
}

/* Prints why the newest failed allocation failed. */
static void
print_failure(const struct cli *cli, const json_t *allocs)
{
	const json_t *alloc, *newest = NULL;
	char time[CLI_TIME_SIZE];
	size_t i;

	json_array_foreach (allocs, i, alloc) {
		if (cli_alloc_has_failed(alloc) &&
		    (!newest ||
			cli_json_int(alloc, "CreateTime") > cli_json_int(newest, "CreateTime")))
			newest = alloc;
	}
	if (!newest)
		return;
	cli_head("Last failure");
	cli_field("Allocation", "%.*s", cli->id_len, cli_json_str(newest, "ID"));
	cli_field("When", "%s", cli_time(cli, cli_json_time_ns(newest, "ModifyTime"), time));
	cli_field("Why", "%s", cli_alloc_failure(newest));
}

static int
show_job(struct cli *cli, const char *id, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/job/%s", id);
	cleanup_free char *allocs_target = cli_target("/v1/job/%s/allocations", id);
	cleanup_json json_t *job = NULL, *allocs = NULL, *deployment = NULL;
	char time[CLI_TIME_SIZE];
	int r;

	if (cli->json)
		return cli_api_print(cli, target, e);
	r = cli_api_get(cli, target, &job, e);
	if (r == 0)
		r = cli_api_get(cli, allocs_target, &allocs, e);
	if (r == 0)
		r = cli_deployment_of_job(cli, id, &deployment, e);
	if (r < 0)
		return r;
	cli_field("ID", "%s", cli_json_str(job, "ID"));
	cli_field("Name", "%s", cli_json_str(job, "Name"));
	if (strcmp(cli_json_str(job, "Namespace"), "default") != 0)
		cli_field("Namespace", "%s", cli_json_str(job, "Namespace"));
	cli_field("Submitted", "%s", cli_time(cli, cli_json_time_ns(job, "SubmitTime"), time));
	cli_field("Type", "%s", cli_json_str(job, "Type"));
	cli_field("Priority", "%lld", (long long)cli_json_int(job, "Priority"));
	cli_field("Version", "%lld", (long long)cli_json_int(job, "Version"));
	cli_field("Status", "%s", job_status_text(job));
	cli_field("Why", "%s", cli_json_str(job, "StatusDescription"));
	if (cli_job_infix(job))
		return cli_job_print_parent(cli, job, e);
	cli_field("Parent", "%s", cli_json_str(job, "ParentID"));
	cli_head("Summary");
	print_groups(job, allocs);
	if (deployment) {
		cli_head("Latest Deployment");
		cli_deployment_print(cli, deployment);
	}
	cli_head("Allocations");
	cli_print_allocs(cli, allocs);
	print_failure(cli, allocs);
	return 0;
}

int
cli_job_status(struct cli *cli, int argc, char **argv)
{
	return cli_list_or_show(cli, &cli_kind_job, argc, argv, list_jobs, show_job);
}
