/* SPDX-License-Identifier: Apache-2.0 */
/* volume.c: field tables of CSI volumes and plugins, and the counts that the API shows. Runs in:
 * supervisor, cli. */
#include "model/volume.h"

#include <string.h>

#include "common/id.h"
#include "model/engine/table.h"
#include "model/engine/walk.h"

const char *const claim_mode_names[] = { "read", "write", "gc" };
const char *const claim_state_names[] = { "taken", "node-detached", "controller-detached",
	"ready-to-free", "unpublishing" };

const char *const claim_attach_names[] = { "no", "attaching", "attached", "detaching" };

#define S csi_claim
static const struct field csi_claim_fields[] = {
	F_STRING(alloc_id, "AllocationID"),
	F_STRING(node_id, "NodeID"),
	F_STRING(external_node_id, "ExternalNodeID"),
	F_ENUM(mode, "Mode", claim_mode_names, .flags = FIELD_AS_NUMBER),
	F_ENUM(access_mode, "AccessMode", csi_access_names),
	F_ENUM(attachment_mode, "AttachmentMode", csi_attachment_names),
	F_ENUM(state, "State", claim_state_names, .flags = FIELD_AS_NUMBER),
	F_INT(since, "Since", .flags = FIELD_OMIT_EMPTY | FIELD_NO_WIRE),
	F_ENUM(attach, "Attach", claim_attach_names, .flags = FIELD_OMIT_EMPTY | FIELD_NO_WIRE),
	F_BOOL(attach_read_only, "AttachReadOnly", .flags = FIELD_OMIT_EMPTY | FIELD_NO_WIRE),
	F_STRING(attach_boot, "AttachBoot", .flags = FIELD_OMIT_EMPTY | FIELD_NO_WIRE),
	F_STRING_MAP(publish_context, "PublishContext",
	    .flags = FIELD_OMIT_EMPTY | FIELD_NO_WIRE | FIELD_SEALED),
};
MODEL_TYPE(csi_claim, csi_claim_fields, .name = "claim",
    .title = 1 + offsetof(struct csi_claim, alloc_id));
#undef S

#define S csi_capability
static const struct field csi_capability_fields[] = {
	F_ENUM(attachment_mode, "AttachmentMode", csi_attachment_names),
	F_ENUM(access_mode, "AccessMode", csi_access_names),
};
MODEL_TYPE(csi_capability, csi_capability_fields, .name = "capability");
#undef S

#define S csi_topology_request
static const struct field csi_topology_request_fields[] = {
	F_LIST(required, "Required", csi_topology),
	F_LIST(preferred, "Preferred", csi_topology),
};
MODEL_TYPE(csi_topology_request, csi_topology_request_fields, .name = "topology_request");
#undef S

#define S csi_volume
static const struct field csi_volume_fields[] = {
	F_STRING(id, "ID"),
	F_STRING(name, "Name"),
	F_STRING(external_id, "ExternalID"),
	F_STRING_DEFAULT(namespace, "Namespace", "default"),
	F_POINTER(requested_topologies, "RequestedTopologies", csi_topology_request),
	F_LIST(topologies, "Topologies", csi_topology),
	F_ENUM(access_mode, "AccessMode", csi_access_names),
	F_ENUM(attachment_mode, "AttachmentMode", csi_attachment_names),
	F_POINTER(mount_options, "MountOptions", mount_options),
	F_STRING_MAP(secrets, "Secrets", .flags = FIELD_SEALED),
	F_BOOL(
	    secrets_lost, "SecretsLost", .flags = FIELD_OMIT_EMPTY | FIELD_NO_WIRE | FIELD_SEALED),
	F_BOOL(flags_sealed, "OnlyFlagsSealed", .flags = FIELD_OMIT_EMPTY | FIELD_NO_WIRE),
	F_STRING_MAP(parameters, "Parameters"),
	F_STRING_MAP(
	    mutable_parameters, "MutableParameters", .flags = FIELD_OMIT_EMPTY | FIELD_NO_WIRE),
	F_STRING_MAP(context, "Context"),
	F_STRING_MAP(publish_context, "PublishContext",
	    .flags = FIELD_OMIT_EMPTY | FIELD_NO_WIRE | FIELD_SEALED),
	F_INT(capacity, "Capacity"),
	F_INT(requested_capacity_min, "RequestedCapacityMin"),
	F_INT(requested_capacity_max, "RequestedCapacityMax"),
	F_INT(node_expansion, "NodeExpansion", .flags = FIELD_OMIT_EMPTY | FIELD_NO_WIRE),
	F_STRING(
	    node_expansion_error, "NodeExpansionError", .flags = FIELD_OMIT_EMPTY | FIELD_NO_WIRE),
	F_LIST(requested_capabilities, "RequestedCapabilities", csi_capability),
	F_STRING(clone_id, "CloneID"),
	F_STRING(snapshot_id, "SnapshotID"),
	F_MAP(read_claims, "ReadClaims", csi_claim),
	F_MAP(write_claims, "WriteClaims", csi_claim),
	F_MAP(past_claims, "PastClaims", csi_claim),
	F_STRING(plugin_id, "PluginID"),
	F_STRING(provider, "Provider"),
	F_STRING(provider_version, "ProviderVersion"),
	F_BOOL(controller_required, "ControllerRequired"),
	F_TIME(resource_exhausted, "ResourceExhausted"),
	F_INT(create_time, "CreateTime"),
	F_INT(modify_time, "ModifyTime"),
	F_UINT(create_index, "CreateIndex"),
	F_UINT(modify_index, "ModifyIndex"),
	/* Computed from the plugin and the claims; empty when stored. */
	F_BOOL(schedulable, "Schedulable"),
	F_INT(controllers_healthy, "ControllersHealthy"),
	F_INT(controllers_expected, "ControllersExpected"),
	F_INT(nodes_healthy, "NodesHealthy"),
	F_INT(nodes_expected, "NodesExpected"),
	F_SET(read_allocs, "ReadAllocs", .flags = FIELD_NO_WIRE),
	F_SET(write_allocs, "WriteAllocs", .flags = FIELD_NO_WIRE),
	F_LIST(allocations, "Allocations", alloc, .flags = FIELD_NO_WIRE),
	F_INT(current_readers, "CurrentReaders", .flags = FIELD_NO_WIRE),
	F_INT(current_writers, "CurrentWriters", .flags = FIELD_NO_WIRE),
	F_POINTER(here, "ThisNode", volume_here, .flags = FIELD_OMIT_EMPTY | FIELD_NO_WIRE),
	F_POINTER(at_controller, "AtController", volume_at_controller,
	    .flags = FIELD_OMIT_EMPTY | FIELD_NO_WIRE),
};
MODEL_TYPE(
    csi_volume, csi_volume_fields, .name = "volume", .title = 1 + offsetof(struct csi_volume, id));
#undef S

#define S mount_options
static const struct field mount_options_view_fields[] = {
	F_STRING(fs_type, "FSType"),
	F_STRINGS(mount_flags, "MountFlags", .flags = FIELD_SECRET),
};
static const struct type mount_options_view_type = {
	.name = "mount_options",
	.size = sizeof(struct mount_options),
	.fields = mount_options_view_fields,
	.n = ELEMENTSOF(mount_options_view_fields),
};
#undef S

#define S csi_volume
static const struct field csi_volume_view_fields[] = {
	F_STRING(id, "ID"),
	F_STRING(name, "Name"),
	F_STRING(external_id, "ExternalID"),
	F_STRING(namespace, "Namespace"),
	F_POINTER(requested_topologies, "RequestedTopologies", csi_topology_request),
	F_LIST(topologies, "Topologies", csi_topology),
	F_ENUM(access_mode, "AccessMode", csi_access_names),
	F_ENUM(attachment_mode, "AttachmentMode", csi_attachment_names),
	F_POINTER(mount_options, "MountOptions", mount_options, .shown = &mount_options_view_type),
	F_STRING_MAP(secrets, "Secrets", .flags = FIELD_SECRET),
	F_BOOL(secrets_lost, "SecretsLost", .flags = FIELD_OMIT_EMPTY | FIELD_NO_WIRE),
	F_STRING_MAP(parameters, "Parameters"),
	F_STRING_MAP(
	    mutable_parameters, "MutableParameters", .flags = FIELD_OMIT_EMPTY | FIELD_NO_WIRE),
	F_STRING_MAP(context, "Context"),
	F_INT(capacity, "Capacity"),
	F_INT(requested_capacity_min, "RequestedCapacityMin"),
	F_INT(requested_capacity_max, "RequestedCapacityMax"),
	F_INT(node_expansion, "NodeExpansion", .flags = FIELD_OMIT_EMPTY | FIELD_NO_WIRE),
	F_STRING(
	    node_expansion_error, "NodeExpansionError", .flags = FIELD_OMIT_EMPTY | FIELD_NO_WIRE),
	F_LIST(requested_capabilities, "RequestedCapabilities", csi_capability),
	F_STRING(clone_id, "CloneID"),
	F_STRING(snapshot_id, "SnapshotID"),
	F_SET(read_allocs, "ReadAllocs", .flags = FIELD_NOT_NIL),
	F_SET(write_allocs, "WriteAllocs", .flags = FIELD_NOT_NIL),
	F_LIST(
	    allocations, "Allocations", alloc, .flags = FIELD_NOT_NIL, .shown = &alloc_stub_type),
	F_BOOL(schedulable, "Schedulable"),
	F_STRING(plugin_id, "PluginID"),
	F_STRING(provider, "Provider"),
	F_STRING(provider_version, "ProviderVersion"),
	F_BOOL(controller_required, "ControllerRequired"),
	F_INT(controllers_healthy, "ControllersHealthy"),
	F_INT(controllers_expected, "ControllersExpected"),
	F_INT(nodes_healthy, "NodesHealthy"),
	F_INT(nodes_expected, "NodesExpected"),
	F_TIME(resource_exhausted, "ResourceExhausted"),
	F_INT(create_time, "CreateTime"),
	F_INT(modify_time, "ModifyTime"),
	F_UINT(create_index, "CreateIndex"),
	F_UINT(modify_index, "ModifyIndex"),
	F_POINTER(here, "ThisNode", volume_here, .flags = FIELD_OMIT_EMPTY | FIELD_NO_WIRE),
	F_POINTER(at_controller, "AtController", volume_at_controller,
	    .flags = FIELD_OMIT_EMPTY | FIELD_NO_WIRE),
};
const struct type csi_volume_view_type = {
	.name = "volume",
	.size = sizeof(struct csi_volume),
	.fields = csi_volume_view_fields,
	.n = ELEMENTSOF(csi_volume_view_fields),
};

/* A request cannot set claims, indexes and the modes of the first claim. */
static const struct field csi_volume_request_fields[] = {
	F_STRING(id, "ID"),
	F_STRING(name, "Name"),
	F_STRING(external_id, "ExternalID"),
	F_STRING(namespace, "Namespace"),
	F_POINTER(requested_topologies, "RequestedTopologies", csi_topology_request),
	F_LIST(topologies, "Topologies", csi_topology),
	F_POINTER(mount_options, "MountOptions", mount_options),
	F_STRING_MAP(secrets, "Secrets", .flags = FIELD_SEALED),
	F_STRING_MAP(parameters, "Parameters"),
	F_STRING_MAP(
	    mutable_parameters, "MutableParameters", .flags = FIELD_OMIT_EMPTY | FIELD_NO_WIRE),
	F_STRING_MAP(context, "Context"),
	F_INT(requested_capacity_min, "RequestedCapacityMin"),
	F_INT(requested_capacity_max, "RequestedCapacityMax"),
	F_LIST(requested_capabilities, "RequestedCapabilities", csi_capability),
	F_STRING(clone_id, "CloneID"),
	F_STRING(snapshot_id, "SnapshotID"),
	F_STRING(plugin_id, "PluginID"),
};
const struct type csi_volume_request_type = {
	.name = "volume",
	.size = sizeof(struct csi_volume),
	.fields = csi_volume_request_fields,
	.n = ELEMENTSOF(csi_volume_request_fields),
};

/* The parameters of CreateVolume, without secrets. */
static const struct field csi_volume_creation_fields[] = {
	F_STRING(plugin_id, "PluginID"),
	F_STRING(name, "Name"),
	F_INT(requested_capacity_min, "RequestedCapacityMin"),
	F_INT(requested_capacity_max, "RequestedCapacityMax"),
	F_LIST(requested_capabilities, "RequestedCapabilities", csi_capability),
	F_POINTER(mount_options, "MountOptions", mount_options),
	F_STRING_MAP(parameters, "Parameters"),
	F_STRING_MAP(
	    mutable_parameters, "MutableParameters", .flags = FIELD_OMIT_EMPTY | FIELD_NO_WIRE),
	F_STRING(clone_id, "CloneID"),
	F_STRING(snapshot_id, "SnapshotID"),
	F_POINTER(requested_topologies, "RequestedTopologies", csi_topology_request),
};
static const struct type csi_volume_creation_type = {
	.name = "volume",
	.size = sizeof(struct csi_volume),
	.fields = csi_volume_creation_fields,
	.n = ELEMENTSOF(csi_volume_creation_fields),
};

static const struct field csi_volume_stub_fields[] = {
	F_STRING(id, "ID"),
	F_STRING(namespace, "Namespace"),
	F_STRING(name, "Name"),
	F_STRING(external_id, "ExternalID"),
	F_LIST(topologies, "Topologies", csi_topology),
	F_ENUM(access_mode, "AccessMode", csi_access_names),
	F_ENUM(attachment_mode, "AttachmentMode", csi_attachment_names),
	F_POINTER(mount_options, "MountOptions", mount_options, .shown = &mount_options_view_type),
	F_INT(current_readers, "CurrentReaders"),
	F_INT(current_writers, "CurrentWriters"),
	F_BOOL(schedulable, "Schedulable"),
	F_STRING(plugin_id, "PluginID"),
	F_STRING(provider, "Provider"),
	F_BOOL(controller_required, "ControllerRequired"),
	F_INT(controllers_healthy, "ControllersHealthy"),
	F_INT(controllers_expected, "ControllersExpected"),
	F_INT(nodes_healthy, "NodesHealthy"),
	F_INT(nodes_expected, "NodesExpected"),
	F_TIME(resource_exhausted, "ResourceExhausted"),
	F_UINT(create_index, "CreateIndex"),
	F_UINT(modify_index, "ModifyIndex"),
};
const struct type csi_volume_stub_type = {
	.name = "volume",
	.size = sizeof(struct csi_volume),
	.fields = csi_volume_stub_fields,
	.n = ELEMENTSOF(csi_volume_stub_fields),
};
#undef S

#define S csi_plugin
static const struct field csi_plugin_fields[] = {
	F_STRING(id, "ID"),
	F_STRING(provider, "Provider"),
	F_STRING(version, "Version"),
	F_BOOL(controller_required, "ControllerRequired"),
	F_MAP(controllers, "Controllers", csi_info, .flags = FIELD_NOT_NIL),
	F_MAP(nodes, "Nodes", csi_info, .flags = FIELD_NOT_NIL),
	F_LIST(
	    allocations, "Allocations", alloc, .flags = FIELD_NOT_NIL, .shown = &alloc_stub_type),
	F_INT(controllers_healthy, "ControllersHealthy"),
	F_INT(controllers_expected, "ControllersExpected"),
	F_INT(nodes_healthy, "NodesHealthy"),
	F_INT(nodes_expected, "NodesExpected"),
	F_UINT(create_index, "CreateIndex"),
	F_UINT(modify_index, "ModifyIndex"),
	F_LIST(instances, "Instances", csi_instance, .flags = FIELD_OMIT_EMPTY | FIELD_NO_WIRE),
	F_POINTER(capacity, "Capacity", csi_capacity, .flags = FIELD_OMIT_EMPTY | FIELD_NO_WIRE),
	F_STRING(capacity_error, "CapacityError", .flags = FIELD_OMIT_EMPTY | FIELD_NO_WIRE),
};
MODEL_TYPE(
    csi_plugin, csi_plugin_fields, .name = "plugin", .title = 1 + offsetof(struct csi_plugin, id));

static const struct field csi_plugin_stub_fields[] = {
	F_STRING(id, "ID"),
	F_STRING(provider, "Provider"),
	F_BOOL(controller_required, "ControllerRequired"),
	F_INT(controllers_healthy, "ControllersHealthy"),
	F_INT(controllers_expected, "ControllersExpected"),
	F_INT(nodes_healthy, "NodesHealthy"),
	F_INT(nodes_expected, "NodesExpected"),
	F_UINT(create_index, "CreateIndex"),
	F_UINT(modify_index, "ModifyIndex"),
};
const struct type csi_plugin_stub_type = {
	.name = "plugin",
	.size = sizeof(struct csi_plugin),
	.fields = csi_plugin_stub_fields,
	.n = ELEMENTSOF(csi_plugin_stub_fields),
};
#undef S

static void
fill_set(struct strings *set, const void *claims)
{
	const struct any_list *m = claims;
	size_t i;

	strings_done(set);
	for (i = 0; i < m->n; i++)
		strings_add(set, *(char **)(m->v + i * map_entry_size(&csi_claim_type)));
}

void
csi_volume_fill_view(struct csi_volume *vol)
{
	vol->current_readers = (int64_t)vol->read_claims.n;
	vol->current_writers = (int64_t)vol->write_claims.n;
	fill_set(&vol->read_allocs, &vol->read_claims);
	fill_set(&vol->write_allocs, &vol->write_claims);
}

bool
csi_plugin_needs_attach(const struct csi_plugin *plugin)
{
	size_t i;

	if (!plugin->controller_required)
		return false;
	for (i = 0; i < plugin->controllers.n; i++) {
		const struct csi_info *info = &plugin->controllers.v[i].value;

		if (info->controller_info && info->controller_info->supports_attach_detach)
			return true;
	}
	return false;
}

bool
csi_plugin_lacks_controller(const struct csi_plugin *plugin)
{
	for (size_t i = 0; i < plugin->controllers.n; i++)
		if (plugin->controllers.v[i].value.controller_info)
			return false;
	return plugin->controller_required;
}

void
csi_plugin_count(struct csi_plugin *plugin)
{
	size_t i;

	plugin->controllers_healthy = plugin->nodes_healthy = 0;
	plugin->controller_required = false;
	for (i = 0; i < plugin->controllers.n; i++) {
		plugin->controllers_healthy += plugin->controllers.v[i].value.healthy;
		plugin->controller_required |=
		    plugin->controllers.v[i].value.requires_controller_plugin;
	}
	for (i = 0; i < plugin->nodes.n; i++) {
		plugin->nodes_healthy += plugin->nodes.v[i].value.healthy;
		plugin->controller_required |= plugin->nodes.v[i].value.requires_controller_plugin;
	}
	plugin->controllers_expected = (int64_t)plugin->controllers.n;
	plugin->nodes_expected = (int64_t)plugin->nodes.n;
}

bool
csi_volume_id_is_valid(const char *id)
{
	const char *bracket = strchr(id, '['), *digits = bracket ? bracket + 1 : "";
	char base[NAME_BYTES_MAX + 1];
	size_t n = strspn(digits, "0123456789");

	if (!bracket)
		return name_is_component(id);
	/* An alloc's index has no leading zero. */
	if (n == 0 || n > 9 || (n > 1 && digits[0] == '0') || strcmp(digits + n, "]") != 0 ||
	    strlen(id) > NAME_BYTES_MAX)
		return false;
	memcpy(base, id, (size_t)(bracket - id));
	base[bracket - id] = '\0';
	return name_is_component(base);
}

bool
csi_volume_creation_differs(
    const struct csi_volume *a, const struct csi_volume *b, char *ret, size_t size)
{
	return model_difference(&csi_volume_creation_type, a, b, ret, size);
}

void
csi_volume_validate(const struct csi_volume *vol, struct problems *p)
{
	size_t i;

	if (!*str(vol->id))
		model_problem(p, "volume: ID is missing");
	else if (!csi_volume_id_is_valid(vol->id))
		model_problem(p,
		    "volume id \"%.140s\" must have 1 to 128 letters, digits, '.', '_' and '-' and "
		    "no leading dot, and may end with an index such as \"[0]\" (per_alloc)",
		    vol->id);
	if (!*str(vol->plugin_id))
		model_problem(p, "volume \"%s\": PluginID is missing", str(vol->id));
	if (*str(vol->clone_id) && *str(vol->snapshot_id))
		model_problem(
		    p, "volume \"%s\": CloneID and SnapshotID exclude each other", vol->id);
	if (vol->requested_capabilities.n == 0)
		model_problem(
		    p, "volume \"%s\": must include at least one capability block", str(vol->id));
	for (i = 0; i < vol->requested_capabilities.n; i++) {
		const struct csi_capability *c = &vol->requested_capabilities.v[i];

		if (!c->access_mode || !c->attachment_mode)
			model_problem(p,
			    "volume \"%s\": capability %zu needs AccessMode and AttachmentMode",
			    str(vol->id), i + 1);
		if (c->access_mode > CSI_MULTI_NODE_MULTI_WRITER)
			model_problem(p,
			    "volume \"%s\": capability %zu: AccessMode %s is only for host volumes",
			    str(vol->id), i + 1, csi_access_names[c->access_mode]);
	}
	if (vol->requested_capacity_min < 0 || vol->requested_capacity_max < 0 ||
	    (vol->requested_capacity_max &&
		vol->requested_capacity_max < vol->requested_capacity_min))
		model_problem(
		    p, "volume \"%s\": the capacity's minimum is above its maximum", str(vol->id));
}
