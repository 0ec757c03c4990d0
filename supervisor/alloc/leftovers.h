/* SPDX-License-Identifier: Apache-2.0 */
/* leftovers.h: removes leaks when the agent starts. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_LEFTOVERS_H
#define DROVER_SUPERVISOR_ALLOC_LEFTOVERS_H

#include "supervisor/core/sup.h"

/*
 * To be called once all rows are read. Removes runs, directories of allocs and empty roots of
 * plugins that no row explains. Mounts and directories of volumes are only logged, because they may
 * have data.
 */
void leftovers_remove(struct sup *sup);

#endif
