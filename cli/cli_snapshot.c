// SPDX-License-Identifier: Apache-2.0
/* cli_snapshot.c: drover volume snapshot and group-snapshot create, delete, list; volumes that are
 * known only to plugins. Runs in: cli. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_api.h"
#include "cli/cli_list.h"
#include "cli/cli_print.h"
#include "cli/cli_secrets.h"
#include "cli/cli_verbs.h"
#include "cli/cli_volume.h"
#include "common/duration.h"
#include "common/mem.h"

static struct {
	const char *plugin;
	struct strings parameters;
} options;

const struct cli_flag cli_snapshot_create_flags[] = {
	{ "parameter", CLI_FLAG_STRINGS, &options.parameters, "KEY=VALUE",
	    "a parameter for the plugin; may be repeated" },
	CLI_SECRET_FLAGS,
	{ 0 },
};

const struct cli_flag cli_snapshot_list_flags[] = {
	{ "plugin", CLI_FLAG_STRING, &options.plugin, "PLUGIN", "the plugin (required)" },
	CLI_SECRET_FLAGS,
	{ 0 },
};

/* Reads all pages of a list; *ret has the form of the first page, with the entries of all. */
static int
get_pages(struct cli *cli, const char *target, const char *name, json_t **ret, struct err *e)
{
	cleanup_json json_t *whole = json_array(), *page = NULL;
	cleanup_free char *token = mem_strdup("");
	int r;

	do {
		cleanup_free char *next = cli_target("&next_token=%s", token), *all = NULL;

		json_decref(steal_ptr(&page));
		all = mem_printf("%s%s", target, next);
		r = cli_api_get(cli, all, &page, e);
		if (r < 0)
			return r;
		(void)json_array_extend(whole, cli_json_get(page, name));
		free(token);
		token = mem_strdup(cli_json_str(page, "NextToken"));
	} while (*token);
	*ret = steal_ptr(&whole);
	return 0;
}

static void
snapshot_cells(const struct cli *cli, struct cli_table *t, const json_t *s)
{
	char size[CLI_TIME_SIZE], made[CLI_TIME_SIZE];

	cli_cell(t, "%s", cli_json_str(s, "ID"));
	cli_cell(t, "%s", cli_json_str(s, "ExternalSourceVolumeID"));
	cli_cell(t, "%s", cli_bytes(cli_json_int(s, "SizeBytes"), size));
	cli_cell(t, "%s", cli_time(cli, cli_scale(cli_json_int(s, "CreateTime"), NS_PER_S), made));
	cli_cell(t, "%s", cli_yes(cli_json_true(s, "IsReady")));
}

static const struct cli_list snapshots = {
	.none = "No snapshots",
	CLI_HEADS("Snapshot ID", "External Source ID", "Size", "Created", "Ready"),
	.cells = snapshot_cells,
};

static int
list_snapshots(struct cli *cli, struct err *e)
{
	cleanup_free char *target = NULL;
	cleanup_json json_t *list = NULL;
	int r;

	if (!options.plugin)
		return err_say(e, -EINVAL, "-plugin is missing: it names the plugin");
	target = cli_target("/v1/volumes/snapshot?plugin_id=%s", options.plugin);
	r = cli_secrets_set_header(cli, e);
	if (r == 0)
		r = get_pages(cli, target, "Snapshots", &list, e);
	if (r < 0)
		return r;
	if (cli->json)
		return cli_json_print(list, e);
	cli_list_print(cli, &snapshots, list);
	return 0;
}

int
cli_snapshot_list(struct cli *cli, int argc, char **argv)
{
	struct err e = { 0 };

	(void)argc;
	(void)argv;
	cli_volume_wait_for_plugin(cli);
	return list_snapshots(cli, &e) < 0 ? cli_fail(cli, &e) : CLI_OK;
}

static int
create_snapshot(struct cli *cli, const char *volume, const char *name, struct err *e)
{
	cleanup_json json_t *answer = NULL, *secrets = NULL, *parameters = json_object();
	cleanup_free char *id = NULL;
	int r = cli_secrets_read(&secrets, e);

	if (r == 0)
		r = cli_json_add_pairs(
		    parameters, (int)options.parameters.n, options.parameters.v, e);
	if (r == 0)
		r = cli_id_resolve(cli, &cli_kind_volume, volume, &id, e);
	if (r < 0)
		return r;
	r = cli_api_send_new(cli, "PUT", "/v1/volumes/snapshot",
	    json_pack("{s:[{s:s, s:s, s:O, s:O}]}", "Snapshots", "SourceVolumeID", id, "Name", name,
		"Secrets", secrets, "Parameters", parameters),
	    &answer, e);
	if (r < 0)
		return r;
	if (cli->json)
		return cli_json_print(answer, e);
	cli_list_print(cli, &snapshots, cli_json_get(answer, "Snapshots"));
	return 0;
}

int
cli_snapshot_create(struct cli *cli, int argc, char **argv)
{
	struct err e = { 0 };
	int r;

	cli_volume_wait_for_plugin(cli);
	r = create_snapshot(cli, argv[0], argc > 1 ? argv[1] : "", &e);
	return r < 0 ? cli_fail(cli, &e) : CLI_OK;
}

int
cli_snapshot_delete(struct cli *cli, int argc, char **argv)
{
	cleanup_free char *target =
	    cli_target("/v1/volumes/snapshot?plugin_id=%s&snapshot_id=%s", argv[0], argv[1]);
	struct err e = { 0 };

	(void)argc;
	cli_volume_wait_for_plugin(cli);
	if (cli_secrets_set_header(cli, &e) < 0 ||
	    cli_api_send(cli, "DELETE", target, NULL, NULL, &e) < 0)
		return cli_fail(cli, &e);
	cli_say(cli, "Snapshot \"%s\" is deleted", argv[1]);
	return CLI_OK;
}

/* Group snapshots. Plugins do not list them, but their snapshots. */

static void
group_cells(const struct cli *cli, struct cli_table *t, const json_t *s)
{
	cli_cell(t, "%s", cli_json_str(s, "GroupSnapshotID"));
	snapshot_cells(cli, t, s);
}

static const struct cli_list groups = {
	.none = "No group snapshots",
	CLI_HEADS(
	    "Group Snapshot ID", "Snapshot ID", "External Source ID", "Size", "Created", "Ready"),
	.cells = group_cells,
};

/* Servers list snapshots without their groups, and do not answer this path: then the sentence of
 * the refusal is the error. */
static int
check_groups_known(struct cli *cli, struct err *e)
{
	int r = cli_api_get(cli, "/v1/volumes/group-snapshot", NULL, e);

	return cli->status == 501 ? r : 0;
}

/* Gets the snapshots of a group, or of all groups (group NULL), into *ret. */
static int
get_groups(struct cli *cli, const char *plugin, const char *group, json_t **ret, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/volumes/snapshot?plugin_id=%s", plugin);
	cleanup_json json_t *all = NULL;
	json_t *s;
	size_t i;
	int r = cli_secrets_set_header(cli, e);

	if (r == 0)
		r = get_pages(cli, target, "Snapshots", &all, e);
	if (r < 0)
		return r;
	*ret = json_array();
	json_array_foreach (all, i, s) {
		const char *id = cli_json_str(s, "GroupSnapshotID");

		if (group ? strcmp(id, group) == 0 : *id != '\0')
			(void)json_array_append(*ret, s);
	}
	return json_array_size(*ret) == 0 ? check_groups_known(cli, e) : 0;
}

/* Returns the request path for a group: a request names all its snapshots. NULL with *e. */
static char *
group_target(struct cli *cli, const char *plugin, const char *group, struct err *e)
{
	cleanup_free char *base = cli_target(
	    "/v1/volumes/group-snapshot?plugin_id=%s&group_snapshot_id=%s", plugin, group);
	cleanup_json json_t *list = NULL;
	struct text t = { 0 };
	const json_t *s;
	size_t i;

	if (get_groups(cli, plugin, group, &list, e) < 0)
		return NULL;
	if (json_array_size(list) == 0) {
		(void)err_say(
		    e, -ENOENT, "plugin %s lists no snapshot of a group \"%s\"", plugin, group);
		return NULL;
	}
	text_printf(&t, "%s", base);
	json_array_foreach (list, i, s) {
		cleanup_free char *id = cli_target("&snapshot_id=%s", cli_json_str(s, "ID"));

		text_printf(&t, "%s", id);
	}
	return t.text;
}

static int
print_group(struct cli *cli, int r, const json_t *answer, struct err *e)
{
	if (r == 0 && cli->json)
		r = cli_json_print(answer, e);
	else if (r == 0)
		cli_list_print(cli, &groups, cli_json_get(answer, "Snapshots"));
	return r < 0 ? cli_fail(cli, e) : CLI_OK;
}

int
cli_group_snapshot_create(struct cli *cli, int argc, char **argv)
{
	cleanup_json json_t *ids = json_array(), *answer = NULL, *secrets = NULL;
	struct err e = { 0 };
	int r = cli_secrets_read(&secrets, &e);

	cli_volume_wait_for_plugin(cli);
	for (int i = 2; r == 0 && i < argc; i++) {
		cleanup_free char *id = NULL;

		r = cli_id_resolve(cli, &cli_kind_volume, argv[i], &id, &e);
		if (r == 0)
			(void)json_array_append_new(ids, json_string(id));
	}
	if (r == 0)
		r = cli_api_send_new(cli, "PUT", "/v1/volumes/group-snapshot",
		    json_pack("{s:s, s:s, s:O, s:O}", "PluginID", argv[0], "Name", argv[1],
			"SourceVolumeIDs", ids, "Secrets", secrets),
		    &answer, &e);
	return print_group(cli, r, answer, &e);
}

int
cli_group_snapshot_status(struct cli *cli, int argc, char **argv)
{
	cleanup_free char *target = NULL;
	cleanup_json json_t *answer = NULL;
	struct err e = { 0 };
	int r;

	(void)argc;
	cli_volume_wait_for_plugin(cli);
	target = group_target(cli, argv[0], argv[1], &e);
	r = target ? cli_api_get(cli, target, &answer, &e) : e.code;
	return print_group(cli, r, answer, &e);
}

int
cli_group_snapshot_delete(struct cli *cli, int argc, char **argv)
{
	cleanup_free char *target = NULL;
	struct err e = { 0 };

	(void)argc;
	cli_volume_wait_for_plugin(cli);
	target = group_target(cli, argv[0], argv[1], &e);
	if (!target || cli_api_send(cli, "DELETE", target, NULL, NULL, &e) < 0)
		return cli_fail(cli, &e);
	cli_say(cli, "Group snapshot \"%s\" is deleted", argv[1]);
	return CLI_OK;
}

int
cli_group_snapshot_list(struct cli *cli, int argc, char **argv)
{
	cleanup_json json_t *list = NULL;
	struct err e = { 0 };
	int r;

	(void)argc;
	(void)argv;
	cli_volume_wait_for_plugin(cli);
	r = options.plugin ? get_groups(cli, options.plugin, NULL, &list, &e)
			   : err_say(&e, -EINVAL, "-plugin is missing: it names the plugin");
	if (r == 0 && cli->json)
		r = cli_json_print(list, &e);
	else if (r == 0)
		cli_list_print(cli, &groups, list);
	return r < 0 ? cli_fail(cli, &e) : CLI_OK;
}

/* Volumes of a plugin. */

static int
print_external(struct cli *cli, const char *plugin, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/volumes/external?plugin_id=%s", plugin);
	cleanup_json json_t *list = NULL;
	char size[CLI_TIME_SIZE];
	struct cli_table *t;
	const json_t *v;
	size_t i;
	int r = get_pages(cli, target, "Volumes", &list, e);

	if (r < 0)
		return r;
	cli_head("Volumes of plugin %s", plugin);
	if (json_array_size(list) == 0) {
		cli_say(cli, "None");
		return 0;
	}
	t = CLI_TABLE("External ID", "Capacity", "Published on", "Condition");
	json_array_foreach (list, i, v) {
		const json_t *nodes = cli_json_get(v, "PublishedExternalNodeIDs");

		cli_table_row(t);
		cli_cell(t, "%s", cli_json_str(v, "ExternalID"));
		cli_cell(t, "%s", cli_bytes(cli_json_int(v, "CapacityBytes"), size));
		cli_cell(t, "%zu node%s", json_array_size(nodes),
		    json_array_size(nodes) == 1 ? "" : "s");
		cli_cell(t, "%s%s", cli_json_true(v, "IsAbnormal") ? "abnormal: " : "",
		    cli_json_str(v, "Status"));
	}
	cli_table_print(t);
	return 0;
}

static bool
lists_volumes(const json_t *plugin)
{
	const json_t *info;
	const char *node;

	json_object_foreach (cli_json_get(plugin, "Controllers"), node, info) {
		if (cli_json_true(info, "ControllerInfo/SupportsListVolumes"))
			return true;
	}
	return false;
}

int
cli_volume_print_external(struct cli *cli, struct err *e)
{
	cleanup_json json_t *list = NULL;
	const json_t *stub;
	size_t i;
	int r = cli_api_get(cli, "/v1/plugins?type=csi", &list, e);

	json_array_foreach (list, i, stub) {
		cleanup_free char *target =
		    cli_target("/v1/plugin/csi/%s", cli_json_str(stub, "ID"));
		cleanup_json json_t *plugin = NULL;

		if (r == 0)
			r = cli_api_get(cli, target, &plugin, e);
		if (r == 0 && lists_volumes(plugin))
			r = print_external(cli, cli_json_str(stub, "ID"), e);
	}
	return r;
}
