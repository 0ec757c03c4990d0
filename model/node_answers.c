/* SPDX-License-Identifier: Apache-2.0 */
/* node_answers.c: field tables of a node's answers to servers and at its socket. Runs in:
 * supervisor. */
#include "model/node_answers.h"

#include "model/engine/table.h"

#define S rpc_file
static const struct field rpc_file_fields[] = {
	F_STRING(name, "Name"),
	F_BOOL(is_dir, "IsDir"),
	F_INT(size, "Size"),
	F_STRING(file_mode, "FileMode"),
	F_TIME(mod_time, "ModTime"),
	F_STRING(content_type, "ContentType", .flags = FIELD_OMIT_EMPTY),
};
MODEL_TYPE(rpc_file, rpc_file_fields, .name = "file");
#undef S

#define S rpc_fs_list_rep
static const struct field rpc_fs_list_rep_fields[] = {
	F_LIST(files, "Files", rpc_file),
	RPC_META,
};
MODEL_TYPE(rpc_fs_list_rep, rpc_fs_list_rep_fields, .name = "answer");
#undef S

#define S rpc_meta_apply_rep
static const struct field rpc_meta_apply_rep_fields[] = {
	F_STRING_MAP(meta, "Meta"),
	F_JSON(dynamic, "Dynamic", .flags = FIELD_AS_OBJECT),
	F_STRING_MAP(static_meta, "Static"),
};
MODEL_TYPE(rpc_meta_apply_rep, rpc_meta_apply_rep_fields, .name = "answer");
#undef S

#define S rpc_csi_entry
static const struct field rpc_csi_entry_fields[] = {
	F_STRING(external_id, "ExternalID"),
	F_INT(capacity_bytes, "CapacityBytes"),
	F_STRING_MAP(volume_context, "VolumeContext"),
	F_STRING(clone_id, "CloneID"),
	F_STRING(snapshot_id, "SnapshotID"),
	F_STRINGS(published_external_node_ids, "PublishedExternalNodeIDs"),
	F_BOOL(is_abnormal, "IsAbnormal"),
	F_STRING(status, "Status"),
};
MODEL_TYPE(rpc_csi_entry, rpc_csi_entry_fields, .name = "volume");
#undef S

#define S rpc_csi_rep
static const struct field rpc_csi_rep_fields[] = {
	F_STRING_MAP(publish_context, "PublishContext"),
	F_STRING(external_volume_id, "ExternalVolumeID"),
	F_INT(capacity_bytes, "CapacityBytes"),
	F_STRING_MAP(volume_context, "VolumeContext"),
	F_LIST(topologies, "Topologies", csi_topology),
	F_BOOL(node_expansion_required, "NodeExpansionRequired"),
	F_LIST(entries, "Entries", rpc_csi_entry),
	F_STRING(next_token, "NextToken"),
};
MODEL_TYPE(rpc_csi_rep, rpc_csi_rep_fields, .name = "answer");
#undef S

#define S rpc_csi_snapshot
static const struct field rpc_csi_snapshot_fields[] = {
	F_STRING(id, "ID"),
	F_STRING(external_source_volume_id, "ExternalSourceVolumeID"),
	F_INT(size_bytes, "SizeBytes"),
	F_INT(create_time, "CreateTime"),
	F_BOOL(is_ready, "IsReady"),
	F_STRING(group_id, "GroupSnapshotID", .flags = FIELD_OMIT_EMPTY | FIELD_NO_WIRE),
};
MODEL_TYPE(rpc_csi_snapshot, rpc_csi_snapshot_fields, .name = "snapshot");
#undef S

#define S rpc_csi_snapshots_rep
static const struct field rpc_csi_snapshots_rep_fields[] = {
	F_LIST(entries, "Entries", rpc_csi_snapshot),
	F_STRING(next_token, "NextToken"),
};
MODEL_TYPE(rpc_csi_snapshots_rep, rpc_csi_snapshots_rep_fields, .name = "answer");
#undef S
