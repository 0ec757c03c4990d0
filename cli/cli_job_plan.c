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

/* Prints what would happen to the allocations of each group. Returns true if any would be created
 * or stopped. */
static bool
print_counts(const json_t *plan)
{
	static const char *const names[] = { "Place", "Canary", "Stop", "DestructiveUpdate",
		"InPlaceUpdate", "Ignore" };
	struct cli_table *t = CLI_TABLE(
	    "Task Group", "Create", "Canary", "Stop", "Replace", "Update In Place", "Leave");
	const json_t *counts;
	const char *group;
	bool changes = false;

	json_object_foreach (
	    (json_t *)cli_json_get(plan, "Annotations/DesiredTGUpdates"), group, counts) {
		cli_table_row(t);
		cli_cell(t, "%s", group);
		for (size_t i = 0; i < ELEMENTSOF(names); i++) {
			long long n = cli_json_int(counts, names[i]);

			cli_cell(t, "%lld", n);
			changes |= i < 4 && n > 0;
		}
	}
	cli_table_print(t);
	return changes;
}

static int
show_plan(struct cli *cli, const char *path, const json_t *plan)
{
	const char *warnings = cli_json_str(plan, "Warnings");
	bool changes;

	cli_job_print_diff(cli_json_get(plan, "Diff"));
	cli_head("What would happen");
	changes = print_counts(plan);
	cli_watch_say_failed(cli, cli_json_get(plan, "FailedTGAllocs"));
	if (*warnings)
		cli_line("Warnings: %s", warnings);
	printf("\nJob Modify Index: %lld\nTo register it only if the job does not change before:\n "
	       " drover job run -check-index %lld %s\n",
	    (long long)cli_json_int(plan, "JobModifyIndex"),
	    (long long)cli_json_int(plan, "JobModifyIndex"), path);
	return changes ? PLAN_CHANGES : PLAN_SAME;
}

int
cli_job_plan(struct cli *cli, int argc, char **argv)
{
	cleanup_json json_t *request = NULL, *plan = NULL;
	cleanup_free char *target = NULL;
	struct err e = { 0 };
	int r;

	(void)argc;
	r = cli_job_read(argv[0], &request, &e);
	if (r == 0 && *cli_json_str(request, "Job/ID") == '\0')
		r = err_say(&e, -EINVAL, "the job in %s has no ID", argv[0]);
	if (r == 0) {
		(void)json_object_set_new(request, "Diff", json_true());
		target = cli_target("/v1/job/%s/plan", cli_json_str(request, "Job/ID"));
		r = cli_api_send(cli, "POST", target, request, &plan, &e);
	}
	if (r == 0 && cli->json)
		r = cli_json_print(plan, &e);
	if (r < 0) {
		(void)cli_fail(cli, &e);
		return CLI_PLAN_FAILED;
	}
	return cli->json ? PLAN_SAME : show_plan(cli, argv[0], plan);
}
