// SPDX-License-Identifier: Apache-2.0
/*
 * mnt_volume.c: proves and unmounts the mount of a CSI volume. Runs in: mount-helper, as root, and
 * in a child, which asks the volume's file system.
 *
 * Everything lies below the plugin's root, where the plugin may write: it is opened without links
 * and never through a mount (fd_open_same_mount).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>

#include "common/cleanup.h"
#include "common/crash.h"
#include "common/fd.h"
#include "common/mountinfo.h"
#include "mount-helper/mnt.h"

#define TIMEOUT_MS  5000
#define STACKED_MAX 16 /* mounts on one leaf that are unmounted by one request */

struct proving {
	struct csi_place v;
	bool block;
};

/* Runs in the child, because from here on the volume's own file system is accessed. fd: the
 * directory of the leaf. */
static int
prove(int fd, const void *arg, struct worker_result *ret, struct err *e)
{
	const struct proving *p = arg;
	const struct csi_place *v = &p->v;
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
				 : "on the host the path is not a mount point");
	if (r < 0)
		return err_set(e, r, "volume %s of plugin %s: stat the mounted file system",
		    v->volume, v->plugin);
	return ret->proof.is_block == p->block
		   ? 0
		   : err_say(e, -EINVAL,
			 p->block ? "volume %s: it is to be a block device, and plugin %s "
				    "published something else"
				  : "volume %s: it is to be a file system, and plugin %s "
				    "published a block device",
			 v->volume, v->plugin);
}

static void
on_proved(void *state, const struct worker *w, struct worker_result *res)
{
	const struct mnt_volume_prove_rep rep = { .proof = res->proof };

	CRASH_POINT(MNT_AFTER_PROOF);
	(void)proc_answer(&mnt_spec, w->type, w->serial, 0, &rep, -1, &res->e, &res->e);
}

/* Returns the directory of the leaf, or a negative errno. *ret_root: whether the plugin's root is a
 * mount point; unchanged if it could not be opened. */
static int
open_parent(const struct mnt *m, const struct csi_place *v, bool *ret_root, struct err *e)
{
	cleanup_close int root = -1;
	int r = mnt_plugin_root_open(m, v->root, &root, e);

	if (r < 0)
		return r;
	*ret_root = r == 1;
	r = fd_open_same_mount(root, v->dir, O_PATH | O_DIRECTORY);
	return r < 0 ? err_set(e, r, "volume %s of plugin %s is not there: open its directory",
			   v->volume, v->plugin)
		     : r;
}

int
mnt_on_volume_prove(struct mnt *m, const struct mnt_volume_prove_req *req,
    struct mnt_volume_prove_rep *rep, int *ret_fd, struct err *e)
{
	cleanup_close int parent = -1;
	struct proving p = { .block = req->block };
	bool has_root = true;
	char what[96];
	int r = csi_place_read(&req->place, &p.v, e);

	if (r < 0)
		return r;
	parent = open_parent(m, &p.v, &has_root, e);
	if (!has_root)
		return err_say(e, -ENOTCONN,
		    "csi/%s is not a mount point of its own: the plugin has not been started since "
		    "the last boot",
		    p.v.root);
	if (parent < 0)
		return parent;
	(void)snprintf(what, sizeof what, "prove the mount of volume %.64s", p.v.volume);
	return worker_start(
	    &m->workers, m->workers.request, TIMEOUT_MS, &parent, 1, prove, &p, on_proved, what, e);
}

struct unmounting {
	const struct mnt_volume_unmount_req *req;
	struct csi_place v;
	char at[CSI_ROOT_SIZE + CSI_DIR_SIZE + NAME_BYTES_MAX + 8]; /* "csi/node/p/staging/v/rw/" */
};

/* Returns 1 if the uppermost mount of the leaf may be unmounted, 0 if there is none. Under the
 * recorded mount may be others of the same volume, with ids of their own. */
static int
check_leaf(int dir, const struct unmounting *u, bool is_first, struct err *e)
{
	struct mount_proof promised = u->req->proof, found;
	cleanup_close int leaf = fd_open_beneath(dir, u->v.leaf, O_PATH, 0);
	int r = leaf < 0 ? leaf : mount_identity_take(leaf, &found);

	if (r == 0 || r == -ENOENT || r == -ENODEV)
		return 0;
	if (r < 0)
		return err_set(e, r, "volume %s of plugin %s: stat what is mounted at %s",
		    u->v.volume, u->v.plugin, u->at);
	if (!is_first)
		promised.mnt_id = found.mnt_id;
	if (u->req->has_proof && mount_identity_compare(&promised, &found) != EXE_PROOF_NONE)
		return err_say(e, -ESTALE,
		    "volume %s of plugin %s: what is mounted at %s is not the recorded mount; it "
		    "stays until someone unmounts it",
		    u->v.volume, u->v.plugin, u->at);
	return 1;
}

/* Detaching a mount would also detach what others mounted in it. Lines of mountinfo are searched
 * for the leaf's path, which has no byte that is escaped there; one found in another field, or of
 * another agent, only prevents the detachment. */
static int
refuse_inner(const struct unmounting *u, struct err *e)
{
	cleanup_free char *text = NULL;
	int r = mountinfo_read(&text);

	if (r < 0)
		return err_set(e, r, "read the mounts of this machine");
	return strstr(text, u->at)
		   ? err_say(e, -EBUSY,
			 "volume %s of plugin %s cannot be unmounted: something is mounted in it",
			 u->v.volume, u->v.plugin)
		   : 0;
}

static int
unmount_leaf(const struct unmounting *u, bool *ret_detached, struct err *e)
{
	char path[64 + NAME_BYTES_MAX];
	int r;

	(void)snprintf(path, sizeof path, "/proc/self/fd/%d/%s", WORKER_FIRST_FD, u->v.leaf);
	if (umount2(path, UMOUNT_NOFOLLOW) == 0)
		return 0;
	if (errno != EBUSY)
		return err_set(e, -errno, "unmount %s", u->at);
	if (!u->req->detach)
		return err_say(e, -EBUSY,
		    "volume %s of plugin %s cannot be unmounted from %s: a process uses it, or "
		    "something is mounted in it",
		    u->v.volume, u->v.plugin, u->at);
	if ((r = refuse_inner(u, e)) < 0)
		return r;
	if (umount2(path, UMOUNT_NOFOLLOW | MNT_DETACH) < 0)
		return err_set(e, -errno, "detach %s", u->at);
	*ret_detached = true;
	return 0;
}

/* Runs in the child: looking up the leaf can ask its file system, and the last unmount writes what
 * is left of it. Nothing but a mount on the leaf itself can be unmounted, whatever the plugin does
 * meanwhile: its directory is held by descriptor, and the leaf is not followed. */
static int
unmount(int fd, const void *arg, struct worker_result *ret, struct err *e)
{
	const struct unmounting *u = arg;
	int n = 0, r;

	for (; n < STACKED_MAX; n++) {
		r = check_leaf(fd, u, n == 0, e);
		if (r == 0)
			break;
		if (r < 0 || (r = unmount_leaf(u, &ret->flag, e)) < 0)
			return r;
	}
	return n;
}

static void
on_unmounted(void *state, const struct worker *w, struct worker_result *res)
{
	const struct mnt_volume_unmount_rep rep = { .unmounted = (uint32_t)res->r,
		.detached = res->flag };

	(void)proc_answer(&mnt_spec, w->type, w->serial, 0, &rep, -1, &res->e, &res->e);
}

int
mnt_on_volume_unmount(struct mnt *m, const struct mnt_volume_unmount_req *req,
    struct mnt_volume_unmount_rep *rep, int *ret_fd, struct err *e)
{
	struct unmounting u = { .req = req };
	cleanup_close int parent = -1;
	bool has_root;
	char what[96];
	int r = csi_place_read(&req->place, &u.v, e);

	if (r < 0)
		return r;
	parent = open_parent(m, &u.v, &has_root, e);
	if (parent < 0)
		return parent == -ENOENT ? 0 : parent;
	(void)snprintf(u.at, sizeof u.at, "csi/%s/%s/%s/", u.v.root, u.v.dir, u.v.leaf);
	(void)snprintf(what, sizeof what, "unmount volume %.64s", u.v.volume);
	return worker_start(&m->workers, m->workers.request, TIMEOUT_MS, &parent, 1, unmount, &u,
	    on_unmounted, what, e);
}
