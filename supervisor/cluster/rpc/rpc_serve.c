/* SPDX-License-Identifier: Apache-2.0 */
/* rpc_serve.c: field tables of the servers' requests to a node. Runs in: supervisor. */
#include "supervisor/cluster/rpc/rpc_serve.h"

#include <msgpack/pack.h>
#include <string.h>

#include "supervisor/cluster/rpc/rpc_table.h"
#include "supervisor/cluster/rpc/rpc_csi.h"
#include "supervisor/cluster/rpc/rpc_stream.h"

#define S rpc_task_req
static const struct field rpc_task_req_fields[] = {
	F_STRING(alloc_id, "AllocID"),
	F_STRING(task, "Task"),
	F_STRING(task_name, "TaskName"),
	F_BOOL(all_tasks, "AllTasks"),
	F_STRING(signal, "Signal"),
	F_STRING(schedule_state, "ScheduleState"),
	RPC_QUERY,
};
MODEL_TYPE(rpc_task_req, rpc_task_req_fields, .name = "request");
#undef S

#define S rpc_alloc_usage_rep
static const struct field rpc_alloc_usage_rep_fields[] = {
	F_POINTER(stats, "Stats", alloc_usage),
	RPC_META,
};
MODEL_TYPE(rpc_alloc_usage_rep, rpc_alloc_usage_rep_fields, .name = "answer");
#undef S

#define S rpc_checks_rep
static const struct field rpc_checks_rep_fields[] = {
	F_MAP(results, "Results", check_result),
	RPC_META,
};
MODEL_TYPE(rpc_checks_rep, rpc_checks_rep_fields, .name = "answer");
#undef S

#define S rpc_host_stats_rep
static const struct field rpc_host_stats_rep_fields[] = {
	F_POINTER(host_stats, "HostStats", host_stats),
	RPC_META,
};
MODEL_TYPE(rpc_host_stats_rep, rpc_host_stats_rep_fields, .name = "answer");
#undef S

#define S rpc_exec_req
static const struct field rpc_exec_req_fields[] = {
	F_STRING(alloc_id, "AllocID"),
	F_STRING(task, "Task"),
	F_BOOL(tty, "Tty"),
	F_STRINGS(cmd, "Cmd"),
	F_STRING(job_id, "JobID"),
	F_STRING(action, "Action"),
	RPC_QUERY,
};
MODEL_TYPE(rpc_exec_req, rpc_exec_req_fields, .name = "request");
#undef S

#define S rpc_fs_req
static const struct field rpc_fs_req_fields[] = {
	F_STRING(alloc_id, "AllocID"),
	F_STRING(path, "Path"),
	F_STRING(task, "Task"),
	F_STRING(log_type, "LogType"),
	F_INT(offset, "Offset"),
	F_INT(limit, "Limit"),
	F_STRING(origin, "Origin"),
	F_BOOL(plain_text, "PlainText"),
	F_BOOL(follow, "Follow"),
	RPC_QUERY,
};
MODEL_TYPE(rpc_fs_req, rpc_fs_req_fields, .name = "request");
#undef S

#define S rpc_fs_stat_rep
static const struct field rpc_fs_stat_rep_fields[] = {
	F_POINTER(info, "Info", rpc_file),
	RPC_META,
};
MODEL_TYPE(rpc_fs_stat_rep, rpc_fs_stat_rep_fields, .name = "answer");
#undef S

#define S rpc_monitor_req
static const struct field rpc_monitor_req_fields[] = {
	F_STRING(log_level, "LogLevel"),
	F_BOOL(log_json, "LogJSON"),
	F_BOOL(log_include_location, "LogIncludeLocation"),
	F_BOOL(plain_text, "PlainText"),
	F_STRING(node_id, "NodeID"),
	F_STRING(server_id, "ServerID"),
	RPC_QUERY,
};
MODEL_TYPE(rpc_monitor_req, rpc_monitor_req_fields, .name = "request");
#undef S

/* Nulls in AS_OBJECT fields are kept. */
#define S rpc_meta_apply_req
static const struct field rpc_meta_apply_req_fields[] = {
	F_STRING(node_id, "NodeID"),
	F_JSON(meta, "Meta", .flags = FIELD_AS_OBJECT),
	RPC_QUERY,
};
MODEL_TYPE(rpc_meta_apply_req, rpc_meta_apply_req_fields, .name = "request");
#undef S

#define S rpc_claims_rep
static const struct field rpc_claims_rep_fields[] = {
	F_JSON(claims, "Claims", .flags = FIELD_AS_OBJECT),
};
MODEL_TYPE(rpc_claims_rep, rpc_claims_rep_fields, .name = "answer");
#undef S

#define S rpc_stream_open
static const struct field rpc_stream_open_fields[] = { F_STRING(method, "Method") };
MODEL_TYPE(rpc_stream_open, rpc_stream_open_fields, .name = "stream");
#undef S

#define S rpc_stream_accept
static const struct field rpc_stream_accept_fields[] = { F_STRING(error, "Error") };
MODEL_TYPE(rpc_stream_accept, rpc_stream_accept_fields, .name = "stream");
#undef S

#define S csi_capacity_range
static const struct field csi_capacity_range_fields[] = {
	F_INT(required_bytes, "RequiredBytes"),
	F_INT(limit_bytes, "LimitBytes"),
};
MODEL_TYPE(csi_capacity_range, csi_capacity_range_fields, .name = "capacity");
#undef S

#define S rpc_csi_node_req
static const struct field rpc_csi_node_req_fields[] = {
	F_STRING(plugin_id, "PluginID"),
	F_STRING(volume_id, "VolumeID"),
	F_STRING(volume_namespace, "VolumeNamespace"),
	F_STRING(alloc_id, "AllocID"),
	F_STRING(node_id, "NodeID"),
	F_STRING(external_id, "ExternalID"),
	F_ENUM(attachment_mode, "AttachmentMode", csi_attachment_names),
	F_ENUM(access_mode, "AccessMode", csi_access_names),
	F_BOOL(read_only, "ReadOnly"),
	F_POINTER(capacity, "Capacity", csi_capacity_range),
	F_POINTER(claim, "Claim", csi_claim),
};
MODEL_TYPE(rpc_csi_node_req, rpc_csi_node_req_fields, .name = "request");
#undef S

#define S rpc_csi_mount_options
static const struct field rpc_csi_mount_options_fields[] = {
	F_STRING(fs_type, "FSType"),
	F_STRING(filesystem, "Filesystem"),
	F_STRINGS(mount_flags, "MountFlags"),
};
MODEL_TYPE(rpc_csi_mount_options, rpc_csi_mount_options_fields, .name = "mount_options");
#undef S

#define S rpc_csi_capability
static const struct field rpc_csi_capability_fields[] = {
	F_INT(access_type, "AccessType"),
	F_INT(access_mode, "AccessMode"),
	F_POINTER(mount_volume, "MountVolume", rpc_csi_mount_options),
};
MODEL_TYPE(rpc_csi_capability, rpc_csi_capability_fields, .name = "capability");
#undef S

#define S rpc_csi_controller_req
static const struct field rpc_csi_controller_req_fields[] = {
	F_STRING(controller_node_id, "ControllerNodeID"),
	F_STRING(plugin_id, "PluginID"),
	F_STRING(volume_id, "VolumeID"),
	F_STRING(external_volume_id, "ExternalVolumeID"),
	F_STRING(client_csi_node_id, "ClientCSINodeID"),
	F_STRING(name, "Name"),
	F_ENUM(attachment_mode, "AttachmentMode", csi_attachment_names),
	F_ENUM(access_mode, "AccessMode", csi_access_names),
	F_LIST(volume_capabilities, "VolumeCapabilities", csi_capability),
	F_POINTER(volume_capability, "VolumeCapability", rpc_csi_capability),
	F_POINTER(mount_options, "MountOptions", rpc_csi_mount_options),
	F_BOOL(read_only, "ReadOnly"),
	F_STRING_MAP(secrets, "Secrets"),
	F_STRING_MAP(parameters, "Parameters"),
	F_STRING_MAP(context, "Context"),
	F_STRING_MAP(volume_context, "VolumeContext"),
	F_INT(capacity_min, "CapacityMin"),
	F_INT(capacity_max, "CapacityMax"),
	F_POINTER(capacity_range, "CapacityRange", csi_capacity_range),
	F_STRING(snapshot_id, "SnapshotID"),
	F_STRING(clone_id, "CloneID"),
	F_POINTER(requested_topologies, "RequestedTopologies", csi_topology_request),
	F_INT(max_entries, "MaxEntries"),
	F_STRING(starting_token, "StartingToken"),
	F_STRING(external_source_volume_id, "ExternalSourceVolumeID"),
	F_STRING(id, "ID"),
};
MODEL_TYPE(rpc_csi_controller_req, rpc_csi_controller_req_fields, .name = "request");
#undef S

static int
append_text(void *arg, const char *bytes, size_t len)
{
	text_append(arg, bytes, len);
	return 0;
}

static void
pack_bytes(msgpack_packer *p, const void *bytes, size_t len)
{
	(void)msgpack_pack_v4raw(p, len);
	(void)msgpack_pack_v4raw_body(p, bytes, len);
}

void
rpc_frame_data(struct text *t, const void *data, size_t len)
{
	msgpack_packer p;

	msgpack_packer_init(&p, t, append_text);
	(void)msgpack_pack_map(&p, 2);
	pack_bytes(&p, "Error", 5);
	(void)msgpack_pack_nil(&p);
	pack_bytes(&p, "Payload", 7);
	pack_bytes(&p, data, len);
}

void
rpc_frame_error(struct text *t, int code, const char *message)
{
	msgpack_packer p;

	msgpack_packer_init(&p, t, append_text);
	(void)msgpack_pack_map(&p, 2);
	pack_bytes(&p, "Error", 5);
	(void)msgpack_pack_map(&p, 2);
	pack_bytes(&p, "Message", 7);
	pack_bytes(&p, message, strlen(message));
	pack_bytes(&p, "Code", 4);
	(void)msgpack_pack_fix_int16(&p, (int16_t)code);
	pack_bytes(&p, "Payload", 7);
	(void)msgpack_pack_nil(&p);
}

void
rpc_exec_input_put(struct text *t, const struct rpc_exec_input *in)
{
	msgpack_packer p;

	msgpack_packer_init(&p, t, append_text);
	(void)msgpack_pack_map(&p, 3);
	pack_bytes(&p, "Setup", 5);
	(void)msgpack_pack_nil(&p);
	pack_bytes(&p, "Stdin", 5);
	if (in->has_stdin) {
		(void)msgpack_pack_map(&p, 2);
		pack_bytes(&p, "Data", 4);
		pack_bytes(&p, in->data, in->len);
		pack_bytes(&p, "Close", 5);
		(void)(in->close ? msgpack_pack_true(&p) : msgpack_pack_false(&p));
	} else {
		(void)msgpack_pack_nil(&p);
	}
	pack_bytes(&p, "TtySize", 7);
	if (in->has_size) {
		(void)msgpack_pack_map(&p, 2);
		pack_bytes(&p, "Height", 6);
		(void)msgpack_pack_int64(&p, in->height);
		pack_bytes(&p, "Width", 5);
		(void)msgpack_pack_int64(&p, in->width);
	} else {
		(void)msgpack_pack_nil(&p);
	}
}
