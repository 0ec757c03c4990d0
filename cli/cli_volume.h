/* SPDX-License-Identifier: Apache-2.0 */
/* cli_volume.h: what the verbs of volumes share. Runs in: drover. */
#ifndef DROVER_CLI_CLI_VOLUME_H
#define DROVER_CLI_CLI_VOLUME_H

#include "cli/cli.h"

/* A plugin has two minutes for a call, and another one when it had to start again: the answer says
 * what went wrong, so it is waited for unless -timeout says otherwise. */
void cli_volume_wait_for_plugin(struct cli *cli);
/* A table for each plugin that can list its volumes. */
int cli_volume_print_external(struct cli *cli, struct err *e);

#endif
