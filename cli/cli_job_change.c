// SPDX-License-Identifier: Apache-2.0
/* cli_job_change.c: drover job revert, scale, start. Runs in: cli. */
#include <errno.h>
#include <string.h>

#include "cli/cli_api.h"
#include "cli/cli_job.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"

static struct {
	bool detach;
	int64_t check_index; /* 0: at any index */
} options;

/* Flags of revert, start and periodic force. */
const struct cli_flag cli_job_change_flags[] = {
	{ "detach", CLI_FLAG_BOOL, &options.detach, NULL,
	    "return as soon as the request is accepted" },
	{ 0 },
};

const struct cli_flag cli_job_scale_flags[] = {
	{ "check-index", CLI_FLAG_NUMBER, &options.check_index, "INDEX",
	    "scale only if this is the job's modify index" },
	{ "detach", CLI_FLAG_BOOL, &options.detach, NULL,
	    "return as soon as the request is accepted" },
	{ 0 },
};

int
cli_job_follow_change(struct cli *cli, const char *job_id, const json_t *answer, struct err *e)
{
	return cli_job_follow(cli, job_id, answer, options.detach, e);
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

/* Finds the version that a number or a tag names. */
static int
find_version(struct cli *cli, const char *id, const char *word, int64_t *ret, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/job/%s/versions", id);
	cleanup_json json_t *answer = NULL;
	struct err ignored;
	const json_t *job;
	size_t i;
	int r;

	if (cli_number("the version", word, ret, &ignored) == 0)
		return 0;
	r = cli_api_get(cli, target, &answer, e);
	if (r < 0)
		return r;
	json_array_foreach (cli_json_get(answer, "Versions"), i, job) {
		if (strcmp(cli_json_str(job, "VersionTag/Name"), word) != 0)
			continue;
		*ret = cli_json_int(job, "Version");
		return 0;
	}
	return err_say(e, -ENOENT, "no version of job \"%s\" has the tag \"%s\"", id, word);
}

int
cli_job_revert(struct cli *cli, int argc, char **argv)
{
	cleanup_free char *id = NULL;
	struct err e = { 0 };
	int64_t version;
	int r;

	(void)argc;
	r = cli_id_resolve(cli, &cli_kind_job, argv[0], &id, &e);
	if (r == 0)
		r = find_version(cli, id, argv[1], &version, &e);
	if (r == 0)
		r = change_job(cli, id, "revert",
		    json_pack("{s:s, s:I}", "JobID", id, "JobVersion", (json_int_t)version), &e);
	return r < 0 ? cli_fail(cli, &e) : r;
}

/* Finds the group to scale, the job's only one by default, and checks the index, which older
 * servers do not. *ret is of job. */
static int
find_group(const json_t *job, const char *wanted, const char **ret, struct err *e)
{
	const json_t *groups = cli_json_get(job, "TaskGroups");
	json_int_t index = cli_json_int(job, "JobModifyIndex");

	if (options.check_index > 0 && index != options.check_index)
		return err_say(e, -EEXIST, "job \"%s\" has the modify index %lld, not %lld",
		    cli_json_str(job, "ID"), (long long)index, (long long)options.check_index);
	if (!wanted && json_array_size(groups) != 1)
		return err_say(e, -EINVAL, "job \"%s\" has %zu groups: name one before COUNT",
		    cli_json_str(job, "ID"), json_array_size(groups));
	*ret = wanted ? wanted : cli_json_str(json_array_get(groups, 0), "Name");
	return 0;
}

static int
scale_job(struct cli *cli, const char *id, const char *wanted, int64_t count, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/job/%s", id);
	cleanup_json json_t *job = NULL;
	const char *group = "";
	int r = cli_api_get(cli, target, &job, e);

	if (r == 0)
		r = find_group(job, wanted, &group, e);
	if (r < 0)
		return r;
	return change_job(cli, id, "scale",
	    json_pack("{s:I, s:{s:s, s:s}, s:b, s:I}", "Count", (json_int_t)count, "Target", "Job",
		id, "Group", group, "EnforceIndex", options.check_index > 0, "JobModifyIndex",
		(json_int_t)options.check_index),
	    e);
}

int
cli_job_scale(struct cli *cli, int argc, char **argv)
{
	cleanup_free char *id = NULL;
	struct err e = { 0 };
	int64_t count;
	int r;

	r = cli_number("COUNT", argv[argc - 1], &count, &e);
	if (r == 0)
		r = cli_id_resolve(cli, &cli_kind_job, argv[0], &id, &e);
	if (r == 0)
		r = scale_job(cli, id, argc == 3 ? argv[1] : NULL, count, &e);
	return r < 0 ? cli_fail(cli, &e) : r;
}

/* Stopping a job disables its scaling policies, and starting it does not enable them. */
static void
warn_of_scaling(const struct cli *cli, const json_t *job)
{
	const json_t *group;
	size_t i;

	json_array_foreach (cli_json_get(job, "TaskGroups"), i, group) {
		if (json_is_false(cli_json_get(group, "Scaling/Enabled")))
			cli_say(cli,
			    "The scaling policy of group \"%s\" stays disabled: to enable it, "
			    "register the job again",
			    cli_json_str(group, "Name"));
	}
}

static int
start_job(struct cli *cli, const char *id, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/job/%s", id);
	cleanup_json json_t *job = NULL, *answer = NULL;
	int r = cli_api_get(cli, target, &job, e);

	if (r < 0)
		return r;
	if (!cli_json_true(job, "Stop"))
		return err_say(e, -EINVAL, "job \"%s\" is not stopped", id);
	(void)json_object_set_new(job, "Stop", json_false());
	warn_of_scaling(cli, job);
	r = cli_api_send_new(cli, "POST", "/v1/jobs", json_pack("{s:O}", "Job", job), &answer, e);
	return r < 0 ? r : cli_job_follow(cli, id, answer, options.detach, e);
}

int
cli_job_start(struct cli *cli, int argc, char **argv)
{
	(void)argc;
	return cli_with_id(cli, &cli_kind_job, argv[0], start_job);
}
