/* SPDX-License-Identifier: Apache-2.0 */
/* cli_stats.h: what a node uses, for the page that shows it. Runs in: drover. */
#ifndef DROVER_CLI_CLI_STATS_H
#define DROVER_CLI_CLI_STATS_H

#include "cli/cli.h"

/* Where a node's figures are asked for. The caller frees it. */
char *cli_node_stats_target(const char *node_id);
/* Asks for them and prints them below the rest of its page. 0, or -errno. */
int cli_print_node_stats(struct cli *cli, const char *node_id, struct err *e);

#endif
