// SPDX-License-Identifier: Apache-2.0
/*
 * mnt_volume.c: proves the mount of a CSI volume. Runs in: mount-helper, as root, and in a child,
 * which asks the volume's file system.
 *
 * Everything lies below the plugin's root, where the plugin may write: it is opened without links
 * and never through a mount (fd_open_same_mount).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "common/cleanup.h"
#include "common/crash.h"
#include "common/fd.h"
#include "mount-helper/mnt.h"

#define PROVE_TIMEOUT_MS 5000

/* Runs in the child, because from here on the volume's own file system is accessed. fd: the
 * directory of the leaf. */
static int
prove(int fd, const void *arg, struct worker_result *ret, struct err *e)
{
	const struct csi_place *v = arg;
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
	return r < 0 ? err_set(e, r, "volume %s of plugin %s: stat the mounted file system",
			   v->volume, v->plugin)
		     : 0;
}

static void
on_proved(void *state, const struct worker *w, struct worker_result *res)
{
	const struct mnt_volume_prove_rep rep = { .proof = res->proof };

	CRASH_POINT(MNT_AFTER_PROOF);
	(void)proc_answer(&mnt_spec, w->type, w->serial, 0, &rep, -1, &res->e, &res->e);
}

int
mnt_on_volume_prove(struct mnt *m, const struct mnt_volume_prove_req *req,
    struct mnt_volume_prove_rep *rep, int *ret_fd, struct err *e)
{
	cleanup_close int root = -1, parent = -1;
	struct csi_place v;
	char what[96];
	int r;

	if ((r = csi_place_read(&req->place, &v, e)) < 0 ||
	    (r = mnt_plugin_root_open(m, v.root, &root, e)) < 0)
		return r;
	if (r == 0)
		return err_say(e, -ENOTCONN,
		    "csi/%s is not a mount point of its own: the plugin has not been started since "
		    "the last boot",
		    v.root);
	parent = fd_open_same_mount(root, v.dir, O_PATH | O_DIRECTORY);
	if (parent < 0)
		return err_set(e, parent, "volume %s of plugin %s is not there: open its directory",
		    v.volume, v.plugin);
	(void)snprintf(what, sizeof what, "prove the mount of volume %.64s", v.volume);
	return worker_start(&m->workers, m->workers.request, PROVE_TIMEOUT_MS, &parent, 1, prove,
	    &v, on_proved, what, e);
}
