// SPDX-License-Identifier: Apache-2.0
/* cli_volume_init.c: drover volume init: writes an example of a volume file. Runs in: cli. */
#include <errno.h>
#include <string.h>

#include "cli/cli_file.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"

static struct {
	const char *type;
} options = { .type = "csi" };

const struct cli_flag cli_volume_init_flags[] = {
	{ "type", CLI_FLAG_STRING, &options.type, "TYPE",
	    "the type of the volume: csi, the default" },
	{ 0 },
};

static const char hcl[] =
    "# `drover volume create volume.hcl` makes this volume through its plugin,\n"
    "# `drover volume register volume.hcl` makes one known that the plugin has already.\n"
    "id        = \"database\"\n"
    "name      = \"database\"\n"
    "type      = \"csi\"\n"
    "plugin_id = \"local\"\n"
    "\n"
    "# Only for register: the id that the plugin has for the volume.\n"
    "# external_id = \"vol-0123\"\n"
    "\n"
    "# Only for create: at least and at most this size.\n"
    "capacity_min = \"1GiB\"\n"
    "capacity_max = \"10GiB\"\n"
    "\n"
    "# How allocations may use it; one block for each way.\n"
    "capability {\n"
    "  access_mode     = \"single-node-writer\"\n"
    "  attachment_mode = \"file-system\"\n"
    "}\n"
    "\n"
    "# For a volume with a file system.\n"
    "# mount_options {\n"
    "#   fs_type     = \"ext4\"\n"
    "#   mount_flags = [\"noatime\"]\n"
    "# }\n"
    "\n"
    "# Where the volume must be reachable, in the plugin's words.\n"
    "# topology_request {\n"
    "#   required {\n"
    "#     topology { segments { rack = \"r1\" } }\n"
    "#   }\n"
    "# }\n"
    "\n"
    "# Values that the plugin asks for; its documentation has their names.\n"
    "# parameters {\n"
    "#   kind = \"fast\"\n"
    "# }\n"
    "# Values that `drover volume modify` can change later, if the plugin has some.\n"
    "# mutable_parameters {\n"
    "#   iops = \"1000\"\n"
    "# }\n"
    "# secrets {\n"
    "#   password = \"…\"\n"
    "# }\n";

static const char json[] = "{\n"
			   "  \"id\": \"database\",\n"
			   "  \"name\": \"database\",\n"
			   "  \"type\": \"csi\",\n"
			   "  \"plugin_id\": \"local\",\n"
			   "  \"capacity_min\": \"1GiB\",\n"
			   "  \"capacity_max\": \"10GiB\",\n"
			   "  \"capability\": [\n"
			   "    {\n"
			   "      \"access_mode\": \"single-node-writer\",\n"
			   "      \"attachment_mode\": \"file-system\"\n"
			   "    }\n"
			   "  ]\n"
			   "}\n";

/* Here -json is the format of the file. */
int
cli_volume_init(struct cli *cli, int argc, char **argv)
{
	const char *text = cli->json ? json : hcl;
	const char *path = argc > 0 ? argv[0] : cli->json ? "volume.json" : "volume.hcl";
	struct err e = { 0 };

	cli->json = false;

	if (strcmp(options.type, "csi") != 0)
		(void)err_say(&e, -EINVAL,
		    "there is no example of the type \"%s\": host volumes are written into the "
		    "agent's configuration",
		    options.type);
	else if (cli_file_write_example(path, text, true, &e) == 0) {
		cli_say(
		    cli, "%s is written; `drover volume create %s` makes the volume", path, path);
		return CLI_OK;
	}
	return cli_fail(cli, &e);
}
