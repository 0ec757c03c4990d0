// SPDX-License-Identifier: Apache-2.0
/* cli_status.c: drover status shows the node on one page, problems first. Runs in: cli. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_alloc.h"
#include "cli/cli_api.h"
#include "cli/cli_print.h"
#include "cli/cli_screen.h"
#include "cli/cli_status.h"
#include "cli/cli_verbs.h"
#include "cli/cli_watch.h"
#include "common/mem.h"

/* Each part's name in the JSON page, and its API path. The node's path needs its id. */
static const struct {
	const char *name, *target;
} parts[PARTS] = {
	[PART_SELF] = { "Agent", "/v1/agent/self" },
	[PART_HEALTH] = { "Health", "/v1/agent/health" },
	[PART_PROBLEMS] = { "AgentProblems", "/v1/agent/problems" },
	[PART_NODE] = { "Node", NULL },
	[PART_JOBS] = { "Jobs", "/v1/jobs" },
	[PART_DEPLOYMENTS] = { "Deployments", "/v1/deployments" },
	[PART_ALLOCS] = { "Allocations", "/v1/allocations" },
	[PART_VOLUMES] = { "Volumes", "/v1/volumes?type=csi" },
	[PART_PLUGINS] = { "Plugins", "/v1/plugins?type=csi" },
	[PART_LEAKS] = { "Leaks", "/v1/agent/leaks" },
};

#define PROBLEMS_SHOWN 20 /* lines of a page, unless -verbose is set */

/* If the agent cannot answer one part, the page shows that as a problem, but once if no server is
 * reachable; if it does not answer at all, the command fails. */
static int
read_page(struct cli_page *p, struct err *e)
{
	cleanup_free char *node = NULL;
	const char *target;
	int r;

	for (int i = 0; i < PARTS; i++) {
		target = parts[i].target;
		if (i == PART_NODE) {
			node = cli_target("/v1/node/%s",
			    cli_json_str(p->parts[PART_SELF], "stats/client/node_id"));
			target = node;
		}
		r = cli_api_get(p->cli, target, &p->parts[i], e);
		if (r < 0 && p->cli->status == 0)
			return r;
		if (r < 0 && !(p->cli->status == 503 && cli_problem_of(p, "servers")))
			cli_problem_add(p, "%s: %s", target, e->msg);
	}
	return 0;
}

static size_t
count_status(const json_t *list, const char *field, const char *status)
{
	const json_t *item;
	size_t i, n = 0;

	json_array_foreach (list, i, item)
		n += strcmp(cli_json_str(item, field), status) == 0;
	return n;
}

static void
print_counts(const struct cli_page *p)
{
	const json_t *jobs = p->parts[PART_JOBS], *allocs = p->parts[PART_ALLOCS];

	if (jobs)
		cli_field("Jobs", "%zu: %zu running, %zu pending, %zu dead", json_array_size(jobs),
		    count_status(jobs, "Status", "running"),
		    count_status(jobs, "Status", "pending"), count_status(jobs, "Status", "dead"));
	cli_field("Allocations",
	    "%zu: %zu running, %zu pending, %zu complete, %zu failed, %zu lost",
	    json_array_size(allocs), count_status(allocs, "ClientStatus", "running"),
	    count_status(allocs, "ClientStatus", "pending"),
	    count_status(allocs, "ClientStatus", "complete"),
	    count_status(allocs, "ClientStatus", "failed"),
	    count_status(allocs, "ClientStatus", "lost"));
	for (enum cli_part i = PART_VOLUMES; i <= PART_LEAKS; i++)
		if (p->parts[i])
			cli_field(parts[i].name, "%zu", json_array_size(p->parts[i]));
}

static void
print_volumes(const struct cli_page *p)
{
	struct cli_table *t;
	const json_t *volume;
	size_t i;

	if (json_array_size(p->parts[PART_VOLUMES]) == 0)
		return;
	cli_head("Volumes");
	t = CLI_TABLE("ID", "Plugin", "Schedulable", "Readers", "Writers");
	json_array_foreach (p->parts[PART_VOLUMES], i, volume) {
		cli_table_row(t);
		cli_cell(t, "%s", cli_json_str(volume, "ID"));
		cli_cell(t, "%s", cli_json_str(volume, "PluginID"));
		cli_cell(t, "%s", cli_yes(cli_json_true(volume, "Schedulable")));
		cli_cell(t, "%lld", (long long)cli_json_int(volume, "CurrentReaders"));
		cli_cell(t, "%lld", (long long)cli_json_int(volume, "CurrentWriters"));
	}
	cli_table_print(t);
}

/* Prints the agent's processes, for -verbose. */
static void
print_processes(const struct cli_page *p)
{
	const json_t *processes = cli_json_get(p->parts[PART_SELF], "stats/processes"), *text;
	const char *name;

	if (!p->cli->verbose || json_object_size(processes) == 0)
		return;
	cli_head("Processes");
	json_object_foreach ((json_t *)processes, name, text)
		cli_field(name, "%s", json_string_value(text) ?: "");
}

static void
print_problem(const char *text)
{
	cleanup_free char *clean = mem_strdup(text), *line = NULL;

	cli_clean(clean);
	line = mem_printf("%sProblem:%s %s", cli_colour_on(stdout, CLI_RED),
	    cli_colour_off(stdout, CLI_RED), clean);

	cli_put(stdout, 9, line);
}

static void
print_page(const struct cli_page *p)
{
	const json_t *self = p->parts[PART_SELF], *node = p->parts[PART_NODE], *alloc, *problem;
	cleanup_json json_t *alive = json_array();
	size_t i;

	json_array_foreach (p->problems, i, problem) {
		if (i == PROBLEMS_SHOWN && !p->cli->verbose) {
			cli_line("… and %zu more problems: -verbose shows all",
			    json_array_size(p->problems) - i);
			break;
		}
		print_problem(json_string_value(problem));
	}
	if (json_array_size(p->problems))
		(void)putchar('\n');
	cli_field("Agent", "%s", cli_json_str(self, "config/Version/Version"));
	cli_field("Socket", "%s", p->cli->address);
	cli_field("Node", "%s (%.*s)", cli_json_str(node, "Name"), p->cli->id_len,
	    cli_json_str(node, "ID"));
	cli_field("Status", "%s, %s",
	    cli_problem_of(p, "servers") ? "disconnected" : cli_json_str(node, "Status"),
	    cli_json_str(node, "SchedulingEligibility"));
	print_counts(p);
	cli_head("Allocations (wanted or running)");
	json_array_foreach (p->parts[PART_ALLOCS], i, alloc) {
		if (!cli_alloc_has_ended(alloc))
			(void)json_array_append(alive, (json_t *)alloc);
	}
	cli_print_allocs(p->cli, alive);
	print_volumes(p);
	print_processes(p);
}

/* Prints the whole page as one JSON object. */
static int
print_page_json(const struct cli_page *p, struct err *e)
{
	cleanup_json json_t *page = json_object();

	for (int i = 0; i < PARTS; i++)
		(void)json_object_set_new(
		    page, parts[i].name, p->parts[i] ? json_incref(p->parts[i]) : json_null());
	(void)json_object_set(page, "Problems", p->problems);
	return cli_json_print(page, e);
}

/* Shows the object with this id or prefix, of the first kind that has one. */
static int
show_object(struct cli *cli, const char *word)
{
	static const struct {
		const struct cli_kind *kind;
		int (*status)(struct cli *cli, int argc, char **argv);
	} kinds[] = {
		{ &cli_kind_job, cli_job_status },
		{ &cli_kind_alloc, cli_alloc_status },
		{ &cli_kind_eval, cli_eval_status },
		{ &cli_kind_deployment, cli_deployment_status },
		{ &cli_kind_node, cli_node_status },
		{ &cli_kind_volume, cli_volume_status },
		{ &cli_kind_plugin, cli_plugin_status },
	};
	struct err e = { 0 };

	for (size_t i = 0; i < ELEMENTSOF(kinds); i++) {
		cleanup_free char *id = NULL;
		int r = cli_id_search(cli, kinds[i].kind, word, &id, &e);

		if (r == 0)
			return kinds[i].status(cli, 1, &id);
		if (r != -ENOENT && r != -EINVAL)
			return cli_fail(cli, &e);
	}
	(void)err_say(&e, -ENOENT,
	    "no job, allocation, evaluation, deployment, node, volume or plugin \"%s\" exists",
	    word);
	return cli_fail(cli, &e);
}

int
cli_status(struct cli *cli, int argc, char **argv)
{
	struct cli_page page = { .cli = cli, .problems = json_array() };
	struct err e = { 0 };
	int r;

	if (argc > 0) {
		json_decref(page.problems);
		return show_object(cli, argv[0]);
	}
	r = read_page(&page, &e);
	if (r == 0)
		cli_problems_find(&page);
	if (r == 0 && cli->json)
		r = print_page_json(&page, &e);
	else if (r == 0)
		print_page(&page);
	for (int i = 0; i < PARTS; i++)
		json_decref(page.parts[i]);
	json_decref(page.problems);
	return r < 0 ? cli_fail(cli, &e) : CLI_OK;
}
