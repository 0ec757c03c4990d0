// SPDX-License-Identifier: Apache-2.0
/* csl_node_info.c: the Node service: the node, and the sizes of its volumes. Runs in:
 * drover-csi-local. */
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "common/cleanup.h"
#include "contrib/csi-local/csl_check.h"
#include "contrib/csi-local/csl_loop.h"
#include "contrib/csi-local/csl_node.h"
#include "contrib/csi-local/csl_volume.h"

int
csl_node_get_info(struct csl_op *op, const void *request, void *rep)
{
	Csi__V1__NodeGetInfoResponse *r = rep;

	r->node_id = csl_copy(&op->arena, op->csl->node_id);
	r->max_volumes_per_node = op->csl->max_volumes;
	if (op->csl->topology.n > 0) {
		r->accessible_topology = csl_alloc(&op->arena, 1, sizeof *r->accessible_topology);
		csi__v1__topology__init(r->accessible_topology);
		r->accessible_topology->segments = op->csl->topology.at;
		r->accessible_topology->n_segments = op->csl->topology.n;
	}
	return GRPC_STATUS_OK;
}

/* Finds the volume at a path, where it must be mounted, or staged as a device. */
static int
find_mounted(struct csl_op *op, const char *id, const char *path, CslVolume **ret, int *ret_fd)
{
	struct csl_store *s = op->csl->store;
	struct err e = { 0 };
	const CslMount *m;
	int status;

	if (id[0] != '\0' && path[0] == '\0')
		return csl_invalid(op, "the volume path is missing");
	status = csl_volume_get(op, id, ret);
	if (status != GRPC_STATUS_OK)
		return status;
	m = csl_mount_find(csl_store_mounts(s, op->csl->node_id, id, &op->arena), path);
	*ret_fd = csl_store_data(s, CSL_VOLUME, id, (*ret)->block != 0, &e);
	if (*ret_fd < 0)
		return csl_internal(op, &e);
	if (!m || (!(m->staging && m->device) &&
		      csl_mount_state(&(struct csl_source){ *ret_fd, m->device }, path, &e) != 1))
		return csl_fail(
		    op, GRPC_STATUS_NOT_FOUND, "volume %s is not mounted on '%.128s'", id, path);
	return GRPC_STATUS_OK;
}

static void
add_usage(struct csl_op *op, Csi__V1__NodeGetVolumeStatsResponse *r,
    Csi__V1__VolumeUsage__Unit unit, uint64_t total, uint64_t used, uint64_t available)
{
	Csi__V1__VolumeUsage *u = csl_alloc(&op->arena, 1, sizeof *u);

	csi__v1__volume_usage__init(u);
	u->unit = unit;
	u->total = (int64_t)total;
	u->used = (int64_t)used;
	u->available = (int64_t)available;
	r->usage = csl_grown(&op->arena, r->usage, r->n_usage);
	r->usage[r->n_usage++] = u;
}

/* A directory can use the space of its file system, so that is what is left of it. Of the file of a
 * block device, the blocks that were written are used. */
int
csl_node_get_volume_stats(struct csl_op *op, const void *request, void *rep)
{
	const Csi__V1__NodeGetVolumeStatsRequest *req = request;
	Csi__V1__NodeGetVolumeStatsResponse *r = rep;
	cleanup_close int fd = -1;
	struct statvfs fs;
	struct stat st;
	CslVolume *v;
	uint64_t used;
	int status = find_mounted(op, req->volume_id, req->volume_path, &v, &fd);

	if (status != GRPC_STATUS_OK)
		return status;
	if (fstatvfs(fd, &fs) < 0 || fstat(fd, &st) < 0)
		return csl_fail(op, GRPC_STATUS_INTERNAL, "read the usage of volume %s: %m", v->id);
	if (v->block) {
		used = (uint64_t)st.st_blocks * 512;
		if (used > (uint64_t)st.st_size)
			used = (uint64_t)st.st_size;
		add_usage(op, r, CSI__V1__VOLUME_USAGE__UNIT__BYTES, (uint64_t)st.st_size, used,
		    (uint64_t)st.st_size - used);
	} else {
		add_usage(op, r, CSI__V1__VOLUME_USAGE__UNIT__BYTES, fs.f_blocks * fs.f_frsize,
		    (fs.f_blocks - fs.f_bfree) * fs.f_frsize, fs.f_bavail * fs.f_frsize);
		add_usage(op, r, CSI__V1__VOLUME_USAGE__UNIT__INODES, fs.f_files,
		    fs.f_files - fs.f_ffree, fs.f_favail);
	}
	r->volume_condition = csl_volume_condition(op, v);
	return GRPC_STATUS_OK;
}

int
csl_node_expand_volume(struct csl_op *op, const void *request, void *rep)
{
	const Csi__V1__NodeExpandVolumeRequest *req = request;
	cleanup_local struct csl_local l = CSL_LOCAL_NONE;
	cleanup_close int fd = -1;
	struct err e = { 0 };
	CslVolume *v;
	int status = find_mounted(op, req->volume_id, req->volume_path, &v, &fd);

	if (status == GRPC_STATUS_OK && req->capacity_range)
		status = csl_check_range(op, req->capacity_range);
	if (status == GRPC_STATUS_OK && req->volume_capability)
		status =
		    csl_check_type(op, v, req->volume_capability, GRPC_STATUS_INVALID_ARGUMENT);
	if (status == GRPC_STATUS_OK)
		status = csl_local_open(op, req->volume_id, &l);
	if (status != GRPC_STATUS_OK)
		return status;
	if (req->capacity_range && req->capacity_range->required_bytes > l.volume->capacity_bytes)
		return csl_fail(op, GRPC_STATUS_OUT_OF_RANGE,
		    "volume %s has %lld bytes: the controller must expand it first", l.volume->id,
		    (long long)l.volume->capacity_bytes);
	if (l.volume->block && csl_loop_resize(l.data_fd, &e) < 0)
		return csl_internal(op, &e);
	((Csi__V1__NodeExpandVolumeResponse *)rep)->capacity_bytes = l.volume->capacity_bytes;
	return GRPC_STATUS_OK;
}
