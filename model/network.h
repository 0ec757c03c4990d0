/* SPDX-License-Identifier: Apache-2.0 */
/* network.h: networks and ports of nodes, groups and allocs. Runs in: supervisor, cli. */
#ifndef DROVER_MODEL_NETWORK_H
#define DROVER_MODEL_NETWORK_H

#include "common/err.h"
#include "model/engine/field.h"

struct dns_config {
	struct strings servers, searches, options;
};

/* Arguments of the CNI plugins that make the network. */
struct cni_config {
	struct string_map args;
};

struct port {
	char *label;
	int64_t value, to; /* to: -1 means value, 0 means not set */
	char *host_network;
	bool ignore_collision;
};

struct network_resource {
	char *mode, *device, *cidr, *ip, *hostname;
	int64_t mbits;
	struct dns_config *dns;
	MODEL_LIST(struct port) reserved_ports;
	MODEL_LIST(struct port) dynamic_ports;
	struct cni_config *cni;
};

MODEL_DECLARE(dns_config);
MODEL_DECLARE(cni_config);
MODEL_DECLARE(port);
MODEL_DECLARE(network_resource);

/* Whether an alloc with this network has a network namespace of its own. */
bool network_is_own(const struct network_resource *n);
/* Returns the name of the CNI network that the mode names; NULL: none. */
const char *network_cni_name(const struct network_resource *n);
/* Checks an argument, which is to be a part of CNI_ARGS. Returns 0, or -EINVAL with *e. */
int network_check_cni_arg(const char *key, const char *value, struct err *e);
/* Checks what this node needs of a group's or (own false) a task's network. Returns 0, or -EINVAL
 * with *e. */
int network_check(const struct network_resource *n, bool own, struct err *e);

/* Returns a port of the network: first come the static ones, then the dynamic ones. */
static inline const struct port *
network_port(const struct network_resource *n, size_t i)
{
	return i < n->reserved_ports.n ? &n->reserved_ports.v[i]
				       : &n->dynamic_ports.v[i - n->reserved_ports.n];
}

#endif
