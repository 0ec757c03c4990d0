/* SPDX-License-Identifier: Apache-2.0 */
/* node.h: the node in its forms for registration, lists and the API. Runs in: supervisor, cli. */
#ifndef DROVER_MODEL_NODE_H
#define DROVER_MODEL_NODE_H

#include "model/csi.h"
#include "model/engine/field.h"
#include "model/node_resources.h"

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
