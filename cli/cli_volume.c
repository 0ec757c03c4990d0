// SPDX-License-Identifier: Apache-2.0
/* cli_volume.c: drover volume create, register, delete, deregister, status. Runs in: cli. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_alloc.h"
#include "cli/cli_api.h"
#include "cli/cli_list.h"
#include "cli/cli_print.h"
#include "cli/cli_secrets.h"
#include "cli/cli_verbs.h"
#include "cli/cli_volume.h"

#define PLUGIN_TIMEOUT_MS 300000

static struct {
	bool yes, force, policy_override;
} options;

#define ONLY_HOST_VOLUMES "Nomad has it for host volumes, which are not made by a command"

const struct cli_flag cli_volume_put_flags[] = {
	{ "detach", CLI_FLAG_REFUSED, NULL, NULL, ONLY_HOST_VOLUMES },
	{ "id", CLI_FLAG_REFUSED, NULL, NULL, ONLY_HOST_VOLUMES },
	{ "policy-override", CLI_FLAG_BOOL, &options.policy_override, NULL,
	    "override soft Sentinel policies of the servers" },
	{ 0 },
};

const struct cli_flag cli_volume_delete_flags[] = {
	{ "yes", CLI_FLAG_BOOL, &options.yes, NULL,
	    "do not ask for confirmation when the id is a prefix" },
	CLI_SECRET_FLAGS,
	{ 0 },
};

const struct cli_flag cli_volume_deregister_flags[] = {
	{ "force", CLI_FLAG_BOOL, &options.force, NULL,
	    "even if ended allocations still claim it" },
	{ "yes", CLI_FLAG_BOOL, &options.yes, NULL,
	    "do not ask for confirmation when the id is a prefix" },
	{ 0 },
};

void
cli_volume_wait_for_plugin(struct cli *cli)
{
	if (cli->timeout_ms == CLI_TIMEOUT_MS)
		cli->timeout_ms = PLUGIN_TIMEOUT_MS;
}

static int
say_created(struct cli *cli, const char *id, const json_t *answer, struct err *e)
{
	const char *external;

	if (cli->json)
		return cli_json_print(answer, e);
	external = cli_json_str(json_array_get(cli_json_get(answer, "Volumes"), 0), "ExternalID");
	cli_say(
	    cli, "Volume \"%s\" is created%s%s", id, *external ? ", external id " : "", external);
	return 0;
}

static int
say_registered(struct cli *cli, const char *id, const json_t *answer, struct err *e)
{
	if (cli->json && answer)
		return cli_json_print(answer, e);
	cli_say(cli, "Volume \"%s\" is registered", id);
	return 0;
}

typedef int say_volume(struct cli *cli, const char *id, const json_t *answer, struct err *e);

/* Sends one PUT per volume; the volume's id is part of the path. */
static int
put_volume(struct cli *cli, const json_t *volume, const char *fmt, say_volume *say, struct err *e)
{
	cleanup_free char *target = cli_target(fmt, cli_json_str(volume, "ID"));
	cleanup_json json_t *answer = NULL, *request = json_pack("{s:[O]}", "Volumes", volume);
	int r;

	if (*cli_json_str(volume, "ID") == '\0')
		return err_say(e, -EINVAL, "a volume in the file has no id");
	if (options.policy_override)
		(void)json_object_set_new(request, "PolicyOverride", json_true());
	r = cli_api_send(cli, "PUT", target, request, &answer, e);
	if (r < 0)
		return r;
	if (*cli_json_str(answer, "Warnings"))
		cli_say(cli, "Warnings: %s", cli_json_str(answer, "Warnings"));
	return say(cli, cli_json_str(volume, "ID"), answer, e);
}

static int
put_volumes(struct cli *cli, const char *path, const char *fmt, say_volume *say)
{
	cleanup_json json_t *spec = NULL;
	const json_t *volume;
	struct err e = { 0 };
	size_t i;
	int r;

	cli_volume_wait_for_plugin(cli);
	r = cli_volume_read(path, &spec, &e);
	if (r < 0)
		return cli_fail(cli, &e);
	json_array_foreach (cli_json_get(spec, "Volumes"), i, volume) {
		r = put_volume(cli, volume, fmt, say, &e);
		if (r < 0)
			return cli_fail(cli, &e);
	}
	return CLI_OK;
}

int
cli_volume_create(struct cli *cli, int argc, char **argv)
{
	(void)argc;
	return put_volumes(cli, argv[0], "/v1/volume/csi/%s/create", say_created);
}

int
cli_volume_register(struct cli *cli, int argc, char **argv)
{
	(void)argc;
	return put_volumes(cli, argv[0], "/v1/volume/csi/%s", say_registered);
}

/* fmt: the request's path; said: the past participle that is printed, as in "deleted". */
static int
end_volume(struct cli *cli, const char *wanted, const char *fmt, const char *said)
{
	cleanup_free char *id = NULL, *target = NULL;
	cleanup_json json_t *answer = NULL;
	struct err e = { 0 };
	int r;

	cli_volume_wait_for_plugin(cli);
	r = cli_id_resolve(cli, &cli_kind_volume, wanted, &id, &e);
	if (r == 0)
		r = cli_confirm_prefix("volume", wanted, id, options.yes, &e);
	if (r < 0)
		return cli_fail(cli, &e);
	target = cli_target(fmt, id);
	r = cli_secrets_set_header(cli, &e);
	if (r == 0)
		r = cli_api_send(cli, "DELETE", target, NULL, &answer, &e);
	if (r == 0 && cli->json && answer)
		r = cli_json_print(answer, &e);
	if (r < 0)
		return cli_fail(cli, &e);
	cli_say(cli, "Volume \"%s\" is %s", id, said);
	if (*cli_json_str(answer, "Warnings"))
		cli_say(cli, "Warnings: %s", cli_json_str(answer, "Warnings"));
	return CLI_OK;
}

int
cli_volume_delete(struct cli *cli, int argc, char **argv)
{
	(void)argc;
	return end_volume(cli, argv[0], "/v1/volume/csi/%s/delete", "deleted");
}

int
cli_volume_modify(struct cli *cli, int argc, char **argv)
{
	cleanup_json json_t *changes = json_object(), *answer = NULL;
	cleanup_free char *id = NULL, *target = NULL;
	struct err e = { 0 };
	int r = cli_json_add_pairs(changes, argc - 1, argv + 1, &e);

	cli_volume_wait_for_plugin(cli);
	if (r == 0)
		r = cli_id_resolve(cli, &cli_kind_volume, argv[0], &id, &e);
	if (r < 0)
		return cli_fail(cli, &e);
	target = cli_target("/v1/volume/csi/%s/modify", id);
	r = cli_api_send_new(
	    cli, "PUT", target, json_pack("{s:O}", "MutableParameters", changes), &answer, &e);
	if (r == 0 && cli->json)
		r = cli_json_print(answer, &e);
	if (r < 0)
		return cli_fail(cli, &e);
	if (!cli->json)
		cli_say(cli, "Volume \"%s\" is modified", id);
	return CLI_OK;
}

int
cli_volume_deregister(struct cli *cli, int argc, char **argv)
{
	(void)argc;
	return end_volume(cli, argv[0],
	    options.force ? "/v1/volume/csi/%s?force=true" : "/v1/volume/csi/%s", "deregistered");
}

static void
volume_cells(const struct cli *cli, struct cli_table *t, const json_t *volume)
{
	(void)cli;
	CLI_TEXT_CELLS(t, volume, "ID", "Name", "PluginID");
	cli_cell(t, "%s", cli_yes(cli_json_true(volume, "Schedulable")));
	cli_cell(t, "%s", cli_json_str(volume, "AccessMode"));
	cli_cell(t, "%lld", (long long)cli_json_int(volume, "CurrentReaders"));
	cli_cell(t, "%lld", (long long)cli_json_int(volume, "CurrentWriters"));
}

static const struct cli_list volumes = {
	.none = "No volumes",
	CLI_HEADS("ID", "?Name", "Plugin", "Schedulable", "?Access Mode", "?Readers", "?Writers"),
	.cells = volume_cells,
};

static int
list_volumes(struct cli *cli, struct err *e)
{
	return cli_list_get(cli, &volumes, "/v1/volumes?type=csi", e);
}

/* Returns the allocations that hold a claim: their stubs if the answer has them, else their ids. */
static void
print_claims(const struct cli *cli, const json_t *volume)
{
	static const char *const maps[][2] = { { "WriteAllocs", "write" },
		{ "ReadAllocs", "read" } };
	struct cli_table *t;
	const char *id;
	json_t *alloc;

	cli_head("Claims");
	if (json_object_size(cli_json_get(volume, "WriteAllocs")) +
		json_object_size(cli_json_get(volume, "ReadAllocs")) ==
	    0) {
		cli_say(cli, "None");
	} else {
		t = CLI_TABLE("Allocation", "Mode");
		for (size_t i = 0; i < ELEMENTSOF(maps); i++) {
			json_object_foreach (cli_json_get(volume, maps[i][0]), id, alloc) {
				cli_table_row(t);
				cli_cell(t, "%.*s", cli->id_len, id);
				cli_cell(t, "%s", maps[i][1]);
			}
		}
		cli_table_print(t);
	}
	if (json_array_size(cli_json_get(volume, "Allocations")) == 0)
		return;
	cli_head("Allocations");
	cli_print_allocs(cli, cli_json_get(volume, "Allocations"));
}

static int
show_volume(struct cli *cli, const char *id, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/volume/csi/%s?refresh=true", id);
	cleanup_json json_t *volume = NULL;
	char size[CLI_TIME_SIZE], mount[CLI_OPTIONS_SIZE];
	int r = cli_api_fetch(cli, target, &volume, e);

	if (r <= 0)
		return r;
	cli_field("ID", "%s", cli_json_str(volume, "ID"));
	cli_field("Name", "%s", cli_json_str(volume, "Name"));
	cli_field("External ID", "%s", cli_json_str(volume, "ExternalID"));
	cli_field("Plugin", "%s", cli_json_str(volume, "PluginID"));
	cli_field("Provider", "%s %s", cli_json_str(volume, "Provider"),
	    cli_json_str(volume, "ProviderVersion"));
	if (cli_json_int(volume, "Capacity") > 0)
		cli_field("Capacity", "%s", cli_bytes(cli_json_int(volume, "Capacity"), size));
	cli_field("Schedulable", "%s", cli_yes(cli_json_true(volume, "Schedulable")));
	cli_field("Controllers Healthy", "%lld of %lld",
	    (long long)cli_json_int(volume, "ControllersHealthy"),
	    (long long)cli_json_int(volume, "ControllersExpected"));
	cli_field("Nodes Healthy", "%lld of %lld", (long long)cli_json_int(volume, "NodesHealthy"),
	    (long long)cli_json_int(volume, "NodesExpected"));
	cli_field("Access Mode", "%s", cli_json_str(volume, "AccessMode"));
	cli_field("Attachment Mode", "%s", cli_json_str(volume, "AttachmentMode"));
	cli_field("Mount Options", "%s", cli_volume_options(volume, NULL, mount));
	cli_volume_print_here(cli, volume);
	print_claims(cli, volume);
	cli_volume_print_uses(cli, volume);
	return 0;
}

int
cli_volume_status(struct cli *cli, int argc, char **argv)
{
	cleanup_free char *id = NULL;
	struct err e = { 0 };
	int r;

	if (argc == 0) {
		r = list_volumes(cli, &e);
		if (r == 0 && cli->verbose && !cli->json) {
			cli_volume_wait_for_plugin(cli);
			r = cli_volume_print_external(cli, &e);
		}
	} else if ((r = cli_list_refuse_flags(&e)) == 0 &&
		   (r = cli_id_resolve(cli, &cli_kind_volume, argv[0], &id, &e)) == 0)
		r = show_volume(cli, id, &e);
	return r < 0 ? cli_fail(cli, &e) : CLI_OK;
}
