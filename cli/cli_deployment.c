// SPDX-License-Identifier: Apache-2.0
/* cli_deployment.c: drover deployment list, status, promote, pause, resume, fail. Runs in: cli. */
#include "cli/cli_deployment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_alloc.h"
#include "cli/cli_api.h"
#include "cli/cli_list.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"

static struct {
	bool detach, monitor, latest, all;
	struct strings groups;
} options;

const struct cli_flag cli_deployment_resume_flags[] = {
	{ "detach", CLI_FLAG_BOOL, &options.detach, NULL,
	    "return as soon as the request is accepted" },
	{ 0 },
};

const struct cli_flag cli_deployment_status_flags[] = {
	CLI_LIST_FLAGS,
	{ "monitor", CLI_FLAG_BOOL, &options.monitor, NULL,
	    "follow the deployment until it has ended or needs an operator" },
	{ 0 },
};

const struct cli_flag cli_job_deployments_flags[] = {
	{ "all", CLI_FLAG_BOOL, &options.all, NULL,
	    "also those of an earlier job with the same id" },
	{ "latest", CLI_FLAG_BOOL, &options.latest, NULL, "show the newest one" },
	{ 0 },
};

#define PROMOTE_FLAGS                                                                              \
	{ "detach", CLI_FLAG_BOOL, &options.detach, NULL,                                          \
		"return as soon as the request is accepted" },                                     \
	{                                                                                          \
		"group", CLI_FLAG_STRINGS, &options.groups, "GROUP",                               \
		    "promote only the canaries of this group; repeat for each"                     \
	}

const struct cli_flag cli_deployment_promote_flags[] = { PROMOTE_FLAGS, { 0 } };
const struct cli_flag cli_job_promote_flags[] = { PROMOTE_FLAGS, { 0 } };

const struct cli_kind cli_kind_deployment = {
	.name = "deployment",
	.list = "/v1/deployments?prefix=%s",
	.uuid = true,
};

int
cli_deployment_of_job(struct cli *cli, const char *job_id, json_t **ret, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/job/%s/deployment", job_id);
	json_t *found = NULL;
	int r = cli_api_get(cli, target, &found, e);

	/* -ENOENT: there is no such job. null: the job has no deployment. */
	if (r == -ENOENT)
		return 0;
	if (r == 0 && json_is_object(found))
		*ret = json_incref(found);
	json_decref(found);
	return r;
}

static void
print_groups(const struct cli *cli, const json_t *deployment)
{
	struct cli_table *t = CLI_TABLE("Task Group", "?Auto Revert", "?Promoted", "Desired",
	    "?Canaries", "Placed", "Healthy", "Unhealthy", "?Progress Deadline");
	const json_t *group;
	const char *name, *status = cli_json_str(deployment, "Status");
	bool ended = strcmp(status, "successful") == 0 || strcmp(status, "failed") == 0 ||
		     strcmp(status, "cancelled") == 0;
	char time[CLI_TIME_SIZE];

	json_object_foreach (cli_json_get(deployment, "TaskGroups"), name, group) {
		long long canaries = cli_json_int(group, "DesiredCanaries");

		cli_table_row(t);
		cli_cell(t, "%s", name);
		cli_cell(t, "%s", cli_yes(cli_json_true(group, "AutoRevert")));
		cli_cell(t, "%s", canaries ? cli_yes(cli_json_true(group, "Promoted")) : "");
		cli_cell(t, "%lld", (long long)cli_json_int(group, "DesiredTotal"));
		cli_cell(t, "%lld", canaries);
		cli_cell(t, "%lld", (long long)cli_json_int(group, "PlacedAllocs"));
		cli_cell(t, "%lld", (long long)cli_json_int(group, "HealthyAllocs"));
		cli_cell(t, "%lld", (long long)cli_json_int(group, "UnhealthyAllocs"));
		cli_cell(t, "%s",
		    ended ? "" : cli_time(cli, cli_json_time_ns(group, "RequireProgressBy"), time));
	}
	cli_table_print(t);
}

void
cli_deployment_print(const struct cli *cli, const json_t *deployment)
{
	cli_field("ID", "%.*s", cli->id_len, cli_json_str(deployment, "ID"));
	cli_field("Job ID", "%s", cli_json_str(deployment, "JobID"));
	cli_field("Job Version", "%lld", (long long)cli_json_int(deployment, "JobVersion"));
	cli_field("Status", "%s", cli_json_str(deployment, "Status"));
	cli_field("Description", "%s", cli_json_str(deployment, "StatusDescription"));
	cli_head("Deployed");
	print_groups(cli, deployment);
}

static void
deployment_cells(const struct cli *cli, struct cli_table *t, const json_t *one)
{
	cli_cell(t, "%.*s", cli->id_len, cli_json_str(one, "ID"));
	cli_cell(t, "%s", cli_json_str(one, "JobID"));
	cli_cell(t, "%lld", (long long)cli_json_int(one, "JobVersion"));
	cli_cell(t, "%s", cli_json_str(one, "Status"));
	cli_cell(t, "%s", cli_json_str(one, "StatusDescription"));
}

static const struct cli_list deployments = {
	.none = "No deployments",
	CLI_HEADS("ID", "Job ID", "Job Version", "Status", "Description"),
	.cells = deployment_cells,
};

static int
list_deployments(struct cli *cli, struct err *e)
{
	return cli_list_get(cli, &deployments, "/v1/deployments", e);
}

static void
print_latest(const struct cli *cli, const json_t *deployment)
{
	if (json_is_object(deployment))
		cli_deployment_print(cli, deployment);
	else
		cli_say(cli, "%s", deployments.none);
}

static int
list_of_job(struct cli *cli, const char *id, struct err *e)
{
	cleanup_free char *target =
	    cli_target("/v1/job/%s/deployments?all=%s", id, cli_yes(options.all));
	cleanup_free char *latest = cli_target("/v1/job/%s/deployment", id);

	if (options.latest)
		return cli_show(cli, latest, print_latest, e);
	return cli_list_get(cli, &deployments, target, e);
}

int
cli_job_deployments(struct cli *cli, int argc, char **argv)
{
	(void)argc;
	return cli_with_id(cli, &cli_kind_job, argv[0], list_of_job);
}

int
cli_deployment_list(struct cli *cli, int argc, char **argv)
{
	struct err e = { 0 };

	(void)argc;
	(void)argv;
	return list_deployments(cli, &e) < 0 ? cli_fail(cli, &e) : CLI_OK;
}

static int
show_deployment(struct cli *cli, const char *id, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/deployment/%s", id);
	cleanup_free char *allocs_target = cli_target("/v1/deployment/allocations/%s", id);

	if (options.monitor)
		return cli_deployment_follow(cli, id, e);
	return cli_show_with_allocs(
	    cli, target, allocs_target, "Allocations", cli_deployment_print, e);
}

int
cli_deployment_status(struct cli *cli, int argc, char **argv)
{
	return cli_list_or_show(
	    cli, &cli_kind_deployment, argc, argv, list_deployments, show_deployment);
}

/* Sends the request. Takes over body. */
static int
change_deployment(struct cli *cli, const char *verb, const char *id, json_t *body, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/deployment/%s/%s", verb, id);
	cleanup_json json_t *answer = NULL;
	int r;

	(void)json_object_set_new(body, "DeploymentID", json_string(id));
	r = cli_api_send_new(cli, "POST", target, body, &answer, e);
	return r == 0 && cli->json ? cli_json_print(answer, e) : r;
}

/* Sends the request and prints `done`; with follow, waits until the deployment has ended. Takes
 * over body. */
static int
run_change(struct cli *cli, const char *wanted, const char *verb, json_t *body, const char *done,
    bool follow)
{
	cleanup_free char *id = NULL;
	cleanup_json json_t *request = body;
	struct err e = { 0 };
	int r = cli_id_resolve(cli, &cli_kind_deployment, wanted, &id, &e);

	if (r == 0)
		r = change_deployment(cli, verb, id, json_incref(request), &e);
	if (r == 0)
		cli_say(cli, "Deployment \"%.*s\" %s", cli->id_len, id, done);
	if (r == 0 && follow && !options.detach)
		r = cli_deployment_follow(cli, id, &e);
	return r < 0 ? cli_fail(cli, &e) : r;
}

static int
promote(struct cli *cli, const char *id)
{
	return run_change(cli, id, "promote",
	    json_pack("{s:b, s:o}", "All", options.groups.n == 0, "Groups",
		cli_json_strings(options.groups.v, options.groups.n)),
	    "is promoted", true);
}

int
cli_deployment_promote(struct cli *cli, int argc, char **argv)
{
	(void)argc;
	return promote(cli, argv[0]);
}

static int
promote_job(struct cli *cli, const char *job_id, struct err *e)
{
	cleanup_json json_t *deployment = NULL;
	int r = cli_deployment_of_job(cli, job_id, &deployment, e);

	if (r < 0)
		return r;
	if (!deployment)
		return err_say(e, -ENOENT, "job \"%s\" has no deployment", job_id);
	return promote(cli, cli_json_str(deployment, "ID"));
}

int
cli_job_promote(struct cli *cli, int argc, char **argv)
{
	(void)argc;
	return cli_with_id(cli, &cli_kind_job, argv[0], promote_job);
}

int
cli_deployment_pause(struct cli *cli, int argc, char **argv)
{
	(void)argc;
	return run_change(
	    cli, argv[0], "pause", json_pack("{s:b}", "Pause", 1), "is paused", false);
}

int
cli_deployment_resume(struct cli *cli, int argc, char **argv)
{
	(void)argc;
	return run_change(cli, argv[0], "pause", json_pack("{s:b}", "Pause", 0), "goes on", true);
}

int
cli_deployment_fail(struct cli *cli, int argc, char **argv)
{
	(void)argc;
	return run_change(cli, argv[0], "fail", json_object(), "is marked as failed", false);
}
