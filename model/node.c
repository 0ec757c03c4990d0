/* SPDX-License-Identifier: Apache-2.0 */
/* node.c: field tables of the node. Runs in: supervisor, cli. */
#include "model/node.h"

#include "model/engine/table.h"

const char *const node_status_names[] = { "", "initializing", "ready", "down", "disconnected" };
const char *const node_eligibility_names[] = { "", "eligible", "ineligible" };
static const char *const drain_status_names[] = { "", "draining", "complete", "canceled" };

#define S driver_info
static const struct field driver_info_fields[] = {
	F_STRING_MAP(attributes, "Attributes"),
	F_BOOL(detected, "Detected"),
	F_BOOL(healthy, "Healthy"),
	F_STRING(health_description, "HealthDescription"),
	F_TIME(update_time, "UpdateTime", .flags = FIELD_NO_EQUAL),
};
MODEL_TYPE(driver_info, driver_info_fields, .name = "driver");
#undef S

#define S node_event
static const struct field node_event_fields[] = {
	F_STRING(message, "Message"),
	F_STRING(subsystem, "Subsystem"),
	F_STRING_MAP(details, "Details"),
	F_TIME(timestamp, "Timestamp"),
	F_UINT(create_index, "CreateIndex"),
};
MODEL_TYPE(node_event, node_event_fields, .name = "event");
#undef S

#define S node_cpu
static const struct field node_cpu_fields[] = {
	F_INT(cpu_shares, "CpuShares"),
	F_INT(total_cpu_cores, "TotalCpuCores"),
	F_INTS(reservable_cpu_cores, "ReservableCpuCores"),
};
static MODEL_TYPE(node_cpu, node_cpu_fields, .name = "cpu");
#undef S

#define S node_memory
static const struct field node_memory_fields[] = {
	F_INT(memory_mb, "MemoryMB"),
};
static MODEL_TYPE(node_memory, node_memory_fields, .name = "memory");
#undef S

#define S node_disk
static const struct field node_disk_fields[] = {
	F_INT(disk_mb, "DiskMB"),
};
static MODEL_TYPE(node_disk, node_disk_fields, .name = "disk");
#undef S

#define S node_address
static const struct field node_address_fields[] = {
	F_STRING(family, "Family"),
	F_STRING(alias, "Alias"),
	F_STRING(address, "Address"),
	F_STRING(reserved_ports, "ReservedPorts"),
	F_STRING(gateway, "Gateway"),
};
MODEL_TYPE(node_address, node_address_fields, .name = "address");
#undef S

#define S node_network
static const struct field node_network_fields[] = {
	F_STRING(mode, "Mode"),
	F_STRING(device, "Device"),
	F_STRING(mac_address, "MacAddress"),
	F_INT(speed, "Speed"),
	F_LIST(addresses, "Addresses", node_address),
};
MODEL_TYPE(node_network, node_network_fields, .name = "network");
#undef S

#define S topology_core
static const struct field topology_core_fields[] = {
	F_INT(socket_id, "SocketID"),
	F_INT(node_id, "NodeID"),
	F_INT(id, "ID"),
	F_BOOL(grade, "Grade"),
	F_BOOL(disable, "Disable"),
	F_UINT(base_speed, "BaseSpeed"),
	F_UINT(max_speed, "MaxSpeed"),
	F_UINT(guess_speed, "GuessSpeed"),
};
MODEL_TYPE(topology_core, topology_core_fields, .name = "core");
#undef S

#define S topology_distances
static const struct field topology_distances_fields[] = { F_INTS(to, "To") };
MODEL_TYPE(topology_distances, topology_distances_fields, .name = "distances", .bare = true);
#undef S

#define S topology
static const struct field topology_fields[] = {
	F_STRING(nodes, "Nodes", .flags = FIELD_BYTES),
	F_LIST(distances, "Distances", topology_distances),
	F_LIST(cores, "Cores", topology_core),
	F_UINT(override_total_compute, "OverrideTotalCompute"),
	/* Nomad's spelling. */
	F_UINT(override_withhold_compute, "OverrideWitholdCompute"),
	F_INT_MAP(bus_associativity, "BusAssociativity"),
};
MODEL_TYPE(topology, topology_fields, .name = "topology");
#undef S

#define S node_processors
static const struct field node_processors_fields[] = {
	F_POINTER(topology, "Topology", topology),
};
static MODEL_TYPE(node_processors, node_processors_fields, .name = "processors");
#undef S

#define S node_resources
static const struct field node_resources_fields[] = {
	F_STRUCT(cpu, "Cpu", node_cpu),
	F_STRUCT(processors, "Processors", node_processors, .flags = FIELD_OMIT_EMPTY),
	F_STRUCT(memory, "Memory", node_memory),
	F_STRUCT(disk, "Disk", node_disk),
	F_JSON(devices, "Devices"),
	F_LIST(node_networks, "NodeNetworks", node_network),
	F_LIST(networks, "Networks", network_resource),
	F_INT(min_dynamic_port, "MinDynamicPort"),
	F_INT(max_dynamic_port, "MaxDynamicPort"),
};
MODEL_TYPE(node_resources, node_resources_fields, .name = "resources");
#undef S

#define S reserved_cpu
static const struct field reserved_cpu_fields[] = {
	F_INT(cpu_shares, "CpuShares"),
	F_INTS(reserved_cpu_cores, "ReservedCpuCores"),
};
static MODEL_TYPE(reserved_cpu, reserved_cpu_fields, .name = "cpu");
#undef S

#define S reserved_networks
static const struct field reserved_networks_fields[] = {
	F_STRING(reserved_host_ports, "ReservedHostPorts"),
};
static MODEL_TYPE(reserved_networks, reserved_networks_fields, .name = "networks");
#undef S

#define S node_reserved
static const struct field node_reserved_fields[] = {
	F_STRUCT(cpu, "Cpu", reserved_cpu),
	F_STRUCT(memory, "Memory", node_memory),
	F_STRUCT(disk, "Disk", node_disk),
	F_STRUCT(networks, "Networks", reserved_networks),
};
static MODEL_TYPE(node_reserved, node_reserved_fields, .name = "reserved");
#undef S

#define S drain_strategy
static const struct field drain_strategy_fields[] = {
	F_DURATION(deadline, "Deadline"),
	F_BOOL(ignore_system_jobs, "IgnoreSystemJobs"),
	F_TIME(force_deadline, "ForceDeadline"),
	F_TIME(started_at, "StartedAt"),
};
MODEL_TYPE(drain_strategy, drain_strategy_fields, .name = "drain");
#undef S

#define S drain_metadata
static const struct field drain_metadata_fields[] = {
	F_TIME(started_at, "StartedAt"),
	F_TIME(updated_at, "UpdatedAt"),
	F_ENUM(status, "Status", drain_status_names),
	F_STRING(accessor_id, "AccessorID"),
	F_STRING_MAP(meta, "Meta"),
};
MODEL_TYPE(drain_metadata, drain_metadata_fields, .name = "drain");
#undef S

#define S host_volume
static const struct field host_volume_fields[] = {
	F_STRING(name, "Name", .flags = FIELD_OMIT_EMPTY),
	F_STRING(path, "Path"),
	F_BOOL(read_only, "ReadOnly"),
	F_STRING(id, "ID", .flags = FIELD_OMIT_EMPTY),
};
MODEL_TYPE(host_volume, host_volume_fields, .name = "volume");
#undef S

#define S legacy_resources
static const struct field legacy_resources_fields[] = {
	F_INT(cpu, "CPU"),
	F_INT(cores, "Cores"),
	F_INT(memory_mb, "MemoryMB"),
	F_INT(memory_max_mb, "MemoryMaxMB"),
	F_INT(disk_mb, "DiskMB"),
	F_INT(iops, "IOPS"),
};
static MODEL_TYPE(legacy_resources, legacy_resources_fields, .name = "resources");
#undef S

#define S node
/* The secret is last, so that the table without it is the same array without its last element. */
static const struct field node_fields[] = {
	F_STRING(id, "ID"),
	F_STRING(datacenter, "Datacenter"),
	F_STRING(name, "Name"),
	F_STRING(cgroup_parent, "CgroupParent"),
	F_STRING(http_addr, "HTTPAddr"),
	F_BOOL(tls_enabled, "TLSEnabled"),
	F_STRING_MAP(attributes, "Attributes"),
	F_STRUCT(node_resources, "NodeResources", node_resources),
	F_STRUCT(reserved_resources, "ReservedResources", node_reserved),
	F_STRUCT(resources, "Resources", legacy_resources),
	F_STRUCT(reserved, "Reserved", legacy_resources),
	F_STRING_MAP(links, "Links"),
	F_STRING_MAP(meta, "Meta"),
	F_STRING(node_class, "NodeClass"),
	F_STRING(node_pool, "NodePool"),
	F_STRING(computed_class, "ComputedClass"),
	F_BOOL(drain, "Drain", .flags = FIELD_NO_WIRE),
	F_POINTER(drain_strategy, "DrainStrategy", drain_strategy),
	F_ENUM(scheduling_eligibility, "SchedulingEligibility", node_eligibility_names),
	F_ENUM(status, "Status", node_status_names),
	F_STRING(status_description, "StatusDescription"),
	F_INT(status_updated_at, "StatusUpdatedAt"),
	F_LIST(events, "Events", node_event),
	F_MAP(drivers, "Drivers", driver_info),
	F_MAP(csi_controller_plugins, "CSIControllerPlugins", csi_info),
	F_MAP(csi_node_plugins, "CSINodePlugins", csi_info),
	F_MAP(host_volumes, "HostVolumes", host_volume),
	F_JSON(host_networks, "HostNetworks"),
	F_POINTER(last_drain, "LastDrain", drain_metadata),
	F_INT(node_max_allocs, "NodeMaxAllocs"),
	F_UINT(last_missed_heartbeat_index, "LastMissedHeartbeatIndex"),
	F_UINT(last_alloc_update_index, "LastAllocUpdateIndex"),
	F_UINT(create_index, "CreateIndex"),
	F_UINT(modify_index, "ModifyIndex"),
	F_STRING(secret_id, "SecretID"),
};
MODEL_TYPE(node, node_fields, .name = "node", .title = 1 + offsetof(struct node, id));
const struct type node_view_type = {
	.name = "node",
	.size = sizeof(struct node),
	.fields = node_fields,
	.n = ELEMENTSOF(node_fields) - 1,
	.title = 1 + offsetof(struct node, id),
};

static const struct field node_stub_fields[] = {
	F_STRING(address, "Address"),
	F_STRING(id, "ID"),
	F_STRING_MAP(attributes, "Attributes", .flags = FIELD_OMIT_EMPTY),
	F_STRING(datacenter, "Datacenter"),
	F_STRING(name, "Name"),
	F_STRING(node_class, "NodeClass"),
	F_STRING(node_pool, "NodePool"),
	F_STRING(version, "Version"),
	F_BOOL(drain, "Drain"),
	F_ENUM(scheduling_eligibility, "SchedulingEligibility", node_eligibility_names),
	F_ENUM(status, "Status", node_status_names),
	F_STRING(status_description, "StatusDescription"),
	F_MAP(drivers, "Drivers", driver_info),
	F_MAP(host_volumes, "HostVolumes", host_volume),
	F_POINTER(last_drain, "LastDrain", drain_metadata),
	F_UINT(create_index, "CreateIndex"),
	F_UINT(modify_index, "ModifyIndex"),
	F_STRUCT(node_resources, "NodeResources", node_resources),
	F_STRUCT(reserved_resources, "ReservedResources", node_reserved),
};
const struct type node_stub_resources_type = {
	.name = "node",
	.size = sizeof(struct node),
	.fields = node_stub_fields,
	.n = ELEMENTSOF(node_stub_fields),
	.title = 1 + offsetof(struct node, id),
};
const struct type node_stub_type = {
	.name = "node",
	.size = sizeof(struct node),
	.fields = node_stub_fields,
	.n = ELEMENTSOF(node_stub_fields) - 2,
	.title = 1 + offsetof(struct node, id),
};
#undef S
