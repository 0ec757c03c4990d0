// SPDX-License-Identifier: Apache-2.0
/* exec_template.c: the mount namespace that executors of exec tasks copy: a small read-only root
 * with the directories of chroot_env, a /dev of six nodes, and the masks. Each executor moves them
 * into its task's own root. Copying the host's
 * namespace instead would make each start slower with each mount of the host. Runs in: exec-helper:
 * the template is made before its drop, exec_template_is_whole() runs at each start, after it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "exec-helper/exec.h"

#define TREE_FLAGS (OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH)
#define READ_ONLY  (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)
/* Device nodes are mounted read-only, so owner and mode stay the host's; a device can still be
 * written to. */
#define NODE (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC)

static const char *const dev_dirs[] = { "dev/pts", "dev/shm" };
static const char *const nodes[] = { "/dev/null", "/dev/zero", "/dev/full", "/dev/random",
	"/dev/urandom", "/dev/tty" };
static const struct {
	const char *target, *name;
} links[] = {
	{ "/proc/self/fd", "dev/fd" },
	{ "/proc/self/fd/0", "dev/stdin" },
	{ "/proc/self/fd/1", "dev/stdout" },
	{ "/proc/self/fd/2", "dev/stderr" },
	{ "pts/ptmx", "dev/ptmx" },
};

/* Makes the parent directories of path, and with `last` its last component too. */
static int
make_way(int root, const char *path, bool last)
{
	char part[CONFIG_PATH_SIZE];

	for (const char *at = path;; at++) {
		at += strcspn(at, "/");
		if (*at == '\0' && !last)
			return 0;
		memcpy(part, path, (size_t)(at - path));
		part[at - path] = '\0';
		if (part[0] && mkdirat(root, part, 0755) < 0 && errno != EEXIST)
			return -errno;
		if (*at == '\0')
			return 0;
	}
}

/* Mounts fd's tree on path, which is made first. */
static int
bind_at(int root, int fd, const char *path, bool is_dir, uint64_t flags)
{
	struct mount_attr attr = { .attr_set = flags, .propagation = MS_PRIVATE };
	cleanup_close int tree = open_tree(fd, "", TREE_FLAGS | AT_RECURSIVE), file = -1;
	int r = tree < 0 ? -errno : make_way(root, path, is_dir);

	if (r < 0)
		return r;
	if (!is_dir) {
		file = openat(root, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0444);
		if (file < 0)
			return -errno;
	}
	if (mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof attr) < 0 ||
	    move_mount(tree, "", root, path, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return -errno;
	return 0;
}

/* A missing source is skipped; a link stays a link. */
static int
add_source(int root, const char *source, const char *target)
{
	cleanup_close int fd = open(source, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	char link[CONFIG_PATH_SIZE];
	struct stat st;
	ssize_t n;
	int r;

	target += strspn(target, "/");
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (*target == '\0' || fstat(fd, &st) < 0)
		return *target ? -errno : -EINVAL;
	if (!S_ISLNK(st.st_mode))
		return bind_at(root, fd, target, S_ISDIR(st.st_mode), READ_ONLY);
	n = readlinkat(fd, "", link, sizeof link - 1);
	if (n < 0)
		return -errno;
	link[n] = '\0';
	r = make_way(root, target, false);
	return r < 0 || symlinkat(link, root, target) == 0 || errno == EEXIST ? r : -errno;
}

static int
new_tmpfs(void)
{
	cleanup_close int fs = fsopen("tmpfs", FSOPEN_CLOEXEC);

	if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "mode", "0755", 0) < 0 ||
	    fsconfig(fs, FSCONFIG_SET_STRING, "size", "1m", 0) < 0 ||
	    fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -1;
	return fsmount(fs, FSMOUNT_CLOEXEC, 0);
}

/* /dev is a mount of its own, so that executors can move it. */
static int
add_dev(int root)
{
	struct mount_attr attr = { .attr_set = READ_ONLY };
	cleanup_close int dev = new_tmpfs();
	int r = dev < 0 ? -errno : make_way(root, "dev", true);

	if (r == 0 && move_mount(dev, "", root, "dev", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		r = -errno;
	for (size_t i = 0; i < ELEMENTSOF(dev_dirs) && r == 0; i++)
		r = make_way(root, dev_dirs[i], true);
	for (size_t i = 0; i < ELEMENTSOF(nodes) && r == 0; i++) {
		cleanup_close int fd = open(nodes[i], O_PATH | O_NOFOLLOW | O_CLOEXEC);

		r = fd < 0 ? -errno : bind_at(root, fd, nodes[i] + 1, false, NODE);
	}
	for (size_t i = 0; i < ELEMENTSOF(links) && r == 0; i++)
		r = symlinkat(links[i].target, root, links[i].name) < 0 ? -errno : 0;
	return r == 0 && mount_setattr(dev, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0 ? -errno : r;
}

static bool
is_absent(int r)
{
	return r == -ENOENT || r == -ENOTDIR || r == -ELOOP;
}

/* Covers the object that a path leads to inside a task with an empty directory or file that nobody
 * may read. A missing object needs no cover; exec_template_is_whole() notices when it appears. */
static int
add_mask(int root, const char *path)
{
	cleanup_close int at = fd_open_in_root(root, path, O_PATH), tree = -1;
	struct mount_attr attr = { .attr_set = READ_ONLY | MOUNT_ATTR_NOEXEC,
		.propagation = MS_PRIVATE };
	struct stat st;

	if (at < 0)
		return is_absent(at) ? 0 : at;
	if (fstat(at, &st) < 0)
		return -errno;
	tree = open_tree(root, S_ISDIR(st.st_mode) ? ".mask" : ".mask.file",
	    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0 ||
	    move_mount(tree, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return -errno;
	return 0;
}

/* Finds the path without links of the object at path on the host. Returns its length or -errno. */
static int
read_real_path(const char *path, int flags, char ret[PATH_MAX], struct stat *st)
{
	cleanup_close int fd = open(path, O_PATH | O_CLOEXEC | flags);
	char link[32];
	ssize_t n;

	if (fd < 0 || fstat(fd, st) < 0)
		return -errno;
	(void)snprintf(link, sizeof link, "self/fd/%d", fd);
	n = readlinkat(EXE_FD_PROC, link, ret, PATH_MAX - 1);
	if (n < 0)
		return -errno;
	ret[n] = '\0';
	return (int)n;
}

/* The host's objects behind the masks when the template was made; st_ino 0: none. */
static struct stat masked[CONFIG_MASKS_MAX];

/* Covers the host's file behind a mask wherever chroot_env shows it. A link on its path may be
 * outside of the tasks' view, where add_mask() does not find it. */
static int
add_host_mask(int root, const struct agent_policy *policy, const char *path, struct stat *ret)
{
	char real[PATH_MAX], source[PATH_MAX], inside[PATH_MAX + CONFIG_PATH_SIZE];
	int r = read_real_path(path, 0, real, ret);

	if (r < 0)
		return is_absent(r) ? 0 : r;
	r = 0;
	for (uint32_t i = 0; i < policy->n_chroot_env && r == 0; i++) {
		struct stat st;
		int len = read_real_path(policy->chroot_env[i].source, O_NOFOLLOW, source, &st);

		if (len < 0 || S_ISLNK(st.st_mode))
			continue;
		len = len == 1 ? 0 : len;
		if (strncmp(real, source, (size_t)len) != 0 || (real[len] && real[len] != '/'))
			continue;
		(void)snprintf(
		    inside, sizeof inside, "%s%s", policy->chroot_env[i].target, real + len);
		if (strcmp(inside, path) != 0)
			r = add_mask(root, inside);
	}
	return r;
}

/* Makes the empty file and the empty directory that add_mask() mounts over masked paths. */
static int
make_covers(int root)
{
	cleanup_close int file = openat(root, ".mask.file", O_WRONLY | O_CREAT | O_CLOEXEC, 0);

	return file < 0 || mkdirat(root, ".mask", 0) < 0 ? -errno : 0;
}

static int
add_masks(int root, const struct agent_policy *policy, struct err *e)
{
	int r = make_covers(root);

	if (r < 0)
		return err_set(e, r, "make the masks of exec tasks");
	for (uint32_t i = 0; i < policy->n_masks; i++) {
		r = add_mask(root, policy->masks[i]);
		if (r == 0)
			r = add_host_mask(root, policy, policy->masks[i], &masked[i]);
		if (r < 0)
			return err_set(e, r, "mask %s in the root of exec tasks", policy->masks[i]);
	}
	return 0;
}

/* Shows the host's /sys, without the mounts in it: debugfs, tracefs, securityfs, cgroups. The masks
 * hide firmware tables, parameters of modules that group root may read, and the power meters, by
 * which one process can observe another. A user namespace may not clone a mount without those in
 * it; its tasks have no /sys. */
static int
add_sys(int root)
{
	static const char *const masks[] = { "/sys/firmware", "/sys/module",
		"/sys/devices/virtual/powercap" };
	struct mount_attr attr = { .attr_set = READ_ONLY | MOUNT_ATTR_NOEXEC,
		.propagation = MS_PRIVATE };
	cleanup_close int sys = open_tree(AT_FDCWD, "/sys", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	int r = 0;

	if (sys < 0 || faccessat(root, "sys", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return sys < 0 && errno != ENOENT && errno != EINVAL ? -errno : 0;
	if ((r = make_way(root, "sys", true)) < 0)
		return r;
	if (mount_setattr(sys, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0 ||
	    move_mount(sys, "", root, "sys", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return -errno;
	for (size_t i = 0; i < ELEMENTSOF(masks) && r == 0; i++)
		r = add_mask(root, masks[i]);
	return r;
}

/* The template's root, for checking its masks. */
static int template_root = -1;

bool
exec_template_is_whole(const struct agent_policy *policy)
{
	for (uint32_t i = 0; i < policy->n_masks; i++) {
		cleanup_close int fd = fd_open_in_root(template_root, policy->masks[i], O_PATH);
		struct statx stx;
		struct stat st;

		if (fd >= 0 && (statx(fd, "", AT_EMPTY_PATH, 0, &stx) < 0 ||
				   !(stx.stx_attributes & STATX_ATTR_MOUNT_ROOT)))
			return false;
		/* A path that cannot be reached without the initial capabilities is skipped. Inode
		 * numbers are reused, so a changed ctime counts as another file. */
		if (stat(policy->masks[i], &st) == 0 &&
		    (st.st_dev != masked[i].st_dev || st.st_ino != masked[i].st_ino ||
			(S_ISREG(st.st_mode) &&
			    memcmp(&st.st_ctim, &masked[i].st_ctim, sizeof st.st_ctim))))
			return false;
	}
	return true;
}

/* Makes a new root, on /proc for the time being: pivot_root makes it the root. Runs in the new
 * namespace, which is still a copy of the host's. Returns a descriptor or -errno. */
static int
begin_root(void)
{
	cleanup_close int root = new_tmpfs();

	if (root < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    move_mount(root, "", AT_FDCWD, "/proc", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return -errno;
	return steal_fd(&root);
}

/* Makes it the root of this namespace, which gets the number `as`. */
static int
finish_root(int root, int as)
{
	struct mount_attr attr = { .attr_set = READ_ONLY };
	cleanup_close int ns = -1;

	if (mount_setattr(root, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0 || fchdir(root) < 0 ||
	    syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0)
		return -errno;
	ns = openat(EXE_FD_PROC, "self/ns/mnt", O_RDONLY | O_CLOEXEC);
	return ns < 0 || dup3(ns, as, O_CLOEXEC) < 0 ? -errno : 0;
}

static int
build_here(const struct agent_policy *policy, struct err *e)
{
	cleanup_close int root = begin_root();
	int r;

	if (root < 0)
		return err_set(e, root, "make the root of exec tasks");
	for (uint32_t i = 0; i < policy->n_chroot_env; i++) {
		r = add_source(root, policy->chroot_env[i].source, policy->chroot_env[i].target);
		if (r < 0)
			return err_set(e, r, "chroot_env: put %s into the root of exec tasks",
			    policy->chroot_env[i].source);
	}
	r = add_dev(root);
	if (r < 0)
		return err_set(e, r, "make /dev of exec tasks");
	r = add_masks(root, policy, e);
	if (r < 0)
		return r;
	r = add_sys(root);
	if (r < 0)
		return err_set(e, r, "make /sys of exec tasks");
	close_p(&template_root);
	template_root = fcntl(root, F_DUPFD_CLOEXEC, 3);
	r = template_root < 0 ? -errno : finish_root(root, EXE_FD_TEMPLATE);
	return r < 0 ? err_set(e, r, "enter the root of exec tasks") : 0;
}

/* A container's child mounts proc and sysfs itself, which the kernel permits it while it sees them
 * here as they are; /sys is the one that a container in the network of the machine gets. */
static int
build_containers(struct err *e)
{
	struct mount_attr sys_attr = { .attr_set = READ_ONLY | MOUNT_ATTR_NOEXEC };
	cleanup_close int root = begin_root(), sys = -1;
	int r = root;

	if (r >= 0 && (r = make_covers(root)) >= 0 && (r = add_dev(root)) >= 0 &&
	    (r = add_sys(root)) >= 0 && (r = make_way(root, "proc", true)) >= 0 &&
	    (r = make_way(root, "whole_sys", true)) >= 0)
		r = make_way(root, "mnt", true);
	if (r < 0)
		return err_set(e, r, "make the root of containers");
	sys = open_tree(AT_FDCWD, "/sys", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (sys >= 0 && (mount_setattr(sys, "", AT_EMPTY_PATH, &sys_attr, sizeof sys_attr) < 0 ||
			    move_mount(sys, "", root, "whole_sys", MOVE_MOUNT_F_EMPTY_PATH) < 0))
		return err_set(e, -errno, "show /sys to containers");
	r = finish_root(root, EXE_FD_CONTAINERS);
	if (r == 0 && mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		r = -errno;
	return r < 0 ? err_set(e, r, "enter the root of containers") : 0;
}

/* setns() enters the root of a mount namespace. For an agent in a chroot that is outside of the
 * chroot, here and in each executor. */
static int
check_root(int host, struct err *e)
{
	cleanup_close int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct statx here, there;

	if (root < 0 || setns(host, CLONE_NEWNS) < 0 ||
	    statx(root, "", AT_EMPTY_PATH, STATX_MNT_ID, &here) < 0 ||
	    statx(AT_FDCWD, "/", 0, STATX_MNT_ID, &there) < 0)
		return err_set(e, -errno, "look for the root of the mount namespace");
	if (here.stx_mnt_id == there.stx_mnt_id)
		return 0;
	if (fchdir(root) < 0 || chroot(".") < 0)
		return err_set(e, -errno, "return into the chroot of the agent");
	return err_say(e, -ENOTSUP,
	    "the agent runs in a chroot; its root has to be that of its mount namespace "
	    "(pivot_root, as containers do)");
}

/* Has a new mount namespace built, and returns to the host's. */
static int
make_namespace(const struct agent_policy *policy, struct err *e)
{
	cleanup_close int host = openat(EXE_FD_PROC, "self/ns/mnt", O_RDONLY | O_CLOEXEC);
	int r =
	    host < 0 ? err_set(e, -errno, "open the host's mount namespace") : check_root(host, e);

	if (r < 0)
		return r;
	if (unshare(CLONE_NEWNS) < 0)
		return err_set(e, -errno, "make the mount namespace of tasks");
	r = policy ? build_here(policy, e) : build_containers(e);
	if (setns(host, CLONE_NEWNS) < 0)
		return err_set(e, -errno, "return to the host's mount namespace");
	return r;
}

int
exec_template_make(const struct agent_policy *policy, struct err *e)
{
	return make_namespace(policy, e);
}

/* A container's init process, or a session in it, can be the executor's program (CVE-2019-5736).
 * Through a read-only mount nobody there can write or change it, whatever the uid is. */
static int
protect_executor(struct err *e)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
	cleanup_close int tree =
	    open_tree(EXE_FD_BINARY, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);

	if (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0 ||
	    dup3(tree, EXE_FD_BINARY, O_CLOEXEC) < 0)
		return err_set(e, -errno, "mount the executor's program read-only");
	return 0;
}

int
exec_containers_make(struct err *e)
{
	int r = protect_executor(e);

	return r < 0 ? r : make_namespace(NULL, e);
}
