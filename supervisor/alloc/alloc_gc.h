/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc_gc.h: removes images that no task uses, then ended allocs, each the oldest first, while the
 * file system of the data directory is fuller than gc_disk_usage_threshold or
 * gc_inode_usage_threshold permit. The source enforces gc_max_allocs. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_ALLOC_GC_H
#define DROVER_SUPERVISOR_ALLOC_ALLOC_GC_H

#include "supervisor/core/sup.h"

/* Checks every gc_interval from now on. */
void alloc_gc_new(struct sup *sup);
void alloc_gc_free(struct sup *sup);

#endif
