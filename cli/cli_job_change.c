// SPDX-License-Identifier: Apache-2.0
/* cli_job_change.c: drover job history, revert, scale. Runs in: cli. */
#include <errno.h>

#include "cli/cli_api.h"
#include "cli/cli_job.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"

static struct {
	bool detach;
} options;

/* Flags of revert, scale and periodic force. */
const struct cli_flag cli_job_change_flags[] = {
	{ "detach", CLI_FLAG_BOOL, &options.detach, NULL,
	    "return as soon as the request is accepted" },
	{ 0 },
};

int
cli_job_follow_change(struct cli *cli, const char *job_id, const json_t *answer, struct err *e)
{
	return cli_job_follow(cli, job_id, answer, options.detach, e);
}

static void
cell_state(struct cli_table *t, const json_t *job, bool current)
{
	bool stopped = cli_json_true(job, "Stop"), stable = cli_json_true(job, "Stable");

	cli_cell(t, "%s%s%s%s%s", current ? "current" : "", current && stable ? ", " : "",
	    stable ? "stable" : "", (current || stable) && stopped ? ", " : "",
	    stopped ? "stopped" : "");
}

static int
show_history(struct cli *cli, const char *id, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/job/%s/versions", id);
	cleanup_json json_t *answer = NULL;
	struct cli_table *t;
	const json_t *job;
	char time[CLI_TIME_SIZE];
	size_t i;
	int r;

	if (cli->json)
		return cli_api_print(cli, target, e);
	r = cli_api_get(cli, target, &answer, e);
	if (r < 0)
		return r;
	t = CLI_TABLE("Version", "Submitted", "State");
	json_array_foreach (cli_json_get(answer, "Versions"), i, job) {
		cli_table_row(t);
		cli_cell(t, "%lld", (long long)cli_json_int(job, "Version"));
		cli_cell(t, "%s", cli_time(cli, cli_json_time_ns(job, "SubmitTime"), time));
		cell_state(t, job, i == 0);
	}
	cli_table_print(t);
	return 0;
}

int
cli_job_history(struct cli *cli, int argc, char **argv)
{
	return cli_with_id(cli, &cli_kind_job, argv[0], show_history);
}

/* Sends a change of the job and follows its evaluation. Takes over body. */
static int
change_job(struct cli *cli, const char *id, const char *verb, json_t *body, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/job/%s/%s", id, verb);
	cleanup_json json_t *answer = NULL;
	int r = cli_api_send_new(cli, "POST", target, body, &answer, e);

	return r < 0 ? r : cli_job_follow(cli, id, answer, options.detach, e);
}

int
cli_job_revert(struct cli *cli, int argc, char **argv)
{
	cleanup_free char *id = NULL;
	struct err e = { 0 };
	int64_t version;
	int r;

	(void)argc;
	r = cli_number("drover job revert JOB VERSION", argv[1], &version, &e);
	if (r == 0)
		r = cli_id_resolve(cli, &cli_kind_job, argv[0], &id, &e);
	if (r == 0)
		r = change_job(cli, id, "revert",
		    json_pack("{s:s, s:I}", "JobID", id, "JobVersion", (json_int_t)version), &e);
	return r < 0 ? cli_fail(cli, &e) : r;
}

int
cli_job_scale(struct cli *cli, int argc, char **argv)
{
	cleanup_free char *id = NULL;
	const char *group = argc == 3 ? argv[1] : NULL;
	json_t *target;
	struct err e = { 0 };
	int64_t count;
	int r;

	r = cli_number("drover job scale JOB [GROUP] COUNT", argv[argc - 1], &count, &e);
	if (r == 0)
		r = cli_id_resolve(cli, &cli_kind_job, argv[0], &id, &e);
	if (r == 0) {
		target = group ? json_pack("{s:s, s:s}", "Job", id, "Group", group)
			       : json_pack("{s:s}", "Job", id);
		r = change_job(cli, id, "scale",
		    json_pack("{s:I, s:o}", "Count", (json_int_t)count, "Target", target), &e);
	}
	return r < 0 ? cli_fail(cli, &e) : r;
}
