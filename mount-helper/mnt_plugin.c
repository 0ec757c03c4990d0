// SPDX-License-Identifier: Apache-2.0
/* mnt_plugin.c: makes the root of a CSI plugin a mount point. Runs in: mount-helper, as root. Asked
 * by: supervisor. The directory csi/<kind>/<plugin>, which file-helper made, becomes a shared bind
 * mount of itself. Bidirectional propagation has no effect below a private mount, and the data
 * directory's mount may be private, so the root is a mount in a peer group of its own. It stays as
 * long as the plugin, even if drover exits. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/crash.h"
#include "common/fd.h"
#include "mount-helper/mnt.h"

#define STACKED_MAX 16

int
mnt_plugin_root_open(const struct mnt *m, const char *root, int *ret_fd, struct err *e)
{
	const int flags = AT_EMPTY_PATH | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC;
	int csi = m->root_fds[MNT_PLACE_CSI];
	cleanup_close int fd = fd_open_beneath(csi, root, O_PATH | O_DIRECTORY, 0);
	struct statx st, own;

	if (fd < 0 || statx(fd, "", flags, STATX_TYPE, &st) < 0 ||
	    statx(csi, "", flags, STATX_TYPE, &own) < 0)
		return err_set(e, fd < 0 ? fd : -errno, "open csi/%s", root);
	if (st.stx_dev_major != own.stx_dev_major || st.stx_dev_minor != own.stx_dev_minor)
		return err_set(e, -EBUSY, "another file system is mounted on csi/%s", root);
	*ret_fd = steal_fd(&fd);
	return (st.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

/* The clone is made private first; otherwise it would be a peer of the mount that it covers, and
 * mounts in it would appear twice. */
static int
bind_to_itself(int dir_fd)
{
	struct mount_attr alone = { .propagation = MS_PRIVATE },
			  shared = { .propagation = MS_SHARED };
	cleanup_close int tree =
	    open_tree(dir_fd, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH, &alone, sizeof alone) < 0 ||
	    mount_setattr(tree, "", AT_EMPTY_PATH, &shared, sizeof shared) < 0 ||
	    move_mount(tree, "", dir_fd, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return -errno;
	return 0;
}

int
mnt_on_plugin_root_make(struct mnt *m, const struct mnt_plugin_root_make_req *req,
    struct mnt_plugin_root_make_rep *rep, int *ret_fd, struct err *e)
{
	struct mount_attr shared = { .propagation = MS_SHARED };
	char root[CSI_ROOT_SIZE];
	cleanup_close int fd = -1;
	int r;

	if ((r = csi_root_path(req->kind, req->plugin, root, e)) < 0 ||
	    (r = mnt_plugin_root_open(m, root, &fd, e)) < 0)
		return r;
	if (r == 1) /* possibly not shared yet, after a crash */
		r = mount_setattr(fd, "", AT_EMPTY_PATH, &shared, sizeof shared) < 0 ? -errno : 0;
	else
		r = bind_to_itself(fd);
	if (r < 0)
		return err_set(e, r, "make csi/%s a shared mount point", root);
	CRASH_POINT(MNT_AFTER_PLUGIN_MOUNT);
	return 0;
}

/* Refuses a root that still contains a volume: unmounting the root also unmounts everything below
 * it, which then are only leftovers of the plugin. */
int
mnt_on_plugin_root_remove(struct mnt *m, const struct mnt_plugin_root_remove_req *req,
    struct mnt_plugin_root_remove_rep *rep, int *ret_fd, struct err *e)
{
	static const char *const volumes[] = { "staging", "per-alloc" };
	char root[CSI_ROOT_SIZE], at[CSI_ROOT_SIZE + 32];
	cleanup_close int fd = -1;
	int r;

	if ((r = csi_root_path(req->kind, req->plugin, root, e)) < 0)
		return r;
	if ((r = mnt_plugin_root_open(m, root, &fd, e)) < 0)
		return r == -ENOENT ? 0 : r;
	for (size_t i = 0; i < ELEMENTSOF(volumes); i++)
		if (unlinkat(fd, volumes[i], AT_REMOVEDIR) < 0 && errno != ENOENT)
			return err_set(
			    e, -errno, "plugin csi/%s still holds volumes in %s", root, volumes[i]);
	(void)snprintf(at, sizeof at, "/proc/self/fd/%d/%s", m->root_fds[MNT_PLACE_CSI], root);
	for (int i = 0; i < STACKED_MAX && umount2(at, UMOUNT_NOFOLLOW | MNT_DETACH) == 0; i++)
		;
	CRASH_POINT(MNT_AFTER_PLUGIN_UNMOUNT);
	return 0;
}
