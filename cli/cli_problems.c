// SPDX-License-Identifier: Apache-2.0
/* cli_problems.c: finds what is wrong on the page of drover status. Runs in: cli. */
#include <stdarg.h>
#include <string.h>

#include "cli/cli_alloc.h"
#include "cli/cli_api.h"
#include "cli/cli_print.h"
#include "cli/cli_status.h"
#include "cli/cli_watch.h"
#include "common/clock.h"
#include "common/mem.h"

void
cli_problem_add(struct cli_page *p, const char *fmt, ...)
{
	cleanup_free char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = mem_vprintf(fmt, ap);
	va_end(ap);
	(void)json_array_append_new(p->problems, json_string(text));
}

const json_t *
cli_problem_of(const struct cli_page *p, const char *kind)
{
	const json_t *problem;
	size_t i;

	json_array_foreach (p->parts[PART_PROBLEMS], i, problem)
		if (strcmp(cli_json_str(problem, "Kind"), kind) == 0)
			return problem;
	return NULL;
}

/* Adds the problems that the agent found itself, with their times: failing checks, or all others.
 */
static void
find_agent_problems(struct cli_page *p, bool checks)
{
	const json_t *problem;
	char time[CLI_TIME_SIZE];
	size_t i;

	json_array_foreach (p->parts[PART_PROBLEMS], i, problem) {
		const char *text = cli_json_str(problem, "Text");
		int64_t since = cli_json_int(problem, "Since"),
			last = cli_json_int(problem, "Last");

		if ((strcmp(cli_json_str(problem, "Kind"), "check") == 0) != checks)
			continue;
		if (since && p->cli->verbose)
			cli_problem_add(p, "%s (since %s)", text, cli_time(p->cli, since, time));
		else if (since)
			cli_problem_add(
			    p, "%s (for %s)", text, cli_span(clock_real_ns() - since, time));
		else if (last)
			cli_problem_add(p, "%s (%s)", text, cli_time(p->cli, last, time));
		else
			cli_problem_add(p, "%s", text);
	}
}

static void
find_node_problems(struct cli_page *p)
{
	const json_t *node = p->parts[PART_NODE], *driver;
	const char *status = cli_json_str(node, "Status"), *name;

	if (*status && strcmp(status, "ready") != 0)
		cli_problem_add(
		    p, "the node is %s %s", status, cli_json_str(node, "StatusDescription"));
	if (json_is_object(cli_json_get(node, "DrainStrategy")))
		cli_problem_add(p, "the node is draining");
	else if (strcmp(cli_json_str(node, "SchedulingEligibility"), "ineligible") == 0)
		cli_problem_add(p,
		    "the node is not eligible for allocations: `drover node eligibility "
		    "-enable` changes that");
	json_object_foreach (cli_json_get(node, "Drivers"), name, driver) {
		if (cli_json_true(driver, "Detected") && !cli_json_true(driver, "Healthy"))
			cli_problem_add(
			    p, "driver %s: %s", name, cli_json_str(driver, "HealthDescription"));
	}
}

/* Reports failed allocations without a replacement, and wanted allocations that do not run. */
static void
find_alloc_problems(struct cli_page *p)
{
	const json_t *alloc;
	size_t i;

	json_array_foreach (p->parts[PART_ALLOCS], i, alloc) {
		const char *status = cli_json_str(alloc, "ClientStatus");
		bool wanted = strcmp(cli_json_str(alloc, "DesiredStatus"), "run") == 0;
		bool failed = cli_alloc_has_failed(alloc);
		const char *why = cli_alloc_failure(alloc);

		if (!wanted || *cli_json_str(alloc, "NextAllocation"))
			continue;
		if (failed || strcmp(status, "unknown") == 0)
			cli_problem_add(p, "allocation %.*s (%s) %s %s%s%s", p->cli->id_len,
			    cli_json_str(alloc, "ID"), cli_json_str(alloc, "Name"),
			    strcmp(status, "failed") == 0 ? "has" : "is", status, *why ? ": " : "",
			    why);
	}
}

static void
check_plugin(struct cli_page *p, const json_t *plugin)
{
	const char *id = cli_json_str(plugin, "ID"), *why;
	const json_t *node = p->parts[PART_NODE];
	bool controller = cli_json_int(plugin, "ControllersHealthy") <
			  cli_json_int(plugin, "ControllersExpected");

	if (!controller &&
	    cli_json_int(plugin, "NodesHealthy") >= cli_json_int(plugin, "NodesExpected"))
		return;
	why = cli_json_str(
	    json_object_get(
		cli_json_get(node, controller ? "CSIControllerPlugins" : "CSINodePlugins"), id),
	    "HealthDescription");
	cli_problem_add(p, "plugin %s is not healthy%s%s", id, *why ? ": " : "", why);
}

static void
find_other_problems(struct cli_page *p)
{
	const json_t *item;
	size_t i;

	json_array_foreach (p->parts[PART_JOBS], i, item) {
		if (strcmp(cli_json_str(item, "Status"), "pending") == 0)
			cli_problem_add(p, "job %s is pending%s%s", cli_json_str(item, "ID"),
			    *cli_json_str(item, "StatusDescription") ? ": " : "",
			    cli_json_str(item, "StatusDescription"));
	}
	json_array_foreach (p->parts[PART_PLUGINS], i, item)
		check_plugin(p, item);
	json_array_foreach (p->parts[PART_VOLUMES], i, item) {
		if (!cli_json_true(item, "Schedulable"))
			cli_problem_add(p, "volume %s cannot be used: its plugin %s is not healthy",
			    cli_json_str(item, "ID"), cli_json_str(item, "PluginID"));
	}
	if (json_array_size(p->parts[PART_LEAKS]))
		cli_problem_add(
		    p, "%zu leak(s): see drover leaks", json_array_size(p->parts[PART_LEAKS]));
}

/* Returns true if the list has a newer deployment of the same job. */
static bool
is_replaced(const json_t *deployments, const json_t *one)
{
	const json_t *other;
	size_t i;

	json_array_foreach (deployments, i, other) {
		if (strcmp(cli_json_str(other, "JobID"), cli_json_str(one, "JobID")) == 0 &&
		    strcmp(cli_json_str(other, "Namespace"), cli_json_str(one, "Namespace")) == 0 &&
		    cli_json_int(other, "CreateIndex") > cli_json_int(one, "CreateIndex"))
			return true;
	}
	return false;
}

static bool
job_is_dead(const struct cli_page *p, const json_t *deployment)
{
	const json_t *job;
	size_t i;

	json_array_foreach (p->parts[PART_JOBS], i, job) {
		if (strcmp(cli_json_str(job, "ID"), cli_json_str(deployment, "JobID")) == 0 &&
		    strcmp(cli_json_str(job, "Namespace"), cli_json_str(deployment, "Namespace")) ==
			0)
			return strcmp(cli_json_str(job, "Status"), "dead") == 0;
	}
	return true;
}

/* Reports deployments that wait for an operator, and those that failed and were the last of their
 * job. */
static void
find_deployment_problems(struct cli_page *p)
{
	const json_t *list = p->parts[PART_DEPLOYMENTS], *one;
	size_t i;

	json_array_foreach (list, i, one) {
		const char *status = cli_json_str(one, "Status");
		const char *text = cli_json_str(one, "StatusDescription");
		bool promotion = strstr(text, "requires manual promotion");

		if (strcmp(status, "successful") == 0 || strcmp(status, "cancelled") == 0 ||
		    (strcmp(status, "running") == 0 && !promotion) || is_replaced(list, one) ||
		    job_is_dead(p, one))
			continue;
		if (promotion)
			cli_problem_add(p,
			    "deployment %.*s of job %s waits for its promotion: `drover deployment "
			    "promote %.*s`",
			    p->cli->id_len, cli_json_str(one, "ID"), cli_json_str(one, "JobID"),
			    p->cli->id_len, cli_json_str(one, "ID"));
		else
			cli_problem_add(p, "deployment %.*s of job %s is %s: %s", p->cli->id_len,
			    cli_json_str(one, "ID"), cli_json_str(one, "JobID"), status, text);
	}
}

void
cli_problems_find(struct cli_page *p)
{
	find_agent_problems(p, false);
	find_node_problems(p);
	find_deployment_problems(p);
	find_alloc_problems(p);
	find_agent_problems(p, true);
	find_other_problems(p);
}
