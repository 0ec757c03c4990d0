// SPDX-License-Identifier: Apache-2.0
/* csl_service.c: method names to handlers, each call in its own thread. Runs in: drover-csi-local.
 */
#include "contrib/csi-local/csl_service.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "contrib/csi-local/csl.h"
#include "contrib/csi-local/csl_busy.h"
#include "contrib/csi-local/csl_log.h"
#include "contrib/csi-local/csl_secret.h"

/* Bounds the memory of threads. A caller may try again. */
#define CALLS_MAX 512

int
csl_fail(struct csl_op *op, int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(op->message, sizeof op->message, fmt, ap);
	va_end(ap);
	return status;
}

int
csl_internal(struct csl_op *op, const struct err *e)
{
	return csl_fail(op,
	    e->code == -ENOSPC || e->code == -EDQUOT ? GRPC_STATUS_RESOURCE_EXHAUSTED
						     : GRPC_STATUS_INTERNAL,
	    "%s", e->msg);
}

int
csl_hold(struct csl_op *op, const char *group, const char *name)
{
	char *key = csl_alloc(&op->arena, strlen(group) + strlen(name) + 2, 1);

	(void)sprintf(key, "%s/%s", group, name);
	if (!csl_busy_add(op->csl->busy, key))
		return csl_fail(
		    op, GRPC_STATUS_ABORTED, "another call for %.128s is in progress", name);
	op->held = csl_grown(&op->arena, op->held, op->n_held);
	op->held[op->n_held++] = key;
	return GRPC_STATUS_OK;
}

enum service { IDENTITY, NODE, CONTROLLER };

static const struct method {
	const char *name;
	const ProtobufCMessageDescriptor *request, *response;
	csl_method *fn;
	enum service service;
} methods[] = {
#define METHOD(service, name, symbol, fn, of)                                                      \
	{                                                                                          \
		"/csi.v1." service "/" name, &csi__v1__##symbol##_request__descriptor,             \
		    &csi__v1__##symbol##_response__descriptor, csl_##fn, of                        \
	}
#define GROUP "GroupController"
	METHOD("Identity", "Probe", probe, probe, IDENTITY),
	METHOD("Identity", "GetPluginInfo", get_plugin_info, get_plugin_info, IDENTITY),
	METHOD("Identity", "GetPluginCapabilities", get_plugin_capabilities,
	    get_plugin_capabilities, IDENTITY),
	METHOD("Controller", "ControllerGetCapabilities", controller_get_capabilities,
	    controller_get_capabilities, CONTROLLER),
	METHOD("Controller", "CreateVolume", create_volume, create_volume, CONTROLLER),
	METHOD("Controller", "DeleteVolume", delete_volume, delete_volume, CONTROLLER),
	METHOD("Controller", "ControllerPublishVolume", controller_publish_volume,
	    controller_publish_volume, CONTROLLER),
	METHOD("Controller", "ControllerUnpublishVolume", controller_unpublish_volume,
	    controller_unpublish_volume, CONTROLLER),
	METHOD("Controller", "ValidateVolumeCapabilities", validate_volume_capabilities,
	    validate_volume_capabilities, CONTROLLER),
	METHOD("Controller", "ListVolumes", list_volumes, list_volumes, CONTROLLER),
	METHOD("Controller", "ControllerGetVolume", controller_get_volume, controller_get_volume,
	    CONTROLLER),
	METHOD("Controller", "GetCapacity", get_capacity, get_capacity, CONTROLLER),
	METHOD("Controller", "ControllerExpandVolume", controller_expand_volume,
	    controller_expand_volume, CONTROLLER),
	METHOD("Controller", "ControllerModifyVolume", controller_modify_volume,
	    controller_modify_volume, CONTROLLER),
	METHOD("Controller", "CreateSnapshot", create_snapshot, create_snapshot, CONTROLLER),
	METHOD("Controller", "DeleteSnapshot", delete_snapshot, delete_snapshot, CONTROLLER),
	METHOD("Controller", "ListSnapshots", list_snapshots, list_snapshots, CONTROLLER),
	METHOD(GROUP, "GroupControllerGetCapabilities", group_controller_get_capabilities,
	    group_controller_get_capabilities, CONTROLLER),
	METHOD(GROUP, "CreateVolumeGroupSnapshot", create_volume_group_snapshot, create_group,
	    CONTROLLER),
	METHOD(GROUP, "DeleteVolumeGroupSnapshot", delete_volume_group_snapshot, delete_group,
	    CONTROLLER),
	METHOD(GROUP, "GetVolumeGroupSnapshot", get_volume_group_snapshot, get_group, CONTROLLER),
	METHOD("Node", "NodeGetInfo", node_get_info, node_get_info, NODE),
	METHOD("Node", "NodeGetCapabilities", node_get_capabilities, node_get_capabilities, NODE),
	METHOD("Node", "NodeStageVolume", node_stage_volume, node_stage_volume, NODE),
	METHOD("Node", "NodeUnstageVolume", node_unstage_volume, node_unstage_volume, NODE),
	METHOD("Node", "NodePublishVolume", node_publish_volume, node_publish_volume, NODE),
	METHOD("Node", "NodeUnpublishVolume", node_unpublish_volume, node_unpublish_volume, NODE),
	METHOD("Node", "NodeExpandVolume", node_expand_volume, node_expand_volume, NODE),
	METHOD("Node", "NodeGetVolumeStats", node_get_volume_stats, node_get_volume_stats, NODE),
#undef METHOD
};

/* Returns NULL if this process does not serve the method. */
static const struct method *
find_method(const struct csl *c, const char *name)
{
	for (size_t i = 0; i < ELEMENTSOF(methods); i++)
		if (strcmp(methods[i].name, name) == 0) {
			if ((methods[i].service == NODE && !c->node) ||
			    (methods[i].service == CONTROLLER && !c->controller))
				return NULL;
			return &methods[i];
		}
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
	data = mem_alloc(len + 1);
	(void)protobuf_c_message_pack(rep, data);
	csl_call_answer(call, GRPC_STATUS_OK, NULL, data, len);
}

/* A request on its way to its thread, which owns it. */
struct job {
	struct csl *csl;
	struct csl_call *call;
	const struct method *method;
	size_t len;
	uint8_t data[];
};

static void
run_job(const struct job *j)
{
	const struct method *m = j->method;
	struct csl_op op = { .csl = j->csl };
	uint64_t began_ns = clock_boot_ns(), took_ns;
	ProtobufCMessage *req;
	union {
		ProtobufCMessage base;
		uint8_t space[256];
	} rep;
	int status;

	csl_arena_init(&op.arena);
	req = protobuf_c_message_unpack(m->request, &op.arena.protobuf, j->len, j->data);
	if (!req) {
		csl_call_answer(
		    j->call, GRPC_STATUS_INVALID_ARGUMENT, "the request does not decode", NULL, 0);
		csl_arena_done(&op.arena);
		return;
	}
	m->response->message_init(&rep.base);
	status = csl_secret_check(&op, req);
	if (status == GRPC_STATUS_OK)
		status = m->fn(&op, req, &rep);
	for (size_t i = 0; i < op.n_held; i++)
		csl_busy_drop(j->csl->busy, op.held[i]);
	took_ns = clock_boot_ns() - began_ns;
	csl_log_call(j->csl, strrchr(m->name, '/') + 1, req, status, took_ns);
	if (m->service != IDENTITY)
		log_info("%s took %llu us", m->name, (unsigned long long)took_ns / 1000);
	answer_call(j->call, m, status, &rep.base, op.message);
	csl_arena_done(&op.arena);
}

static atomic_int running;

static void *
job_main(void *job)
{
	run_job(job);
	free(job);
	(void)atomic_fetch_sub(&running, 1);
	return NULL;
}

void
csl_service_handle(
    void *arg, struct csl_call *call, const char *method, const uint8_t *data, size_t len)
{
	const struct method *m = find_method(arg, method);
	pthread_t thread;
	struct job *j;

	if (!m) {
		csl_call_answer(call, GRPC_STATUS_UNIMPLEMENTED,
		    "this plugin does not implement the method", NULL, 0);
		return;
	}
	j = mem_alloc(sizeof *j + len);
	*j = (struct job){ .csl = arg, .call = call, .method = m, .len = len };
	memcpy(j->data, data, len);
	if (atomic_fetch_add(&running, 1) >= CALLS_MAX ||
	    pthread_create(&thread, NULL, job_main, j) != 0) {
		(void)atomic_fetch_sub(&running, 1);
		csl_call_answer(call, GRPC_STATUS_RESOURCE_EXHAUSTED,
		    "too many calls at once: try again", NULL, 0);
		free(j);
		return;
	}
	(void)pthread_detach(thread);
}
