// SPDX-License-Identifier: Apache-2.0
/* exe_mounts.c: makes the mount namespace of one exec task. Sources are opened below the roots that
 * exec-helper opened and cloned, and the clones are attached in a copy of the template, so that the
 * checked object is the one that is used. Runs in: executor, as root. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/path.h"
#include "executor/exe_start.h"
#include "executor/exe_tree.h"
#include "proto/container_ids.h"

enum { OWN_ROOT, OWN_ALLOC, OWN_LOCAL, OWN_TMP, OWN_LOGS, OWN_DEV, OWN_CGROUP, OWN_TREES };

static int trees[OWN_TREES + EXE_MOUNTS_MAX];

/* A plugin that mounts block devices needs the host's /dev, where nodes come and go. Returns a
 * descriptor or -errno. */
int
exe_dev_clone(void)
{
	cleanup_close int tree =
	    open_tree(AT_FDCWD, "/dev", (TREE_FLAGS | AT_RECURSIVE) & ~AT_EMPTY_PATH);
	int r = tree < 0 ? -errno : exe_tree_set(tree, MOUNT_ATTR_NOSUID, true, -1);

	return r < 0 ? r : steal_fd(&tree);
}

/* Mounts of every exec task. The detail of a failure is their index plus 1000. */
static int
clone_own(struct exe *x)
{
	const struct exe_setup *s = x->setup;
	bool host_dev = s->csi_plugin && (s->caps & CAP_BIT(SYS_ADMIN));
	char path[EXE_PATH_SIZE];

	(void)snprintf(path, sizeof path, "%s/alloc", s->alloc_name);
	trees[OWN_ROOT] = exe_tree_clone(x->task_dir, PLAIN, -1);
	trees[OWN_ALLOC] = exe_tree_clone_below(EXE_FD_ALLOC, path, PLAIN, -1);
	trees[OWN_LOCAL] = exe_tree_clone_below(x->task_dir, "local", PLAIN, -1);
	trees[OWN_TMP] = exe_tree_clone_below(x->task_dir, "tmp", PLAIN, -1);
	trees[OWN_LOGS] = exe_tree_clone(EXE_FD_LOGS, PLAIN | MOUNT_ATTR_RDONLY, -1);
	trees[OWN_DEV] = host_dev ? exe_dev_clone() : -1;
	if (host_dev && trees[OWN_DEV] < 0)
		return exe_failed(x, EXE_STEP_MOUNT, -trees[OWN_DEV], 1000 + OWN_DEV);
	for (uint32_t i = 0; i < OWN_DEV; i++)
		if (trees[i] < 0)
			return exe_failed(x, EXE_STEP_MOUNT, -trees[i], 1000 + i);
	return 0;
}

/* On a file system that cannot map ids, the users of a container are other users. */
static int
set_volume(struct exe *x, uint32_t i, int tree, bool recursive, int ids)
{
	uint64_t flags = PLAIN | (x->setup->mounts[i].read_only ? MOUNT_ATTR_RDONLY : 0);
	int r = exe_tree_set(tree, flags, recursive, ids);

	if (r != -EINVAL || ids < 0)
		return r;
	x->unmapped |= 1u << i;
	return exe_tree_set(tree, flags, recursive, -1);
}

static int
proof_failed(struct exe *x, enum exe_proof proof, int error, uint32_t i)
{
	return exe_failed(x, EXE_STEP_PROOF, error, (uint32_t)proof << 16 | i);
}

/* The task starts only if the volume is the mount that was recorded after its publish. A clone of
 * the proven descriptor is attached; the clone is proven too, except for its mount id, which is
 * new. Of a block device only the number is used (attach_node). */
static int
clone_csi(struct exe *x, uint32_t i, int ids)
{
	const struct exe_setup_mount *m = &x->setup->mounts[i];
	struct mount_proof promised = m->proof, found;
	int kind = promised.is_block ? 0 : O_DIRECTORY;
	cleanup_close int fd = fd_open_beneath(EXE_FD_CSI, m->path, O_PATH | kind, 0), tree = -1;
	enum exe_proof differs;
	int r;

	if (fd < 0)
		return proof_failed(x, EXE_PROOF_OPEN, -fd, i);
	r = mount_proof_take(fd, &found);
	if (r < 0)
		return proof_failed(x, r == -ENODEV ? EXE_PROOF_MOUNT_ROOT : EXE_PROOF_FS, -r, i);
	if ((differs = mount_proof_compare(&promised, &found)) != EXE_PROOF_NONE)
		return proof_failed(x, differs, ESTALE, i);
	trees[OWN_TREES + i] = -1;
	if (promised.is_block)
		return 0;
	tree = open_tree(fd, "", TREE_FLAGS);
	if (tree < 0 || (r = mount_proof_take(tree, &found)) < 0)
		return proof_failed(x, EXE_PROOF_MOUNT_ROOT, tree < 0 ? errno : -r, i);
	promised.mnt_id = found.mnt_id;
	if ((differs = mount_proof_compare(&promised, &found)) != EXE_PROOF_NONE)
		return proof_failed(x, differs, ESTALE, i);
	r = set_volume(x, i, tree, false, ids);
	if (r < 0)
		return exe_failed(x, EXE_STEP_MOUNT, -r, i);
	/* If this open fails, the sync after a lease stop fails and reports it. */
	if (!m->read_only)
		x->syncs[x->n_syncs++] = openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	trees[OWN_TREES + i] = steal_fd(&tree);
	return 0;
}

/* The plugin's directories stay in their peer group, so that its mounts appear on the host. Those
 * of a container with a user namespace do not: nothing that it mounts may. */
static int
clone_shared(struct exe *x, uint32_t i, int ids)
{
	cleanup_close int fd =
	    fd_open_beneath(EXE_FD_CSI, x->setup->mounts[i].path, O_PATH | O_DIRECTORY, 0);

	if (fd < 0)
		return exe_failed(x, EXE_STEP_MOUNT, -fd, i);
	trees[OWN_TREES + i] = ids < 0 ? open_tree(fd, "", TREE_FLAGS | AT_RECURSIVE)
				       : exe_tree_clone(fd, PLAIN | MOUNT_ATTR_NOEXEC, ids);
	return trees[OWN_TREES + i] < 0 ? exe_failed(x, EXE_STEP_MOUNT, errno, i) : 0;
}

static int
open_or_make_dir(int dir, const char *name)
{
	int fd = fd_open_beneath(dir, name, O_PATH | O_DIRECTORY, 0);

	if (fd == -ENOENT && mkdirat(dir, name, 0755) < 0 && errno != EEXIST)
		return -errno;
	return fd == -ENOENT ? fd_open_beneath(dir, name, O_PATH | O_DIRECTORY, 0) : fd;
}

/* Opens path below root and makes missing directories. Each component is opened separately and must
 * not be a link, because a task may own the parent directories. */
static int
open_dest(int root, const char *path)
{
	int dir = fcntl(root, F_DUPFD_CLOEXEC, 0);

	return dir < 0 ? -errno : path_walk(dir, path, open_or_make_dir);
}

/* Opens name in dir, unless dir is closed to others: root could search it, users of the container
 * cannot. */
static int
open_as_other(int dir, const char *name)
{
	struct stat st;

	if (fstat(dir, &st) < 0)
		return -errno;
	return st.st_mode & S_IXOTH ? fd_open_beneath(dir, name, O_PATH, 0) : -EACCES;
}

/* Opens a part of a host volume. Tasks may write there, so nothing on the way may be a link. What
 * is missing is made if the task may write it, as Docker does. */
static int
open_host(int volume, const struct exe_setup_mount *m)
{
	int fd;

	if (!m->own_ids)
		return path_walk(fcntl(volume, F_DUPFD_CLOEXEC, 0), m->path, open_as_other);
	fd = fd_open_beneath(volume, m->path[0] ? m->path : ".", O_PATH, 0);
	return fd == -ENOENT && !m->read_only ? open_dest(volume, m->path) : fd;
}

static int
clone_host(struct exe *x, uint32_t i, int fd, int ids)
{
	cleanup_close int at = open_host(fd, &x->setup->mounts[i]);
	cleanup_close int tree = at < 0 ? -1 : open_tree(at, "", TREE_FLAGS | AT_RECURSIVE);
	int r = at < 0 ? at : tree < 0 ? -errno : set_volume(x, i, tree, true, ids);

	if (r < 0)
		return exe_failed(x, EXE_STEP_MOUNT, -r, i);
	(void)close(fd);
	trees[OWN_TREES + i] = steal_fd(&tree);
	return 0;
}

/* A clone of the node alone, to which no link leads. It is read-only, so that owner and mode stay
 * the machine's; a device can still be written to. */
static int
clone_device(struct exe *x, uint32_t i)
{
	const uint64_t flags = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;
	cleanup_close int dev = open("/dev", O_PATH | O_DIRECTORY | O_CLOEXEC);
	cleanup_close int fd = fd_open_beneath(dev, x->setup->mounts[i].path, O_PATH, 0);
	struct stat st;
	int r = fd < 0 ? fd : fstat(fd, &st) < 0 ? -errno : 0;

	if (r == 0 && !S_ISCHR(st.st_mode) && !S_ISBLK(st.st_mode))
		r = -ENODEV;
	if (r == 0)
		r = trees[OWN_TREES + i] = exe_tree_clone(fd, flags, -1);
	return r < 0 ? exe_failed(x, EXE_STEP_MOUNT, -r, i) : 0;
}

int
exe_volume_tree(uint32_t i)
{
	return trees[OWN_TREES + i];
}

int
exe_volumes_clone(struct exe *x, int ids, int dir_ids)
{
	int r = 0, volume = EXE_FD_VOLUMES;

	for (uint32_t i = 0; i < x->setup->n_mounts && r == 0; i++) {
		switch (x->setup->mounts[i].kind) {
		case EXE_MOUNT_CSI:
			r = clone_csi(x, i, ids);
			break;
		case EXE_MOUNT_SHARED:
			r = clone_shared(x, i, dir_ids);
			break;
		case EXE_MOUNT_DEVICE:
			r = clone_device(x, i);
			break;
		default:
			r = clone_host(x, i, volume++, x->setup->mounts[i].own_ids ? ids : -1);
		}
	}
	return r;
}

/* Masks the parts of /proc that concern more than the task. Entries that this kernel does not have
 * are skipped. */
static int
mask_proc(void)
{
	static const char *const covered[] = { "/proc/kcore", "/proc/keys", "/proc/sysrq-trigger",
		"/proc/timer_list" };
	static const char *const read_only[] = { "/proc/acpi", "/proc/bus", "/proc/fs", "/proc/irq",
		"/proc/scsi", "/proc/sys" };
	int r = 0;

	for (size_t i = 0; i < ELEMENTSOF(covered) && (r == 0 || r == -ENOENT); i++) {
		cleanup_close int tree =
		    open_tree(AT_FDCWD, "/dev/null", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

		r = tree < 0 ? -errno : exe_tree_attach(tree, AT_FDCWD, covered[i]);
	}
	for (size_t i = 0; i < ELEMENTSOF(read_only) && (r == 0 || r == -ENOENT); i++) {
		cleanup_close int tree =
		    open_tree(AT_FDCWD, read_only[i], OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

		r = tree < 0 ? -errno
			     : exe_tree_set(
				   tree, PLAIN | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY, false, -1);
		if (r == 0)
			r = exe_tree_attach(tree, AT_FDCWD, read_only[i]);
	}
	return r == -ENOENT ? 0 : r;
}

static int
attach_kernel_fs(struct exe *x)
{
	/* In the host's pid namespace other users' processes exist; hidepid=invisible would still
	 * show them to group 0. In a private namespace, root of a task sees processes that it
	 * started as other users. */
	const char *const hide[] = { "hidepid", x->setup->pid_host ? "ptraceable" : "invisible",
		NULL };
	static const char *const pts[] = { "mode", "0620", "gid", "5", "ptmxmode", "0666", NULL };
	static const char *const shm[] = { "mode", "1777", "size", "64m", NULL };
	int r = exe_fs_attach("proc", hide, PLAIN | MOUNT_ATTR_NOEXEC, AT_FDCWD, "/proc");

	if (r == 0)
		r = mask_proc();
	if (r == 0 && trees[OWN_DEV] < 0)
		r = exe_fs_attach(
		    "devpts", pts, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, AT_FDCWD, "/dev/pts");
	if (r == 0 && trees[OWN_DEV] < 0)
		r = exe_fs_attach("tmpfs", shm, PLAIN, AT_FDCWD, "/dev/shm");
	if (r == 0 && trees[OWN_DEV] >= 0)
		r = exe_tree_attach(trees[OWN_DEV], AT_FDCWD, "/dev");
	if (trees[OWN_CGROUP] >= 0)
		(void)exe_tree_attach(trees[OWN_CGROUP], AT_FDCWD, "/sys/fs/cgroup");
	return r < 0 ? exe_failed(x, EXE_STEP_NAMESPACE, -r, 1) : 0;
}

/* In the task's /dev nobody can change the node's mode. */
int
exe_null_take(struct exe *x)
{
	cleanup_close int fd = open("/dev/null", O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (fd < 0 || dup2(fd, 0) < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
		return exe_failed(x, EXE_STEP_NAMESPACE, errno, 4);
	return 0;
}

/* Makes a mount point in the task's root. The task may have put anything there in an earlier run.
 */
static int
make_point(int root, const char *name, bool is_dir)
{
	struct stat st;

	if (fstatat(root, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (S_ISDIR(st.st_mode) == is_dir && !S_ISLNK(st.st_mode))
			return 0;
		if (unlinkat(root, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) < 0)
			return -errno;
	}
	return (is_dir ? mkdirat(root, name, 0755) : mknodat(root, name, S_IFREG | 0444, 0)) < 0
		   ? -errno
		   : 0;
}

static int
put_link(int root, const char *name, const char *target)
{
	char found[PATH_MAX];
	ssize_t n = readlinkat(root, name, found, sizeof found);

	if (n == (ssize_t)strlen(target) && memcmp(found, target, (size_t)n) == 0)
		return 0;
	n = make_point(root, name, false);
	if (n < 0 || unlinkat(root, name, 0) < 0 || symlinkat(target, root, name) < 0)
		return n < 0 ? (int)n : -errno;
	return 0;
}

/* Moves a mount of the template, with all below it, to the task's root. A directory of the
 * template that only leads to mounts is no mount itself, so it is cloned. */
static int
put_mount(int from, int root, const char *name, bool is_dir)
{
	cleanup_close int tree = -1;
	int r = make_point(root, name, is_dir);

	if (r < 0 || move_mount(from, name, root, name, 0) == 0)
		return r;
	if (errno != EINVAL)
		return -errno;
	tree = open_tree(from, name, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	return tree < 0 ? -errno : exe_tree_attach(tree, root, name);
}

/* Puts all entries of the template's root into the task's own. */
static int
fill_root(int root)
{
	cleanup_dir DIR *d = opendir("/");
	struct dirent *entry;
	int r = d ? 0 : -errno;

	while (r == 0 && (entry = readdir(d))) {
		const char *name = entry->d_name;
		char link[PATH_MAX] = "";

		/* The masks are already in place. */
		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
		    strncmp(name, ".mask", 5) == 0)
			continue;
		if (readlinkat(dirfd(d), name, link, sizeof link - 1) >= 0)
			r = put_link(root, name, link);
		else
			r = put_mount(dirfd(d), root, name, entry->d_type == DT_DIR);
	}
	return r;
}

/* Makes the task's directory its root. It is mounted at /.mask meanwhile. */
static int
enter_root(struct exe *x)
{
	static const char *const points[] = { "alloc", "secrets", "proc" };
	int root = trees[OWN_ROOT], r = exe_tree_attach(root, AT_FDCWD, "/.mask");

	if (r == 0)
		r = fill_root(root);
	for (size_t i = 0; i < ELEMENTSOF(points) && r == 0; i++)
		r = make_point(root, points[i], true);
	if (r == 0 && (fchdir(root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
			  umount2(".", MNT_DETACH) < 0))
		r = -errno;
	return r < 0 ? exe_failed(x, EXE_STEP_NAMESPACE, -r, 2) : 0;
}

static int
attach_own(struct exe *x, int root)
{
	/* Its own directories are mounts too, so the task cannot replace them. */
	static const char *const names[] = {
		[OWN_ALLOC] = "alloc",
		[OWN_LOCAL] = "local",
		[OWN_TMP] = "tmp",
	};
	cleanup_close int logs = -1;
	int r = 0;

	for (uint32_t i = OWN_ALLOC; i < ELEMENTSOF(names); i++)
		if ((r = exe_tree_attach(trees[i], root, names[i])) < 0)
			return exe_failed(x, EXE_STEP_MOUNT, -r, 1000 + i);
	logs = open_dest(root, "alloc/logs");
	r = logs < 0 ? logs : exe_tree_attach(trees[OWN_LOGS], logs, "");
	return r < 0 ? exe_failed(x, EXE_STEP_MOUNT, -r, 1000 + OWN_LOGS) : 0;
}

/* Returns a read-only mount of the file `v` of a new file system, which is not attached yet. */
static int
clone_file(int fs, uint64_t flags)
{
	/* Kernels before 6.15 clone only from a mount that is attached. */
	int r = exe_tree_attach(fs, AT_FDCWD, "/alloc");
	cleanup_close int tree = -1;

	if (r < 0)
		return r;
	tree = open_tree(AT_FDCWD, "/alloc/v", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	r = tree < 0 ? -errno : 0;
	if (umount2("/alloc", MNT_DETACH) < 0 && r == 0)
		r = -errno;
	if (r == 0)
		r = exe_tree_set(tree, flags | MOUNT_ATTR_RDONLY, false, -1);
	return r < 0 ? r : steal_fd(&tree);
}

/* Makes the node of a block device on a file system of its own, which only the task's namespace
 * has. It is the task's user's, because the plugin's may be root's; without the right to write if
 * the volume is read-only, because writing to a device does not depend on its mount. The mount is
 * read-only, so that the user cannot change the mode. */
static int
make_node(const struct exe *x, const struct exe_setup_mount *m)
{
	static const char *const options[] = { "size", "4k", "nr_inodes", "2", NULL };
	const dev_t dev = makedev(m->proof.rdev_major, m->proof.rdev_minor);
	cleanup_close int fs = exe_fs_new("tmpfs", options, 0);
	int r = fs;

	if (fs >= 0 && (mknodat(fs, "v", S_IFBLK | (m->read_only ? 0400 : 0600), dev) < 0 ||
			   fchownat(fs, "v", x->setup->user.uid, x->setup->user.gid, 0) < 0))
		r = -errno;
	return r < 0 ? r : clone_file(fs, MOUNT_ATTR_NOSUID);
}

/* The task's child writes it, with what the job says. The mount is read-only, and the file small.
 */
static int
mount_resolv_conf(struct exe *x, int root)
{
	static const char *const options[] = { "size", "128k", "nr_inodes", "2", NULL };
	cleanup_close int at = fd_open_in_root(root, "/etc/resolv.conf", O_PATH), fs = -1,
			  tree = -1;
	int r;

	if (at < 0)
		return exe_failed(x, EXE_STEP_RESOLV_CONF, -at, 0);
	fs = exe_fs_new("tmpfs", options, 0);
	x->resolv_conf = fs < 0 ? fs : openat(fs, "v", O_WRONLY | O_CREAT | O_CLOEXEC, 0444);
	if (x->resolv_conf < 0)
		return exe_failed(x, EXE_STEP_RESOLV_CONF, fs < 0 ? -fs : errno, 0);
	tree = clone_file(fs, PLAIN | MOUNT_ATTR_NOEXEC);
	r = tree < 0 ? tree : exe_tree_attach(tree, at, "");
	return r < 0 ? exe_failed(x, EXE_STEP_RESOLV_CONF, -r, 0) : 0;
}

/* A block device is mounted on a file. */
static int
attach_node(const struct exe *x, int root, const struct exe_setup_mount *m)
{
	const char *name = strrchr(m->dest, '/') + 1;
	char parent[EXE_PATH_SIZE] = "";
	cleanup_close int at = -1, tree = -1;
	int r;

	memcpy(parent, m->dest, (size_t)(name - m->dest));
	if (*name == '\0' || (at = open_dest(root, parent)) < 0)
		return *name ? at : -EISDIR;
	if ((r = make_point(at, name, false)) < 0)
		return r;
	tree = make_node(x, m);
	return tree < 0 ? tree : exe_tree_attach(tree, at, name);
}

static int
attach_volumes(struct exe *x, int root)
{
	for (uint32_t i = 0; i < x->setup->n_mounts; i++) {
		const struct exe_setup_mount *m = &x->setup->mounts[i];
		bool node = m->kind == EXE_MOUNT_CSI && m->proof.is_block,
		     valid = m->dest[strspn(m->dest, "/")];
		cleanup_close int at = node || !valid ? -EINVAL : open_dest(root, m->dest);
		int r = node && valid ? attach_node(x, root, m)
			: at < 0      ? at
				      : exe_tree_attach(trees[OWN_TREES + i], at, "");

		if (r < 0)
			return exe_failed(x, EXE_STEP_MOUNT, -r, i);
	}
	return 0;
}

int
exe_mounts_make(struct exe *x)
{
	int r = clone_own(x);

	/* Programs such as a JVM read their limits there. A failure does not prevent the start. */
	trees[OWN_CGROUP] = exe_tree_clone(EXE_FD_CGROUP, PLAIN | MOUNT_ATTR_RDONLY, -1);
	if (r < 0 || (r = exe_volumes_clone(x, -1, -1)) < 0)
		return r;
	r = exe_sandbox_enter(x);
	if (r < 0)
		return exe_failed(x, EXE_STEP_NAMESPACE, -r, 0);
	if ((r = enter_root(x)) < 0 || (r = attach_own(x, trees[OWN_ROOT])) < 0 ||
	    (r = exe_secrets_mount(x)) < 0 || (r = attach_kernel_fs(x)) < 0 ||
	    (r = exe_null_take(x)) < 0 ||
	    (x->setup->own_resolv_conf && (r = mount_resolv_conf(x, trees[OWN_ROOT])) < 0) ||
	    (r = attach_volumes(x, trees[OWN_ROOT])) < 0)
		return r;
	for (uint32_t i = 0; i < OWN_TREES + x->setup->n_mounts; i++)
		close_p(&trees[i]);
	return 0;
}

int
exe_plugin_dirs_give(struct exe *x)
{
	const struct exe_user *u = &x->setup->user;
	bool mapped = x->container && !x->setup->privileged;

	for (uint32_t i = 0; i < x->setup->n_mounts; i++) {
		const struct exe_setup_mount *m = &x->setup->mounts[i];
		cleanup_close int dir =
		    m->give ? fd_open_beneath(EXE_FD_CSI, m->path, O_RDONLY | O_DIRECTORY, 0) : -1;

		if (m->give && (dir < 0 || fchown(dir, mapped ? CONTAINER_ID_FILES : u->uid,
					       mapped ? CONTAINER_ID_FILES : u->gid) < 0))
			return exe_failed(x, EXE_STEP_MOUNT, dir < 0 ? -dir : errno, i);
	}
	return 0;
}
