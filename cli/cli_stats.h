/* SPDX-License-Identifier: Apache-2.0 */
/* cli_stats.h: the resource usage of a node, or of an allocation. Runs in: cli. */
#ifndef DROVER_CLI_CLI_STATS_H
#define DROVER_CLI_CLI_STATS_H

#include "cli/cli.h"

/* Returns the API path of a node's figures. The caller frees it. */
char *cli_node_stats_target(const char *node_id);
/* Reads and prints the figures. Returns 0 or -errno. */
int cli_print_node_stats(struct cli *cli, const char *node_id, struct err *e);

/* The same of an allocation's tasks. */
int cli_print_alloc_stats(struct cli *cli, const char *id, struct err *e);

#endif
