/* SPDX-License-Identifier: Apache-2.0 */
/* node_network.h: fingerprint of the network that tasks share with the host. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_NODE_NETWORK_H
#define DROVER_SUPERVISOR_NODE_NETWORK_H

#include "model/node.h"

/*
 * One network of mode host: the device of the default route with its addresses, or lo. Servers
 * place nothing on a node without one. From /proc: this process has no socket but AF_UNIX.
 */
void node_network_take(struct node *n);

#endif
