// SPDX-License-Identifier: Apache-2.0
/* cli_status.c: drover status shows the node on one page, problems first. Runs in: cli. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_alloc.h"
#include "cli/cli_api.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"
#include "cli/cli_watch.h"

enum part {
	PART_SELF,
	PART_HEALTH,
	PART_NODE,
	PART_JOBS,
	PART_ALLOCS,
	PART_VOLUMES,
	PART_PLUGINS,
	PART_LEAKS,
	PARTS
};

/* The API path of each part, and its name in the JSON page. The node's path needs its id. */
static const char *const part_targets[PARTS] = { "/v1/agent/self", "/v1/agent/health", NULL,
	"/v1/jobs", "/v1/allocations", "/v1/volumes?type=csi", "/v1/plugins?type=csi",
	"/v1/agent/leaks" };
static const char *const part_names[PARTS] = { "Agent", "Health", "Node", "Jobs", "Allocations",
	"Volumes", "Plugins", "Leaks" };

struct page {
	struct cli *cli;
	json_t *parts[PARTS];
	json_t *problems; /* sentences */
};

#define PROBLEMS_SHOWN 20 /* lines of a page, unless -verbose is set */

static void add_problem(struct page *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void
add_problem(struct page *p, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	/* A message that was cut in the middle of a character is not valid UTF-8. */
	(void)json_array_append_new(p->problems, json_string(text) ?: json_string(fmt));
}

/* If the agent cannot answer one part, the page shows that as a problem; if it does not answer at
 * all, the command fails. */
static int
read_page(struct page *p, struct err *e)
{
	cleanup_free char *node = NULL;
	const char *target;
	int r;

	for (int i = 0; i < PARTS; i++) {
		target = part_targets[i];
		if (i == PART_NODE) {
			node = cli_target("/v1/node/%s",
			    cli_json_str(p->parts[PART_SELF], "stats/client/node_id"));
			target = node;
		}
		r = cli_api_get(p->cli, target, &p->parts[i], e);
		if (r < 0 && p->cli->status == 0)
			return r;
		if (r < 0)
			add_problem(p, "%s: %s", target, e->msg);
	}
	return 0;
}

static void
find_node_problems(struct page *p)
{
	const json_t *node = p->parts[PART_NODE], *driver;
	const char *status = cli_json_str(node, "Status"), *name;

	if (*status && strcmp(status, "ready") != 0)
		add_problem(
		    p, "the node is %s %s", status, cli_json_str(node, "StatusDescription"));
	if (json_is_object(cli_json_get(node, "DrainStrategy")))
		add_problem(p, "the node is draining");
	else if (strcmp(cli_json_str(node, "SchedulingEligibility"), "ineligible") == 0)
		add_problem(p, "the node is not eligible for allocations: `drover node eligibility "
			       "-enable` changes that");
	json_object_foreach (cli_json_get(node, "Drivers"), name, driver) {
		if (cli_json_true(driver, "Detected") && !cli_json_true(driver, "Healthy"))
			add_problem(
			    p, "driver %s: %s", name, cli_json_str(driver, "HealthDescription"));
	}
}

/* Reports failed allocations without a replacement, and wanted allocations that do not run. */
static void
find_alloc_problems(struct page *p)
{
	const json_t *alloc;
	size_t i;

	json_array_foreach (p->parts[PART_ALLOCS], i, alloc) {
		const char *status = cli_json_str(alloc, "ClientStatus");
		bool wanted = strcmp(cli_json_str(alloc, "DesiredStatus"), "run") == 0;
		bool failed = cli_alloc_has_failed(alloc);

		if (!wanted || *cli_json_str(alloc, "NextAllocation"))
			continue;
		if (failed || strcmp(status, "unknown") == 0)
			add_problem(p, "allocation %.*s (%s) is %s: %s", p->cli->id_len,
			    cli_json_str(alloc, "ID"), cli_json_str(alloc, "Name"), status,
			    cli_alloc_failure(alloc));
	}
}

static void
find_other_problems(struct page *p)
{
	const json_t *item;
	size_t i;

	json_array_foreach (p->parts[PART_JOBS], i, item) {
		if (strcmp(cli_json_str(item, "Status"), "pending") == 0)
			add_problem(p, "job %s is pending: %s", cli_json_str(item, "ID"),
			    cli_json_str(item, "StatusDescription"));
	}
	json_array_foreach (p->parts[PART_PLUGINS], i, item) {
		if (cli_json_int(item, "NodesHealthy") < cli_json_int(item, "NodesExpected") ||
		    cli_json_int(item, "ControllersHealthy") <
			cli_json_int(item, "ControllersExpected"))
			add_problem(p, "plugin %s is not healthy", cli_json_str(item, "ID"));
	}
	json_array_foreach (p->parts[PART_VOLUMES], i, item) {
		if (!cli_json_true(item, "Schedulable"))
			add_problem(p, "volume %s cannot be used: its plugin %s is not healthy",
			    cli_json_str(item, "ID"), cli_json_str(item, "PluginID"));
	}
	if (json_array_size(p->parts[PART_LEAKS]))
		add_problem(
		    p, "%zu leak(s): see drover leaks", json_array_size(p->parts[PART_LEAKS]));
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
print_counts(const struct page *p)
{
	const json_t *jobs = p->parts[PART_JOBS], *allocs = p->parts[PART_ALLOCS];

	cli_field("Jobs", "%zu: %zu running, %zu pending, %zu dead", json_array_size(jobs),
	    count_status(jobs, "Status", "running"), count_status(jobs, "Status", "pending"),
	    count_status(jobs, "Status", "dead"));
	cli_field("Allocations",
	    "%zu: %zu running, %zu pending, %zu complete, %zu failed, %zu lost",
	    json_array_size(allocs), count_status(allocs, "ClientStatus", "running"),
	    count_status(allocs, "ClientStatus", "pending"),
	    count_status(allocs, "ClientStatus", "complete"),
	    count_status(allocs, "ClientStatus", "failed"),
	    count_status(allocs, "ClientStatus", "lost"));
	cli_field("Volumes", "%zu", json_array_size(p->parts[PART_VOLUMES]));
	cli_field("Plugins", "%zu", json_array_size(p->parts[PART_PLUGINS]));
	if (p->parts[PART_LEAKS])
		cli_field("Leaks", "%zu", json_array_size(p->parts[PART_LEAKS]));
}

static void
print_volumes(const struct page *p)
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
print_processes(const struct page *p)
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
print_page(const struct page *p)
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
		cli_line("Problem: %s", json_string_value(problem));
	}
	if (json_array_size(p->problems))
		(void)putchar('\n');
	cli_field("Agent", "%s", cli_json_str(self, "config/Version/Version"));
	cli_field("Socket", "%s", p->cli->address);
	cli_field("Node", "%s (%.*s)", cli_json_str(node, "Name"), p->cli->id_len,
	    cli_json_str(node, "ID"));
	cli_field("Status", "%s, %s", cli_json_str(node, "Status"),
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
print_page_json(const struct page *p, struct err *e)
{
	cleanup_json json_t *page = json_object();

	for (int i = 0; i < PARTS; i++)
		(void)json_object_set_new(
		    page, part_names[i], p->parts[i] ? json_incref(p->parts[i]) : json_null());
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
	struct page page = { .cli = cli, .problems = json_array() };
	struct err e = { 0 };
	int r;

	if (argc > 0) {
		json_decref(page.problems);
		return show_object(cli, argv[0]);
	}
	r = read_page(&page, &e);
	if (r == 0) {
		find_node_problems(&page);
		find_alloc_problems(&page);
		find_other_problems(&page);
	}
	if (r == 0 && cli->json)
		r = print_page_json(&page, &e);
	else if (r == 0)
		print_page(&page);
	for (int i = 0; i < PARTS; i++)
		json_decref(page.parts[i]);
	json_decref(page.problems);
	return r < 0 ? cli_fail(cli, &e) : CLI_OK;
}
