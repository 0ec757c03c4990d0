/* SPDX-License-Identifier: Apache-2.0 */
/* node.h: the node in its forms for registration, lists and the API. Runs in: supervisor, cli. */
#ifndef DROVER_MODEL_NODE_H
#define DROVER_MODEL_NODE_H

#include "model/csi.h"
#include "model/engine/field.h"
#include "model/network.h"

struct driver_info {
	struct string_map attributes;
	bool detected, healthy;
	char *health_description;
	int64_t update_time;
};

struct node_event {
	char *message, *subsystem; /* "Cluster", "Drain", "Driver", "Storage", … */
	struct string_map details;
	int64_t timestamp; /* time */
	uint64_t create_index;
};

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

struct drain_strategy {
	int64_t deadline; /* duration; -1 ns means force */
	bool ignore_system_jobs;
	int64_t force_deadline, started_at; /* times */
};

struct drain_metadata {
	int64_t started_at, updated_at; /* times */
	enum drain_status { DRAIN_NONE, DRAIN_DRAINING, DRAIN_COMPLETE, DRAIN_CANCELED } status;
	char *accessor_id;
	struct string_map meta;
};

struct host_volume {
	char *name, *path;
	bool read_only;
	char *id;
};

/* The older form, which nomad commands up to 1.6 dereference. */
struct legacy_resources {
	int64_t cpu, cores, memory_mb, memory_max_mb, disk_mb, iops;
};

enum node_status { NODE_STATUS_NONE, NODE_INIT, NODE_READY, NODE_DOWN, NODE_DISCONNECTED };
enum node_eligibility { ELIGIBILITY_NONE, NODE_ELIGIBLE, NODE_INELIGIBLE };

struct node {
	char *id, *secret_id, *datacenter, *name, *cgroup_parent, *http_addr;
	bool tls_enabled;
	struct string_map attributes;
	struct node_resources node_resources;
	struct node_reserved reserved_resources;
	struct legacy_resources resources, reserved;
	struct string_map links, meta;
	char *node_class, *node_pool, *computed_class;
	bool drain; /* JSON only: whether there is a strategy */
	struct drain_strategy *drain_strategy;
	enum node_eligibility scheduling_eligibility;
	enum node_status status;
	char *status_description;
	int64_t status_updated_at; /* seconds */
	MODEL_LIST(struct node_event) events;
	MODEL_MAP(struct driver_info) drivers;
	MODEL_MAP(struct csi_info) csi_controller_plugins; /* by plugin id */
	MODEL_MAP(struct csi_info) csi_node_plugins;
	MODEL_MAP(struct host_volume) host_volumes;
	json_t *host_networks;
	struct drain_metadata *last_drain;
	int64_t node_max_allocs;
	uint64_t last_missed_heartbeat_index, last_alloc_update_index;
	uint64_t create_index, modify_index;
	/* Only in stubs. */
	char *address, *version;
};

MODEL_DECLARE(driver_info);
MODEL_DECLARE(node_event);
MODEL_DECLARE(node_address);
MODEL_DECLARE(node_network);
MODEL_DECLARE(topology_core);
MODEL_DECLARE(topology_distances);
MODEL_DECLARE(topology);
MODEL_DECLARE(node_resources);
MODEL_DECLARE(drain_strategy);
MODEL_DECLARE(drain_metadata);
MODEL_DECLARE(host_volume);
MODEL_DECLARE(node);
/* Other tables of struct node: as the API shows it (without SecretID), and as lists do. */
extern const struct type node_view_type;
extern const struct type node_stub_type;
extern const struct type node_stub_resources_type; /* for ?resources=true */

extern const char *const node_status_names[NODE_DISCONNECTED + 1];
extern const char *const node_eligibility_names[NODE_INELIGIBLE + 1];

#endif
