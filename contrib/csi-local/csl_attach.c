// SPDX-License-Identifier: Apache-2.0
/* csl_attach.c: the Controller service: volumes attached to nodes, which is a note in the volume's
 * record. Runs in: drover-csi-local. */
#include <pthread.h>
#include <string.h>

#include "contrib/csi-local/csl_check.h"
#include "contrib/csi-local/csl_volume.h"

/* Volumes are attached one after the other, so that a node's limit holds. */
static pthread_mutex_t attach_mutex = PTHREAD_MUTEX_INITIALIZER;

static CslAttachment *
find_attachment(const CslVolume *v, const char *node_id)
{
	for (size_t i = 0; i < v->n_attachments; i++)
		if (strcmp(v->attachments[i]->node_id, node_id) == 0)
			return v->attachments[i];
	return NULL;
}

static size_t
count_attached(struct csl_op *op, const char *node_id)
{
	char(*ids)[ID_HEX_SIZE];
	size_t n = csl_store_list(op->csl->store, CSL_VOLUME, "", 0, &op->arena, &ids), found = 0;
	const CslVolume *v;
	struct err e;

	for (size_t i = 0; i < n; i++) {
		v = csl_store_load(op->csl->store, CSL_VOLUME, ids[i], &op->arena, &e);
		if (v && find_attachment(v, node_id))
			found++;
	}
	return found;
}

/* Checks whether the volume can be attached to the node, where it is not attached yet. */
static int
check_node(struct csl_op *op, const CslVolume *v, const CslNode *node,
    const Csi__V1__ControllerPublishVolumeRequest *req)
{
	int mode = (int)req->volume_capability->access_mode->mode;
	const CslAttachment *other;

	if (!csl_topology_has(&(struct csl_pairs){ node->topology, node->n_topology },
		&(struct csl_pairs){ v->topology, v->n_topology }))
		return csl_fail(op, GRPC_STATUS_FAILED_PRECONDITION,
		    "volume %s is not accessible from the topology of node %s", v->id,
		    req->node_id);
	for (size_t i = 0; i < v->n_attachments; i++) {
		other = v->attachments[i];
		if (!csl_modes_agree(
			mode, req->readonly != 0, other->access_mode, other->readonly != 0))
			return csl_fail(op, GRPC_STATUS_FAILED_PRECONDITION,
			    "volume %s is attached to node %s", v->id, other->node_id);
	}
	if (node->max_volumes > 0 && count_attached(op, req->node_id) >= node->max_volumes)
		return csl_fail(op, GRPC_STATUS_RESOURCE_EXHAUSTED,
		    "node %s has the %llu volumes that it can have", req->node_id,
		    (unsigned long long)node->max_volumes);
	return GRPC_STATUS_OK;
}

static int
attach_volume(struct csl_op *op, CslVolume *v, const Csi__V1__ControllerPublishVolumeRequest *req)
{
	const CslNode *node = csl_store_node(op->csl->store, req->node_id, &op->arena);
	CslAttachment *a = csl_alloc(&op->arena, 1, sizeof *a);
	struct id token = id_random();
	char hex[ID_HEX_SIZE];
	struct err e = { 0 };
	int status = check_node(op, v, node, req);

	if (status != GRPC_STATUS_OK)
		return status;
	id_to_hex(&token, hex);
	csl_attachment__init(a);
	a->node_id = req->node_id;
	a->token = csl_copy(&op->arena, hex);
	a->access_mode = (int32_t)req->volume_capability->access_mode->mode;
	a->readonly = req->readonly;
	v->attachments = csl_grown(&op->arena, v->attachments, v->n_attachments);
	v->attachments[v->n_attachments++] = a;
	return csl_store_save(op->csl->store, CSL_VOLUME, v, &e) < 0 ? csl_internal(op, &e)
								     : GRPC_STATUS_OK;
}

static int
check_publish(
    struct csl_op *op, const Csi__V1__ControllerPublishVolumeRequest *req, CslVolume **ret)
{
	int status;

	if (!op->csl->attach)
		return csl_fail(op, GRPC_STATUS_UNIMPLEMENTED,
		    "volumes are not attached: the plugin runs without -attach");
	if (req->volume_id[0] == '\0')
		return csl_invalid(op, "the volume id is missing");
	if (req->node_id[0] == '\0')
		return csl_invalid(op, "the node id is missing");
	status = csl_check_capability(op, req->volume_capability);
	if (status == GRPC_STATUS_OK)
		status = csl_hold(op, "controller", req->volume_id);
	if (status == GRPC_STATUS_OK)
		status = csl_volume_get(op, req->volume_id, ret);
	if (status == GRPC_STATUS_OK)
		status =
		    csl_check_type(op, *ret, req->volume_capability, GRPC_STATUS_INVALID_ARGUMENT);
	if (status == GRPC_STATUS_OK)
		status = csl_check_context(op, *ret, req->volume_context, req->n_volume_context);
	if (status == GRPC_STATUS_OK && !csl_store_node(op->csl->store, req->node_id, &op->arena))
		status = csl_fail(
		    op, GRPC_STATUS_NOT_FOUND, "node '%.128s' does not exist", req->node_id);
	return status;
}

int
csl_controller_publish_volume(struct csl_op *op, const void *request, void *rep)
{
	const Csi__V1__ControllerPublishVolumeRequest *req = request;
	Csi__V1__ControllerPublishVolumeResponse *r = rep;
	const CslAttachment *a;
	CslVolume *v;
	int status = check_publish(op, req, &v);

	if (status != GRPC_STATUS_OK)
		return status;
	a = find_attachment(v, req->node_id);
	if (a && (a->access_mode != (int32_t)req->volume_capability->access_mode->mode ||
		     a->readonly != req->readonly))
		return csl_fail(op, GRPC_STATUS_ALREADY_EXISTS,
		    "volume %s is attached to node %s in another way", v->id, req->node_id);
	if (!a) {
		(void)pthread_mutex_lock(&attach_mutex);
		status = attach_volume(op, v, req);
		(void)pthread_mutex_unlock(&attach_mutex);
		a = find_attachment(v, req->node_id);
	}
	if (status == GRPC_STATUS_OK)
		csl_pairs_set(&op->arena, &r->publish_context, &r->n_publish_context,
		    CSL_CONTEXT_ENTRY, a->token);
	return status;
}

/* Detaches from all nodes if the request names none. As storage in a network, it does not ask
 * whether the node still has mounts: that node may be lost. */
int
csl_controller_unpublish_volume(struct csl_op *op, const void *request, void *rep)
{
	const Csi__V1__ControllerUnpublishVolumeRequest *req = request;
	struct err e = { 0 };
	size_t kept = 0, before;
	CslVolume *v;
	int status;

	if (!op->csl->attach)
		return csl_fail(op, GRPC_STATUS_UNIMPLEMENTED,
		    "volumes are not attached: the plugin runs without -attach");
	status = csl_hold(op, "controller", req->volume_id);
	if (status == GRPC_STATUS_OK)
		status = csl_volume_get(op, req->volume_id, &v);
	if (status != GRPC_STATUS_OK)
		return status == GRPC_STATUS_NOT_FOUND ? GRPC_STATUS_OK : status;
	before = v->n_attachments;
	for (size_t i = 0; i < before; i++)
		if (req->node_id[0] != '\0' &&
		    strcmp(v->attachments[i]->node_id, req->node_id) != 0)
			v->attachments[kept++] = v->attachments[i];
	v->n_attachments = kept;
	if (kept < before && csl_store_save(op->csl->store, CSL_VOLUME, v, &e) < 0)
		return csl_internal(op, &e);
	return GRPC_STATUS_OK;
}
