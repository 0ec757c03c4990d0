// SPDX-License-Identifier: Apache-2.0
/* cli_job_history.c: drover job history: the versions of a job and their differences. Runs in: cli.
 */
#include <errno.h>

#include "cli/cli_api.h"
#include "cli/cli_job.h"
#include "cli/cli_list.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"

static struct {
	bool diffs, full;
	const char *diff_tag;
	int64_t version, diff_version; /* -1: not given */
} options = { .version = -1, .diff_version = -1 };

const struct cli_flag cli_job_history_flags[] = {
	{ "diff-tag", CLI_FLAG_STRING, &options.diff_tag, "TAG",
	    "with -p: compare with the version that has this tag" },
	{ "diff-version", CLI_FLAG_NUMBER, &options.diff_version, "VERSION",
	    "with -p: compare with this version" },
	{ "full", CLI_FLAG_BOOL, &options.full, NULL, "show each version as JSON" },
	{ "p", CLI_FLAG_BOOL, &options.diffs, NULL,
	    "show what differs between each version and the one before" },
	{ "version", CLI_FLAG_NUMBER, &options.version, "VERSION", "show only this version" },
	{ 0 },
};

/* Writes the state of a version: "current, stable, stopped", as far as it applies. */
static const char *
state_text(const json_t *job, bool current, char ret[64])
{
	bool stopped = cli_json_true(job, "Stop"), stable = cli_json_true(job, "Stable");

	(void)snprintf(ret, 64, "%s%s%s%s%s", current ? "current" : "",
	    current && stable ? ", " : "", stable ? "stable" : "",
	    (current || stable) && stopped ? ", " : "", stopped ? "stopped" : "");
	return ret;
}

static void
print_table(const struct cli *cli, const json_t *versions)
{
	struct cli_table *t = CLI_TABLE("Version", "?Submitted", "State", "Tag");
	char time[CLI_TIME_SIZE], state[64];
	const json_t *job;
	size_t i;

	json_array_foreach (versions, i, job) {
		cli_table_row(t);
		cli_cell(t, "%lld", (long long)cli_json_int(job, "Version"));
		cli_cell(t, "%s", cli_time(cli, cli_json_time_ns(job, "SubmitTime"), time));
		cli_cell(t, "%s", state_text(job, i == 0, state));
		cli_cell(t, "%s", cli_json_str(job, "VersionTag/Name"));
	}
	cli_table_print(t);
}

/* diff: NULL if there is none. */
static int
print_version(
    const struct cli *cli, const json_t *job, const json_t *diff, bool current, struct err *e)
{
	char time[CLI_TIME_SIZE], state[64];

	cli_field("Version", "%lld", (long long)cli_json_int(job, "Version"));
	cli_field("Submitted", "%s", cli_time(cli, cli_json_time_ns(job, "SubmitTime"), time));
	cli_field("State", "%s", state_text(job, current, state));
	cli_field("Tag", "%s", cli_json_str(job, "VersionTag/Name"));
	cli_field("Tag Description", "%s", cli_json_str(job, "VersionTag/Description"));
	cli_field(
	    "Tagged", "%s", cli_time(cli, cli_json_time_ns(job, "VersionTag/TaggedTime"), time));
	if (diff)
		cli_job_print_diff(diff);
	return options.full ? cli_json_print(job, e) : 0;
}

/* Prints the versions one after the other: all, or the one of -version. */
static int
print_versions(const struct cli *cli, const json_t *answer, struct err *e)
{
	const json_t *diffs = cli_json_get(answer, "Diffs"), *job;
	bool some = false;
	size_t i;
	int r = 0;

	json_array_foreach (cli_json_get(answer, "Versions"), i, job) {
		if (options.version >= 0 && cli_json_int(job, "Version") != options.version)
			continue;
		if (some)
			cli_line("%s", "");
		some = true;
		if (cli->json)
			r = cli_json_print(job, e);
		else
			r = print_version(cli, job, json_array_get(diffs, i), i == 0, e);
		if (r < 0)
			return r;
	}
	if (!some)
		return err_say(
		    e, -ENOENT, "no version %lld of the job is stored", (long long)options.version);
	return 0;
}

static char *
history_target(const char *id)
{
	char number[32];

	if (options.diff_tag)
		return cli_target(
		    "/v1/job/%s/versions?diffs=true&diff_tag=%s", id, options.diff_tag);
	(void)snprintf(number, sizeof number, "%lld", (long long)options.diff_version);
	if (options.diff_version >= 0)
		return cli_target("/v1/job/%s/versions?diffs=true&diff_version=%s", id, number);
	return cli_target("/v1/job/%s/versions?diffs=%s", id, cli_yes(options.diffs));
}

static int
show_history(struct cli *cli, const char *id, struct err *e)
{
	cleanup_free char *target = history_target(id);
	cleanup_json json_t *answer = NULL;
	int r;

	if (cli->json && options.version < 0)
		return cli_api_print(cli, target, e);
	r = cli_api_get(cli, target, &answer, e);
	if (r < 0)
		return r;
	if (options.version >= 0 || options.diffs || options.full)
		return print_versions(cli, answer, e);
	print_table(cli, cli_json_get(answer, "Versions"));
	return 0;
}

int
cli_job_history(struct cli *cli, int argc, char **argv)
{
	bool tag = options.diff_tag != NULL, version = options.diff_version >= 0;
	struct err e = { 0 };

	(void)argc;
	if (tag && version)
		(void)err_say(&e, -EINVAL, "-diff-tag and -diff-version exclude each other");
	else if ((tag || version) && !options.diffs)
		(void)err_say(&e, -EINVAL, "-%s needs -p", tag ? "diff-tag" : "diff-version");
	return e.code ? cli_fail(cli, &e) : cli_with_id(cli, &cli_kind_job, argv[0], show_history);
}
