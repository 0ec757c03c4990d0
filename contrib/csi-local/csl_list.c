// SPDX-License-Identifier: Apache-2.0
/* csl_list.c: the Controller service: volumes and capacity reported. Runs in: drover-csi-local. */
#include <string.h>
#include <sys/statvfs.h>

#include "contrib/csi-local/csl_check.h"
#include "contrib/csi-local/csl_topology.h"
#include "contrib/csi-local/csl_volume.h"

static Csi__V1__ListVolumesResponse__Entry *
volume_entry(struct csl_op *op, const CslVolume *v)
{
	Csi__V1__ListVolumesResponse__Entry *entry = csl_alloc(&op->arena, 1, sizeof *entry);

	csi__v1__list_volumes_response__entry__init(entry);
	entry->volume = csl_volume_answer(op, v);
	entry->status = csl_alloc(&op->arena, 1, sizeof *entry->status);
	csi__v1__list_volumes_response__volume_status__init(entry->status);
	entry->status->n_published_node_ids =
	    csl_volume_nodes(op, v, &entry->status->published_node_ids);
	entry->status->volume_condition = csl_volume_condition(op, v);
	return entry;
}

int
csl_list_volumes(struct csl_op *op, const void *request, void *rep)
{
	const Csi__V1__ListVolumesRequest *req = request;
	Csi__V1__ListVolumesResponse *r = rep;
	size_t max = (size_t)req->max_entries, n;
	char(*ids)[ID_HEX_SIZE];
	const CslVolume *v;
	struct id token;
	struct err e;

	if (req->max_entries < 0)
		return csl_invalid(op, "max_entries is negative");
	if (req->starting_token[0] != '\0' && !id_from_hex(req->starting_token, &token))
		return csl_fail(op, GRPC_STATUS_ABORTED, "the starting token is invalid");
	n = csl_store_list(
	    op->csl->store, CSL_VOLUME, req->starting_token, max ? max + 1 : 0, &op->arena, &ids);
	if (max > 0 && n > max)
		r->next_token = ids[--n];
	r->entries = csl_alloc(&op->arena, n, sizeof *r->entries);
	for (size_t i = 0; i < n; i++) {
		v = csl_store_load(op->csl->store, CSL_VOLUME, ids[i], &op->arena, &e);
		if (v) /* not deleted meanwhile */
			r->entries[r->n_entries++] = volume_entry(op, v);
	}
	return GRPC_STATUS_OK;
}

int
csl_controller_get_volume(struct csl_op *op, const void *request, void *rep)
{
	const Csi__V1__ControllerGetVolumeRequest *req = request;
	Csi__V1__ControllerGetVolumeResponse *r = rep;
	CslVolume *v;
	int status = csl_volume_get(op, req->volume_id, &v);

	if (status != GRPC_STATUS_OK)
		return status;
	r->volume = csl_volume_answer(op, v);
	r->status = csl_alloc(&op->arena, 1, sizeof *r->status);
	csi__v1__controller_get_volume_response__volume_status__init(r->status);
	r->status->n_published_node_ids = csl_volume_nodes(op, v, &r->status->published_node_ids);
	r->status->volume_condition = csl_volume_condition(op, v);
	return GRPC_STATUS_OK;
}

int
csl_get_capacity(struct csl_op *op, const void *request, void *rep)
{
	const Csi__V1__GetCapacityRequest *req = request;
	Csi__V1__GetCapacityResponse *r = rep;
	struct statvfs fs;
	int64_t left;

	if (fstatvfs(csl_store_fd(op->csl->store), &fs) < 0)
		return csl_fail(op, GRPC_STATUS_INTERNAL, "read the free space: %m");
	left = (int64_t)(fs.f_bavail * fs.f_frsize);
	if (op->csl->capacity_bytes > 0)
		left = op->csl->capacity_bytes - csl_volumes_size(op);
	if (left < 0 ||
	    (req->n_volume_capabilities > 0 && csl_check_capabilities(op, req->volume_capabilities,
						   req->n_volume_capabilities) != GRPC_STATUS_OK) ||
	    (req->accessible_topology && op->csl->topology.n > 0 &&
		!csl_topology_known(op, req->accessible_topology)))
		left = 0; /* no such volume can be made */
	r->available_capacity = left;
	r->maximum_volume_size = csl_alloc(&op->arena, 1, sizeof *r->maximum_volume_size);
	csi__v1__int64_value__init(r->maximum_volume_size);
	r->maximum_volume_size->value = left;
	return GRPC_STATUS_OK;
}
