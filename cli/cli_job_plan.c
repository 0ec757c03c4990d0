// SPDX-License-Identifier: Apache-2.0
/* cli_job_plan.c: drover job plan: what registering a job would change. Runs in: cli. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli_api.h"
#include "cli/cli_file.h"
#include "cli/cli_job.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"
#include "cli/cli_watch.h"
#include "model/engine/field.h"

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
	{ "t", CLI_FLAG_REFUSED, NULL, NULL, "drover has no templates for its output; use -json" },
	CLI_JOB_FILE_FLAGS,
	{ 0 },
};

static const char *
mark(const json_t *diff)
{
	const char *type = cli_json_str(diff, "Type");

	return strcmp(type, "Added") == 0     ? "+"
	       : strcmp(type, "Deleted") == 0 ? "-"
	       : strcmp(type, "Edited") == 0  ? "+/-"
					      : " ";
}

static void
print_fields(const json_t *diff, int indent)
{
	const json_t *field;
	size_t i;

	json_array_foreach (cli_json_get(diff, "Fields"), i, field) {
		const char *old = cli_json_str(field, "Old"), *new = cli_json_str(field, "New");

		if (*old && *new)
			cli_line("%*s%-3s %s: \"%s\" => \"%s\"", indent, "", mark(field),
			    cli_json_str(field, "Name"), old, new);
		else
			cli_line("%*s%-3s %s: \"%s\"", indent, "", mark(field),
			    cli_json_str(field, "Name"), *old ? old : new);
	}
}

static void
print_objects(const json_t *diff, int indent)
{
	const json_t *object;
	size_t i;

	json_array_foreach (cli_json_get(diff, "Objects"), i, object) {
		cli_line("%*s%-3s %s {", indent, "", mark(object), cli_json_str(object, "Name"));
		print_fields(object, indent + 4);
		print_objects(object, indent + 4);
		cli_line("%*s    }", indent, "");
	}
}

static void
print_group(const json_t *group)
{
	const char *what, *before = " (";
	struct text line = { 0 };
	const json_t *n;

	text_printf(&line, "%-3s Task Group: \"%s\"", mark(group), cli_json_str(group, "Name"));
	json_object_foreach ((json_t *)cli_json_get(group, "Updates"), what, n) {
		text_printf(&line, "%s%lld %s", before, (long long)json_integer_value(n), what);
		before = ", ";
	}
	cli_line("%s%s", str(line.text), strcmp(before, ", ") == 0 ? ")" : "");
	text_done(&line);
}

static void
print_diff(const json_t *diff)
{
	const json_t *group, *task;
	size_t i, k;

	cli_line("%-3s Job: \"%s\"", mark(diff), cli_json_str(diff, "ID"));
	print_fields(diff, 0);
	print_objects(diff, 0);
	json_array_foreach (cli_json_get(diff, "TaskGroups"), i, group) {
		print_group(group);
		print_fields(group, 4);
		print_objects(group, 4);
		json_array_foreach (cli_json_get(group, "Tasks"), k, task) {
			cli_line("    %-3s Task: \"%s\"", mark(task), cli_json_str(task, "Name"));
			print_fields(task, 8);
			print_objects(task, 8);
		}
	}
}

/* What would happen to the allocations of a group; the first CHANGES create or stop some. */
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
show_plan(struct cli *cli, const char *path, const json_t *plan)
{
	const char *warnings = cli_json_str(plan, "Warnings");

	if (options.diff)
		print_diff(cli_json_get(plan, "Diff"));
	cli_head("What would happen");
	print_counts(plan);
	cli_watch_say_failed(cli, cli_json_get(plan, "FailedTGAllocs"));
	if (*warnings)
		cli_line("Warnings: %s", warnings);
	printf("\nJob Modify Index: %lld\nTo register it only if the job does not change before:\n "
	       " drover job run -check-index %lld %s\n",
	    (long long)cli_json_int(plan, "JobModifyIndex"),
	    (long long)cli_json_int(plan, "JobModifyIndex"), path);
}

int
cli_job_plan(struct cli *cli, int argc, char **argv)
{
	cleanup_json json_t *request = NULL, *plan = NULL;
	cleanup_free char *target = NULL;
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
		show_plan(cli, argv[0], plan);
	return exit_code(plan);
}
