// SPDX-License-Identifier: Apache-2.0
/* csl_controller.c: the Controller service: volumes made, changed and deleted. Runs in:
 * drover-csi-local. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "contrib/csi-local/csl_check.h"
#include "contrib/csi-local/csl_topology.h"
#include "contrib/csi-local/csl_volume.h"

#define CONTEXT_PREFIX "context."
#define BLOCK_SIZE     4096LL      /* block volumes have a multiple of it */
#define BLOCK_DEFAULT  (1LL << 30) /* the size of a block volume without a required size */

/* --- CreateVolume --- */

static int
check_create(struct csl_op *op, const Csi__V1__CreateVolumeRequest *req)
{
	int status = csl_check_name(op, "volume", req->name);

	if (status == GRPC_STATUS_OK)
		status = csl_check_capabilities(
		    op, req->volume_capabilities, req->n_volume_capabilities);
	if (status != GRPC_STATUS_OK)
		return status;
	for (size_t i = 0; i < req->n_parameters; i++)
		if (strncmp(req->parameters[i]->key, CONTEXT_PREFIX, strlen(CONTEXT_PREFIX)) != 0)
			return csl_invalid(op,
			    "unknown parameter '%.64s': only parameters that begin with '%s' exist",
			    req->parameters[i]->key, CONTEXT_PREFIX);
	status = csl_check_mutable(op, req->mutable_parameters, req->n_mutable_parameters);
	if (status == GRPC_STATUS_OK && req->capacity_range)
		status = csl_check_range(op, req->capacity_range);
	return status;
}

/* Fills what the request says about a new volume: a record without an id. */
static void
describe(struct csl_op *op, const Csi__V1__CreateVolumeRequest *req, CslVolume *v)
{
	const Csi__V1__VolumeContentSource *source = req->volume_content_source;

	csl_volume__init(v);
	v->version = 1;
	v->name = req->name;
	v->block = csl_is_block(req->volume_capabilities[0]);
	if (source && source->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_VOLUME)
		v->source_volume_id = source->volume->volume_id;
	if (source && source->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT)
		v->source_snapshot_id = source->snapshot->snapshot_id;
	for (size_t i = 0; i < req->n_parameters; i++)
		csl_pairs_set(&op->arena, &v->context, &v->n_context,
		    req->parameters[i]->key + strlen(CONTEXT_PREFIX), req->parameters[i]->value);
	for (size_t i = 0; i < req->n_mutable_parameters; i++)
		csl_pairs_set(&op->arena, &v->mutable_parameters, &v->n_mutable_parameters,
		    req->mutable_parameters[i]->key, req->mutable_parameters[i]->value);
}

/* Checks that the volume of this name is what the request wants. */
static int
check_same(struct csl_op *op, const CslVolume *v, const CslVolume *wanted,
    const Csi__V1__CapacityRange *range)
{
	if (range && (v->capacity_bytes < range->required_bytes ||
			 (range->limit_bytes > 0 && v->capacity_bytes > range->limit_bytes)))
		return csl_fail(op, GRPC_STATUS_ALREADY_EXISTS,
		    "the volume '%s' exists with another capacity, %lld bytes", v->name,
		    (long long)v->capacity_bytes);
	if (v->block != wanted->block)
		return csl_fail(op, GRPC_STATUS_ALREADY_EXISTS, "the volume '%s' exists as a %s",
		    v->name, v->block ? "block device" : "directory");
	if (strcmp(v->source_volume_id, wanted->source_volume_id) != 0 ||
	    strcmp(v->source_snapshot_id, wanted->source_snapshot_id) != 0)
		return csl_fail(op, GRPC_STATUS_ALREADY_EXISTS,
		    "the volume '%s' exists with another source of its contents", v->name);
	if (v->n_context != wanted->n_context ||
	    csl_check_context(op, v, wanted->context, wanted->n_context) != GRPC_STATUS_OK)
		return csl_fail(op, GRPC_STATUS_ALREADY_EXISTS,
		    "the volume '%s' exists with other parameters", v->name);
	return GRPC_STATUS_OK;
}

/* Finds the source of the contents, and holds it. Sets its kind, and the size that a copy needs. */
static int
find_source(struct csl_op *op, const CslVolume *v, enum csl_kind *ret_kind, int64_t *ret_size)
{
	bool snapshot = v->source_snapshot_id[0] != '\0', block;
	const char *id = snapshot ? v->source_snapshot_id : v->source_volume_id;
	struct err e = { 0 };
	void *source;
	int status;

	*ret_kind = snapshot ? CSL_SNAPSHOT : CSL_VOLUME;
	status = csl_hold(op, snapshot ? "snapshot" : "controller", id);
	if (status != GRPC_STATUS_OK)
		return status;
	source = csl_store_load(op->csl->store, *ret_kind, id, &op->arena, &e);
	if (!source)
		return e.code == -ENOENT ? csl_fail(op, GRPC_STATUS_NOT_FOUND, "%s", e.msg)
					 : csl_internal(op, &e);
	block = (snapshot ? ((CslSnapshot *)source)->block : ((CslVolume *)source)->block) != 0;
	*ret_size =
	    snapshot ? ((CslSnapshot *)source)->size_bytes : ((CslVolume *)source)->capacity_bytes;
	if (block != (v->block != 0))
		return csl_invalid(op, "a copy of %s '%s' must also be a %s",
		    snapshot ? "snapshot" : "volume", id, block ? "block device" : "directory");
	return GRPC_STATUS_OK;
}

static int64_t
round_up(int64_t size)
{
	return size <= INT64_MAX - BLOCK_SIZE ? (size + BLOCK_SIZE - 1) / BLOCK_SIZE * BLOCK_SIZE
					      : size;
}

/* Decides the capacity: at least `least`. A directory has no fixed size, so it may be 0. */
static int
choose_capacity(struct csl_op *op, CslVolume *v, const Csi__V1__CapacityRange *range, int64_t least)
{
	int64_t wanted = range ? range->required_bytes : 0, limit = range ? range->limit_bytes : 0;

	if (wanted == 0)
		wanted = v->block && (limit == 0 || limit > BLOCK_DEFAULT) ? BLOCK_DEFAULT : limit;
	if (wanted < least)
		wanted = least;
	if (v->block)
		wanted = round_up(wanted);
	if (limit > 0 && wanted > limit)
		return csl_fail(op, GRPC_STATUS_OUT_OF_RANGE,
		    "the volume needs %lld bytes, and the limit is %lld", (long long)wanted,
		    (long long)limit);
	if (op->csl->capacity_bytes > 0 &&
	    wanted - v->capacity_bytes > op->csl->capacity_bytes - csl_volumes_size(op))
		return csl_fail(op, GRPC_STATUS_RESOURCE_EXHAUSTED,
		    "there is no capacity for %lld bytes more",
		    (long long)(wanted - v->capacity_bytes));
	v->capacity_bytes = wanted;
	return GRPC_STATUS_OK;
}

/* Grows the file of a block volume to its capacity. */
static int
grow_file(struct csl_op *op, const CslVolume *v, struct err *e)
{
	cleanup_close int fd = csl_store_data(op->csl->store, CSL_VOLUME, v->id, true, e);

	if (fd < 0)
		return fd;
	return ftruncate(fd, v->capacity_bytes) < 0 || fsync(fd) < 0
		   ? err_set(e, -errno, "grow the file of volume %s", v->id)
		   : 0;
}

/* Makes the data and the record. A copy may take long, so its record is there from the begin, and a
 * start after a crash finds it. */
static int
store_volume(struct csl_op *op, CslVolume *v, enum csl_kind from, struct err *e)
{
	struct csl_store *s = op->csl->store;
	const char *source =
	    v->source_snapshot_id[0] != '\0' ? v->source_snapshot_id : v->source_volume_id;
	int r;

	if (source[0] == '\0') {
		r = csl_store_make_data(s, v->id, v->block != 0, v->capacity_bytes, e);
	} else {
		v->unfinished = true;
		r = csl_store_save(s, CSL_VOLUME, v, e);
		if (r == 0)
			r = csl_store_copy_data(s, from, source, CSL_VOLUME, v->id, e);
		if (r == 0 && v->block)
			r = grow_file(op, v, e);
		v->unfinished = false;
	}
	if (r == 0)
		r = csl_store_save(s, CSL_VOLUME, v, e);
	if (r < 0)
		(void)csl_store_remove(s, CSL_VOLUME, v->id, NULL);
	return r;
}

static int
make_volume(struct csl_op *op, const Csi__V1__CreateVolumeRequest *req, CslVolume *v)
{
	enum csl_kind from = CSL_VOLUME;
	struct id id = id_random();
	char hex[ID_HEX_SIZE];
	struct err e = { 0 };
	int64_t least = 0;
	int status = GRPC_STATUS_OK;

	if (req->volume_content_source)
		status = find_source(op, v, &from, &least);
	if (status == GRPC_STATUS_OK)
		status = csl_topology_choose(op, req->accessibility_requirements, v);
	if (status == GRPC_STATUS_OK)
		status = choose_capacity(op, v, req->capacity_range, least);
	if (status != GRPC_STATUS_OK)
		return status;
	id_to_hex(&id, hex);
	v->id = csl_copy(&op->arena, hex);
	return store_volume(op, v, from, &e) < 0 ? csl_internal(op, &e) : GRPC_STATUS_OK;
}

int
csl_create_volume(struct csl_op *op, const void *request, void *rep)
{
	const Csi__V1__CreateVolumeRequest *req = request;
	CslVolume *v = csl_alloc(&op->arena, 1, sizeof *v), *there;
	char id[ID_HEX_SIZE];
	int status = check_create(op, req);

	if (status == GRPC_STATUS_OK)
		status = csl_hold(op, "volume-name", req->name);
	if (status != GRPC_STATUS_OK)
		return status;
	describe(op, req, v);
	if (csl_store_find(op->csl->store, CSL_VOLUME, req->name, id)) {
		status = csl_volume_get(op, id, &there);
		if (status == GRPC_STATUS_OK)
			status = check_same(op, there, v, req->capacity_range);
		v = there;
	} else {
		status = make_volume(op, req, v);
	}
	if (status == GRPC_STATUS_OK)
		((Csi__V1__CreateVolumeResponse *)rep)->volume = csl_volume_answer(op, v);
	return status;
}

/* --- the other methods of a volume --- */

int
csl_delete_volume(struct csl_op *op, const void *request, void *rep)
{
	const Csi__V1__DeleteVolumeRequest *req = request;
	cleanup_close int lock_fd = -1;
	struct err e = { 0 };
	const CslMount *mount;
	const char *node;
	CslVolume *v;
	int status = csl_hold(op, "controller", req->volume_id);

	if (status == GRPC_STATUS_OK)
		status = csl_volume_get(op, req->volume_id, &v);
	if (status != GRPC_STATUS_OK)
		return status == GRPC_STATUS_NOT_FOUND ? GRPC_STATUS_OK : status;
	if (v->n_attachments > 0)
		return csl_fail(op, GRPC_STATUS_FAILED_PRECONDITION,
		    "volume %s is in use: it is attached to node %s", v->id,
		    v->attachments[0]->node_id);
	lock_fd = csl_store_lock(op->csl->store, v->id, &e);
	if (lock_fd < 0)
		return csl_internal(op, &e);
	mount = csl_volume_mounted(op, v->id, &node);
	if (mount)
		return csl_fail(op, GRPC_STATUS_FAILED_PRECONDITION,
		    "volume %s is in use: it is mounted on %s of node %s", v->id, mount->target,
		    node);
	return csl_store_remove(op->csl->store, CSL_VOLUME, v->id, &e) < 0 ? csl_internal(op, &e)
									   : GRPC_STATUS_OK;
}

/* Expands a volume. A directory has no fixed size, so only the stored number changes; the file of a
 * block device grows, and nodes with its loop device must resize that. */
int
csl_controller_expand_volume(struct csl_op *op, const void *request, void *rep)
{
	const Csi__V1__ControllerExpandVolumeRequest *req = request;
	Csi__V1__ControllerExpandVolumeResponse *r = rep;
	const Csi__V1__CapacityRange *range = req->capacity_range;
	struct err e = { 0 };
	const char *node;
	CslVolume *v;
	int status = csl_hold(op, "controller", req->volume_id);

	if (status == GRPC_STATUS_OK)
		status = csl_volume_get(op, req->volume_id, &v);
	if (status == GRPC_STATUS_OK)
		status = range ? csl_check_range(op, range)
			       : csl_invalid(op, "the capacity range is missing");
	if (status == GRPC_STATUS_OK && req->volume_capability)
		status =
		    csl_check_type(op, v, req->volume_capability, GRPC_STATUS_INVALID_ARGUMENT);
	if (status != GRPC_STATUS_OK)
		return status;
	if (range->limit_bytes > 0 && v->capacity_bytes > range->limit_bytes)
		return csl_fail(op, GRPC_STATUS_OUT_OF_RANGE,
		    "volume %s has already %lld bytes and cannot shrink", v->id,
		    (long long)v->capacity_bytes);
	if (range->required_bytes > v->capacity_bytes || range->required_bytes == 0) {
		status = choose_capacity(op, v, range, v->capacity_bytes);
		if (status != GRPC_STATUS_OK)
			return status;
		if ((v->block && grow_file(op, v, &e) < 0) ||
		    csl_store_save(op->csl->store, CSL_VOLUME, v, &e) < 0)
			return csl_internal(op, &e);
	}
	r->capacity_bytes = v->capacity_bytes;
	r->node_expansion_required =
	    op->csl->node_expand || (v->block && csl_volume_mounted(op, v->id, &node));
	return GRPC_STATUS_OK;
}

int
csl_controller_modify_volume(struct csl_op *op, const void *request, void *rep)
{
	const Csi__V1__ControllerModifyVolumeRequest *req = request;
	struct err e = { 0 };
	CslVolume *v;
	int status = csl_hold(op, "controller", req->volume_id);

	if (status == GRPC_STATUS_OK)
		status = csl_volume_get(op, req->volume_id, &v);
	if (status == GRPC_STATUS_OK)
		status = csl_check_mutable(op, req->mutable_parameters, req->n_mutable_parameters);
	if (status != GRPC_STATUS_OK)
		return status;
	for (size_t i = 0; i < req->n_mutable_parameters; i++)
		csl_pairs_set(&op->arena, &v->mutable_parameters, &v->n_mutable_parameters,
		    req->mutable_parameters[i]->key, req->mutable_parameters[i]->value);
	return csl_store_save(op->csl->store, CSL_VOLUME, v, &e) < 0 ? csl_internal(op, &e)
								     : GRPC_STATUS_OK;
}

int
csl_validate_volume_capabilities(struct csl_op *op, const void *request, void *rep)
{
	const Csi__V1__ValidateVolumeCapabilitiesRequest *req = request;
	Csi__V1__ValidateVolumeCapabilitiesResponse *r = rep;
	CslVolume *v;
	int status;

	if (req->n_volume_capabilities == 0)
		return csl_invalid(op, "the volume capabilities are missing");
	status = csl_volume_get(op, req->volume_id, &v);
	if (status != GRPC_STATUS_OK)
		return status;
	if (csl_check_capabilities(op, req->volume_capabilities, req->n_volume_capabilities) !=
		GRPC_STATUS_OK ||
	    csl_check_type(op, v, req->volume_capabilities[0], GRPC_STATUS_INVALID_ARGUMENT) !=
		GRPC_STATUS_OK ||
	    csl_check_context(op, v, req->volume_context, req->n_volume_context) !=
		GRPC_STATUS_OK) {
		r->message = op->message;
		return GRPC_STATUS_OK;
	}
	r->confirmed = csl_alloc(&op->arena, 1, sizeof *r->confirmed);
	csi__v1__validate_volume_capabilities_response__confirmed__init(r->confirmed);
	r->confirmed->volume_context = req->volume_context;
	r->confirmed->n_volume_context = req->n_volume_context;
	r->confirmed->volume_capabilities = req->volume_capabilities;
	r->confirmed->n_volume_capabilities = req->n_volume_capabilities;
	r->confirmed->parameters = req->parameters;
	r->confirmed->n_parameters = req->n_parameters;
	return GRPC_STATUS_OK;
}
