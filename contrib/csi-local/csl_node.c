// SPDX-License-Identifier: Apache-2.0
/* csl_node.c: the Node service: volumes mounted and unmounted. Runs in: drover-csi-local. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "contrib/csi-local/csl.h"
#include "contrib/csi-local/csl_mount.h"

static int
internal(struct csl_result *result, const struct err *e)
{
	return csl_fail(result, GRPC_STATUS_INTERNAL, "%s", e->msg);
}

static int
check_path(const char *path, const char *what, struct csl_result *result)
{
	if (path[0] == '\0')
		return csl_invalid(result, "the %s path is missing", what);
	if (path[0] != '/' || strlen(path) >= PATH_MAX || strstr(path, "/../") ||
	    strchr(path, '\n'))
		return csl_invalid(
		    result, "the %s path '%.128s' is not an absolute path", what, path);
	return GRPC_STATUS_OK;
}

/* Reads the mount attributes from a capability; INVALID_ARGUMENT for what a directory volume cannot
 * provide. */
static int
mount_attrs(
    const Csi__V1__VolumeCapability *cap, bool readonly, uint64_t *ret, struct csl_result *result)
{
	uint64_t attrs = CSL_MOUNT_ATTRS | (readonly ? MOUNT_ATTR_RDONLY : 0);
	int status = csl_capability_check(cap, result);

	if (status != GRPC_STATUS_OK)
		return status;
	for (size_t i = 0; i < cap->mount->n_mount_flags; i++)
		if (csl_mount_flag(cap->mount->mount_flags[i], &attrs) < 0)
			return csl_invalid(result, "the mount flag '%.32s' is not supported",
			    cap->mount->mount_flags[i]);
	*ret = attrs;
	return GRPC_STATUS_OK;
}

/* One mount of a volume that is being made. */
struct place {
	CslVolume *volume;
	const char *target;
	bool staging;
	uint64_t attrs;
	int dir_fd; /* the volume's directory, the source of all its mounts */
};

/* Mounts `source_fd` unless it is already mounted. make_leaf: also makes the last component of the
 * path. */
static int
mount_place(
    struct csl *c, const struct place *p, int source_fd, bool make_leaf, struct csl_result *result)
{
	const CslMount *noted = csl_store_mount(p->volume, p->target);
	struct err e = { 0 };
	bool made = false;
	int there;

	if (noted && (noted->attrs != p->attrs || noted->staging != p->staging))
		return csl_fail(result, GRPC_STATUS_ALREADY_EXISTS,
		    "volume %s is mounted on %s in another way", p->volume->id, p->target);
	there = csl_mount_state(p->dir_fd, p->target, &e);
	if (there < 0)
		return internal(result, &e);
	if (!noted &&
	    csl_store_mount_add(c->store, p->volume, p->target, p->staging, p->attrs, &e) < 0)
		return internal(result, &e);
	if (there)
		return GRPC_STATUS_OK;
	if (make_leaf) {
		made = mkdir(p->target, 0755) == 0;
		if (!made && errno != EEXIST) {
			(void)err_set(&e, -errno, "make the directory %s", p->target);
			goto undo_note;
		}
	}
	if (csl_mount_bind(source_fd, p->target, p->attrs, &e) < 0)
		goto undo_leaf;
	return GRPC_STATUS_OK;

undo_leaf:
	if (made)
		(void)rmdir(p->target);
undo_note:
	if (!noted)
		(void)csl_store_mount_drop(c->store, p->volume, p->target, NULL);
	return internal(result, &e);
}

int
csl_node_stage_volume(struct csl *c, const void *request, void *rep, struct csl_result *result)
{
	const Csi__V1__NodeStageVolumeRequest *req = request;
	cleanup_close int dir_fd = -1;
	struct place p = { .target = req->staging_target_path, .staging = true };
	struct err e = { 0 };
	int status;

	if (req->volume_id[0] == '\0')
		return csl_invalid(result, "the volume id is missing");
	status = check_path(p.target, "staging", result);
	if (status == GRPC_STATUS_OK)
		status = mount_attrs(req->volume_capability, false, &p.attrs, result);
	if (status == GRPC_STATUS_OK)
		status = csl_volume_get(c, req->volume_id, &p.volume, result);
	if (status != GRPC_STATUS_OK)
		return status;
	p.dir_fd = dir_fd = csl_store_dir(c->store, p.volume, &e);
	if (dir_fd < 0)
		return internal(result, &e);
	return mount_place(c, &p, dir_fd, false, result);
}

/* Opens the staged mount as the source. Returns 0 with *ret_fd. A volume that is not staged must
 * not be published. */
static int
open_staged(const struct place *p, const char *staging, int *ret_fd, struct csl_result *result)
{
	const CslMount *noted = csl_store_mount(p->volume, staging);
	struct err e = { 0 };

	if (!noted || !noted->staging || csl_mount_state(p->dir_fd, staging, &e) != 1)
		return csl_fail(result, GRPC_STATUS_FAILED_PRECONDITION,
		    "volume %s is not staged on %s", p->volume->id, staging);
	*ret_fd = open(staging, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*ret_fd < 0) {
		(void)err_set(&e, -errno, "open %s", staging);
		return internal(result, &e);
	}
	return GRPC_STATUS_OK;
}

int
csl_node_publish_volume(struct csl *c, const void *request, void *rep, struct csl_result *result)
{
	const Csi__V1__NodePublishVolumeRequest *req = request;
	cleanup_close int dir_fd = -1, staged_fd = -1;
	struct place p = { .target = req->target_path };
	struct err e = { 0 };
	int status;

	if (req->volume_id[0] == '\0')
		return csl_invalid(result, "the volume id is missing");
	status = check_path(p.target, "target", result);
	if (status == GRPC_STATUS_OK)
		status = mount_attrs(req->volume_capability, req->readonly, &p.attrs, result);
	if (status == GRPC_STATUS_OK && req->staging_target_path[0] == '\0')
		status = csl_fail(
		    result, GRPC_STATUS_FAILED_PRECONDITION, "the staging path is missing");
	if (status == GRPC_STATUS_OK)
		status = check_path(req->staging_target_path, "staging", result);
	if (status == GRPC_STATUS_OK)
		status = csl_volume_get(c, req->volume_id, &p.volume, result);
	if (status != GRPC_STATUS_OK)
		return status;
	p.dir_fd = dir_fd = csl_store_dir(c->store, p.volume, &e);
	if (dir_fd < 0)
		return internal(result, &e);
	status = open_staged(&p, req->staging_target_path, &staged_fd, result);
	if (status != GRPC_STATUS_OK)
		return status;
	return mount_place(c, &p, staged_fd, true, result);
}

/* Unmounts a published or staged volume, and removes the directory of a published one, which the
 * plugin made. Succeeds if they do not exist any more. */
static int
unmount_place(struct csl *c, const char *volume_id, const char *target, bool published,
    struct csl_result *result)
{
	cleanup_close int dir_fd = -1;
	struct err e = { 0 };
	CslVolume *v;
	int status;

	if (volume_id[0] == '\0')
		return csl_invalid(result, "the volume id is missing");
	status = check_path(target, published ? "target" : "staging", result);
	if (status == GRPC_STATUS_OK)
		status = csl_volume_get(c, volume_id, &v, result);
	if (status != GRPC_STATUS_OK)
		return status;
	dir_fd = csl_store_dir(c->store, v, &e);
	if (dir_fd < 0 || csl_mount_undo(dir_fd, target, &e) < 0)
		return internal(result, &e);
	if (published && rmdir(target) < 0 && errno != ENOENT) {
		(void)err_set(&e, -errno, "remove the directory %s", target);
		return internal(result, &e);
	}
	if (csl_store_mount_drop(c->store, v, target, &e) < 0)
		return internal(result, &e);
	return GRPC_STATUS_OK;
}

int
csl_node_unpublish_volume(struct csl *c, const void *request, void *rep, struct csl_result *result)
{
	const Csi__V1__NodeUnpublishVolumeRequest *req = request;

	return unmount_place(c, req->volume_id, req->target_path, true, result);
}

int
csl_node_unstage_volume(struct csl *c, const void *request, void *rep, struct csl_result *result)
{
	const Csi__V1__NodeUnstageVolumeRequest *req = request;

	return unmount_place(c, req->volume_id, req->staging_target_path, false, result);
}

int
csl_node_get_info(struct csl *c, const void *request, void *rep, struct csl_result *result)
{
	((Csi__V1__NodeGetInfoResponse *)rep)->node_id = (char *)(uintptr_t)c->node_id;
	return GRPC_STATUS_OK;
}

int
csl_node_get_capabilities(struct csl *c, const void *request, void *rep, struct csl_result *result)
{
	static Csi__V1__NodeServiceCapability__RPC rpc =
	    CSI__V1__NODE_SERVICE_CAPABILITY__RPC__INIT;
	static Csi__V1__NodeServiceCapability capability = CSI__V1__NODE_SERVICE_CAPABILITY__INIT,
					      *list[] = { &capability };
	Csi__V1__NodeGetCapabilitiesResponse *r = rep;

	rpc.type = CSI__V1__NODE_SERVICE_CAPABILITY__RPC__TYPE__STAGE_UNSTAGE_VOLUME;
	capability.type_case = CSI__V1__NODE_SERVICE_CAPABILITY__TYPE_RPC;
	capability.rpc = &rpc;
	r->capabilities = list;
	r->n_capabilities = ELEMENTSOF(list);
	return GRPC_STATUS_OK;
}
