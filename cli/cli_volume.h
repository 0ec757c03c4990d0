/* SPDX-License-Identifier: Apache-2.0 */
/* cli_volume.h: what the verbs of volumes share. Runs in: drover. */
#ifndef DROVER_CLI_CLI_VOLUME_H
#define DROVER_CLI_CLI_VOLUME_H

#include <jansson.h>

#include "cli/cli.h"

/* A plugin has two minutes for a call, and another one when it had to start again: the answer says
 * what went wrong, so it is waited for unless -timeout says otherwise. */
void cli_volume_wait_for_plugin(struct cli *cli);
/* A table for each plugin that can list its volumes. */
int cli_volume_print_external(struct cli *cli, struct err *e);

/* cli_volume_uses.c: a table of volumes with the options that they are mounted with: those of an
 * allocation, those of one volume's claims, those of a node's. Nothing where there are none. */
void cli_volume_print_uses_of_alloc(struct cli *cli, const json_t *alloc);
void cli_volume_print_uses(struct cli *cli, const json_t *volume);
void cli_volume_print_uses_of_node(struct cli *cli, const char *node_id);

#define CLI_OPTIONS_SIZE 128
/* How a volume is mounted: by the request's options where it has some, else by its own (request
 * NULL: only those). The API never shows flags. buf is returned. */
const char *cli_volume_options(
    const json_t *volume, const json_t *request, char buf[CLI_OPTIONS_SIZE]);

#endif
