// SPDX-License-Identifier: Apache-2.0
/* cli_volume_claims.c: drover volume claims: who holds volumes, and how far releases are. Runs in:
 * cli. */
#include <string.h>

#include "cli/cli_api.h"
#include "cli/cli_list.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"
#include "common/mem.h"

/* Adds the claims of a volume to list, each with the volume's id. */
static int
add_claims(struct cli *cli, const char *id, json_t *list, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/volume/csi/%s/claims", id);
	cleanup_json json_t *claims = NULL;
	json_t *claim;
	size_t i;
	int r = cli_api_get(cli, target, &claims, e);

	json_array_foreach (claims, i, claim) {
		(void)json_object_set_new(claim, "VolumeID", json_string(id));
		(void)json_array_append(list, claim);
	}
	return r;
}

static int
add_all_claims(struct cli *cli, json_t *list, struct err *e)
{
	cleanup_json json_t *volumes = NULL;
	json_t *volume;
	size_t i;
	int r = cli_api_get(cli, "/v1/volumes?type=csi", &volumes, e);

	json_array_foreach (volumes, i, volume) {
		if (r >= 0 && cli_json_int(volume, "CurrentReaders") +
				      cli_json_int(volume, "CurrentWriters") >
				  0)
			r = add_claims(cli, cli_json_str(volume, "ID"), list, e);
	}
	return r;
}

/* Sentences are below the table: they would make it too wide. */
static void
print_waits(const struct cli *cli, const json_t *list)
{
	const json_t *claim;
	size_t i;

	json_array_foreach (list, i, claim) {
		if (*cli_json_str(claim, "WaitsFor"))
			cli_say(cli, "Allocation %.*s: %s", cli->id_len,
			    cli_json_str(claim, "AllocationID"), cli_json_str(claim, "WaitsFor"));
	}
}

static void
print_claims(const struct cli *cli, const json_t *list)
{
	char since[CLI_TIME_SIZE];
	const json_t *claim;
	struct cli_table *t;
	size_t i;

	if (json_array_size(list) == 0) {
		cli_say(cli, "No claims");
		return;
	}
	t = CLI_TABLE("Volume", "Allocation", "Mode", "?Access Mode", "?Attachment Mode", "State",
	    "Attached", "Since", "Node", "?External Node", "?Tries");
	json_array_foreach (list, i, claim) {
		cli_table_row(t);
		CLI_TEXT_CELLS(t, claim, "VolumeID");
		cli_cell(t, "%.*s", cli->id_len, cli_json_str(claim, "AllocationID"));
		CLI_TEXT_CELLS(
		    t, claim, "Mode", "AccessMode", "AttachmentMode", "State", "Attached");
		cli_cell(t, "%s", cli_time(cli, cli_json_int(claim, "Since"), since));
		cli_cell(t, "%.*s", cli->id_len, cli_json_str(claim, "NodeID"));
		CLI_TEXT_CELLS(t, claim, "ExternalNodeID");
		cli_cell(t, "%lld", (long long)cli_json_int(claim, "Tries"));
	}
	cli_table_print(t);
	print_waits(cli, list);
}

int
cli_volume_claims(struct cli *cli, int argc, char **argv)
{
	cleanup_json json_t *list = json_array();
	cleanup_free char *id = NULL;
	struct err e = { 0 };
	int r;

	if (argc == 0) {
		r = add_all_claims(cli, list, &e);
	} else {
		r = cli_id_resolve(cli, &cli_kind_volume, argv[0], &id, &e);
		if (r == 0)
			r = add_claims(cli, id, list, &e);
	}
	if (r < 0)
		return cli_fail(cli, &e);
	if (cli->json)
		return cli_json_print(list, &e) < 0 ? cli_fail(cli, &e) : CLI_OK;
	print_claims(cli, list);
	return CLI_OK;
}
