// SPDX-License-Identifier: Apache-2.0
/* file_roots.c: opens the roots of all paths, and reads their file system's properties. Runs in:
 * file-helper. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/path.h"
#include "common/privs.h"
#include "common/project.h"
#include "file-helper/file.h"

/* The launcher made all roots with owner and mode. CSI_SOCK is a directory in CSI. */
static const struct root {
	enum file_root root;
	const char *name;
} roots[] = {
	{ FILE_ROOT_ALLOC, "alloc" },
	{ FILE_ROOT_LOGS, "logs" },
	{ FILE_ROOT_CSI, "csi" },
};

/* Clones the directory's mount, non-recursively and attached to no namespace. Mounts below it on
 * the host never appear in the clone, so only the data directory's own file system is accessed, and
 * ".." ends at its root. */
static int
open_alone(const char *name)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
					       MOUNT_ATTR_NOEXEC | MOUNT_ATTR_NOSYMFOLLOW,
		.propagation = MS_PRIVATE };
	cleanup_close int dir = fd_open_beneath(FD_DATA, name, O_PATH | O_DIRECTORY, 0);
	cleanup_close int tree =
	    dir < 0 ? -1 : open_tree(dir, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	int fd;

	if (dir < 0)
		return dir;
	if (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0)
		return -errno;
	fd = openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int
open_trash(struct file *f, enum file_root root, struct err *e)
{
	int r = dir_ensure_at(f->root_fds[root], ".trash", 0700, 0, 0, &f->trash_fds[root]);

	return r < 0 ? err_set(e, r, "make the .trash of root %d", (int)root) : 0;
}

int
file_roots_open(void *state, const struct proc_args *args, struct err *e)
{
	struct file *f = state;
	int *sock = &f->root_fds[FILE_ROOT_CSI_SOCK], r;

	(void)umask(0); /* each directory is made with its final mode, also by workers */
	f->args = args;
	for (size_t i = 0; i < ELEMENTSOF(roots); i++) {
		r = f->root_fds[roots[i].root] = open_alone(roots[i].name);
		if (r < 0)
			return err_set(e, r, "open %s/%s", args->data_dir, roots[i].name);
	}
	*sock = fd_open_beneath(f->root_fds[FILE_ROOT_CSI], "sock", O_RDONLY | O_DIRECTORY, 0);
	if (*sock < 0)
		return err_set(e, *sock, "open %s/csi/sock", args->data_dir);
	for (enum file_root root = FILE_ROOT_ALLOC; root <= FILE_ROOT_CSI_SOCK; root++)
		if ((r = open_trash(f, root, e)) < 0)
			return r;
	if ((r = file_staging_make(f, e)) < 0)
		return r;
	f->trash_fds[FILE_ROOT_CSI] = f->trash_fds[FILE_ROOT_CSI_SOCK];
	f->has_quota = project_is_enforced(f->root_fds[FILE_ROOT_ALLOC]);
	f->trash_full = true; /* leftovers of a previous file-helper */
	/* This descriptor belongs to the host's mounts and would lead out, so it is closed. */
	(void)close(FD_DATA);
	return privs_chroot(f->root_fds[FILE_ROOT_ALLOC], e);
}

int
file_on_disk_stat(struct file *f, const struct file_disk_stat_req *req,
    struct file_disk_stat_rep *rep, int *ret_fd, struct err *e)
{
	struct statfs fs;

	if (fstatfs(f->root_fds[FILE_ROOT_ALLOC], &fs) < 0)
		return err_set(e, -errno, "get the free space of the data directory");
	rep->total_bytes = (uint64_t)fs.f_blocks * (uint64_t)fs.f_frsize;
	rep->free_bytes = (uint64_t)fs.f_bavail * (uint64_t)fs.f_frsize;
	rep->total_inodes = (uint64_t)fs.f_files;
	rep->free_inodes = (uint64_t)fs.f_ffree;
	return 0;
}
