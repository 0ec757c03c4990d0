/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env_file.h: reads lines KEY=VALUE, as Nomad's client does for a template with env = true
 * (github.com/hashicorp/go-envparse). Runs in: supervisor.
 *
 * A line may begin with "export " and end with a comment after #. A value may have parts in single
 * quotes, where all characters are themselves, and in double quotes, with the escapes of JSON.
 * White space around a key and at both ends of a value without quotes does not count; a tab inside
 * a value is an error, as other control characters are. A later line wins over an earlier one with
 * the same key.
 *
 * Differences: a comment after a character that is not ASCII does not cut that character in two;
 * \u0000 is an error, because no variable can have it; a line may have more than 64 KiB.
 */
#ifndef DROVER_MODEL_ENV_FILE_H
#define DROVER_MODEL_ENV_FILE_H

#include <stddef.h>

#include "common/err.h"
#include "model/engine/containers.h"

#define ENV_FILE_MAX 4096 /* variables */

/* Adds the variables to *ret, which the caller frees, whatever is returned. Returns 0, or -EINVAL
 * with *e, which names the line but shows nothing of its value. */
int env_file_parse(const char *text, size_t len, struct string_map *ret, struct err *e);

#endif
