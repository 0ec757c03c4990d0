/* SPDX-License-Identifier: Apache-2.0 */
/* volume_place.h: the directory of a volume, from its path. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_VOLUME_VOLUME_PLACE_H
#define DROVER_SUPERVISOR_VOLUME_VOLUME_PLACE_H

#include <stdbool.h>

#include "proto/ipc_records.h"

/* Parses the path of a volume's directory, relative to the data directory:
 * "csi/node/hp/staging/v/rw-…" or "csi/node/hp/per-alloc/ALLOC/v/rw-…". The place of a staging
 * directory has no alloc. Returns false if the path is none of these. */
bool volume_place_parse(const char *path, struct volume_place *ret, bool *ret_staging);

#endif
