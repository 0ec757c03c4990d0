/* SPDX-License-Identifier: Apache-2.0 */
/* network_config.h: the settings of networks. Runs in: every process. */
#ifndef DROVER_PROTO_NETWORK_CONFIG_H
#define DROVER_PROTO_NETWORK_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/config_sizes.h"

/* A name for those addresses of the node that are in the prefix, on the interface, or both. */
struct config_host_network {
	char name[CONFIG_NAME_SIZE];
	char interface[CONFIG_DEVICE_SIZE]; /* empty: any interface */
	char cidr[CONFIG_CIDR_SIZE];        /* as configured; empty: any address, and family is 0 */
	uint8_t prefix[16];
	uint32_t prefix_bits;
	int family;
	char reserved_ports[CONFIG_PATH_SIZE]; /* common/port_list.h: ports that jobs cannot get
						  there */
};

/* Where plugins are looked for by default. */
#define CNI_PATH_DEFAULT "/opt/cni/bin:/usr/lib/cni"
/* The directories in which plugins find programs such as iptables. */
#define CNI_PROGRAMS "/usr/sbin:/usr/bin:/sbin:/bin"
/* `drover cleanup` runs drover-network-helper with this word, the runtime directory, cni_path and
 * the id of an allocation as arguments, and the descriptors of a worker (net.h). */
#define NET_CLEANUP_WORD     "cleanup"
#define NET_CLEANUP_FIRST_FD 3
#define NET_CLEANUP_FDS      3

/* Networks of allocations: client { cni_path, bridge_network_name … }. */
struct config_cni {
	char path[CONFIG_PATH_SIZE]; /* directories, with ':' between them */
	char config_dir[CONFIG_PATH_SIZE];
	char bridge[CONFIG_DEVICE_SIZE];
	char subnet[CONFIG_CIDR_SIZE];
	char subnet6[CONFIG_CIDR_SIZE]; /* empty: IPv4 only */
	bool hairpin;
	char reserved_ports[CONFIG_PATH_SIZE]; /* jobs cannot get these on any address */
};

#endif
