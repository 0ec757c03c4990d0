// SPDX-License-Identifier: Apache-2.0
/* csl_node.c: the Node service: volumes mounted and unmounted. Runs in: drover-csi-local. */
#include "contrib/csi-local/csl_node.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "contrib/csi-local/csl_check.h"
#include "contrib/csi-local/csl_loop.h"
#include "contrib/csi-local/csl_volume.h"

int
csl_check_path(struct csl_op *op, const char *path, const char *what)
{
	if (path[0] == '\0')
		return csl_invalid(op, "the %s path is missing", what);
	if (path[0] != '/' || strlen(path) >= PATH_MAX || strstr(path, "/../") ||
	    strchr(path, '\n'))
		return csl_invalid(op, "the %s path '%.128s' is not an absolute path", what, path);
	return GRPC_STATUS_OK;
}

void
csl_local_done(struct csl_local *l)
{
	close_p(&l->data_fd);
	close_p(&l->lock_fd);
}

int
csl_local_open(struct csl_op *op, const char *volume_id, struct csl_local *ret)
{
	const struct timespec delay = { op->csl->delay_ms / 1000,
		(long)(op->csl->delay_ms % 1000) * 1000000 };
	struct err e = { 0 };
	int status = csl_volume_get(op, volume_id, &ret->volume);

	if (status == GRPC_STATUS_OK)
		status = csl_hold(op, "node", volume_id);
	if (status != GRPC_STATUS_OK)
		return status;
	(void)nanosleep(&delay, NULL);
	ret->lock_fd = csl_store_lock(op->csl->store, volume_id, &e);
	if (ret->lock_fd < 0)
		return csl_internal(op, &e);
	status = csl_volume_get(op, volume_id, &ret->volume); /* as it is now */
	if (status != GRPC_STATUS_OK)
		return status;
	ret->mounts = csl_store_mounts(op->csl->store, op->csl->node_id, volume_id, &op->arena);
	ret->data_fd =
	    csl_store_data(op->csl->store, CSL_VOLUME, volume_id, ret->volume->block != 0, &e);
	return ret->data_fd < 0 ? csl_internal(op, &e) : GRPC_STATUS_OK;
}

/* Reads the mount attributes from a capability; INVALID_ARGUMENT for what a volume cannot have. */
static int
mount_attrs(struct csl_op *op, const Csi__V1__VolumeCapability *cap, bool readonly, uint64_t *ret)
{
	int status = csl_check_capability(op, cap);

	if (status != GRPC_STATUS_OK)
		return status;
	*ret = csl_is_block(cap) ? CSL_DEVICE_ATTRS : CSL_MOUNT_ATTRS;
	if (readonly || csl_mode_reads((int)cap->access_mode->mode))
		*ret |= MOUNT_ATTR_RDONLY;
	for (size_t i = 0; !csl_is_block(cap) && i < cap->mount->n_mount_flags; i++)
		if (csl_mount_flag(cap->mount->mount_flags[i], ret) < 0)
			return csl_invalid(op, "the mount flag '%.32s' is not supported",
			    cap->mount->mount_flags[i]);
	return GRPC_STATUS_OK;
}

/* Notes a mount before it is made. Returns 0, also if it is there already, or ALREADY_EXISTS. */
static int
note_mount(struct csl_op *op, struct csl_local *l, const CslMount *wanted, bool *ret_new)
{
	const CslMount *noted = csl_mount_find(l->mounts, wanted->target);
	struct err e = { 0 };

	if (noted && (noted->attrs != wanted->attrs || noted->staging != wanted->staging ||
			 (noted->access_mode != wanted->access_mode && noted->access_mode != 0)))
		return csl_fail(op, GRPC_STATUS_ALREADY_EXISTS,
		    "volume %s is mounted on %s in another way", l->volume->id, wanted->target);
	*ret_new = !noted;
	if (noted && noted->device == wanted->device)
		return GRPC_STATUS_OK;
	if ((noted && csl_store_mount_drop(
			  op->csl->store, l->volume->id, l->mounts, wanted->target, &e) < 0) ||
	    csl_store_mount_add(op->csl->store, l->volume->id, l->mounts, wanted, &op->arena, &e) <
		0)
		return csl_internal(op, &e);
	return GRPC_STATUS_OK;
}

/* Makes the last component of a target path: a directory, or the file on which a device is
 * mounted. Returns 1 if it was made. */
static int
make_leaf(const char *path, bool file, struct err *e)
{
	int fd;

	if (!file && mkdir(path, 0755) == 0)
		return 1;
	if (file && (fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600)) >= 0) {
		(void)close(fd);
		return 1;
	}
	if (errno == EEXIST)
		return 0;
	return err_set(e, -errno, "make the %s %s", file ? "file" : "directory", path);
}

static int
remove_leaf(const char *path, bool file)
{
	return (file ? unlink(path) : rmdir(path)) < 0 && errno != ENOENT ? -errno : 0;
}

/* Mounts the source on m->target unless it is mounted there. The leaf of a staging path exists. */
static int
mount_place(
    struct csl_op *op, struct csl_local *l, const struct csl_source *source, const CslMount *m)
{
	bool block = l->volume->block != 0, is_new;
	struct err e = { 0 };
	int status, made = 0, there = csl_mount_state(source, m->target, &e);

	status = note_mount(op, l, m, &is_new);
	if (status != GRPC_STATUS_OK)
		return status;
	if (there > 0)
		return GRPC_STATUS_OK;
	if (there == 0 && !m->staging)
		made = make_leaf(m->target, block, &e);
	if (there == 0 && made >= 0 && csl_mount_bind(source, m->target, m->attrs, &e) == 0)
		return GRPC_STATUS_OK;
	if (made > 0)
		(void)remove_leaf(m->target, block);
	if (is_new)
		(void)csl_store_mount_drop(
		    op->csl->store, l->volume->id, l->mounts, m->target, NULL);
	return csl_internal(op, &e);
}

static CslMount
mount_of(const char *target, const Csi__V1__VolumeCapability *cap)
{
	CslMount m = CSL_MOUNT__INIT;

	m.target = (char *)(uintptr_t)target;
	m.access_mode = cap && cap->access_mode ? (int32_t)cap->access_mode->mode : 0;
	return m;
}

int
csl_node_stage_volume(struct csl_op *op, const void *request, void *rep)
{
	const Csi__V1__NodeStageVolumeRequest *req = request;
	CslMount m = mount_of(req->staging_target_path, req->volume_capability);
	cleanup_local struct csl_local l = CSL_LOCAL_NONE;
	struct err e = { 0 };
	dev_t device;
	bool is_new;
	int status;

	if (req->volume_id[0] == '\0')
		return csl_invalid(op, "the volume id is missing");
	m.staging = true;
	status = csl_check_path(op, m.target, "staging");
	if (status == GRPC_STATUS_OK)
		status = mount_attrs(op, req->volume_capability, false, &m.attrs);
	if (status == GRPC_STATUS_OK)
		status = csl_local_open(op, req->volume_id, &l);
	if (status == GRPC_STATUS_OK)
		status =
		    csl_check_context(op, l.volume, req->volume_context, req->n_volume_context);
	if (status == GRPC_STATUS_OK)
		status = csl_access_check(op, &l, req->volume_capability, NULL, true);
	if (status == GRPC_STATUS_OK)
		status = csl_attachment_check(
		    op, l.volume, req->publish_context, req->n_publish_context, false);
	if (status != GRPC_STATUS_OK)
		return status;
	if (!l.volume->block)
		return mount_place(op, &l, &(struct csl_source){ .fd = l.data_fd }, &m);
	/* A block volume is staged by its device; nothing is mounted on the staging path. */
	if (csl_loop_attach(l.data_fd, csl_mode_reads(m.access_mode), &device, &e) < 0)
		return csl_internal(op, &e);
	m.device = device;
	return note_mount(op, &l, &m, &is_new);
}

/* Opens what is mounted on the target: the staged mount, or a device. A volume that is not staged
 * must not be published. */
static int
open_staged(
    struct csl_op *op, const struct csl_local *l, const char *staging, CslMount *m, int *ret_fd)
{
	const CslMount *staged = csl_mount_find(l->mounts, staging);
	struct err e = { 0 };
	dev_t device;

	if (!staged || !staged->staging ||
	    (!l->volume->block &&
		csl_mount_state(&(struct csl_source){ .fd = l->data_fd }, staging, &e) != 1))
		return csl_fail(op, GRPC_STATUS_FAILED_PRECONDITION,
		    "volume %s is not staged on %s", l->volume->id, staging);
	if (l->volume->block) {
		if (csl_loop_attach(l->data_fd, (m->attrs & MOUNT_ATTR_RDONLY) != 0, &device, &e) <
		    0)
			return csl_internal(op, &e);
		m->device = device;
		*ret_fd = csl_loop_open(device, &e);
	} else {
		*ret_fd = open(staging, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (*ret_fd < 0)
			(void)err_set(&e, -errno, "open %s", staging);
	}
	return *ret_fd < 0 ? csl_internal(op, &e) : GRPC_STATUS_OK;
}

static int
check_publish(struct csl_op *op, const Csi__V1__NodePublishVolumeRequest *req, CslMount *m)
{
	int status;

	if (req->volume_id[0] == '\0')
		return csl_invalid(op, "the volume id is missing");
	status = csl_check_path(op, m->target, "target");
	if (status == GRPC_STATUS_OK)
		status = mount_attrs(op, req->volume_capability, req->readonly != 0, &m->attrs);
	if (status == GRPC_STATUS_OK && req->staging_target_path[0] == '\0')
		status =
		    csl_fail(op, GRPC_STATUS_FAILED_PRECONDITION, "the staging path is missing");
	if (status == GRPC_STATUS_OK)
		status = csl_check_path(op, req->staging_target_path, "staging");
	return status;
}

int
csl_node_publish_volume(struct csl_op *op, const void *request, void *rep)
{
	const Csi__V1__NodePublishVolumeRequest *req = request;
	CslMount m = mount_of(req->target_path, req->volume_capability);
	cleanup_local struct csl_local l = CSL_LOCAL_NONE;
	cleanup_close int staged_fd = -1;
	int status = check_publish(op, req, &m);
	bool readonly = (m.attrs & MOUNT_ATTR_RDONLY) != 0;

	if (status == GRPC_STATUS_OK)
		status = csl_local_open(op, req->volume_id, &l);
	if (status == GRPC_STATUS_OK)
		status =
		    csl_check_context(op, l.volume, req->volume_context, req->n_volume_context);
	if (status == GRPC_STATUS_OK)
		status = csl_access_check(op, &l, req->volume_capability, m.target, readonly);
	if (status == GRPC_STATUS_OK)
		status = csl_attachment_check(
		    op, l.volume, req->publish_context, req->n_publish_context, !readonly);
	if (status == GRPC_STATUS_OK)
		status = open_staged(op, &l, req->staging_target_path, &m, &staged_fd);
	if (status != GRPC_STATUS_OK)
		return status;
	return mount_place(op, &l, &(struct csl_source){ staged_fd, m.device }, &m);
}

/* Unmounts a published or staged volume, and removes the leaf of a published one, which the plugin
 * made. Succeeds if they do not exist any more. */
static int
unmount_place(struct csl_op *op, const char *volume_id, const char *target, bool published)
{
	cleanup_local struct csl_local l = CSL_LOCAL_NONE;
	struct csl_source source = { 0 };
	struct err e = { 0 };
	const CslMount *noted;
	const char *node;
	int status, r = 0;

	if (volume_id[0] == '\0')
		return csl_invalid(op, "the volume id is missing");
	status = csl_check_path(op, target, published ? "target" : "staging");
	if (status == GRPC_STATUS_OK)
		status = csl_local_open(op, volume_id, &l);
	if (status != GRPC_STATUS_OK)
		return status;
	noted = csl_mount_find(l.mounts, target);
	source.fd = l.data_fd;
	source.device = noted ? noted->device : 0;
	if (published || !l.volume->block)
		r = csl_mount_undo(&source, target, &e);
	if (r == 0 && published && (r = remove_leaf(target, l.volume->block != 0)) < 0)
		(void)err_set(&e, r, "remove %s", target);
	if (r == 0)
		r = csl_store_mount_drop(op->csl->store, volume_id, l.mounts, target, &e);
	if (r == 0 && l.volume->block && !csl_volume_mounted(op, volume_id, &node))
		r = csl_loop_detach(l.data_fd, &e);
	return r < 0 ? csl_internal(op, &e) : GRPC_STATUS_OK;
}

int
csl_node_unpublish_volume(struct csl_op *op, const void *request, void *rep)
{
	const Csi__V1__NodeUnpublishVolumeRequest *req = request;

	return unmount_place(op, req->volume_id, req->target_path, true);
}

int
csl_node_unstage_volume(struct csl_op *op, const void *request, void *rep)
{
	const Csi__V1__NodeUnstageVolumeRequest *req = request;

	return unmount_place(op, req->volume_id, req->staging_target_path, false);
}
