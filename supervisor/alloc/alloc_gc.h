/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc_gc.h: removes allocs that are over, the oldest first, while the file system of the data
 * directory is fuller than gc_disk_usage_threshold or gc_inode_usage_threshold say. That no more
 * than gc_max_allocs of them are kept is the source's affair. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_ALLOC_GC_H
#define DROVER_SUPERVISOR_ALLOC_ALLOC_GC_H

#include "common/err.h"
#include "supervisor/core/sup.h"

/* Looks every gc_interval from now on. */
int alloc_gc_start(struct sup *sup, struct err *e);
void alloc_gc_stop(struct sup *sup);

#endif
