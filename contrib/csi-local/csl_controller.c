// SPDX-License-Identifier: Apache-2.0
/* csl_controller.c: the Controller service. Runs in: drover-csi-local. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/id.h"
#include "common/mem.h"
#include "contrib/csi-local/csl.h"

/* An id of another form than ours cannot exist and must never become part of a path. */
int
csl_volume_get(struct csl *c, const char *id, CslVolume **ret, struct csl_result *result)
{
	struct id parsed;
	CslVolume *v;

	if (id[0] == '\0')
		return csl_invalid(result, "the volume id is missing");
	v = id_from_hex(id, &parsed) ? csl_store_by_id(c->store, id) : NULL;
	if (!v)
		return csl_fail(
		    result, GRPC_STATUS_NOT_FOUND, "volume '%.128s' does not exist", id);
	*ret = v;
	return GRPC_STATUS_OK;
}

int
csl_capability_check(const Csi__V1__VolumeCapability *cap, struct csl_result *result)
{
	if (!cap)
		return csl_invalid(result, "the volume capability is missing");
	if (cap->access_type_case == CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK)
		return csl_invalid(result, "volumes are directories: they cannot be block devices");
	if (cap->access_type_case != CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT)
		return csl_invalid(result, "the access type is missing");
	if (!cap->access_mode ||
	    cap->access_mode->mode <= CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__UNKNOWN ||
	    cap->access_mode->mode >
		CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_MULTI_WRITER)
		return csl_invalid(result, "the access mode is missing or unknown");
	if (cap->mount->fs_type[0] != '\0')
		return csl_invalid(result,
		    "volumes are directories: they have no file system type '%.32s'",
		    cap->mount->fs_type);
	if (cap->mount->volume_mount_group[0] != '\0')
		return csl_invalid(result, "a volume mount group is not supported");
	return GRPC_STATUS_OK;
}

static int
check_capabilities(Csi__V1__VolumeCapability *const *caps, size_t n, struct csl_result *result)
{
	int status;

	if (n == 0)
		return csl_invalid(result, "the volume capabilities are missing");
	for (size_t i = 0; i < n; i++) {
		status = csl_capability_check(caps[i], result);
		if (status != GRPC_STATUS_OK)
			return status;
	}
	return GRPC_STATUS_OK;
}

static int
check_name(const char *name, struct csl_result *result)
{
	if (name[0] == '\0')
		return csl_invalid(result, "the name of the volume is missing");
	if (strlen(name) > CSL_NAME_BYTES)
		return csl_invalid(
		    result, "the name of the volume is longer than %d bytes", CSL_NAME_BYTES);
	for (const char *p = name; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return csl_invalid(result, "the name of the volume has control characters");
	return GRPC_STATUS_OK;
}

static int
check_range(const Csi__V1__CapacityRange *range, struct csl_result *result)
{
	if (range->required_bytes < 0 || range->limit_bytes < 0)
		return csl_invalid(result, "the capacity is negative");
	if (range->limit_bytes > 0 && range->required_bytes > range->limit_bytes)
		return csl_fail(
		    result, GRPC_STATUS_OUT_OF_RANGE, "the required capacity is above the limit");
	return GRPC_STATUS_OK;
}

static int
check_create(const Csi__V1__CreateVolumeRequest *req, struct csl_result *result)
{
	const Csi__V1__CapacityRange *range = req->capacity_range;
	int status = check_name(req->name, result);

	if (status == GRPC_STATUS_OK)
		status = check_capabilities(
		    req->volume_capabilities, req->n_volume_capabilities, result);
	if (status != GRPC_STATUS_OK)
		return status;
	if (req->volume_content_source)
		return csl_invalid(
		    result, "a volume cannot be made from a snapshot or another volume");
	if (req->n_parameters > 0)
		return csl_invalid(result, "unknown parameter '%.64s'", req->parameters[0]->key);
	return range ? check_range(range, result) : GRPC_STATUS_OK;
}

static int
check_same(const CslVolume *v, const Csi__V1__CapacityRange *range, struct csl_result *result)
{
	if (range && (v->capacity_bytes < range->required_bytes ||
			 (range->limit_bytes > 0 && v->capacity_bytes > range->limit_bytes)))
		return csl_fail(result, GRPC_STATUS_ALREADY_EXISTS,
		    "the volume '%s' exists with another capacity, %lld bytes", v->name,
		    (long long)v->capacity_bytes);
	return GRPC_STATUS_OK;
}

/* Returns the requested size; 0 if none is given. A directory has no fixed size; the number is only
 * stored. */
static int64_t
capacity_of(const Csi__V1__CapacityRange *range)
{
	if (!range)
		return 0;
	return range->required_bytes > 0 ? range->required_bytes : range->limit_bytes;
}

int
csl_create_volume(struct csl *c, const void *request, void *rep, struct csl_result *result)
{
	static Csi__V1__Volume answer;
	const Csi__V1__CreateVolumeRequest *req = request;
	const Csi__V1__CapacityRange *range = req->capacity_range;
	int status = check_create(req, result);
	struct err e = { 0 };
	CslVolume *v;

	if (status != GRPC_STATUS_OK)
		return status;
	v = csl_store_by_name(c->store, req->name);
	if (v) {
		status = check_same(v, range, result);
		if (status != GRPC_STATUS_OK)
			return status;
	} else {
		if (csl_store_create(c->store, req->name, capacity_of(range), &v, &e) < 0)
			return csl_fail(result,
			    e.code == -ENOSPC ? GRPC_STATUS_RESOURCE_EXHAUSTED
					      : GRPC_STATUS_INTERNAL,
			    "%s", e.msg);
	}
	csi__v1__volume__init(&answer);
	answer.volume_id = v->id;
	answer.capacity_bytes = v->capacity_bytes;
	((Csi__V1__CreateVolumeResponse *)rep)->volume = &answer;
	return GRPC_STATUS_OK;
}

int
csl_delete_volume(struct csl *c, const void *request, void *rep, struct csl_result *result)
{
	const Csi__V1__DeleteVolumeRequest *req = request;
	struct err e = { 0 };
	CslVolume *v;
	int status = csl_volume_get(c, req->volume_id, &v, result);

	if (status == GRPC_STATUS_NOT_FOUND)
		return GRPC_STATUS_OK;
	if (status != GRPC_STATUS_OK)
		return status;
	if (v->n_mounts > 0)
		return csl_fail(result, GRPC_STATUS_FAILED_PRECONDITION,
		    "volume %s is in use: it is mounted on %s", v->id, v->mounts[0]->target);
	if (csl_store_delete(c->store, v, &e) < 0)
		return csl_fail(result, GRPC_STATUS_INTERNAL, "%s", e.msg);
	return GRPC_STATUS_OK;
}

/* Expands a volume: only the stored number changes, because a directory has no fixed size; the node
 * has nothing to do. */
int
csl_controller_expand_volume(
    struct csl *c, const void *request, void *rep, struct csl_result *result)
{
	const Csi__V1__ControllerExpandVolumeRequest *req = request;
	Csi__V1__ControllerExpandVolumeResponse *r = rep;
	const Csi__V1__CapacityRange *range = req->capacity_range;
	struct err e = { 0 };
	CslVolume *v;
	int status = csl_volume_get(c, req->volume_id, &v, result);

	if (status == GRPC_STATUS_OK)
		status = range ? check_range(range, result)
			       : csl_invalid(result, "the capacity range is missing");
	if (status != GRPC_STATUS_OK)
		return status;
	if (range->limit_bytes > 0 && v->capacity_bytes > range->limit_bytes)
		return csl_fail(result, GRPC_STATUS_OUT_OF_RANGE,
		    "volume %s has already %lld bytes and cannot shrink", v->id,
		    (long long)v->capacity_bytes);
	if (capacity_of(range) > v->capacity_bytes &&
	    csl_store_resize(c->store, v, capacity_of(range), &e) < 0)
		return csl_fail(result, GRPC_STATUS_INTERNAL, "%s", e.msg);
	r->capacity_bytes = v->capacity_bytes;
	return GRPC_STATUS_OK;
}

int
csl_validate_volume_capabilities(
    struct csl *c, const void *request, void *rep, struct csl_result *result)
{
	static Csi__V1__ValidateVolumeCapabilitiesResponse__Confirmed confirmed;
	const Csi__V1__ValidateVolumeCapabilitiesRequest *req = request;
	Csi__V1__ValidateVolumeCapabilitiesResponse *r = rep;
	CslVolume *v;
	int status;

	if (req->n_volume_capabilities == 0)
		return csl_invalid(result, "the volume capabilities are missing");
	status = csl_volume_get(c, req->volume_id, &v, result);
	if (status != GRPC_STATUS_OK)
		return status;
	if (check_capabilities(req->volume_capabilities, req->n_volume_capabilities, result) !=
	    GRPC_STATUS_OK) {
		r->message = result->message;
		return GRPC_STATUS_OK;
	}
	csi__v1__validate_volume_capabilities_response__confirmed__init(&confirmed);
	confirmed.volume_context = req->volume_context;
	confirmed.n_volume_context = req->n_volume_context;
	confirmed.volume_capabilities = req->volume_capabilities;
	confirmed.n_volume_capabilities = req->n_volume_capabilities;
	confirmed.parameters = req->parameters;
	confirmed.n_parameters = req->n_parameters;
	r->confirmed = &confirmed;
	return GRPC_STATUS_OK;
}

/* One element of a page of the list: an entry, its volume, and the pointer to it. */
struct page {
	Csi__V1__ListVolumesResponse__Entry entry;
	Csi__V1__Volume volume;
};

static size_t
count_from(struct csl *c, CslVolume *v, size_t max)
{
	size_t n = 0;

	while (v && (max == 0 || n < max)) {
		n++;
		v = csl_store_after(c->store, v);
	}
	return n;
}

int
csl_list_volumes(struct csl *c, const void *request, void *rep, struct csl_result *result)
{
	const Csi__V1__ListVolumesRequest *req = request;
	Csi__V1__ListVolumesResponse *r = rep;
	struct page *pages;
	struct id token;
	CslVolume *v;
	size_t n;

	if (req->max_entries < 0)
		return csl_invalid(result, "max_entries is negative");
	if (req->starting_token[0] != '\0' && !id_from_hex(req->starting_token, &token))
		return csl_fail(result, GRPC_STATUS_ABORTED, "the starting token is invalid");
	v = csl_store_from_id(c->store, req->starting_token);
	n = count_from(c, v, (size_t)req->max_entries);
	if (n == 0)
		return GRPC_STATUS_OK;
	result->scratch = mem_zeroed(n, sizeof *pages + sizeof *r->entries);
	pages = result->scratch;
	r->entries = (void *)(pages + n);
	for (size_t i = 0; i < n; i++, v = csl_store_after(c->store, v)) {
		csi__v1__list_volumes_response__entry__init(&pages[i].entry);
		csi__v1__volume__init(&pages[i].volume);
		pages[i].volume.volume_id = v->id;
		pages[i].volume.capacity_bytes = v->capacity_bytes;
		pages[i].entry.volume = &pages[i].volume;
		r->entries[r->n_entries++] = &pages[i].entry;
	}
	if (v)
		r->next_token = v->id;
	return GRPC_STATUS_OK;
}

int
csl_controller_get_capabilities(
    struct csl *c, const void *request, void *rep, struct csl_result *result)
{
	static const Csi__V1__ControllerServiceCapability__RPC__Type types[] = {
		CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__CREATE_DELETE_VOLUME,
		CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__LIST_VOLUMES,
		CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__EXPAND_VOLUME,
	};
	static Csi__V1__ControllerServiceCapability__RPC rpcs[ELEMENTSOF(types)];
	static Csi__V1__ControllerServiceCapability caps[ELEMENTSOF(types)],
	    *list[ELEMENTSOF(types)];
	Csi__V1__ControllerGetCapabilitiesResponse *r = rep;

	for (size_t i = 0; i < ELEMENTSOF(types); i++) {
		csi__v1__controller_service_capability__rpc__init(&rpcs[i]);
		csi__v1__controller_service_capability__init(&caps[i]);
		rpcs[i].type = types[i];
		caps[i].type_case = CSI__V1__CONTROLLER_SERVICE_CAPABILITY__TYPE_RPC;
		caps[i].rpc = &rpcs[i];
		list[i] = &caps[i];
	}
	r->capabilities = list;
	r->n_capabilities = ELEMENTSOF(list);
	return GRPC_STATUS_OK;
}
