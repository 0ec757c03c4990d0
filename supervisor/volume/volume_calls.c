// SPDX-License-Identifier: Apache-2.0
/* volume_calls.c: the CSI calls of one mount, made from its record and its volume. Runs in:
 * supervisor. */
#include "supervisor/volume/volume_calls.h"

#include "supervisor/volume/call_args.h"

#define PROBE_TIMEOUT_MS 5000
#define STATS_TIMEOUT_MS 10000

static struct plugin_call *
send_call(const struct volume_call *c, const CsiCallReq *req)
{
	return plugin_call(c->sup, c->rec->plugin, CSI_PLUGIN_NODE, req,
	    (unsigned)c->sup->config->csi_call_timeout_ms, c->cb, c->arg);
}

struct plugin_call *
volume_send_stage(const struct volume_call *c)
{
	Csi__V1__NodeStageVolumeRequest stage = CSI__V1__NODE_STAGE_VOLUME_REQUEST__INIT;
	const struct csi_volume *v = c->volume;
	CsiCallReq req = CSI_CALL_REQ__INIT;
	cleanup_call_args struct call_args args = { 0 };

	stage.volume_id = c->rec->external_id;
	stage.staging_target_path = call_args_staging(&args, c->rec);
	stage.volume_capability = call_args_capability(&args, c->capability, v->mount_options);
	stage.n_secrets = call_args_map(&args, &v->secrets, &stage.secrets);
	stage.n_volume_context = call_args_map(&args, &v->context, &stage.volume_context);
	stage.n_publish_context = call_args_map(&args, &v->publish_context, &stage.publish_context);
	req.call_case = CSI_CALL_REQ__CALL_NODE_STAGE_VOLUME;
	req.node_stage_volume = &stage;
	return send_call(c, &req);
}

struct plugin_call *
volume_send_publish(const struct volume_call *c)
{
	Csi__V1__NodePublishVolumeRequest publish = CSI__V1__NODE_PUBLISH_VOLUME_REQUEST__INIT;
	const struct csi_volume *v = c->volume;
	CsiCallReq req = CSI_CALL_REQ__INIT;
	cleanup_call_args struct call_args args = { 0 };

	publish.volume_id = c->rec->external_id;
	if (c->rec->stages)
		publish.staging_target_path = call_args_staging(&args, c->rec);
	publish.target_path = call_args_target(&args, c->rec);
	publish.readonly = c->rec->read_only;
	publish.volume_capability = call_args_capability(&args, c->capability, v->mount_options);
	publish.n_secrets = call_args_map(&args, &v->secrets, &publish.secrets);
	publish.n_volume_context = call_args_map(&args, &v->context, &publish.volume_context);
	publish.n_publish_context =
	    call_args_map(&args, &v->publish_context, &publish.publish_context);
	req.call_case = CSI_CALL_REQ__CALL_NODE_PUBLISH_VOLUME;
	req.node_publish_volume = &publish;
	return send_call(c, &req);
}

struct plugin_call *
volume_send_unpublish(const struct volume_call *c)
{
	Csi__V1__NodeUnpublishVolumeRequest unpublish =
	    CSI__V1__NODE_UNPUBLISH_VOLUME_REQUEST__INIT;
	CsiCallReq req = CSI_CALL_REQ__INIT;
	cleanup_call_args struct call_args args = { 0 };

	unpublish.volume_id = c->rec->external_id;
	unpublish.target_path = call_args_target(&args, c->rec);
	req.call_case = CSI_CALL_REQ__CALL_NODE_UNPUBLISH_VOLUME;
	req.node_unpublish_volume = &unpublish;
	return send_call(c, &req);
}

struct plugin_call *
volume_send_unstage(const struct volume_call *c)
{
	Csi__V1__NodeUnstageVolumeRequest unstage = CSI__V1__NODE_UNSTAGE_VOLUME_REQUEST__INIT;
	CsiCallReq req = CSI_CALL_REQ__INIT;
	cleanup_call_args struct call_args args = { 0 };

	unstage.volume_id = c->rec->external_id;
	unstage.staging_target_path = call_args_staging(&args, c->rec);
	req.call_case = CSI_CALL_REQ__CALL_NODE_UNSTAGE_VOLUME;
	req.node_unstage_volume = &unstage;
	return send_call(c, &req);
}

struct plugin_call *
volume_send_expand(const struct volume_call *c, const struct volume_size *size)
{
	Csi__V1__NodeExpandVolumeRequest expand = CSI__V1__NODE_EXPAND_VOLUME_REQUEST__INIT;
	Csi__V1__CapacityRange range = CSI__V1__CAPACITY_RANGE__INIT;
	/* Its mount flags are not in the row. */
	struct mount_options options = { .fs_type = c->rec->staged_fs_type };
	const struct csi_capability capability = { .access_mode = c->rec->staged_access,
		.attachment_mode = c->rec->block ? CSI_BLOCK_DEVICE : CSI_FILE_SYSTEM };
	CsiCallReq req = CSI_CALL_REQ__INIT;
	cleanup_call_args struct call_args args = { 0 };

	expand.volume_id = c->rec->external_id;
	expand.volume_path = call_args_target(&args, c->rec);
	if (c->rec->stages)
		expand.staging_target_path = call_args_staging(&args, c->rec);
	range.required_bytes = size->required_bytes;
	range.limit_bytes = size->limit_bytes;
	expand.capacity_range = &range;
	if (size->secrets)
		expand.n_secrets = call_args_map(&args, size->secrets, &expand.secrets);
	if (capability.access_mode != CSI_ACCESS_NONE) /* in the row of an older drover */
		expand.volume_capability = call_args_capability(&args, &capability, &options);
	req.call_case = CSI_CALL_REQ__CALL_NODE_EXPAND_VOLUME;
	req.node_expand_volume = &expand;
	return send_call(c, &req);
}

struct plugin_call *
volume_send_probe(const struct volume_call *c)
{
	Csi__V1__ProbeRequest probe = CSI__V1__PROBE_REQUEST__INIT;
	CsiCallReq req = CSI_CALL_REQ__INIT;

	req.call_case = CSI_CALL_REQ__CALL_PROBE;
	req.probe = &probe;
	return plugin_call(
	    c->sup, c->rec->plugin, CSI_PLUGIN_NODE, &req, PROBE_TIMEOUT_MS, c->cb, c->arg);
}

struct plugin_call *
volume_send_stats(const struct volume_call *c)
{
	Csi__V1__NodeGetVolumeStatsRequest stats = CSI__V1__NODE_GET_VOLUME_STATS_REQUEST__INIT;
	CsiCallReq req = CSI_CALL_REQ__INIT;
	cleanup_call_args struct call_args args = { 0 };

	stats.volume_id = c->rec->external_id;
	stats.volume_path = call_args_target(&args, c->rec);
	if (c->rec->stages)
		stats.staging_target_path = call_args_staging(&args, c->rec);
	req.call_case = CSI_CALL_REQ__CALL_NODE_GET_VOLUME_STATS;
	req.node_get_volume_stats = &stats;
	return plugin_call(
	    c->sup, c->rec->plugin, CSI_PLUGIN_NODE, &req, STATS_TIMEOUT_MS, c->cb, c->arg);
}

struct plugin_call *
volume_send_due_expand(const struct volume_call *c)
{
	const struct volume_size size = { c->volume->node_expansion, 0, &c->volume->secrets };

	return volume_send_expand(c, &size);
}
