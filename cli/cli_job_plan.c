// SPDX-License-Identifier: Apache-2.0
/* cli_job_plan.c: drover job plan: what registering a job would change. Runs in: cli. */
#include <errno.h>
#include <stdio.h>

#include "cli/cli_api.h"
#include "cli/cli_file.h"
#include "cli/cli_job.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"
#include "cli/cli_watch.h"

/* Exit codes as nomad's: 1 if allocations would be created or stopped. */
enum { PLAN_SAME = 0, PLAN_CHANGES = 1 };

static struct {
	bool diff, json_output, policy_override;
} options = { .diff = true };

const struct cli_flag cli_job_plan_flags[] = {
	{ "diff", CLI_FLAG_BOOL, &options.diff, NULL,
	    "show how the job differs from the registered one (default true)" },
	{ "json-output", CLI_FLAG_BOOL, &options.json_output, NULL,
	    "print the API's answer as JSON, as -json does" },
	{ "policy-override", CLI_FLAG_BOOL, &options.policy_override, NULL,
	    "override soft Sentinel policies of the servers" },
	CLI_JOB_FILE_FLAGS,
	{ 0 },
};

/* The kinds of updates that a plan counts for each group; the first CHANGES of them create or stop
 * allocations. */
static const char *const updates[] = { "Place", "Canary", "Stop", "DestructiveUpdate",
	"InPlaceUpdate", "Ignore" };
#define CHANGES 4

/* Returns PLAN_CHANGES if allocations would be created or stopped. */
static int
exit_code(const json_t *plan)
{
	const json_t *counts;
	const char *group;

	json_object_foreach (
	    (json_t *)cli_json_get(plan, "Annotations/DesiredTGUpdates"), group, counts) {
		for (size_t i = 0; i < CHANGES; i++)
			if (cli_json_int(counts, updates[i]) > 0)
				return PLAN_CHANGES;
	}
	return PLAN_SAME;
}

static void
print_counts(const json_t *plan)
{
	struct cli_table *t = CLI_TABLE(
	    "Task Group", "Create", "Canary", "Stop", "Replace", "Update In Place", "Leave");
	const json_t *counts;
	const char *group;

	json_object_foreach (
	    (json_t *)cli_json_get(plan, "Annotations/DesiredTGUpdates"), group, counts) {
		cli_table_row(t);
		cli_cell(t, "%s", group);
		for (size_t i = 0; i < ELEMENTSOF(updates); i++)
			cli_cell(t, "%lld", (long long)cli_json_int(counts, updates[i]));
	}
	cli_table_print(t);
}

static void
add_flags(struct text *line, const char *flag, const struct strings *values)
{
	for (size_t i = 0; i < values->n; i++) {
		text_printf(line, " %s", flag);
		cli_add_word(line, values->v[i]);
	}
}

/* Prints the command that registers the same job. Not wrapped, because operators paste it. */
static void
print_command(json_int_t index, const char *path)
{
	struct text line = { 0 };

	text_printf(&line, "  drover job run -check-index %" JSON_INTEGER_FORMAT, index);
	if (!cli_job_input.strict)
		cli_add_word(&line, "-hcl2-strict=false");
	add_flags(&line, "-var", &cli_job_input.vars);
	add_flags(&line, "-var-file", &cli_job_input.var_files);
	cli_add_word(&line, path);
	(void)printf("%s\n", line.text);
	text_done(&line);
}

static void
show_plan(struct cli *cli, const char *path, const json_t *plan, const char *problems)
{
	if (options.diff)
		cli_job_print_diff(cli_json_get(plan, "Diff"));
	cli_head("What would happen");
	print_counts(plan);
	cli_watch_say_failed(cli, cli_json_get(plan, "FailedTGAllocs"));
	cli_job_say_warnings(cli, plan);
	cli_job_warn(cli, problems ?: "");
	cli_line("%s", "");
	cli_line("Job Modify Index: %lld", (long long)cli_json_int(plan, "JobModifyIndex"));
	cli_line("To register it only if the job does not change before:");
	print_command(cli_json_int(plan, "JobModifyIndex"), path);
}

int
cli_job_plan(struct cli *cli, int argc, char **argv)
{
	cleanup_json json_t *request = NULL, *plan = NULL;
	cleanup_free char *target = NULL, *problems = NULL;
	struct err e = { 0 };
	int r;

	(void)argc;
	cli->json |= options.json_output;
	r = cli_job_read(argv[0], &request, NULL, &e);
	if (r == 0 && *cli_json_str(request, "Job/ID") == '\0')
		r = err_say(&e, -EINVAL, "the job in %s has no ID", argv[0]);
	if (r == 0) {
		(void)json_object_set_new(request, "Diff", json_true());
		if (options.policy_override)
			(void)json_object_set_new(request, "PolicyOverride", json_true());
		problems = cli_job_template_problems(request);
		target = cli_target("/v1/job/%s/plan", cli_json_str(request, "Job/ID"));
		r = cli_api_send(cli, "POST", target, request, &plan, &e);
	}
	if (r == 0 && cli->json)
		r = cli_json_print(plan, &e);
	if (r < 0) {
		(void)cli_fail(cli, &e);
		return CLI_PLAN_FAILED;
	}
	if (!cli->json)
		show_plan(cli, argv[0], plan, problems);
	return exit_code(plan);
}
