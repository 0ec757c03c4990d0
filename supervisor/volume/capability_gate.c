// SPDX-License-Identifier: Apache-2.0
/* capability_gate.c: which calls a plugin's controller has, by its capabilities. Runs in:
 * supervisor. */
#include "supervisor/volume/capability_gate.h"

#include <errno.h>
#include <stddef.h>

#include "common/cleanup.h"
#include "supervisor/volume/csi_error.h"
#include "supervisor/volume/plugins.h"

/* Calls that are not here are those that every controller has. */
static const struct {
	CsiCallReq__CallCase call;
	size_t flag; /* its offset in struct csi_controller_info */
	const char *capability;
} gates[] = {
#define GATE(call, flag, capability)                                                               \
	{                                                                                          \
		CSI_CALL_REQ__CALL_##call, offsetof(struct csi_controller_info, flag), #capability \
	}
	GATE(CREATE_VOLUME, supports_create_delete, CREATE_DELETE_VOLUME),
	GATE(DELETE_VOLUME, supports_create_delete, CREATE_DELETE_VOLUME),
	GATE(CONTROLLER_PUBLISH_VOLUME, supports_attach_detach, PUBLISH_UNPUBLISH_VOLUME),
	GATE(CONTROLLER_UNPUBLISH_VOLUME, supports_attach_detach, PUBLISH_UNPUBLISH_VOLUME),
	GATE(CONTROLLER_EXPAND_VOLUME, supports_expand, EXPAND_VOLUME),
	GATE(LIST_VOLUMES, supports_list_volumes, LIST_VOLUMES),
	GATE(CREATE_SNAPSHOT, supports_create_delete_snapshot, CREATE_DELETE_SNAPSHOT),
	GATE(DELETE_SNAPSHOT, supports_create_delete_snapshot, CREATE_DELETE_SNAPSHOT),
	GATE(LIST_SNAPSHOTS, supports_list_snapshots, LIST_SNAPSHOTS),
#undef GATE
};

static int
refuse(const char *plugin, const CsiCallReq *req, const char *capability, struct err *e)
{
	return err_say(e, -EOPNOTSUPP, "%s of plugin %s: its controller has no capability %s",
	    csi_call_name(req->call_case), plugin, capability);
}

static bool
is_clone(const CsiCallReq *req)
{
	const Csi__V1__VolumeContentSource *source =
	    req->call_case == CSI_CALL_REQ__CALL_CREATE_VOLUME
		? req->create_volume->volume_content_source
		: NULL;

	return source && source->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_VOLUME;
}

int
capability_gate(struct sup *sup, const char *plugin, const CsiCallReq *req, struct err *e)
{
	struct plugin *p = plugin_find(sup, plugin, CSI_PLUGIN_CONTROLLER);
	const struct csi_info *info = p ? plugin_controller_info(p) : NULL;
	const struct csi_controller_info *has = info ? info->controller_info : NULL;

	for (size_t i = 0; has && i < ELEMENTSOF(gates); i++)
		if (gates[i].call == req->call_case &&
		    !*(const bool *)((const char *)has + gates[i].flag))
			return refuse(plugin, req, gates[i].capability, e);
	return has && !has->supports_clone && is_clone(req) ? refuse(plugin, req, "CLONE_VOLUME", e)
							    : 0;
}
