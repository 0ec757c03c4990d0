/* SPDX-License-Identifier: Apache-2.0 */
/* leave.h: drains the node before the agent ends: for client { drain_on_shutdown }, and when it
 * lands or retires (departure.h). Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_LEAVE_H
#define DROVER_SUPERVISOR_ALLOC_LEAVE_H

#include <stdbool.h>

#include "model/node.h"

struct agent_config;
struct sup;

struct leave_plan {
	struct drain_strategy drain; /* deadline and ignore_system_jobs */
	const char *message;         /* for the servers; a constant */
	const char *why; /* description of allocs that the node stops itself; a constant */
	/* The node stops its allocs itself if the servers do not, at the latest at the deadline;
	 * otherwise they are left running. */
	bool stops_here;
	bool ends_unit; /* systemd waits for the end of the unit, and is asked for more time */
	void (*done)(struct sup *sup);
};

/* Returns the strategy of drain_on_shutdown, or its defaults. */
struct drain_strategy leave_strategy(const struct agent_config *config);
/*
 * Begins the drain, once; does nothing if it has begun. In a cluster the servers move the allocs to
 * other nodes; alone the node stops them, and starts them again with the agent. done is called when
 * they have ended, when the deadline has passed and they have not ended soon after, or (without
 * stops_here) when no server can be asked; in the last two cases tasks are left running, and the
 * log has a warning.
 */
void leave_begin(struct sup *sup, const struct leave_plan *plan);
/* Ends the drain without calling done; allocs that were told to stop will stop. */
void leave_cancel(struct sup *sup);
void leave_free(struct sup *sup);

#endif
