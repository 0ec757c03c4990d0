/* SPDX-License-Identifier: Apache-2.0 */
/* node_disk.h: how much of the data directory's disk there is for allocs. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_NODE_NODE_DISK_H
#define DROVER_SUPERVISOR_NODE_NODE_DISK_H

#include "model/node.h"
#include "supervisor/core/sup.h"

/*
 * After the source has loaded its allocs. What is free now leaves out what they have written
 * already, and each of them counts with its whole ephemeral_disk: so the figure of the last start
 * holds as long as it can be true.
 */
void node_disk_take(struct sup *sup, struct node *n);

#endif
