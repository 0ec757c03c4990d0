/* SPDX-License-Identifier: Apache-2.0 */
/* node_interfaces.h: the addresses of the machine's network interfaces, for templates. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_NODE_NODE_INTERFACES_H
#define DROVER_SUPERVISOR_NODE_NODE_INTERFACES_H

#include <jansson.h>

/*
 * Returns a list of {name, address: "10.0.0.5/24", hardware, flags: "up|running", index, mtu,
 * default}, sorted by index, IPv4 first; what cannot be read is left out. default: the default
 * route goes through a gateway at this interface.
 */
json_t *node_interfaces(void);

#endif
