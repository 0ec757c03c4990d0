/* SPDX-License-Identifier: Apache-2.0 */
/* node_cpu.h: fingerprint of the processors. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_NODE_NODE_CPU_H
#define DROVER_SUPERVISOR_NODE_NODE_CPU_H

#include "model/node.h"

struct agent_config;

/*
 * Fills in cores, clock and NUMA nodes: as attributes, as Cpu and as Topology. usable lists the
 * cores that tasks may have; NULL: there is no cpuset controller, so none can be reserved.
 */
void node_cpu_take(struct node *n, const struct agent_config *config, const char *usable);

#endif
