/* SPDX-License-Identifier: Apache-2.0 */
/* hook_network.h: the address of a task in its network. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_HOOK_NETWORK_H
#define DROVER_SUPERVISOR_ALLOC_HOOK_NETWORK_H

struct task_runner;

/* Returns the task's address in its own network or its group's; "": it has none, or the network is
 * not made yet. Valid until the runner ends. */
const char *task_network_address(const struct task_runner *tr);

#endif
