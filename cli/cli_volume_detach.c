// SPDX-License-Identifier: Apache-2.0
/* cli_volume_detach.c: drover volume detach: releases a volume from a node. Runs in: cli. */
#include <errno.h>
#include <string.h>

#include "cli/cli_api.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"
#include "cli/cli_volume.h"
#include "common/mem.h"

/* Finds a node that the servers do not know any more among the volume's allocations. Returns 0 or
 * -ENOENT with a sentence. */
static int
find_lost_node(
    struct cli *cli, const char *volume_id, const char *wanted, char **ret_id, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/volume/csi/%s", volume_id);
	cleanup_json json_t *volume = NULL;
	const char *found = NULL;
	const json_t *alloc;
	size_t i;
	int r = cli_api_get(cli, target, &volume, e);

	if (r < 0)
		return r;
	json_array_foreach (cli_json_get(volume, "Allocations"), i, alloc) {
		const char *node = cli_json_str(alloc, "NodeID");

		if (strncmp(node, wanted, strlen(wanted)) != 0 ||
		    (found && strcmp(found, node) == 0))
			continue;
		if (found)
			return err_say(e, -ENOTUNIQ, "\"%s\" matches the nodes %s and %s", wanted,
			    found, node);
		found = node;
	}
	if (!found)
		return err_say(e, -ENOENT,
		    "no node \"%s\" exists, and no allocation of volume \"%s\" is on one", wanted,
		    volume_id);
	*ret_id = mem_strdup(found);
	return 0;
}

int
cli_volume_detach(struct cli *cli, int argc, char **argv)
{
	cleanup_free char *id = NULL, *node = NULL, *target = NULL;
	struct err e = { 0 };
	int r;

	(void)argc;
	cli_volume_wait_for_plugin(cli);
	r = cli_id_resolve(cli, &cli_kind_volume, argv[0], &id, &e);
	if (r == 0)
		r = cli_id_resolve(cli, &cli_kind_node, argv[1], &node, &e);
	if (r == -ENOENT && id)
		r = find_lost_node(cli, id, argv[1], &node, &e);
	if (r < 0)
		return cli_fail(cli, &e);
	target = cli_target("/v1/volume/csi/%s/detach?node=%s", id, node);
	r = cli_api_send(cli, "DELETE", target, NULL, NULL, &e);
	if (r < 0)
		return cli_fail(cli, &e);
	cli_say(cli, "Volume \"%s\" is detached from node %.*s", id, cli->id_len, node);
	return CLI_OK;
}
