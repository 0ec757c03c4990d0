// SPDX-License-Identifier: Apache-2.0
/*
 * file_csi.c: the directories of CSI plugins and volumes. Runs in: file-helper. Asked by:
 * supervisor.
 *
 *	csi/sock/<alloc>/		root's 0700 until the plugin's executor gives it to its
 *					user; csi.sock appears in it
 *	csi/<kind>/<plugin>/		root's 0700; mount-helper makes it a mount point
 *	    staging/, per-alloc/	what lies in them: csi_place.h
 *
 * A plugin writes below its root, and mounts there. Paths need no openat2(2): the mount that they
 * are in follows no link (file_roots.c). What a plugin mounted is not in that mount, so its file
 * system is never asked. All the same nothing goes that something is mounted on: the kernel refuses
 * with EBUSY to remove or rename what is a mount point in the caller's mount namespace, by whatever
 * mount the caller came, and this process is in the agent's.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/crash.h"
#include "common/csi_place.h"
#include "common/fd.h"
#include "common/path.h"
#include "file-helper/file.h"

/* Returns 1 if made, 0 if it existed, or -errno. A plugin runs as root, perhaps without
 * CAP_DAC_OVERRIDE, so root must own the directory. A directory that is still ours is left from a
 * crash between the two calls. */
static int
make_dir(const struct file *f, int dir_fd, const char *path)
{
	int made = mkdirat(dir_fd, path, 0700) == 0;
	struct stat st;

	if ((!made && errno != EEXIST) || fstatat(dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return S_ISLNK(st.st_mode) ? -ELOOP : -EEXIST;
	if (st.st_uid == f->args->uid && fchownat(dir_fd, path, 0, 0, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return made;
}

static int
make_socket_dir(struct file *f, const char *alloc, struct err *e)
{
	int r = make_dir(f, f->root_fds[FILE_ROOT_CSI_SOCK], alloc);
	char stale[ID_UUID_SIZE + sizeof "/csi.sock"];

	if (r < 0)
		return err_set(e, r, "make csi/sock/%s", alloc);
	/* A stale socket would refuse connections for ever, so a leftover of the plugin's last run
	 * is removed. */
	(void)snprintf(stale, sizeof stale, "%s/csi.sock", alloc);
	return r == 1 ? 0 : file_trash_put(f, FILE_ROOT_CSI_SOCK, stale, e);
}

int
file_on_plugin_dir_make(struct file *f, const struct file_plugin_dir_make_req *req,
    struct file_plugin_dir_make_rep *rep, int *ret_fd, struct err *e)
{
	char alloc[ID_UUID_SIZE], root[CSI_ROOT_SIZE];
	int r;

	if ((r = csi_root_path(req->kind, req->plugin, root, e)) < 0)
		return r;
	/* Without an alloc it is a plugin of the configuration, whose socket is elsewhere. */
	if (!id_is_zero(&req->alloc) && ((r = id_alloc_read(&req->alloc, alloc, e)) < 0 ||
					    (r = make_socket_dir(f, alloc, e)) < 0))
		return r;
	r = make_dir(f, f->root_fds[FILE_ROOT_CSI], root);
	return r < 0 ? err_set(e, r, "make csi/%s", root) : 0;
}

/* Refuses to remove a root that still contains a volume; other entries are leftovers of the plugin.
 */
static int
remove_root(struct file *f, const char *root, struct err *e)
{
	static const char *const volumes[] = { "staging", "per-alloc" };
	int csi = f->root_fds[FILE_ROOT_CSI];
	char path[CSI_ROOT_SIZE + 16];

	for (size_t i = 0; i < ELEMENTSOF(volumes); i++) {
		(void)snprintf(path, sizeof path, "%s/%s", root, volumes[i]);
		if (unlinkat(csi, path, AT_REMOVEDIR) < 0 && errno != ENOENT)
			return err_set(
			    e, -errno, "plugin csi/%s still holds volumes in %s", root, volumes[i]);
	}
	return file_trash_put(f, FILE_ROOT_CSI, root, e);
}

int
file_on_plugin_dir_remove(struct file *f, const struct file_plugin_dir_remove_req *req,
    struct file_plugin_dir_remove_rep *rep, int *ret_fd, struct err *e)
{
	char alloc[ID_UUID_SIZE], root[CSI_ROOT_SIZE];
	struct err other = { 0 };
	int r, removed;

	if ((r = id_alloc_read(&req->alloc, alloc, e)) < 0)
		return r;
	if (req->plugin[0] != '\0' && (r = csi_root_path(req->kind, req->plugin, root, e)) < 0)
		return r;
	if (req->plugin[0] != '\0')
		r = remove_root(f, root, e);
	CRASH_POINT(FILE_AFTER_PLUGIN_REMOVE);
	/* The socket is of no use to anyone, also if the root has to stay. */
	removed = file_trash_put(f, FILE_ROOT_CSI_SOCK, alloc, r < 0 ? &other : e);
	return r < 0 ? r : removed;
}

/* Returns the root of the place's plugin, or a negative errno. */
static int
open_root(
    const struct file *f, const struct volume_place *place, struct csi_place *v, struct err *e)
{
	int fd = csi_place_read(place, v, e);

	if (fd < 0)
		return fd;
	fd = fd_open_same_mount(f->root_fds[FILE_ROOT_CSI], v->root, O_PATH | O_DIRECTORY);
	return fd < 0 ? err_set(e, fd, "open csi/%s", v->root) : fd;
}

/* Makes "staging", "staging/v" and so on; path is restored afterwards. */
static int
make_path(const struct file *f, int root_fd, char *path)
{
	char *slash = strchr(path, '/');
	int r = 0;

	for (; r >= 0 && slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		r = make_dir(f, root_fd, path);
		*slash = '/';
	}
	return r < 0 ? r : make_dir(f, root_fd, path);
}

int
file_on_volume_dir_make(struct file *f, const struct file_volume_dir_make_req *req,
    struct file_volume_dir_make_rep *rep, int *ret_fd, struct err *e)
{
	char path[CSI_DIR_SIZE + NAME_BYTES_MAX + 1];
	struct csi_place v;
	cleanup_close int root_fd = open_root(f, &req->place, &v, e);
	int r;

	if (root_fd < 0)
		return root_fd;
	(void)snprintf(path, sizeof path, "%s%s%s", v.dir, v.is_staging ? "/" : "",
	    v.is_staging ? v.leaf : "");
	r = make_path(f, root_fd, path);
	if (r < 0)
		return err_set(
		    e, r, "make the directory of volume %s of plugin %s", v.volume, v.plugin);
	CRASH_POINT(FILE_AFTER_VOLUME_DIR);
	return 0;
}

int
file_on_volume_dir_remove(struct file *f, const struct file_volume_dir_remove_req *req,
    struct file_volume_dir_remove_rep *rep, int *ret_fd, struct err *e)
{
	char path[CSI_DIR_SIZE + NAME_BYTES_MAX + 1];
	struct csi_place v;
	cleanup_close int root_fd = open_root(f, &req->place, &v, e);

	if (root_fd < 0)
		return root_fd == -ENOENT ? 0 : root_fd;
	(void)snprintf(path, sizeof path, "%s/%s", v.dir, v.leaf);
	/* Contents are never removed: data in a directory that should be a mount point needs a
	 * human. */
	if (unlinkat(root_fd, path, AT_REMOVEDIR) < 0 && errno != ENOENT &&
	    (errno != ENOTDIR || unlinkat(root_fd, path, 0) < 0))
		return errno == EBUSY
			   ? err_say(e, -EBUSY, "volume %s of plugin %s is still mounted at %s",
				 v.volume, v.plugin, v.leaf)
			   : err_set(e, -errno, "remove %s of volume %s of plugin %s", v.leaf,
				 v.volume, v.plugin);
	/* Removes empty parents, up to one with another usage or volume, or up to "staging" or
	 * "per-alloc". */
	do
		*strrchr(path, '/') = '\0';
	while (strchr(path, '/') && unlinkat(root_fd, path, AT_REMOVEDIR) == 0);
	CRASH_POINT(FILE_AFTER_VOLUME_REMOVE);
	return 0;
}

/* Removes path and, if it is a directory, empty directories in it, `depth` levels deep. Other
 * entries (a file for a block volume, or leftovers of the plugin) are removed at any level. -EBUSY
 * for a mount point. */
static int
remove_empty(int dir_fd, const char *path, int depth)
{
	cleanup_dir DIR *d = NULL;
	const char *n;
	int r;

	if (unlinkat(dir_fd, path, AT_REMOVEDIR) == 0 ||
	    (errno == ENOTDIR && unlinkat(dir_fd, path, 0) == 0))
		return 0;
	if ((errno != ENOTEMPTY && errno != EEXIST) || depth == 0)
		return -errno;
	r = dir_open_at(dir_fd, path, &d);
	while (r >= 0 && (n = dir_next(d)))
		r = remove_empty(dirfd(d), n, depth - 1);
	return r < 0 ? r : unlinkat(dir_fd, path, AT_REMOVEDIR) == 0 ? 0 : -errno;
}

int
file_volumes_remove(const struct file *f, const char *alloc, struct err *e)
{
	int csi = f->root_fds[FILE_ROOT_CSI];

	for (int kind = PLUGIN_CONTROLLER; kind < CSI_KINDS; kind++) {
		char path[2 * NAME_BYTES_MAX + ID_UUID_SIZE + 32];
		cleanup_dir DIR *d = NULL;
		const char *n;
		int r = dir_open_at(csi, csi_kind_dirs[kind], &d);

		if (r < 0 && r != -ENOENT)
			return err_set(e, r, "read csi/%s", csi_kind_dirs[kind]);
		while (d && (n = dir_next(d))) {
			(void)snprintf(
			    path, sizeof path, "%s/%s/per-alloc/%s", csi_kind_dirs[kind], n, alloc);
			r = remove_empty(csi, path, 2);
			if (r < 0 && r != -ENOENT)
				return err_set(e, r,
				    "remove csi/%s: a volume of alloc %s is not unpublished", path,
				    alloc);
		}
	}
	return 0;
}
