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
	enum plugin_service service;
	int number;
} gates[] = {
#define GATE(call, capability)                                                                     \
	{                                                                                          \
		CSI_CALL_REQ__CALL_##call, PLUGIN_CONTROLLER_CAPS,                                 \
		    CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__##capability                \
	}
	GATE(CREATE_VOLUME, CREATE_DELETE_VOLUME),
	GATE(DELETE_VOLUME, CREATE_DELETE_VOLUME),
	GATE(CONTROLLER_PUBLISH_VOLUME, PUBLISH_UNPUBLISH_VOLUME),
	GATE(CONTROLLER_UNPUBLISH_VOLUME, PUBLISH_UNPUBLISH_VOLUME),
	GATE(CONTROLLER_EXPAND_VOLUME, EXPAND_VOLUME),
	GATE(LIST_VOLUMES, LIST_VOLUMES),
	GATE(GET_CAPACITY, GET_CAPACITY),
	GATE(CONTROLLER_GET_VOLUME, GET_VOLUME),
	GATE(CONTROLLER_MODIFY_VOLUME, MODIFY_VOLUME),
	GATE(CREATE_SNAPSHOT, CREATE_DELETE_SNAPSHOT),
	GATE(DELETE_SNAPSHOT, CREATE_DELETE_SNAPSHOT),
	GATE(LIST_SNAPSHOTS, LIST_SNAPSHOTS),
#undef GATE
#define GATE(call)                                                                                                   \
	{                                                                                                            \
		CSI_CALL_REQ__CALL_##call, PLUGIN_GROUP_CAPS,                                                        \
		    CSI__V1__GROUP_CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT \
	}
	GATE(CREATE_VOLUME_GROUP_SNAPSHOT),
	GATE(DELETE_VOLUME_GROUP_SNAPSHOT),
	GATE(GET_VOLUME_GROUP_SNAPSHOT),
#undef GATE
};

static bool
is_clone(const CsiCallReq *req)
{
	const Csi__V1__VolumeContentSource *source =
	    req->call_case == CSI_CALL_REQ__CALL_CREATE_VOLUME
		? req->create_volume->volume_content_source
		: NULL;

	return source && source->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_VOLUME;
}

static int
check(const struct plugin_caps *caps, const char *plugin, const CsiCallReq *req,
    enum plugin_service service, int number, struct err *e)
{
	if (plugin_caps_has(caps, service, number))
		return 0;
	return err_say(e, -EOPNOTSUPP, "%s of plugin %s: its controller has no capability %s",
	    csi_call_name(req->call_case), plugin, plugin_caps_name(service, number));
}

int
capability_gate(struct sup *sup, const char *plugin, const CsiCallReq *req, struct err *e)
{
	struct plugin *p = plugin_find(sup, plugin, CSI_PLUGIN_CONTROLLER);
	const struct plugin_caps *caps = p ? plugin_caps_of(p) : NULL;
	int r = 0;

	for (size_t i = 0; caps && r == 0 && i < ELEMENTSOF(gates); i++)
		if (gates[i].call == req->call_case)
			r = check(caps, plugin, req, gates[i].service, gates[i].number, e);
	if (caps && r == 0 && is_clone(req))
		r = check(caps, plugin, req, PLUGIN_CONTROLLER_CAPS,
		    CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__CLONE_VOLUME, e);
	if (caps && r == 0 && req->call_case == CSI_CALL_REQ__CALL_CREATE_VOLUME &&
	    req->create_volume->n_mutable_parameters > 0)
		r = check(caps, plugin, req, PLUGIN_CONTROLLER_CAPS,
		    CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__MODIFY_VOLUME, e);
	return r;
}

bool
capability_has_call(struct sup *sup, const char *plugin, CsiCallReq__CallCase call)
{
	const struct plugin *p = plugin_find(sup, plugin, CSI_PLUGIN_CONTROLLER);
	bool has = p && plugin_is_healthy(p);

	for (size_t i = 0; has && i < ELEMENTSOF(gates); i++)
		if (gates[i].call == call)
			has = plugin_caps_has(plugin_caps_of(p), gates[i].service, gates[i].number);
	return has;
}
