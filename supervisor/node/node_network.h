/* SPDX-License-Identifier: Apache-2.0 */
/* node_network.h: fingerprint of the networks that tasks share with the host. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_NODE_NODE_NETWORK_H
#define DROVER_SUPERVISOR_NODE_NODE_NETWORK_H

#include "model/node.h"
#include "proto/agent_config.h"

/*
 * Fills in the node's networks and ports: the network "default", whose device is the configured
 * one, that of the default route, or lo; and each device with an address in one of the
 * configuration's host networks. Servers place nothing on a node without a network.
 */
void node_network_take(struct node *n, const struct agent_config *c);

#endif
