// SPDX-License-Identifier: Apache-2.0
/* volume_calls.c: CSI requests for the mounts of volumes. Runs in: supervisor. */
#include "supervisor/volume/volume_calls.h"

#include "supervisor/volume/call_args.h"

struct plugin_call *
volume_send_stage(struct sup *sup, const struct mount_record *rec, const struct csi_volume *volume,
    const struct csi_capability *cap, unsigned timeout_ms, plugin_call_cb *cb, void *arg)
{
	Csi__V1__NodeStageVolumeRequest stage = CSI__V1__NODE_STAGE_VOLUME_REQUEST__INIT;
	CsiCallReq req = CSI_CALL_REQ__INIT;
	char *staging, *target;

	call_args_paths(rec, &staging, &target);
	stage.volume_id = rec->external_id;
	stage.staging_target_path = staging;
	stage.volume_capability = call_args_capability(0, cap, volume->mount_options);
	stage.n_secrets = call_args_map(0, &volume->secrets, &stage.secrets);
	stage.n_publish_context =
	    call_args_map(2, &volume->publish_context, &stage.publish_context);
	stage.n_volume_context = call_args_map(1, &volume->context, &stage.volume_context);
	req.call_case = CSI_CALL_REQ__CALL_NODE_STAGE_VOLUME;
	req.node_stage_volume = &stage;
	return plugin_call(sup, rec->plugin, CSI_PLUGIN_NODE, &req, timeout_ms, cb, arg);
}

struct plugin_call *
volume_send_publish(struct sup *sup, const struct mount_record *rec,
    const struct csi_volume *volume, const struct csi_capability *cap, unsigned timeout_ms,
    plugin_call_cb *cb, void *arg)
{
	Csi__V1__NodePublishVolumeRequest publish = CSI__V1__NODE_PUBLISH_VOLUME_REQUEST__INIT;
	CsiCallReq req = CSI_CALL_REQ__INIT;
	char *staging, *target;

	call_args_paths(rec, &staging, &target);
	publish.volume_id = rec->external_id;
	if (rec->stages)
		publish.staging_target_path = staging;
	publish.target_path = target;
	publish.volume_capability = call_args_capability(0, cap, volume->mount_options);
	publish.readonly = rec->read_only;
	publish.n_secrets = call_args_map(0, &volume->secrets, &publish.secrets);
	publish.n_publish_context =
	    call_args_map(2, &volume->publish_context, &publish.publish_context);
	publish.n_volume_context = call_args_map(1, &volume->context, &publish.volume_context);
	req.call_case = CSI_CALL_REQ__CALL_NODE_PUBLISH_VOLUME;
	req.node_publish_volume = &publish;
	return plugin_call(sup, rec->plugin, CSI_PLUGIN_NODE, &req, timeout_ms, cb, arg);
}

struct plugin_call *
volume_send_unpublish(struct sup *sup, const struct mount_record *rec,
    const struct csi_volume *volume, const struct csi_capability *cap, unsigned timeout_ms,
    plugin_call_cb *cb, void *arg)
{
	Csi__V1__NodeUnpublishVolumeRequest unpublish =
	    CSI__V1__NODE_UNPUBLISH_VOLUME_REQUEST__INIT;
	CsiCallReq req = CSI_CALL_REQ__INIT;
	char *staging, *target;

	call_args_paths(rec, &staging, &target);
	unpublish.volume_id = rec->external_id;
	unpublish.target_path = target;
	req.call_case = CSI_CALL_REQ__CALL_NODE_UNPUBLISH_VOLUME;
	req.node_unpublish_volume = &unpublish;
	return plugin_call(sup, rec->plugin, CSI_PLUGIN_NODE, &req, timeout_ms, cb, arg);
}

struct plugin_call *
volume_send_unstage(struct sup *sup, const struct mount_record *rec,
    const struct csi_volume *volume, const struct csi_capability *cap, unsigned timeout_ms,
    plugin_call_cb *cb, void *arg)
{
	Csi__V1__NodeUnstageVolumeRequest unstage = CSI__V1__NODE_UNSTAGE_VOLUME_REQUEST__INIT;
	CsiCallReq req = CSI_CALL_REQ__INIT;
	char *staging, *target;

	call_args_paths(rec, &staging, &target);
	unstage.volume_id = rec->external_id;
	unstage.staging_target_path = staging;
	req.call_case = CSI_CALL_REQ__CALL_NODE_UNSTAGE_VOLUME;
	req.node_unstage_volume = &unstage;
	return plugin_call(sup, rec->plugin, CSI_PLUGIN_NODE, &req, timeout_ms, cb, arg);
}

struct plugin_call *
volume_send_expand(struct sup *sup, const struct mount_record *rec, int64_t required_bytes,
    int64_t limit_bytes, unsigned timeout_ms, plugin_call_cb *cb, void *arg)
{
	Csi__V1__NodeExpandVolumeRequest expand = CSI__V1__NODE_EXPAND_VOLUME_REQUEST__INIT;
	Csi__V1__CapacityRange range = CSI__V1__CAPACITY_RANGE__INIT;
	CsiCallReq req = CSI_CALL_REQ__INIT;
	char *staging, *target;

	call_args_paths(rec, &staging, &target);
	expand.volume_id = rec->external_id;
	expand.volume_path = target;
	if (rec->stages)
		expand.staging_target_path = staging;
	range.required_bytes = required_bytes;
	range.limit_bytes = limit_bytes;
	expand.capacity_range = &range;
	req.call_case = CSI_CALL_REQ__CALL_NODE_EXPAND_VOLUME;
	req.node_expand_volume = &expand;
	return plugin_call(sup, rec->plugin, CSI_PLUGIN_NODE, &req, timeout_ms, cb, arg);
}
