/* SPDX-License-Identifier: Apache-2.0 */
/* node_resources.h: what a node has, and what of it is reserved. Runs in: supervisor, cli. */
#ifndef DROVER_MODEL_NODE_RESOURCES_H
#define DROVER_MODEL_NODE_RESOURCES_H

#include "model/engine/field.h"
#include "model/network.h"

struct node_cpu {
	int64_t cpu_shares, total_cpu_cores;
	struct ints reservable_cpu_cores;
};

struct node_memory {
	int64_t memory_mb;
};

struct node_disk {
	int64_t disk_mb;
};

struct node_address {
	char *family, *alias, *address, *reserved_ports, *gateway;
};

struct node_network {
	char *mode, *device, *mac_address;
	int64_t speed;
	MODEL_LIST(struct node_address) addresses;
};

struct topology_core {
	int64_t socket_id, node_id, id;
	bool grade; /* a performance core, not an efficiency core */
	bool disable;
	uint64_t base_speed, max_speed, guess_speed; /* MHz */
};

struct topology_distances {
	struct ints to;
};

/* Servers from 1.7 on count CPU by this; on a node without cores they place nothing. */
struct topology {
	char *nodes; /* base64 of one byte for each NUMA node's id */
	MODEL_LIST(struct topology_distances) distances;
	MODEL_LIST(struct topology_core) cores;
	uint64_t override_total_compute, override_withhold_compute; /* MHz */
	struct int_map bus_associativity;
};

struct node_processors {
	struct topology *topology;
};

struct node_resources {
	struct node_cpu cpu;
	struct node_processors processors;
	struct node_memory memory;
	struct node_disk disk;
	json_t *devices;
	MODEL_LIST(struct node_network) node_networks;
	MODEL_LIST(struct network_resource) networks;
	int64_t min_dynamic_port, max_dynamic_port;
};

struct reserved_cpu {
	int64_t cpu_shares;
	struct ints reserved_cpu_cores;
};

struct reserved_networks {
	char *reserved_host_ports;
};

struct node_reserved {
	struct reserved_cpu cpu;
	struct node_memory memory;
	struct node_disk disk;
	struct reserved_networks networks;
};

/* The older form, which nomad commands up to 1.6 dereference. */
struct legacy_resources {
	int64_t cpu, cores, memory_mb, memory_max_mb, disk_mb, iops;
};

MODEL_DECLARE(node_address);
MODEL_DECLARE(node_network);
MODEL_DECLARE(topology_core);
MODEL_DECLARE(topology_distances);
MODEL_DECLARE(topology);
MODEL_DECLARE(node_resources);

#endif
