// SPDX-License-Identifier: Apache-2.0
/* cli_job_tag.c: drover job tag apply and job tag unset. Runs in: cli. */
#include <errno.h>

#include "cli/cli_api.h"
#include "cli/cli_job.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"

static struct {
	const char *name, *description;
	int64_t version; /* -1: the newest */
} options = { .version = -1 };

const struct cli_flag cli_job_tag_apply_flags[] = {
	{ "description", CLI_FLAG_STRING, &options.description, "TEXT",
	    "a description of the tag" },
	{ "name", CLI_FLAG_STRING, &options.name, "TAG", "the name of the tag" },
	{ "version", CLI_FLAG_NUMBER, &options.version, "VERSION",
	    "the version to tag (the newest)" },
	{ 0 },
};

const struct cli_flag cli_job_tag_unset_flags[] = {
	{ "name", CLI_FLAG_STRING, &options.name, "TAG", "the name of the tag" },
	{ 0 },
};

/* Returns the number of the job's newest version, or -errno. */
static int64_t
newest_version(struct cli *cli, const char *id, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/job/%s", id);
	cleanup_json json_t *job = NULL;
	int r = cli_api_get(cli, target, &job, e);

	return r < 0 ? r : cli_json_int(job, "Version");
}

static int
apply_tag(struct cli *cli, const char *id, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/job/%s/versions/%s/tag", id, options.name);
	int64_t version = options.version < 0 ? newest_version(cli, id, e) : options.version;
	cleanup_json json_t *answer = NULL;
	int r;

	if (version < 0)
		return (int)version;
	r = cli_api_send_new(cli, "PUT", target,
	    json_pack("{s:I, s:s}", "Version", (json_int_t)version, "Description",
		options.description ?: ""),
	    &answer, e);
	if (r == 0)
		cli_say(cli, "Version %lld of job \"%s\" has the tag \"%s\"", (long long)version,
		    id, options.name);
	return r == 0 && cli->json ? cli_json_print(answer, e) : r;
}

static int
unset_tag(struct cli *cli, const char *id, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/job/%s/versions/%s/tag", id, options.name);
	cleanup_json json_t *answer = NULL;
	int r = cli_api_send(cli, "DELETE", target, NULL, &answer, e);

	if (r == 0)
		cli_say(cli, "Job \"%s\" has no tag \"%s\" any more", id, options.name);
	return r == 0 && cli->json ? cli_json_print(answer, e) : r;
}

static int
change_tag(struct cli *cli, const char *job, cli_id_fn *change)
{
	struct err e = { 0 };

	if (options.name && *options.name)
		return cli_with_id(cli, &cli_kind_job, job, change);
	(void)err_say(&e, -EINVAL, "-name is missing: it names the tag");
	return cli_fail(cli, &e);
}

int
cli_job_tag_apply(struct cli *cli, int argc, char **argv)
{
	(void)argc;
	return change_tag(cli, argv[0], apply_tag);
}

int
cli_job_tag_unset(struct cli *cli, int argc, char **argv)
{
	(void)argc;
	return change_tag(cli, argv[0], unset_tag);
}
