// SPDX-License-Identifier: Apache-2.0
/* csi_error.c: the error for a gRPC status of a CSI call. Runs in: supervisor. */
#include "supervisor/volume/csi_error.h"

#include <errno.h>
#include <stddef.h>

#include "common/cleanup.h"

#define NODE_CALL       (1u << 0)
#define CONTROLLER_CALL (1u << 1)

static const struct call_text {
	CsiCallReq__CallCase call;
	const char *name;
	unsigned half;
} calls[] = {
	{ CSI_CALL_REQ__CALL_PROBE, "Probe", 0 },
	{ CSI_CALL_REQ__CALL_GET_PLUGIN_INFO, "GetPluginInfo", 0 },
	{ CSI_CALL_REQ__CALL_GET_PLUGIN_CAPABILITIES, "GetPluginCapabilities", 0 },
	{ CSI_CALL_REQ__CALL_NODE_GET_INFO, "NodeGetInfo", NODE_CALL },
	{ CSI_CALL_REQ__CALL_NODE_GET_CAPABILITIES, "NodeGetCapabilities", NODE_CALL },
	{ CSI_CALL_REQ__CALL_CONTROLLER_GET_CAPABILITIES, "ControllerGetCapabilities",
	    CONTROLLER_CALL },
	{ CSI_CALL_REQ__CALL_NODE_STAGE_VOLUME, "NodeStageVolume", NODE_CALL },
	{ CSI_CALL_REQ__CALL_NODE_UNSTAGE_VOLUME, "NodeUnstageVolume", NODE_CALL },
	{ CSI_CALL_REQ__CALL_NODE_PUBLISH_VOLUME, "NodePublishVolume", NODE_CALL },
	{ CSI_CALL_REQ__CALL_NODE_UNPUBLISH_VOLUME, "NodeUnpublishVolume", NODE_CALL },
	{ CSI_CALL_REQ__CALL_CREATE_VOLUME, "CreateVolume", CONTROLLER_CALL },
	{ CSI_CALL_REQ__CALL_DELETE_VOLUME, "DeleteVolume", CONTROLLER_CALL },
	{ CSI_CALL_REQ__CALL_VALIDATE_VOLUME_CAPABILITIES, "ValidateVolumeCapabilities",
	    CONTROLLER_CALL },
	{ CSI_CALL_REQ__CALL_CONTROLLER_PUBLISH_VOLUME, "ControllerPublishVolume",
	    CONTROLLER_CALL },
	{ CSI_CALL_REQ__CALL_CONTROLLER_UNPUBLISH_VOLUME, "ControllerUnpublishVolume",
	    CONTROLLER_CALL },
	{ CSI_CALL_REQ__CALL_CONTROLLER_EXPAND_VOLUME, "ControllerExpandVolume", CONTROLLER_CALL },
	{ CSI_CALL_REQ__CALL_LIST_VOLUMES, "ListVolumes", CONTROLLER_CALL },
	{ CSI_CALL_REQ__CALL_CREATE_SNAPSHOT, "CreateSnapshot", CONTROLLER_CALL },
	{ CSI_CALL_REQ__CALL_DELETE_SNAPSHOT, "DeleteSnapshot", CONTROLLER_CALL },
	{ CSI_CALL_REQ__CALL_LIST_SNAPSHOTS, "ListSnapshots", CONTROLLER_CALL },
	{ CSI_CALL_REQ__CALL_NODE_EXPAND_VOLUME, "NodeExpandVolume", NODE_CALL },
};

static const struct {
	uint32_t status;
	int code;
	const char *meaning;
} meanings[] = {
	{ 1, -ECANCELED, "the call was cancelled" },
	{ 3, -EINVAL, "the plugin refused the request" },
	{ 4, -ETIMEDOUT, "the plugin did not answer in time" },
	{ 5, -ENOENT, "the volume was not found" },
	{ 6, -EEXIST, "the volume exists or is in use in an incompatible way" },
	{ 7, -EACCES, "the plugin denied it" },
	{ 8, -ENOSPC, "the plugin has no space or no attachments left for it" },
	{ 9, -EBUSY, "the volume is in use" },
	{ 10, -EAGAIN, "the plugin is busy with this volume" },
	{ 11, -ERANGE, "the capacity is out of range" },
	{ 12, -EOPNOTSUPP, "the plugin does not implement it" },
	{ 14, -ECONNRESET, "the plugin cannot be reached" },
};

/* By origin, for calls that the plugin did not answer: their effect is unknown. */
static const struct {
	int code;
	const char *meaning;
} failures[] = {
	[CSI_CALL_REP__ORIGIN__TOO_LARGE] = { -EPROTO,
	    "it is not known whether the plugin did it, because its answer is too large" },
	[CSI_CALL_REP__ORIGIN__INVALID] = { -EPROTO,
	    "it is not known whether the plugin did it, because its answer cannot be read" },
	[CSI_CALL_REP__ORIGIN__LOST] = { -ECONNRESET, "the plugin cannot be reached" },
	[CSI_CALL_REP__ORIGIN__RESET] = { -ECONNRESET, "the plugin broke the call off" },
	[CSI_CALL_REP__ORIGIN__DEADLINE] = { -ETIMEDOUT, "the plugin did not answer in time" },
	[CSI_CALL_REP__ORIGIN__CANCELLED] = { -ECANCELED, "the call was cancelled" },
};

static const struct call_text *
find_call(CsiCallReq__CallCase call)
{
	for (size_t i = 0; i < ELEMENTSOF(calls); i++)
		if (calls[i].call == call)
			return &calls[i];
	return NULL;
}

const char *
csi_call_name(CsiCallReq__CallCase call)
{
	const struct call_text *c = find_call(call);

	return c ? c->name : "?";
}

int
csi_error(CsiCallReq__CallCase call, const char *plugin, const CsiCallRep *rep, struct err *e)
{
	const struct call_text *c = find_call(call);
	const char *half = c && c->half == NODE_CALL         ? "node "
			   : c && c->half == CONTROLLER_CALL ? "controller "
							     : "";

	if (rep->grpc_status == GRPC_OK)
		return 0;
	if (rep->origin > 0 && rep->origin < ELEMENTSOF(failures))
		return err_say(e, failures[rep->origin].code, "%s of plugin %s: %s: %s",
		    csi_call_name(call), plugin, failures[rep->origin].meaning, rep->grpc_message);
	for (size_t i = 0; i < ELEMENTSOF(meanings); i++)
		if (meanings[i].status == rep->grpc_status)
			return err_say(e, meanings[i].code, "%s of plugin %s: %s: %s",
			    csi_call_name(call), plugin, meanings[i].meaning, rep->grpc_message);
	return err_say(e, -EIO,
	    "%s of plugin %s: %splugin internal error, see the logs of the plugin's allocation: %s",
	    csi_call_name(call), plugin, half, rep->grpc_message);
}
