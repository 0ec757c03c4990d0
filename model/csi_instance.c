// SPDX-License-Identifier: Apache-2.0
/* csi_instance.c: field tables of an instance of a CSI plugin, and of its capacity. Runs in:
 * supervisor, cli. */
#include "model/csi_instance.h"

#include "model/engine/table.h"

#define S csi_instance
static const struct field csi_instance_fields[] = {
	F_STRING(alloc_id, "AllocID"),
	F_STRING(node_id, "NodeID"),
	F_STRING(type, "Type"),
	F_STRING(provider, "Provider"),
	F_STRING(version, "Version"),
	F_BOOL(healthy, "Healthy"),
	F_STRING(health_description, "HealthDescription"),
	F_INT(health_since, "HealthSince"),
	F_STRING(external_node_id, "ExternalNodeID"),
	F_STRINGS(plugin, "PluginCapabilities", .flags = FIELD_NOT_NIL),
	F_STRINGS(expansion, "ExpansionCapabilities", .flags = FIELD_NOT_NIL),
	F_STRINGS(controller, "ControllerCapabilities", .flags = FIELD_NOT_NIL),
	F_STRINGS(node, "NodeCapabilities", .flags = FIELD_NOT_NIL),
	F_STRINGS(group, "GroupControllerCapabilities", .flags = FIELD_NOT_NIL),
	F_POINTER(topology, "Topology", csi_topology),
	F_INT(volumes, "Volumes"),
	F_INT(max_volumes, "MaxVolumes"),
};
MODEL_TYPE(csi_instance, csi_instance_fields, .name = "instance");
#undef S

#define S csi_capacity
static const struct field csi_capacity_fields[] = {
	F_INT(available, "Available"),
	F_INT(largest, "MaximumVolumeSize"),
	F_INT(smallest, "MinimumVolumeSize"),
};
MODEL_TYPE(csi_capacity, csi_capacity_fields, .name = "capacity");
#undef S
