// SPDX-License-Identifier: Apache-2.0
/* csl_service.c: method names to handlers; the Identity service. Runs in: drover-csi-local. */
#include "contrib/csi-local/csl_service.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "contrib/csi-local/csl.h"

int
csl_fail(struct csl_result *result, int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(result->message, sizeof result->message, fmt, ap);
	va_end(ap);
	return status;
}

static int
probe(struct csl *c, const void *req, void *rep, struct csl_result *result)
{
	static Csi__V1__BoolValue yes = CSI__V1__BOOL_VALUE__INIT;

	yes.value = 1;
	((Csi__V1__ProbeResponse *)rep)->ready = &yes;
	return GRPC_STATUS_OK;
}

static int
get_plugin_info(struct csl *c, const void *req, void *rep, struct csl_result *result)
{
	static char name[] = CSL_PLUGIN_NAME, version[] = DROVER_VERSION;
	Csi__V1__GetPluginInfoResponse *r = rep;

	r->name = name;
	r->vendor_version = version;
	return GRPC_STATUS_OK;
}

static int
get_plugin_capabilities(struct csl *c, const void *req, void *rep, struct csl_result *result)
{
	static Csi__V1__PluginCapability__Service service =
	    CSI__V1__PLUGIN_CAPABILITY__SERVICE__INIT;
	static Csi__V1__PluginCapability__VolumeExpansion expansion =
	    CSI__V1__PLUGIN_CAPABILITY__VOLUME_EXPANSION__INIT;
	static Csi__V1__PluginCapability capability = CSI__V1__PLUGIN_CAPABILITY__INIT,
					 online = CSI__V1__PLUGIN_CAPABILITY__INIT,
					 *list[] = { &capability, &online };
	Csi__V1__GetPluginCapabilitiesResponse *r = rep;

	service.type = CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__CONTROLLER_SERVICE;
	capability.type_case = CSI__V1__PLUGIN_CAPABILITY__TYPE_SERVICE;
	capability.service = &service;
	expansion.type = CSI__V1__PLUGIN_CAPABILITY__VOLUME_EXPANSION__TYPE__ONLINE;
	online.type_case = CSI__V1__PLUGIN_CAPABILITY__TYPE_VOLUME_EXPANSION;
	online.volume_expansion = &expansion;
	r->capabilities = list;
	r->n_capabilities = ELEMENTSOF(list);
	return GRPC_STATUS_OK;
}

static const struct method {
	const char *name;
	const ProtobufCMessageDescriptor *request, *response;
	csl_method *fn;
} methods[] = {
#define METHOD(service, name, symbol, fn)                                                          \
	{                                                                                          \
		"/csi.v1." service "/" name, &csi__v1__##symbol##_request__descriptor,             \
		    &csi__v1__##symbol##_response__descriptor, fn                                  \
	}
	METHOD("Identity", "Probe", probe, probe),
	METHOD("Identity", "GetPluginInfo", get_plugin_info, get_plugin_info),
	METHOD(
	    "Identity", "GetPluginCapabilities", get_plugin_capabilities, get_plugin_capabilities),
	METHOD("Controller", "ControllerGetCapabilities", controller_get_capabilities,
	    csl_controller_get_capabilities),
	METHOD("Controller", "ControllerExpandVolume", controller_expand_volume,
	    csl_controller_expand_volume),
	METHOD("Controller", "CreateVolume", create_volume, csl_create_volume),
	METHOD("Controller", "DeleteVolume", delete_volume, csl_delete_volume),
	METHOD("Controller", "ListVolumes", list_volumes, csl_list_volumes),
	METHOD("Controller", "ValidateVolumeCapabilities", validate_volume_capabilities,
	    csl_validate_volume_capabilities),
	METHOD("Node", "NodeGetInfo", node_get_info, csl_node_get_info),
	METHOD("Node", "NodeGetCapabilities", node_get_capabilities, csl_node_get_capabilities),
	METHOD("Node", "NodeStageVolume", node_stage_volume, csl_node_stage_volume),
	METHOD("Node", "NodeUnstageVolume", node_unstage_volume, csl_node_unstage_volume),
	METHOD("Node", "NodePublishVolume", node_publish_volume, csl_node_publish_volume),
	METHOD("Node", "NodeUnpublishVolume", node_unpublish_volume, csl_node_unpublish_volume),
#undef METHOD
};

static const struct method *
find_method(const char *name)
{
	for (size_t i = 0; i < ELEMENTSOF(methods); i++)
		if (strcmp(methods[i].name, name) == 0)
			return &methods[i];
	return NULL;
}

static void
answer_call(struct csl_call *call, const struct method *m, int status, const ProtobufCMessage *rep,
    const char *message)
{
	cleanup_free uint8_t *data = NULL;
	size_t len;

	if (status != GRPC_STATUS_OK) {
		log_info("%s: status %d: %s", m->name, status, message);
		csl_call_answer(call, status, message, NULL, 0);
		return;
	}
	len = protobuf_c_message_get_packed_size(rep);
	data = mem_alloc(len);
	(void)protobuf_c_message_pack(rep, data);
	csl_call_answer(call, GRPC_STATUS_OK, NULL, data, len);
}

void
csl_service_handle(
    void *arg, struct csl_call *call, const char *method, const uint8_t *data, size_t len)
{
	uint64_t began_ns = clock_boot_ns();
	const struct method *m = find_method(method);
	struct csl_result result = { 0 };
	ProtobufCMessage *req;
	union {
		ProtobufCMessage base;
		uint8_t space[256];
	} rep;
	int status;

	if (!m) {
		csl_call_answer(call, GRPC_STATUS_UNIMPLEMENTED,
		    "this plugin does not implement the method", NULL, 0);
		return;
	}
	req = protobuf_c_message_unpack(m->request, NULL, len, data);
	if (!req) {
		csl_call_answer(
		    call, GRPC_STATUS_INVALID_ARGUMENT, "the request does not decode", NULL, 0);
		return;
	}
	m->response->message_init(&rep.base);
	status = m->fn(arg, req, &rep, &result);
	if (strstr(method, "/csi.v1.Identity/") != method)
		log_info("%s took %llu us", method,
		    (unsigned long long)(clock_boot_ns() - began_ns) / 1000);
	answer_call(call, m, status, &rep.base, result.message);
	free(result.scratch);
	protobuf_c_message_free_unpacked(req, NULL);
}
