// SPDX-License-Identifier: Apache-2.0
/* cli_volume_uses.c: shows which volumes allocations use, and with which options. Runs in: cli. */
#include <stdio.h>
#include <string.h>

#include "cli/cli_alloc.h"
#include "cli/cli_api.h"
#include "cli/cli_print.h"
#include "cli/cli_volume.h"
#include "common/mem.h"

struct uses {
	struct cli *cli;
	json_t *volumes;  /* volumes that were already requested, by id */
	const char *only; /* this volume; NULL: all */
	struct cli_table *t;
};

/* Builds a volume's id: with per_alloc it ends with the index of the allocation, as in "data[0]".
 */
static const char *
find_id(const json_t *alloc, const json_t *request, char buf[256])
{
	const char *index = strrchr(cli_json_str(alloc, "Name"), '[');

	(void)snprintf(buf, 256, "%s%s", cli_json_str(request, "Source"),
	    cli_json_true(request, "PerAlloc") && index ? index : "");
	return buf;
}

/* Returns the volume, owned by the cache; NULL if it does not exist or the token may not read it.
 */
static const json_t *
find_volume(struct uses *u, const char *namespace, const char *id)
{
	cleanup_free char *key = mem_printf("%s/%s", namespace, id);
	cleanup_free char *target =
	    cli_target("/v1/volume/csi/%s?namespace=%s", id, *namespace ? namespace : "default");
	json_t *volume = json_object_get(u->volumes, key);
	struct err e = { 0 };

	if (volume)
		return volume;
	if (cli_api_get(u->cli, target, &volume, &e) < 0)
		return NULL;
	/* An id that was too long may be cut in the middle of a character, and JSON keys must be
	 * UTF-8. */
	return json_object_set_new(u->volumes, key, volume) == 0 ? volume : NULL;
}

const char *
cli_volume_options(const json_t *volume, const json_t *request, char buf[CLI_OPTIONS_SIZE])
{
	const char *type = cli_json_str(request, "MountOptions/FSType");
	bool flags = json_array_size(cli_json_get(request, "MountOptions/MountFlags")) > 0 ||
		     json_array_size(cli_json_get(volume, "MountOptions/MountFlags")) > 0;

	if (!*type)
		type = cli_json_str(volume, "MountOptions/FSType");
	(void)snprintf(buf, CLI_OPTIONS_SIZE, "%s%.64s%s%s", *type ? "fs_type: " : "", type,
	    *type && flags ? ", " : "", flags ? "flags: [REDACTED]" : "");
	return buf;
}

static void
put_use(struct uses *u, const json_t *alloc, const char *name, const json_t *request)
{
	char buf[256], options[CLI_OPTIONS_SIZE];
	const char *id = find_id(alloc, request, buf);
	const json_t *volume;

	if (strcmp(cli_json_str(request, "Type"), "csi") != 0 ||
	    (u->only && strcmp(id, u->only) != 0))
		return;
	volume = find_volume(u, cli_json_str(alloc, "Namespace"), id);
	if (!u->t) {
		cli_head("CSI Volumes");
		u->t = CLI_TABLE("Allocation", "?Name", "ID", "Plugin", "?Provider", "?Schedulable",
		    "?Read Only", "?Mount Options");
	}
	cli_table_row(u->t);
	cli_cell(u->t, "%.*s", u->cli->id_len, cli_json_str(alloc, "ID"));
	cli_cell(u->t, "%s", name);
	cli_cell(u->t, "%s", id);
	cli_cell(u->t, "%s", cli_json_str(volume, "PluginID"));
	cli_cell(u->t, "%s%s%s", cli_json_str(volume, "Provider"), volume ? " " : "",
	    cli_json_str(volume, "ProviderVersion"));
	cli_cell(u->t, "%s", volume ? cli_yes(cli_json_true(volume, "Schedulable")) : "");
	cli_cell(u->t, "%s", cli_yes(cli_json_true(request, "ReadOnly")));
	cli_cell(u->t, "%s", cli_volume_options(volume, request, options));
}

static void
put_uses(struct uses *u, const json_t *alloc)
{
	const json_t *request;
	const char *name;

	json_object_foreach (cli_json_get(cli_alloc_group(alloc), "Volumes"), name, request)
		put_use(u, alloc, name, request);
}

static void
end_uses(struct uses *u)
{
	if (u->t)
		cli_table_print(u->t);
	json_decref(u->volumes);
}

void
cli_volume_print_uses_of_alloc(struct cli *cli, const json_t *alloc)
{
	struct uses u = { .cli = cli, .volumes = json_object() };

	put_uses(&u, alloc);
	end_uses(&u);
}

/* Collects the allocations that hold a claim. */
static void
put_claims(struct uses *u, const json_t *volume, const char *map, const char *node_id)
{
	const char *id, *on;
	json_t *ignored;

	json_object_foreach (cli_json_get(volume, map), id, ignored) {
		cleanup_free char *target = cli_target("/v1/allocation/%s", id);
		cleanup_json json_t *alloc = NULL;
		struct err e = { 0 };

		if (cli_api_get(u->cli, target, &alloc, &e) < 0)
			continue; /* removed in the meantime */
		on = cli_json_str(alloc, "NodeID");
		if (!node_id || strcmp(on, node_id) == 0)
			put_uses(u, alloc);
	}
}

void
cli_volume_print_uses(struct cli *cli, const json_t *volume)
{
	struct uses u = {
		.cli = cli, .volumes = json_object(), .only = cli_json_str(volume, "ID")
	};

	(void)json_object_set(u.volumes, u.only, (json_t *)volume);
	put_claims(&u, volume, "WriteAllocs", NULL);
	put_claims(&u, volume, "ReadAllocs", NULL);
	end_uses(&u);
}

void
cli_volume_print_uses_of_node(struct cli *cli, const char *node_id)
{
	cleanup_free char *target = cli_target("/v1/volumes?type=csi&node_id=%s", node_id);
	struct uses u = { .cli = cli, .volumes = json_object() };
	cleanup_json json_t *list = NULL;
	const json_t *stub, *volume;
	struct err e = { 0 };
	size_t i;

	if (cli_api_get(cli, target, &list, &e) < 0)
		list = NULL; /* the token may read the node but not its volumes */
	json_array_foreach (list, i, stub) {
		u.only = cli_json_str(stub, "ID");
		if ((cli_json_int(stub, "CurrentReaders") <= 0 &&
			cli_json_int(stub, "CurrentWriters") <= 0) ||
		    !(volume = find_volume(&u, u.cli->namespace ?: "", u.only)))
			continue;
		put_claims(&u, volume, "WriteAllocs", node_id);
		put_claims(&u, volume, "ReadAllocs", node_id);
	}
	end_uses(&u);
}
