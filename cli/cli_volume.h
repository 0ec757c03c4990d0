/* SPDX-License-Identifier: Apache-2.0 */
/* cli_volume.h: functions that the commands about volumes share. Runs in: cli. */
#ifndef DROVER_CLI_CLI_VOLUME_H
#define DROVER_CLI_CLI_VOLUME_H

#include <jansson.h>

#include "cli/cli.h"

/* The agent gives a plugin two minutes for a call, and another minute if it had to restart. The
 * default timeout is longer than that, so that the operator sees the plugin's error. */
void cli_volume_wait_for_plugin(struct cli *cli);
/* Reads the volumes of a file ("-": stdin) as the API takes them, {"Volumes": […]}, into *ret, a
 * new reference. The file holds that form, one volume of the API, or a volume specification in HCL
 * or JSON. Prints each problem of a specification on stderr. Returns 0 or -errno with a sentence.
 */
int cli_volume_read(const char *path, json_t **ret, struct err *e);
/* Prints a table for each plugin that can list its volumes. */
int cli_volume_print_external(struct cli *cli, struct err *e);

/* Print a table of volumes and their mount options: those of an allocation, of one volume's claims,
 * or of a node's allocations. Nothing if there are none. */
void cli_volume_print_uses_of_alloc(struct cli *cli, const json_t *alloc);
void cli_volume_print_uses(struct cli *cli, const json_t *volume);
void cli_volume_print_uses_of_node(struct cli *cli, const char *node_id);

/* Prints what the plugin's controller and the node that answers know about the volume: its
 * condition, how full it is and its mounts. Nothing of what the answer does not have. */
void cli_volume_print_here(const struct cli *cli, const json_t *volume);
/* Prints the fill level: "1.2 GiB of 4.0 GiB, 30 %; 12 of 1,000 inodes, 2 %". Nothing if here is
 * NULL or null. */
void cli_volume_print_used(const json_t *here);

#define CLI_OPTIONS_SIZE 128
/* Formats the mount options: the request's if it has some, else the volume's own (also if request
 * is NULL). The API never shows mount flags. Returns buf. */
const char *cli_volume_options(
    const json_t *volume, const json_t *request, char buf[CLI_OPTIONS_SIZE]);

#endif
