/* SPDX-License-Identifier: Apache-2.0 */
/* node_disk.h: how much of the data directory's disk is for allocs. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_NODE_NODE_DISK_H
#define DROVER_SUPERVISOR_NODE_NODE_DISK_H

#include "model/node.h"
#include "supervisor/core/sup.h"

/*
 * Fills in the size of the disk for allocs; called once, after the source has loaded its allocs.
 * Data that the allocs have written reduces the free space, and is counted again in their
 * ephemeral_disk. So the size of the last start is kept while it can be true.
 */
void node_disk_take(struct sup *sup, struct node *n);
void node_disk_free(struct sup *sup);

#endif
