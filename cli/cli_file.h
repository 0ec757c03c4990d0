/* SPDX-License-Identifier: Apache-2.0 */
/* cli_file.h: reads the JSON files that operators pass to commands. Runs in: drover. */
#ifndef DROVER_CLI_CLI_FILE_H
#define DROVER_CLI_CLI_FILE_H

#include <jansson.h>

#include "common/err.h"

/* Reads a file, or stdin for "-", as one JSON object into *ret, a new reference. `what` names the
 * expected contents ("job"). Errors name file, line and column; a file that looks like HCL gets its
 * own sentence. */
int cli_file_read(const char *path, const char *what, json_t **ret, struct err *e);

/* Returns the volumes of a file as the API takes them: {"Volumes": […]}. The file holds that form,
 * one volume of the API, or a volume specification as JSON ("id", "plugin_id", "capacity_min",
 * "capability" …). */
int cli_volume_spec(const json_t *file, json_t **ret, struct err *e);

#endif
