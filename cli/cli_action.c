// SPDX-License-Identifier: Apache-2.0
/* cli_action.c: `drover action` runs a job's named command inside one of its tasks. Runs in: cli.
 */
#include <errno.h>
#include <string.h>

#include "cli/cli_api.h"
#include "cli/cli_namespace.h"
#include "cli/cli_exec.h"
#include "cli/cli_pick.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"

static struct {
	const char *job, *group, *alloc;
} options;

const struct cli_flag cli_action_flags[] = {
	{ "alloc", CLI_FLAG_STRING, &options.alloc, "ALLOC",
	    "run it in this allocation (default: the job's newest running one)" },
	CLI_EXEC_FLAGS,
	{ "group", CLI_FLAG_STRING, &options.group, "GROUP",
	    "choose among the allocations of this group" },
	{ "job", CLI_FLAG_STRING, &options.job, "JOB", "the job that defines the action" },
	{ "task", CLI_FLAG_STRING, &cli_exec_options.task, "TASK",
	    "the task, if more than one defines the action" },
	{ 0 },
};

static bool
has_action(const json_t *task, const char *name)
{
	const json_t *action;
	size_t i;

	json_array_foreach (json_object_get(task, "Actions"), i, action)
		if (strcmp(cli_json_str(action, "Name"), name) == 0)
			return true;
	return false;
}

/* The task of the allocation that has the action: the one that the flag names, or the only one. */
static int
choose_task(const json_t *alloc, const char *action, const char **ret, struct err *e)
{
	const json_t *group, *task;
	const char *found = NULL;
	size_t i, k;

	json_array_foreach (cli_json_get(alloc, "Job/TaskGroups"), i, group) {
		if (strcmp(cli_json_str(group, "Name"), cli_json_str(alloc, "TaskGroup")) != 0)
			continue;
		json_array_foreach (json_object_get(group, "Tasks"), k, task) {
			const char *name = cli_json_str(task, "Name");

			if (!has_action(task, action) ||
			    (cli_exec_options.task && strcmp(cli_exec_options.task, name)))
				continue;
			if (found)
				return err_say(e, -ENOTUNIQ,
				    "more than one task has the action \"%s\": choose one with "
				    "-task",
				    action);
			found = name;
		}
	}
	if (!found)
		return err_say(e, -ENOENT, "allocation %s has no %s%s with the action \"%s\"",
		    cli_json_str(alloc, "ID"), cli_exec_options.task ? "task " : "task",
		    cli_exec_options.task ?: "", action);
	*ret = found;
	return 0;
}

/* 0 with the id of the allocation, the caller's. */
static int
find_alloc(struct cli *cli, char **ret, struct err *e)
{
	if (options.alloc)
		return cli_id_resolve(cli, &cli_kind_alloc, options.alloc, ret, e);
	if (!options.job)
		return err_say(
		    e, -EINVAL, "name the job with -job JOB, or the allocation with -alloc ALLOC");
	return cli_pick_of_job(cli, options.job, options.group, false, ret, e);
}

int
cli_action(struct cli *cli, int argc, char **argv)
{
	cleanup_free char *id = NULL, *of_alloc = NULL, *target = NULL;
	cleanup_json json_t *alloc = NULL;
	const char *task = NULL;
	struct err e = { 0 };
	int r;

	r = find_alloc(cli, &id, &e);
	if (r == 0) {
		of_alloc = cli_target("/v1/allocation/%s", id);
		r = cli_api_get(cli, of_alloc, &alloc, &e);
		cli_namespace_use(cli, alloc);
	}
	if (r == 0)
		r = choose_task(alloc, argv[0], &task, &e);
	if (r == 0) {
		target = cli_target("/v1/job/%s/action?action=%s&allocID=%s&group=%s&task=%s",
		    cli_json_str(alloc, "JobID"), argv[0], id, cli_json_str(alloc, "TaskGroup"),
		    task);
		r = cli_exec_talk(cli, target, &e);
	}
	return r < 0 ? cli_fail(cli, &e) : r;
}
