/* SPDX-License-Identifier: Apache-2.0 */
/* csi.c: field tables that volumes and plugins share; merges mount options. Runs in: supervisor,
 * cli. */
#include <stdio.h>
#include <string.h>

#include "model/csi.h"
#include "model/engine/table.h"

const char *const csi_access_names[] = {
	[CSI_ACCESS_NONE] = "",
	[CSI_SINGLE_NODE_READER] = "single-node-reader-only",
	[CSI_SINGLE_NODE_WRITER] = "single-node-writer",
	[CSI_MULTI_NODE_READER] = "multi-node-reader-only",
	[CSI_MULTI_NODE_SINGLE_WRITER] = "multi-node-single-writer",
	[CSI_MULTI_NODE_MULTI_WRITER] = "multi-node-multi-writer",
	[HOST_SINGLE_WRITER] = "single-node-single-writer",
	[HOST_MULTI_WRITER] = "single-node-multi-writer",
};

const char *const csi_attachment_names[] = {
	[CSI_ATTACHMENT_NONE] = "",
	[CSI_BLOCK_DEVICE] = "block-device",
	[CSI_FILE_SYSTEM] = "file-system",
};

#define S mount_options
static const struct field mount_options_fields[] = {
	F_STRING(fs_type, "FSType"),
	F_STRINGS(mount_flags, "MountFlags", .flags = FIELD_SEALED), /* may have a password */
};
MODEL_TYPE(mount_options, mount_options_fields, .name = "mount_options");
#undef S

#define S csi_topology
static const struct field csi_topology_fields[] = {
	F_STRING_MAP(segments, "Segments"),
};
MODEL_TYPE(csi_topology, csi_topology_fields, .name = "topology");
#undef S

#define S csi_controller_info
static const struct field csi_controller_info_fields[] = {
	F_BOOL(supports_create_delete, "SupportsCreateDelete"),
	F_BOOL(supports_attach_detach, "SupportsAttachDetach"),
	F_BOOL(supports_list_volumes, "SupportsListVolumes"),
	F_BOOL(supports_get_capacity, "SupportsGetCapacity"),
	F_BOOL(supports_create_delete_snapshot, "SupportsCreateDeleteSnapshot"),
	F_BOOL(supports_list_snapshots, "SupportsListSnapshots"),
	F_BOOL(supports_clone, "SupportsClone"),
	F_BOOL(supports_read_only_attach, "SupportsReadOnlyAttach"),
	F_BOOL(supports_expand, "SupportsExpand"),
	F_BOOL(supports_list_volumes_attached_nodes, "SupportsListVolumesAttachedNodes"),
	F_BOOL(supports_condition, "SupportsCondition"),
	F_BOOL(supports_get, "SupportsGet"),
};
MODEL_TYPE(csi_controller_info, csi_controller_info_fields, .name = "controller");
#undef S

#define S csi_node_info
static const struct field csi_node_info_fields[] = {
	F_STRING(id, "ID"),
	F_INT(max_volumes, "MaxVolumes"),
	F_POINTER(accessible_topology, "AccessibleTopology", csi_topology),
	F_BOOL(requires_node_stage_volume, "RequiresNodeStageVolume"),
	F_BOOL(supports_stats, "SupportsStats"),
	F_BOOL(supports_expand, "SupportsExpand"),
	F_BOOL(supports_condition, "SupportsCondition"),
};
MODEL_TYPE(csi_node_info, csi_node_info_fields, .name = "node");
#undef S

#define S csi_info
static const struct field csi_info_fields[] = {
	F_STRING(plugin_id, "PluginID"),
	F_STRING(alloc_id, "AllocID"),
	F_BOOL(healthy, "Healthy"),
	F_STRING(health_description, "HealthDescription"),
	F_TIME(update_time, "UpdateTime", .flags = FIELD_NO_EQUAL),
	F_STRING(provider, "Provider"),
	F_STRING(provider_version, "ProviderVersion"),
	F_BOOL(requires_controller_plugin, "RequiresControllerPlugin"),
	F_BOOL(requires_topologies, "RequiresTopologies"),
	F_POINTER(controller_info, "ControllerInfo", csi_controller_info),
	F_POINTER(node_info, "NodeInfo", csi_node_info),
};
MODEL_TYPE(
    csi_info, csi_info_fields, .name = "plugin", .title = 1 + offsetof(struct csi_info, plugin_id));
#undef S

#define FNV_START 2166136261u
#define FNV_PRIME 16777619u

/* Includes the NUL, so that {"ab"} and {"a", "b"} differ. */
static uint32_t
digest(uint32_t h, const char *s)
{
	const unsigned char *p = (const unsigned char *)str(s);

	do
		h = (h ^ *p) * FNV_PRIME;
	while (*p++);
	return h;
}

static bool
options_equal(const struct mount_options *a, const struct mount_options *b)
{
	static const struct mount_options none;

	return model_equal(&mount_options_type, a ? a : &none, b ? b : &none);
}

void
mount_options_merge(struct mount_options **volume, const struct mount_options *request)
{
	if (!request)
		return;
	if (!*volume)
		*volume = mount_options_new();
	if (*str(request->fs_type))
		str_set(&(*volume)->fs_type, request->fs_type);
	if (!request->mount_flags.v)
		return;
	strings_done(&(*volume)->mount_flags);
	for (size_t i = 0; i < request->mount_flags.n; i++)
		strings_add(&(*volume)->mount_flags, request->mount_flags.v[i]);
}

void
csi_usage(char ret[USAGE_SIZE], bool read_only, enum csi_attachment attachment,
    enum csi_access access, const struct mount_options *volume, const struct mount_options *request)
{
	struct mount_options *merged = NULL;
	uint32_t h = FNV_START;
	size_t i;
	int n;

	mount_options_merge(&merged, volume);
	mount_options_merge(&merged, request);
	n = snprintf(ret, USAGE_SIZE, "%s-%s-%s", read_only ? "ro" : "rw",
	    csi_attachment_names[attachment], csi_access_names[access]);
	if (!options_equal(merged, volume)) {
		h = digest(h, merged->fs_type);
		for (i = 0; i < merged->mount_flags.n; i++)
			h = digest(h, merged->mount_flags.v[i]);
		(void)snprintf(ret + n, USAGE_SIZE - (size_t)n, "-%08x", h);
	}
	mount_options_free(merged);
}
