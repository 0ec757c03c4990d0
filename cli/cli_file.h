/* SPDX-License-Identifier: Apache-2.0 */
/* cli_file.h: the JSON files that operators hand in. Runs in: drover. */
#ifndef DROVER_CLI_CLI_FILE_H
#define DROVER_CLI_CLI_FILE_H

#include <jansson.h>

#include "common/err.h"

/*
 * Reads a file, or stdin for "-", as one JSON object into *ret, a reference of the caller's. what
 * says what it should hold
 * ("job"). Errors name file, line and column; a file that looks like HCL gets its own sentence.
 */
int cli_file_read(const char *path, const char *what, json_t **ret, struct err *e);

/*
 * The volumes of a volume file as the API takes them: {"Volumes": […]}. file is that itself, one
 * volume of the API, or a volume specification as JSON ("id", "plugin_id", "capacity_min",
 * "capability" …).
 */
int cli_volume_spec(const json_t *file, json_t **ret, struct err *e);

#endif
