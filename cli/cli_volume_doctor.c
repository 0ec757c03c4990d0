// SPDX-License-Identifier: Apache-2.0
/* cli_volume_doctor.c: drover volume doctor: what is known about volumes, and what disagrees. Runs
 * in: cli. */
#include <errno.h>
#include <string.h>

#include "cli/cli_api.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"
#include "cli/cli_volume.h"
#include "common/mem.h"

static struct {
	bool fix;
} options;

const struct cli_flag cli_volume_doctor_flags[] = {
	{ "fix", CLI_FLAG_BOOL, &options.fix, NULL, "repair what can be repaired safely" },
	{ 0 },
};

/* --- the page of one volume --- */

/* The claims as the servers know them, because the agent's answer has none. */
static void
print_server_claims(struct cli *cli, const char *namespace, const char *id)
{
	static const char *const maps[][2] = { { "WriteAllocs", "write" },
		{ "ReadAllocs", "read" } };
	cleanup_free char *target = cli_target("/v1/volume/csi/%s?namespace=%s", id, namespace);
	struct cli_table *t = CLI_TABLE("Allocation", "Mode");
	cleanup_json json_t *volume = NULL;
	struct err e = { 0 };
	const char *alloc;
	json_t *ignored;
	size_t n;

	if (cli_api_get(cli, target, &volume, &e) < 0) {
		cli_table_print_under(t, "Claims");
		cli_head("Claims");
		cli_line("Not known: the servers have them, and did not answer: %s", e.msg);
		return;
	}
	for (size_t i = 0; i < ELEMENTSOF(maps); i++)
		json_object_foreach (cli_json_get(volume, maps[i][0]), alloc, ignored) {
			cli_table_row(t);
			cli_cell(t, "%.*s", cli->id_len, alloc);
			cli_cell(t, "%s", maps[i][1]);
		}
	n = json_object_size(cli_json_get(volume, "WriteAllocs")) +
	    json_object_size(cli_json_get(volume, "ReadAllocs"));
	cli_table_print_under(t, "Claims, as the servers know them");
	if (options.fix && n > 0)
		cli_line("-fix leaves them to the servers: `drover volume detach %s NODE` releases "
			 "those of ended allocations",
		    id);
}

static void
print_claims(struct cli *cli, const json_t *page)
{
	struct cli_table *t;
	const json_t *claim;
	size_t i;

	if (json_is_null(cli_json_get(page, "Claims"))) {
		print_server_claims(cli, cli_json_str(page, "Namespace"), cli_json_str(page, "ID"));
		return;
	}
	t = CLI_TABLE("Allocation", "Status", "Mode", "?Access Mode", "State", "Attached");
	json_array_foreach (cli_json_get(page, "Claims"), i, claim) {
		cli_table_row(t);
		cli_cell(t, "%.*s", cli->id_len, cli_json_str(claim, "AllocationID"));
		CLI_TEXT_CELLS(t, claim, "AllocStatus", "Mode", "AccessMode", "State", "Attached");
	}
	cli_table_print_under(t, "Claims");
}

static void
put_count(struct cli_table *t, const json_t *row, const char *path, const char *count)
{
	long long n = (long long)cli_json_int(row, count);

	if (!*cli_json_str(row, path))
		cli_cell(t, "%s", "");
	else if (n == 1)
		cli_cell(t, "mounted");
	else if (n == 0)
		cli_cell(t, "not mounted");
	else
		cli_cell(t, "mounted %lld times", n);
}

static void
print_mounts(struct cli *cli, const json_t *page)
{
	struct cli_table *t =
	    CLI_TABLE("Allocation", "Status", "Step", "Target", "?Staging", "?Read Only");
	const json_t *row;
	size_t i;

	json_array_foreach (cli_json_get(page, "Mounts"), i, row) {
		cli_table_row(t);
		cli_cell(t, "%.*s", cli->id_len, cli_json_str(row, "AllocationID"));
		CLI_TEXT_CELLS(t, row, "AllocStatus", "Step");
		put_count(t, row, "TargetPath", "TargetMounts");
		put_count(t, row, "StagingPath", "StagingMounts");
		cli_cell(t, "%s", cli_yes(cli_json_true(row, "ReadOnly")));
	}
	cli_table_print_under(t, "Mounts on this node");
	json_array_foreach (cli_json_get(page, "Mounts"), i, row) {
		if (cli->verbose)
			cli_line("Allocation %.*s: %s", cli->id_len,
			    cli_json_str(row, "AllocationID"), cli_json_str(row, "TargetPath"));
		if (cli->verbose && *cli_json_str(row, "StagingPath"))
			cli_line("Allocation %.*s: %s", cli->id_len,
			    cli_json_str(row, "AllocationID"), cli_json_str(row, "StagingPath"));
		if (cli_json_true(row, "EffectUnknown"))
			cli_line("Allocation %.*s: an earlier call to the plugin may have taken "
				 "effect, or may still do so",
			    cli->id_len, cli_json_str(row, "AllocationID"));
		if (*cli_json_str(row, "WaitsFor"))
			cli_line("Allocation %.*s: %s", cli->id_len,
			    cli_json_str(row, "AllocationID"), cli_json_str(row, "WaitsFor"));
	}
}

static void
print_plugin(const json_t *page)
{
	cleanup_free char *nodes = NULL;
	const json_t *plugin = cli_json_get(page, "Plugin"),
		     *published = cli_json_get(plugin, "PublishedNodes");

	cli_field("Plugin", "%s, %lld of %lld healthy on this node", cli_json_str(plugin, "ID"),
	    (long long)cli_json_int(plugin, "Healthy"),
	    (long long)cli_json_int(plugin, "Instances"));
	cli_field("Plugin's Node", "%s", cli_json_str(plugin, "NodeID"));
	if (json_is_boolean(cli_json_get(plugin, "Listed")))
		cli_field("Known to Plugin", "%s", cli_yes(cli_json_true(plugin, "Listed")));
	else
		cli_field("Known to Plugin", "not known: %s", cli_json_str(plugin, "NotListed"));
	if (json_is_array(published)) {
		nodes = cli_join(published, ", ");
		cli_field("Published on", "%s", *nodes ? nodes : "no node");
	}
	if (json_is_object(cli_json_get(plugin, "Condition")))
		cli_field("Condition", "%s%s%s",
		    cli_json_true(plugin, "Condition/Abnormal") ? "abnormal" : "normal",
		    *cli_json_str(plugin, "Condition/Message") ? ": " : "",
		    cli_json_str(plugin, "Condition/Message"));
}

/* The agent asks the plugin once a minute. */
static void
print_usage(const struct cli *cli, const json_t *usage)
{
	char when[CLI_TIME_SIZE];

	cli_volume_print_used(usage);
	cli_field("Reported", "%s", cli_time(cli, cli_json_int(usage, "Reported"), when));
	cli_field("Report Failed", "%s", cli_json_str(usage, "Error"));
}

static void
print_problems(const json_t *page)
{
	const json_t *problem;
	size_t i;

	if (json_array_size(cli_json_get(page, "Problems")) == 0) {
		cli_head("Nothing disagrees");
		return;
	}
	cli_head("Disagreements");
	json_array_foreach (cli_json_get(page, "Problems"), i, problem)
		cli_line("%s%s; %s", cli_json_true(problem, "Fixable") ? "[fixable] " : "",
		    cli_json_str(problem, "Text"), cli_json_str(problem, "Advice"));
}

static void
print_page(struct cli *cli, const json_t *page)
{
	cli_field("Volume", "%s", cli_json_str(page, "ID"));
	cli_field("Namespace", "%s", cli_json_str(page, "Namespace"));
	cli_field("External ID", "%s", cli_json_str(page, "ExternalID"));
	print_plugin(page);
	print_usage(cli, cli_json_get(page, "Usage"));
	print_claims(cli, page);
	print_mounts(cli, page);
	print_problems(page);
}

/* --- all volumes --- */

/* The same id may be in several namespaces. */
static void
print_each(struct cli *cli, const json_t *answer)
{
	const json_t *page;
	size_t i;

	json_array_foreach (cli_json_get(answer, "Volumes"), i, page)
		print_page(cli, page);
}

static void
print_all(struct cli *cli, const json_t *answer)
{
	const json_t *page;
	struct cli_table *t;
	size_t i;

	if (json_array_size(cli_json_get(answer, "Volumes")) == 0) {
		cli_say(cli, "No volumes");
		return;
	}
	t = CLI_TABLE("Volume", "?Namespace", "Plugin", "?Claims", "?Mounts", "Disagreements");
	json_array_foreach (cli_json_get(answer, "Volumes"), i, page) {
		cli_table_row(t);
		CLI_TEXT_CELLS(t, page, "ID", "Namespace", "PluginID");
		if (json_is_null(cli_json_get(page, "Claims")))
			cli_cell(t, "%s", "");
		else
			cli_cell(t, "%zu", json_array_size(cli_json_get(page, "Claims")));
		cli_cell(t, "%zu", json_array_size(cli_json_get(page, "Mounts")));
		cli_cell(t, "%zu", json_array_size(cli_json_get(page, "Problems")));
	}
	cli_table_print(t);
	json_array_foreach (cli_json_get(answer, "Volumes"), i, page) {
		if (json_array_size(cli_json_get(page, "Problems")) == 0)
			continue;
		cli_head("Volume %s", cli_json_str(page, "ID"));
		print_page(cli, page);
	}
}

static void
print_repairs(const json_t *answer)
{
	const json_t *repair;
	size_t i;

	if (json_array_size(cli_json_get(answer, "Repairs")) == 0)
		return;
	cli_head("Repairs");
	json_array_foreach (cli_json_get(answer, "Repairs"), i, repair)
		cli_line("%s: volume %s: %s", cli_json_true(repair, "Done") ? "done" : "not done",
		    cli_json_str(repair, "ID"), cli_json_str(repair, "Text"));
}

static int
count_problems(const json_t *answer)
{
	const json_t *page;
	size_t i, n = 0;

	json_array_foreach (cli_json_get(answer, "Volumes"), i, page)
		n += json_array_size(cli_json_get(page, "Problems"));
	return n > 0;
}

/* The agent also knows volumes that are not registered any more, and servers may be unreachable:
 * then the word is the id. */
static int
find_id(struct cli *cli, const char *wanted, char **ret_id, struct err *e)
{
	int r = cli_id_resolve(cli, &cli_kind_volume, wanted, ret_id, e);

	if (r < 0 && r != -ENOTUNIQ) {
		*e = (struct err){ 0 };
		*ret_id = mem_strdup(wanted);
		r = 0;
	}
	return r;
}

int
cli_volume_doctor(struct cli *cli, int argc, char **argv)
{
	cleanup_free char *id = NULL, *target = NULL;
	cleanup_json json_t *answer = NULL;
	const char *namespace;
	struct err e = { 0 };
	int r = 0;

	cli_volume_wait_for_plugin(cli);
	if (argc > 0 && (r = find_id(cli, argv[0], &id, &e)) < 0)
		return cli_fail(cli, &e);
	namespace = cli->namespace ? cli->namespace : "*";
	target = id ? cli_target("/v1/agent/volumes?namespace=%s&id=%s", namespace, id)
		    : cli_target("/v1/agent/volumes?namespace=%s", namespace);
	r = options.fix ? cli_api_send(cli, "PUT", target, NULL, &answer, &e)
			: cli_api_get(cli, target, &answer, &e);
	if (r >= 0 && id && json_array_size(cli_json_get(answer, "Volumes")) == 0)
		r = err_say(&e, -ENOENT, "no volume \"%s\" is known on this node", id);
	if (r >= 0 && cli->json)
		r = cli_json_print(answer, &e);
	if (r < 0)
		return cli_fail(cli, &e);
	if (!cli->json) {
		if (id)
			print_each(cli, answer);
		else
			print_all(cli, answer);
		print_repairs(answer);
	}
	return count_problems(answer) ? CLI_DISAGREES : CLI_OK;
}
