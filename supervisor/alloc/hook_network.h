/* SPDX-License-Identifier: Apache-2.0 */
/* hook_network.h: the networks of allocs, for others: addresses and numbers. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_HOOK_NETWORK_H
#define DROVER_SUPERVISOR_ALLOC_HOOK_NETWORK_H

#include <stdint.h>

struct sup_alloc;
struct task_runner;

/* Returns the task's address in its own network or its group's; "": it has none, or the network is
 * not made yet. Valid until the runner ends. */
const char *task_network_address(const struct task_runner *tr);

/* Returns how many networks an alloc that has not ended has: its group's, and those of containers.
 */
unsigned alloc_count_networks(const struct sup_alloc *sa);
/* Since the start of the supervisor: networks that could not be made, and tries to remove one that
 * failed. */
struct network_counts {
	uint64_t failed_makes, failed_removals;
};
const struct network_counts *network_counts(void);

#endif
