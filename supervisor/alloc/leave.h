/* SPDX-License-Identifier: Apache-2.0 */
/* leave.h: client { drain_on_shutdown }: drains the node before the agent ends. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_LEAVE_H
#define DROVER_SUPERVISOR_ALLOC_LEAVE_H

#include <stdbool.h>

struct sup;

/*
 * Begins the drain, once; does nothing if it has begun. In a cluster the servers move the allocs to
 * other nodes; alone the node stops them, and starts them again with the agent. done is called when
 * they have ended, when the deadline has passed and they have not ended soon after, or when no
 * server can be asked; in the last two cases tasks are left running, and the log has a warning.
 */
void leave_begin(struct sup *sup, void (*done)(struct sup *sup));
void leave_free(struct sup *sup);

#endif
