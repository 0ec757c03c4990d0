// SPDX-License-Identifier: Apache-2.0
/* cli_job_init.c: drover job init: writes an example of a job file. Runs in: cli. */

#include "cli/cli_file.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"

static struct {
	bool brief;
} options;

const struct cli_flag cli_job_init_flags[] = {
	{ "short", CLI_FLAG_BOOL, &options.brief, NULL, "without comments" },
	{ 0 },
};

#define DEFAULT_NAME "example.nomad.hcl"

/* Lines that begin with a comment are left out with -short. */
static const char example[] =
    "# A job is what drover keeps running. `drover job run " DEFAULT_NAME "` registers it,\n"
    "# `drover job plan " DEFAULT_NAME "` shows first what would change.\n"
    "job \"example\" {\n"
    "  # service: runs until it is stopped; batch: runs once; system: runs on every node.\n"
    "  type = \"service\"\n"
    "\n"
    "  # The tasks of a group run together on one node.\n"
    "  group \"web\" {\n"
    "    count = 1\n"
    "\n"
    "    # A free port of the node. Tasks find it in NOMAD_PORT_http.\n"
    "    network {\n"
    "      port \"http\" {}\n"
    "    }\n"
    "\n"
    "    # Others find the group by this name; the check decides whether it is healthy.\n"
    "    service {\n"
    "      name     = \"example-web\"\n"
    "      port     = \"http\"\n"
    "      provider = \"nomad\"\n"
    "\n"
    "      check {\n"
    "        type     = \"http\"\n"
    "        path     = \"/\"\n"
    "        interval = \"10s\"\n"
    "        timeout  = \"2s\"\n"
    "      }\n"
    "    }\n"
    "\n"
    "    # How often a task that fails is restarted in its place.\n"
    "    restart {\n"
    "      attempts = 2\n"
    "      interval = \"30m\"\n"
    "      delay    = \"15s\"\n"
    "      mode     = \"fail\"\n"
    "    }\n"
    "\n"
    "    task \"server\" {\n"
    "      # exec runs a program of the host in a root file system of its own.\n"
    "      driver = \"exec\"\n"
    "\n"
    "      config {\n"
    "        command = \"/usr/bin/python3\"\n"
    "        args    = [\"-m\", \"http.server\", \"${NOMAD_PORT_http}\"]\n"
    "      }\n"
    "\n"
    "      # MHz and MiB. More memory than this ends the task.\n"
    "      resources {\n"
    "        cpu    = 100\n"
    "        memory = 64\n"
    "      }\n"
    "    }\n"
    "  }\n"
    "}\n";

int
cli_job_init(struct cli *cli, int argc, char **argv)
{
	const char *path = argc > 0 ? argv[0] : DEFAULT_NAME;
	struct err e = { 0 };

	if (cli_file_write_example(path, example, !options.brief, &e) < 0)
		return cli_fail(cli, &e);
	cli_say(cli, "%s is written; `drover job run %s` runs it", path, path);
	return CLI_OK;
}
