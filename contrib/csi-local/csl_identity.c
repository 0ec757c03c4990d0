// SPDX-License-Identifier: Apache-2.0
/* csl_identity.c: the Identity service, and what all services can do. Runs in: drover-csi-local. */
#include "common/cleanup.h"
#include "contrib/csi-local/csl.h"

int
csl_probe(struct csl_op *op, const void *req, void *rep)
{
	static Csi__V1__BoolValue yes = { PROTOBUF_C_MESSAGE_INIT(&csi__v1__bool_value__descriptor),
		.value = 1 };

	((Csi__V1__ProbeResponse *)rep)->ready = &yes;
	return GRPC_STATUS_OK;
}

int
csl_get_plugin_info(struct csl_op *op, const void *req, void *rep)
{
	static char version[] = DROVER_VERSION;
	Csi__V1__GetPluginInfoResponse *r = rep;

	r->name = csl_copy(&op->arena, op->csl->driver_name);
	r->vendor_version = version;
	return GRPC_STATUS_OK;
}

static Csi__V1__PluginCapability *
add_plugin_capability(struct csl_op *op, Csi__V1__GetPluginCapabilitiesResponse *r)
{
	Csi__V1__PluginCapability *cap = csl_alloc(&op->arena, 1, sizeof *cap);

	csi__v1__plugin_capability__init(cap);
	r->capabilities = csl_grown(&op->arena, r->capabilities, r->n_capabilities);
	r->capabilities[r->n_capabilities++] = cap;
	return cap;
}

static void
add_service(struct csl_op *op, Csi__V1__GetPluginCapabilitiesResponse *r,
    Csi__V1__PluginCapability__Service__Type type)
{
	Csi__V1__PluginCapability *cap = add_plugin_capability(op, r);

	cap->type_case = CSI__V1__PLUGIN_CAPABILITY__TYPE_SERVICE;
	cap->service = csl_alloc(&op->arena, 1, sizeof *cap->service);
	csi__v1__plugin_capability__service__init(cap->service);
	cap->service->type = type;
}

int
csl_get_plugin_capabilities(struct csl_op *op, const void *req, void *rep)
{
	Csi__V1__GetPluginCapabilitiesResponse *r = rep;
	Csi__V1__PluginCapability *cap;

	/* Also from a node alone: these are what all processes of the plugin have together. */
	add_service(op, r, CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__CONTROLLER_SERVICE);
	add_service(op, r, CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__GROUP_CONTROLLER_SERVICE);
	if (op->csl->topology.n > 0)
		add_service(op, r,
		    CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__VOLUME_ACCESSIBILITY_CONSTRAINTS);
	cap = add_plugin_capability(op, r);
	cap->type_case = CSI__V1__PLUGIN_CAPABILITY__TYPE_VOLUME_EXPANSION;
	cap->volume_expansion = csl_alloc(&op->arena, 1, sizeof *cap->volume_expansion);
	csi__v1__plugin_capability__volume_expansion__init(cap->volume_expansion);
	cap->volume_expansion->type = CSI__V1__PLUGIN_CAPABILITY__VOLUME_EXPANSION__TYPE__ONLINE;
	return GRPC_STATUS_OK;
}

int
csl_controller_get_capabilities(struct csl_op *op, const void *req, void *rep)
{
#define TYPE(name) CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__##name
	static const Csi__V1__ControllerServiceCapability__RPC__Type types[] = {
		TYPE(CREATE_DELETE_VOLUME),
		TYPE(LIST_VOLUMES),
		TYPE(LIST_VOLUMES_PUBLISHED_NODES),
		TYPE(GET_CAPACITY),
		TYPE(GET_VOLUME),
		TYPE(VOLUME_CONDITION),
		TYPE(CREATE_DELETE_SNAPSHOT),
		TYPE(LIST_SNAPSHOTS),
		TYPE(CLONE_VOLUME),
		TYPE(EXPAND_VOLUME),
		TYPE(MODIFY_VOLUME),
		TYPE(SINGLE_NODE_MULTI_WRITER),
		TYPE(PUBLISH_UNPUBLISH_VOLUME), /* the last two only with -attach */
		TYPE(PUBLISH_READONLY),
	};
#undef TYPE
	Csi__V1__ControllerGetCapabilitiesResponse *r = rep;
	size_t n = ELEMENTSOF(types) - (op->csl->attach ? 0 : 2);

	r->capabilities = csl_alloc(&op->arena, n, sizeof *r->capabilities);
	for (; r->n_capabilities < n; r->n_capabilities++) {
		Csi__V1__ControllerServiceCapability *cap = csl_alloc(&op->arena, 1, sizeof *cap);

		csi__v1__controller_service_capability__init(cap);
		cap->type_case = CSI__V1__CONTROLLER_SERVICE_CAPABILITY__TYPE_RPC;
		cap->rpc = csl_alloc(&op->arena, 1, sizeof *cap->rpc);
		csi__v1__controller_service_capability__rpc__init(cap->rpc);
		cap->rpc->type = types[r->n_capabilities];
		r->capabilities[r->n_capabilities] = cap;
	}
	return GRPC_STATUS_OK;
}

int
csl_node_get_capabilities(struct csl_op *op, const void *req, void *rep)
{
#define TYPE(name) CSI__V1__NODE_SERVICE_CAPABILITY__RPC__TYPE__##name
	static const Csi__V1__NodeServiceCapability__RPC__Type types[] = {
		TYPE(STAGE_UNSTAGE_VOLUME),
		TYPE(GET_VOLUME_STATS),
		TYPE(VOLUME_CONDITION),
		TYPE(EXPAND_VOLUME),
		TYPE(SINGLE_NODE_MULTI_WRITER),
	};
#undef TYPE
	Csi__V1__NodeGetCapabilitiesResponse *r = rep;

	r->capabilities = csl_alloc(&op->arena, ELEMENTSOF(types), sizeof *r->capabilities);
	for (; r->n_capabilities < ELEMENTSOF(types); r->n_capabilities++) {
		Csi__V1__NodeServiceCapability *cap = csl_alloc(&op->arena, 1, sizeof *cap);

		csi__v1__node_service_capability__init(cap);
		cap->type_case = CSI__V1__NODE_SERVICE_CAPABILITY__TYPE_RPC;
		cap->rpc = csl_alloc(&op->arena, 1, sizeof *cap->rpc);
		csi__v1__node_service_capability__rpc__init(cap->rpc);
		cap->rpc->type = types[r->n_capabilities];
		r->capabilities[r->n_capabilities] = cap;
	}
	return GRPC_STATUS_OK;
}

int
csl_group_controller_get_capabilities(struct csl_op *op, const void *req, void *rep)
{
	Csi__V1__GroupControllerGetCapabilitiesResponse *r = rep;
	Csi__V1__GroupControllerServiceCapability *cap = csl_alloc(&op->arena, 1, sizeof *cap);

	csi__v1__group_controller_service_capability__init(cap);
	cap->type_case = CSI__V1__GROUP_CONTROLLER_SERVICE_CAPABILITY__TYPE_RPC;
	cap->rpc = csl_alloc(&op->arena, 1, sizeof *cap->rpc);
	csi__v1__group_controller_service_capability__rpc__init(cap->rpc);
	cap->rpc->type =
	    CSI__V1__GROUP_CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT;
	r->capabilities = csl_grown(&op->arena, NULL, 0);
	r->capabilities[r->n_capabilities++] = cap;
	return GRPC_STATUS_OK;
}
