/* SPDX-License-Identifier: Apache-2.0 */
/* node_cpu.h: fingerprint of the processors. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_NODE_CPU_H
#define DROVER_SUPERVISOR_NODE_CPU_H

#include "model/node.h"

/* Cores, clock, NUMA nodes: attributes, Cpu and Topology, which say the same. total_mhz 0:
 * measured. */
void node_cpu_take(struct node *n, int64_t total_mhz);

#endif
