// SPDX-License-Identifier: Apache-2.0
/*
 * mnt_volume.c: directories and mounts of CSI volumes. Runs in: mount-helper, as root; prove and
 * unmount in a child.
 *
 * Everything lies below the plugin's root, where the plugin may write: it is walked one name at a
 * time, without links and never into a mount (fd_open_same_mount), which also tells a mount point
 * without asking what is mounted there.
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

#define PROVE_TIMEOUT_MS   5000
#define UNMOUNT_TIMEOUT_MS 10000
#define STACKED_MAX        16

/*
 * A VolumePlace after its checks: names[0..n_parents) is the way from the plugin's root to the
 * directory of the leaf.
 */
struct place {
	const char *plugin, *volume, *leaf;
	const char *names[3];
	size_t n_parents;
	char alloc[ID_UUID_SIZE];
	bool unmount;
};

/*
 * Reads the request's place and opens its plugin's root. ret keeps pointers into v, and ret->names
 * one into ret itself: it is not to be copied.
 */
static int
open_place(const struct mnt *m, const VolumePlace *v, bool need_mount, struct place *ret,
    int *ret_root, struct err *e)
{
	char path[PLUGIN_PATH_SIZE];
	int r;

	if (!v)
		return err_say(e, -EINVAL, "the request names no volume");
	*ret = (struct place){ .plugin = v->plugin, .volume = v->volume, .leaf = v->usage };
	if ((r = mnt_plugin_path(v->kind, v->plugin, path, e)) < 0)
		return r;
	if (!name_is_component(v->volume) || !name_is_component(v->usage))
		return err_say(e, -EINVAL, "'%.140s' and '%.140s' cannot be a volume and its usage",
		    v->volume, v->usage);
	ret->names[ret->n_parents++] = v->alloc.len == 0 ? "staging" : "per-alloc";
	if (v->alloc.len > 0) {
		if ((r = id_alloc_read(v->alloc.data, v->alloc.len, ret->alloc, e)) < 0)
			return r;
		ret->names[ret->n_parents++] = ret->alloc;
	}
	ret->names[ret->n_parents++] = ret->volume;
	return mnt_plugin_root_open(m, path, need_mount, ret_root, e);
}

/*
 * The directory names[0] / … / names[n - 1] below root_fd, O_PATH; make: with mode 0700 where it is
 * not there.
 */
static int
walk(int root_fd, const char *const *names, size_t n, bool make)
{
	cleanup_close int at = -1;
	int next;

	for (size_t i = 0; i < n; i++) {
		int from = at < 0 ? root_fd : at;

		if (make && mkdirat(from, names[i], 0700) < 0 && errno != EEXIST)
			return -errno;
		next = fd_open_same_mount(from, names[i], O_PATH | O_DIRECTORY);
		if (next < 0)
			return next == -EXDEV ? -EBUSY : next;
		close_p(&at);
		at = next;
	}
	return steal_fd(&at);
}

/* 1: name is a mount point, 0: it is something else, -errno (-ENOENT: it is not there). */
static int
is_mount_at(int dir_fd, const char *name)
{
	cleanup_close int fd = fd_open_same_mount(dir_fd, name, O_PATH);

	return fd >= 0 ? 0 : fd == -EXDEV ? 1 : fd;
}

int
mnt_on_volume_dir_make(
    void *state, const struct ipc_packet *p, ProtobufCMessage *rep, int *ret_fd, struct err *e)
{
	const struct mnt *m = state;
	const MntVolumeDirMakeReq *req = (const MntVolumeDirMakeReq *)(const void *)p->msg;
	cleanup_close int root = -1, parent = -1;
	struct place v;
	int r;

	if ((r = open_place(m, req->place, true, &v, &root, e)) < 0)
		return r;
	parent = walk(root, v.names, v.n_parents, true);
	if (parent < 0)
		return err_set(
		    e, parent, "make the directory of volume %s of plugin %s", v.volume, v.plugin);
	if (v.alloc[0] == '\0' && mkdirat(parent, v.leaf, 0700) < 0 && errno != EEXIST)
		return err_set(e, -errno, "make the staging directory of volume %s of plugin %s",
		    v.volume, v.plugin);
	r = is_mount_at(parent, v.leaf);
	if (r < 0 && r != -ENOENT)
		return err_set(e, r, "look at %s of volume %s", v.leaf, v.volume);
	((MntVolumeDirMakeRep *)(void *)rep)->is_mount = r == 1;
	CRASH_POINT(MNT_AFTER_VOLUME_DIR);
	return 0;
}

/*
 * In the child: from here on the volume's own file system is asked. fd: the directory of the leaf.
 * /
 */
static int
prove(int fd, const void *arg, struct worker_result *ret, struct err *e)
{
	const struct place *v = arg;
	cleanup_close int leaf = fd_open_beneath(fd, v->leaf, O_PATH, 0);
	int r = leaf < 0 ? leaf : mount_proof_take(leaf, &ret->proof);

	if (r == -ENOENT || r == -ENODEV)
		return err_say(e, r,
		    "volume %s: plugin %s said that it is mounted, but %s. Either the plugin "
		    "mounted nothing, or outside its "
		    "stage_publish_base_dir, or without propagation, so that the mount stayed in "
		    "the plugin's own namespace",
		    v->volume, v->plugin,
		    r == -ENOENT ? "the path does not exist on the host"
				 : "on the host the path is no mount point");
	return r < 0 ? err_set(e, r, "volume %s of plugin %s: ask the mounted file system",
			   v->volume, v->plugin)
		     : 0;
}

static void
on_proved(void *state, const struct worker *w, struct worker_result *res)
{
	MntVolumeProveRep rep = MNT_VOLUME_PROVE_REP__INIT;
	MountProof proof = MOUNT_PROOF__INIT;

	proof.mnt_id = res->proof.mnt_id;
	proof.mnt_id_unique = res->proof.mnt_id_unique;
	proof.dev_major = res->proof.dev_major;
	proof.dev_minor = res->proof.dev_minor;
	proof.ino = res->proof.ino;
	proof.btime_sec = res->proof.btime_sec;
	proof.btime_nsec = res->proof.btime_nsec;
	proof.fs_type = res->proof.fs_type;
	proof.fs_id = res->proof.fs_id;
	proof.fs_flags = res->proof.fs_flags;
	rep.proof = &proof;
	CRASH_POINT(MNT_AFTER_PROOF);
	(void)proc_answer(&mnt_spec, w->type, w->serial, 0, &rep.base, -1, &res->e, &res->e);
}

int
mnt_on_volume_prove(
    void *state, const struct ipc_packet *p, ProtobufCMessage *rep, int *ret_fd, struct err *e)
{
	struct mnt *m = state;
	const MntVolumeProveReq *req = (const MntVolumeProveReq *)(const void *)p->msg;
	cleanup_close int root = -1, parent = -1;
	struct place v;
	char what[96];
	int r;

	if ((r = open_place(m, req->place, true, &v, &root, e)) < 0)
		return r;
	parent = walk(root, v.names, v.n_parents, false);
	if (parent < 0)
		return err_set(e, parent, "volume %s of plugin %s is not there: open its directory",
		    v.volume, v.plugin);
	(void)snprintf(what, sizeof what, "prove the mount of volume %.64s", v.volume);
	return worker_start(
	    &m->workers, p, PROVE_TIMEOUT_MS, &parent, 1, prove, &v, on_proved, what, e);
}

/* A plain attempt first; what is still busy is detached. Mounts can lie on each other. */
static int
unmount_leaf(int dir_fd, const struct place *v, struct err *e)
{
	char path[NAME_BYTES_MAX + 32];

	(void)snprintf(path, sizeof path, "/proc/self/fd/%d/%s", dir_fd, v->leaf);
	for (int i = 0; i < STACKED_MAX && is_mount_at(dir_fd, v->leaf) == 1; i++)
		if (umount2(path, UMOUNT_NOFOLLOW) < 0 &&
		    (errno != EBUSY || umount2(path, UMOUNT_NOFOLLOW | MNT_DETACH) < 0))
			return err_set(
			    e, -errno, "unmount volume %s of plugin %s", v->volume, v->plugin);
	return 0;
}

/* fd: the plugin's root. In a child when there is something to unmount, else in the helper. */
static int
remove_volume(int root_fd, const void *arg, struct worker_result *ret, struct err *e)
{
	const struct place *v = arg;
	cleanup_close int parent = walk(root_fd, v->names, v->n_parents, false);
	int r;

	if (parent < 0)
		return parent == -ENOENT
			   ? 0
			   : err_set(e, parent, "open the directory of volume %s", v->volume);
	ret->flag = is_mount_at(parent, v->leaf) == 1;
	if (ret->flag && v->unmount && (r = unmount_leaf(parent, v, e)) < 0)
		return r;
	/*
	 * Never what is inside: data in a directory that should be a mount point is for a human to
	 * look at.
	 */
	if (unlinkat(parent, v->leaf, AT_REMOVEDIR) < 0 && errno != ENOENT &&
	    (errno != ENOTDIR || unlinkat(parent, v->leaf, 0) < 0))
		return err_set(e, -errno, "remove %s of volume %s of plugin %s", v->leaf, v->volume,
		    v->plugin);
	for (size_t n = v->n_parents; n > 1; n--) {
		close_p(&parent);
		parent = walk(root_fd, v->names, n - 1, false);
		if (parent < 0 || unlinkat(parent, v->names[n - 1], AT_REMOVEDIR) < 0)
			break; /* another usage or volume is in it */
	}
	CRASH_POINT(MNT_AFTER_VOLUME_REMOVE);
	return 0;
}

static void
on_removed(void *state, const struct worker *w, struct worker_result *res)
{
	MntVolumeDirRemoveRep rep = MNT_VOLUME_DIR_REMOVE_REP__INIT;

	rep.was_mount = res->flag;
	(void)proc_answer(&mnt_spec, w->type, w->serial, 0, &rep.base, -1, &res->e, &res->e);
}

int
mnt_on_volume_dir_remove(
    void *state, const struct ipc_packet *p, ProtobufCMessage *rep, int *ret_fd, struct err *e)
{
	struct mnt *m = state;
	const MntVolumeDirRemoveReq *req = (const MntVolumeDirRemoveReq *)(const void *)p->msg;
	cleanup_close int root = -1, parent = -1;
	struct worker_result res = { .fd = -1 };
	struct place v;
	char what[96];
	int r;

	if ((r = open_place(m, req->place, false, &v, &root, e)) < 0)
		return r == -ENOENT ? 0 : r;
	v.unmount = req->unmount;
	parent = walk(root, v.names, v.n_parents, false);
	if (parent < 0 || is_mount_at(parent, v.leaf) != 1) {
		v.unmount = false; /* never here, even if there is something by now */
		return remove_volume(root, &v, &res, e);
	}
	if (!v.unmount)
		return err_say(e, -EBUSY, "volume %s of plugin %s is still mounted at %s", v.volume,
		    v.plugin, v.leaf);
	(void)snprintf(what, sizeof what, "unmount volume %.64s", v.volume);
	return worker_start(
	    &m->workers, p, UNMOUNT_TIMEOUT_MS, &root, 1, remove_volume, &v, on_removed, what, e);
}

/*
 * Removes name, and if it is a directory the directories in it, `depth` levels deep, that are
 * empty. What is no directory, a volume's place for a block device or a plugin's litter, goes at
 * any level. A mount point is -EBUSY, before what is mounted there is asked.
 */
static int
remove_empty(int dir_fd, const char *name, int depth)
{
	cleanup_dir DIR *d = NULL;
	const char *n;
	int r;

	if (unlinkat(dir_fd, name, AT_REMOVEDIR) == 0 ||
	    (errno == ENOTDIR && unlinkat(dir_fd, name, 0) == 0))
		return 0;
	if ((errno != ENOTEMPTY && errno != EEXIST) || depth == 0)
		return -errno;
	r = dir_open_at(dir_fd, name, &d);
	while (r >= 0 && (n = dir_next(d)))
		r = remove_empty(dirfd(d), n, depth - 1);
	return r < 0 ? r : unlinkat(dir_fd, name, AT_REMOVEDIR) == 0 ? 0 : -errno;
}

static int
remove_of_plugin(const struct mnt *m, const char *plugin, const char *alloc, struct err *e)
{
	static const char *const names[] = { "per-alloc" };
	cleanup_close int root = -1, parent = -1;
	int r = mnt_plugin_root_open(m, plugin, false, &root, e);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	parent = walk(root, names, 1, false);
	r = parent < 0 ? parent : remove_empty(parent, alloc, 2);
	if (r < 0 && r != -ENOENT)
		return err_set(e, r,
		    "remove csi/%s/per-alloc/%s: a volume of alloc %s is not unpublished", plugin,
		    alloc, alloc);
	return 0;
}

int
mnt_volume_alloc_remove(const struct mnt *m, const char *alloc, struct err *e)
{
	for (int kind = PLUGIN_KIND__PLUGIN_CONTROLLER; kind < MNT_KINDS; kind++) {
		char path[PLUGIN_PATH_SIZE];
		cleanup_dir DIR *d = NULL;
		const char *n;
		int r = dir_open_at(m->root_fds[MNT_PLACE_CSI], mnt_kind_names[kind], &d);

		if (r < 0 && r != -ENOENT)
			return err_set(e, r, "read csi/%s", mnt_kind_names[kind]);
		while (d && (n = dir_next(d))) {
			(void)snprintf(path, sizeof path, "%s/%s", mnt_kind_names[kind], n);
			if ((r = remove_of_plugin(m, path, alloc, e)) < 0)
				return r;
		}
	}
	return 0;
}
