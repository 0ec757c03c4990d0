/* SPDX-License-Identifier: Apache-2.0 */
/* leftovers.h: what no row of state.db explains when the agent starts. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_LEFTOVERS_H
#define DROVER_SUPERVISOR_ALLOC_LEFTOVERS_H

#include "supervisor/core/sup.h"

/*
 * At start, after every row is read: runs and directories of allocs that no row knows are removed,
 * mounts and directories of volumes are only reported: they may hold somebody's data.
 */
void leftovers_remove(struct sup *sup);

#endif
