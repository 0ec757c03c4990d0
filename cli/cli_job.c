// SPDX-License-Identifier: Apache-2.0
/* cli_job.c: drover job status. Runs in: cli. */
#include <string.h>

#include "cli/cli_alloc.h"
#include "cli/cli_api.h"
#include "cli/cli_deployment.h"
#include "cli/cli_job.h"
#include "cli/cli_list.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"
#include "cli/cli_watch.h"

static struct {
	bool all, evals, brief;
} options;

const struct cli_flag cli_job_status_flags[] = {
	{ "all-allocs", CLI_FLAG_BOOL, &options.all, NULL,
	    "also show allocations of an earlier job with the same id" },
	{ "evals", CLI_FLAG_BOOL, &options.evals, NULL, "also show the job's evaluations" },
	CLI_LIST_FLAGS,
	{ "short", CLI_FLAG_BOOL, &options.brief, NULL, "show only the job itself" },
	{ 0 },
};

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

static void
print_job(const struct cli *cli, const json_t *job)
{
	char time[CLI_TIME_SIZE];

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
	cli_field("Parent", "%s", cli_json_str(job, "ParentID"));
}

static int
print_evals(struct cli *cli, const char *id, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/job/%s/evaluations", id);
	cleanup_json json_t *list = NULL;
	int r = cli_api_get(cli, target, &list, e);

	if (r == 0) {
		cli_head("Evaluations");
		cli_print_evals(cli, list);
	}
	return r;
}

/* Prints what belongs to a job that runs allocations. */
static int
print_parts(struct cli *cli, const char *id, const json_t *job, struct err *e)
{
	cleanup_free char *target =
	    cli_target("/v1/job/%s/allocations?all=%s", id, cli_yes(options.all));
	cleanup_json json_t *allocs = NULL, *deployment = NULL;
	int r = cli_api_get(cli, target, &allocs, e);

	if (r == 0)
		r = cli_deployment_of_job(cli, id, &deployment, e);
	if (r < 0)
		return r;
	cli_head("Summary");
	print_groups(job, allocs);
	if (options.evals && (r = print_evals(cli, id, e)) < 0)
		return r;
	if (deployment) {
		cli_head("Latest Deployment");
		cli_deployment_print(cli, deployment);
	}
	cli_head("Allocations");
	cli_print_allocs(cli, allocs);
	print_failure(cli, allocs);
	return 0;
}

static int
show_job(struct cli *cli, const char *id, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/job/%s", id);
	cleanup_json json_t *job = NULL;
	int r;

	if (cli->json)
		return cli_api_print(cli, target, e);
	r = cli_api_get(cli, target, &job, e);
	if (r < 0)
		return r;
	print_job(cli, job);
	if (options.brief)
		return 0;
	return cli_job_infix(job) ? cli_job_print_parent(cli, job, e)
				  : print_parts(cli, id, job, e);
}

int
cli_job_status(struct cli *cli, int argc, char **argv)
{
	return cli_list_or_show(cli, &cli_kind_job, argc, argv, list_jobs, show_job);
}
