/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volume_repair.h: compares the rows of mounts with mountinfo, at the start and after each change
 * of mountinfo. A published volume that somebody else unmounted is reported, so that it is
 * published again; a mount of a volume that no row explains and no alloc uses is unmounted. Runs
 * in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_VOLUME_VOLUME_REPAIR_H
#define DROVER_SUPERVISOR_VOLUME_VOLUME_REPAIR_H

#include "common/err.h"
#include "supervisor/core/sup.h"

struct volume_repair;

/* Begins to watch. Without a watch, which is logged, mountinfo is compared once a minute. */
struct volume_repair *volume_repair_new(struct sup *sup);
void volume_repair_free(struct volume_repair *vr); /* ignores NULL */

/* Compares now: what was unmounted is published again, and orphans are unmounted. */
void volume_repair_now(struct sup *sup);
/* Returns whether the mount at this path, relative to the data directory, is one of a volume that
 * no row explains and no alloc uses. */
bool volume_mount_is_orphan(struct sup *sup, const char *path);

#endif
