/* SPDX-License-Identifier: Apache-2.0 */
/* node_network.h: fingerprint of the networks that tasks share with the host. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_NODE_NODE_NETWORK_H
#define DROVER_SUPERVISOR_NODE_NODE_NETWORK_H

#include <netinet/in.h>

#include "model/node.h"
#include "proto/agent_config.h"

/*
 * Fills in the node's networks and ports: the network "default", whose device is the configured
 * device, else the device of the default route, else lo; and each device with an address in one of
 * the configuration's host networks. Servers place nothing on a node without a network.
 */
void node_network_take(struct node *n, const struct agent_config *c);
/* Returns whether the plugin that makes the bridge is in cni_path. */
bool node_network_has_plugins(const struct agent_config *c);
/* Checks whether all programs are here that a network of the mode "bridge" needs. Returns 0, or
 * -ENOENT with *e, which says what to install. */
int node_network_check_bridge(const struct agent_config *c, struct err *e);
/* Finds the machine's address at the bridge, which the plugin gives it: the first of the subnet.
 * Returns false if the plugin is missing. */
bool node_network_bridge_ip(const struct agent_config *c, char ret[INET_ADDRSTRLEN]);
/* Adds a network of CNI, which jobs name as "cni/NAME". */
void node_network_add_cni(struct node *n, const char *name);

#endif
