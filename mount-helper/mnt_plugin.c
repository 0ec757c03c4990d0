// SPDX-License-Identifier: Apache-2.0
/*
 * mnt_plugin.c: the two directories of a CSI plugin. Runs in: mount-helper, as root. Asked by:
 *supervisor.
 *
 *	csi/sock/<alloc>/	root 0700 until the plugin's executor gives it to its user; csi.sock
 *appears in it csi/<kind>/<plugin>/	root 0700, a shared bind mount of itself
 *
 * Bidirectional propagation does nothing below a private mount, and the data directory's may be
 *private: so the root is a mount of its own, in a peer group of its own. It stays while the plugin
 *does, whatever happens to drover.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/crash.h"
#include "common/fd.h"
#include "common/path.h"
#include "mount-helper/mnt.h"

#define STACKED_MAX 16

/*
 * 1: fd is the root of a mount of the data directory's own file system, 0: of no mount, -EBUSY: of
 * another one.
 */
static int
is_own_mount(const struct mnt *m, int fd)
{
	const int flags = AT_EMPTY_PATH | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC;
	struct statx st, csi;

	if (statx(fd, "", flags, STATX_TYPE, &st) < 0 ||
	    statx(m->root_fds[MNT_PLACE_CSI], "", flags, STATX_TYPE, &csi) < 0)
		return -errno;
	if (st.stx_dev_major != csi.stx_dev_major || st.stx_dev_minor != csi.stx_dev_minor)
		return -EBUSY;
	return (st.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

int
mnt_plugin_root_open(
    const struct mnt *m, const char *path, bool need_mount, int *ret_fd, struct err *e)
{
	cleanup_close int fd =
	    fd_open_beneath(m->root_fds[MNT_PLACE_CSI], path, O_PATH | O_DIRECTORY, 0);
	int r;

	if (fd < 0)
		return err_set(e, fd, "open csi/%s", path);
	r = is_own_mount(m, fd);
	if (r < 0)
		return err_set(e, r, "another file system is mounted on csi/%s", path);
	if (r == 0 && need_mount)
		return err_say(e, -ENOTCONN,
		    "csi/%s is no mount point of its own: the plugin has not been started since "
		    "the last boot",
		    path);
	*ret_fd = steal_fd(&fd);
	return 0;
}

/*
 * Private first, else the clone would be a peer of the mount that it covers and everything in it
 * would appear twice.
 */
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

static int
make_root(const struct mnt *m, const char *path, struct err *e)
{
	struct mount_attr shared = { .propagation = MS_SHARED };
	cleanup_close int fd = -1;
	int r;

	if (mkdirat(m->root_fds[MNT_PLACE_CSI], path, 0700) < 0 && errno != EEXIST)
		return err_set(e, -errno, "make csi/%s", path);
	r = mnt_plugin_root_open(m, path, false, &fd, e);
	if (r < 0)
		return r;
	if (is_own_mount(m, fd) == 1)
		r = mount_setattr(fd, "", AT_EMPTY_PATH, &shared, sizeof shared) < 0 ? -errno : 0;
	else
		r = bind_to_itself(fd);
	if (r < 0)
		return err_set(e, r, "make csi/%s a shared mount point", path);
	CRASH_POINT(MNT_AFTER_PLUGIN_MOUNT);
	return 0;
}

static int
make_socket_dir(struct mnt *m, const char *alloc, struct err *e)
{
	cleanup_close int fd = -1;
	int r = dir_make_at(m->root_fds[MNT_PLACE_SOCK], alloc, 0700, 0, 0, &fd);

	if (r < 0)
		return err_set(e, r, "make csi/sock/%s", alloc);
	/*
	 * A stale socket refuses connections for ever. Whatever the plugin's last run left under
	 * that name goes.
	 */
	return r == 1 ? 0 : mnt_trash_put(m, fd, "csi.sock", e);
}

int
mnt_on_plugin_dir_make(
    void *state, const struct ipc_packet *p, ProtobufCMessage *rep, int *ret_fd, struct err *e)
{
	static char socket_dir[CONFIG_PATH_SIZE + 64],
	    root_dir[CONFIG_PATH_SIZE + PLUGIN_PATH_SIZE + 8];
	struct mnt *m = state;
	const MntPluginDirMakeReq *req = (const MntPluginDirMakeReq *)(const void *)p->msg;
	MntPluginDirMakeRep *answer = (MntPluginDirMakeRep *)(void *)rep;
	char alloc[ID_UUID_SIZE], path[PLUGIN_PATH_SIZE];
	int r;

	if ((r = id_alloc_read(req->alloc.data, req->alloc.len, alloc, e)) < 0 ||
	    (r = mnt_plugin_path(req->kind, req->plugin, path, e)) < 0 ||
	    (r = make_socket_dir(m, alloc, e)) < 0 || (r = make_root(m, path, e)) < 0)
		return r;
	(void)snprintf(socket_dir, sizeof socket_dir, "%s/csi/sock/%s", m->data_dir, alloc);
	(void)snprintf(root_dir, sizeof root_dir, "%s/csi/%s", m->data_dir, path);
	answer->socket_dir = socket_dir;
	answer->root_dir = root_dir;
	return 0;
}

/*
 * Refuses what still holds a volume; what is mounted beside the volumes is the plugin's litter and
 * goes with it.
 */
static int
remove_root(struct mnt *m, const char *path, struct err *e)
{
	static const char *const volumes[] = { "staging", "per-alloc" };
	int csi = m->root_fds[MNT_PLACE_CSI], r;
	char at[PLUGIN_PATH_SIZE + 32];
	cleanup_close int fd = -1;

	r = mnt_plugin_root_open(m, path, false, &fd, e);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (size_t i = 0; i < ELEMENTSOF(volumes); i++)
		if (unlinkat(fd, volumes[i], AT_REMOVEDIR) < 0 && errno != ENOENT)
			return err_set(
			    e, -errno, "plugin csi/%s still holds volumes in %s", path, volumes[i]);
	(void)close(steal_fd(&fd));
	(void)snprintf(at, sizeof at, "/proc/self/fd/%d/%s", csi, path);
	for (int i = 0; i < STACKED_MAX && umount2(at, UMOUNT_NOFOLLOW | MNT_DETACH) == 0; i++)
		;
	/* A rename refuses a mount point, so nothing that is still mounted gets there. */
	return mnt_trash_put(m, csi, path, e);
}

int
mnt_on_plugin_dir_remove(
    void *state, const struct ipc_packet *p, ProtobufCMessage *rep, int *ret_fd, struct err *e)
{
	struct mnt *m = state;
	const MntPluginDirRemoveReq *req = (const MntPluginDirRemoveReq *)(const void *)p->msg;
	int sock = m->root_fds[MNT_PLACE_SOCK], r;
	char alloc[ID_UUID_SIZE], path[PLUGIN_PATH_SIZE];

	if ((r = id_alloc_read(req->alloc.data, req->alloc.len, alloc, e)) < 0)
		return r;
	if (req->plugin[0] != '\0' && ((r = mnt_plugin_path(req->kind, req->plugin, path, e)) < 0 ||
					  (r = remove_root(m, path, e)) < 0))
		return r;
	CRASH_POINT(MNT_AFTER_PLUGIN_REMOVE);
	return mnt_trash_put(m, sock, alloc, e);
}
