/* SPDX-License-Identifier: Apache-2.0 */
/* node_cpu.h: fingerprint of the processors. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_NODE_NODE_CPU_H
#define DROVER_SUPERVISOR_NODE_NODE_CPU_H

#include "model/node.h"

struct agent_config;

/*
 * Cores, clock, NUMA nodes: attributes, Cpu and Topology, which say the same. usable: those that
 * tasks may have, as a list; NULL: no cpuset controller is there, so none can be reserved.
 */
void node_cpu_take(struct node *n, const struct agent_config *config, const char *usable);

#endif
