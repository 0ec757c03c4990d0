// SPDX-License-Identifier: Apache-2.0
/* exe_inside.c: what a container finds in its root: kernel file systems, devices, the task's
 * directories, files in /etc. Runs in: the container's child, as root of its user namespace. */
#include "executor/exe_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/crash.h"
#include "common/fd.h"
#include "executor/exe_start.h"
#include "executor/exe_tree.h"

#define SHM_BYTES (64ull << 20) /* as Docker */

static const char *const nodes[] = { "null", "zero", "full", "random", "urandom", "tty" };
static const char *const links[][2] = { { "/proc/self/fd", "fd" }, { "/proc/self/fd/0", "stdin" },
	{ "/proc/self/fd/1", "stdout" }, { "/proc/self/fd/2", "stderr" }, { "/proc/kcore", "core" },
	{ "pts/ptmx", "ptmx" } };

int
exe_inside_failed(struct exe *x, uint32_t step, uint32_t detail, int r)
{
	x->record.step = step;
	x->record.detail = detail;
	return r;
}

static int
attach_fs(const char *type, const char *const *options, unsigned flags, const char *path)
{
	cleanup_close int fd = exe_fs_new(type, options, flags);

	return fd < 0 ? fd : exe_root_attach(fd, path, true);
}

/* --- /dev --- */

/* /dev is new, so nobody but this process has put anything there. */
static int
attach_in_dev(
    const char *type, const char *const *options, unsigned flags, int dev, const char *name)
{
	return mkdirat(dev, name, 0755) < 0 ? -errno
					    : exe_fs_attach(type, options, flags, dev, name);
}

static int
attach_shm(int dev)
{
	char size[24];
	const char *const options[] = { "mode", "1777", "size", size, NULL };

	(void)snprintf(size, sizeof size, "%llu",
	    (unsigned long long)(exe_inside.shm_bytes ? exe_inside.shm_bytes : SHM_BYTES));
	return attach_in_dev("tmpfs", options, PLAIN | MOUNT_ATTR_NOEXEC, dev, "shm");
}

static int
attach_node(int tree, int dev, const char *name)
{
	return mknodat(dev, name, S_IFREG | 0644, 0) < 0 ? -errno
							 : exe_tree_attach(tree, dev, name);
}

static int
make_dev(void)
{
	static const char *const options[] = { "mode", "0755", "size", "65536k", NULL };
	static const char *const pts[] = { "mode", "0620", "gid", "5", "ptmxmode", "0666", NULL };
	static const char *const none[] = { NULL };
	cleanup_close int dev = -1;
	int r;

	if (exe_inside.clones[CLONE_DEV] >= 0)
		return exe_root_attach(exe_inside.clones[CLONE_DEV], "/dev", true);
	dev = exe_fs_new("tmpfs", options, MOUNT_ATTR_NOSUID);
	r = dev < 0 ? dev : exe_root_attach(dev, "/dev", true);
	for (size_t i = 0; i < ELEMENTSOF(nodes) && r == 0; i++)
		r = attach_node(exe_inside.clones[CLONE_NULL + i], dev, nodes[i]);
	for (size_t i = 0; i < ELEMENTSOF(links) && r == 0; i++)
		r = symlinkat(links[i][0], dev, links[i][1]) < 0 ? -errno : 0;
	if (r == 0)
		r = attach_in_dev("devpts", pts, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, dev, "pts");
	if (r == 0)
		r = attach_in_dev("mqueue", none, PLAIN | MOUNT_ATTR_NOEXEC, dev, "mqueue");
	return r < 0 ? r : attach_shm(dev);
}

/* As Docker: the terminal is /dev/console too. That of a privileged container is the machine's. */
static int
make_terminal(struct exe *x)
{
	cleanup_close int tree = -1;
	int r = x->tty ? exe_terminal_make(x) : 0;

	if (r < 0 || !x->tty || exe_inside.clones[CLONE_DEV] >= 0)
		return r;
	tree = open_tree(x->ends[0], "", TREE_FLAGS);
	return tree < 0 ? -errno : exe_root_attach(tree, "/dev/console", false);
}

/* --- the task's directories --- */

/* All users of the container may write there, because an image often starts as root and becomes
 * another user. Outside, nobody but root reaches the directory. */
static int
attach_secrets(const struct exe *x)
{
	char size[16], inodes[24];
	const char *const options[] = { "mode", "0777", "size", size, "nr_inodes", inodes, "noswap",
		NULL, NULL };

	(void)snprintf(size, sizeof size, "%um", x->setup->secrets_mb);
	(void)snprintf(inodes, sizeof inodes, "%llu", x->setup->secrets_mb * 1024ull);
	return attach_fs("tmpfs", options, PLAIN | MOUNT_ATTR_NOEXEC, "/secrets");
}

static int
attach_dirs(const struct exe *x)
{
	int *from = exe_inside.clones, r;

	if (fchmodat(from[CLONE_LOCAL], ".", 0777, 0) < 0)
		return -errno;
	if ((r = exe_root_attach(from[CLONE_ALLOC], "/alloc", true)) < 0 ||
	    (r = exe_root_attach(from[CLONE_LOGS], "/alloc/logs", true)) < 0 ||
	    (r = exe_root_attach(from[CLONE_LOCAL], "/local", true)) < 0 ||
	    (r = attach_secrets(x)) < 0)
		return r;
	return 0;
}

/* Programs such as a JVM read their limits there. Without cgroup v2 there is no such directory. */
static void
attach_cgroup(void)
{
	if (exe_inside.clones[CLONE_CGROUP] >= 0)
		(void)exe_tree_attach(exe_inside.clones[CLONE_CGROUP], AT_FDCWD, "/sys/fs/cgroup");
}

/* A part of a host volume may be a file. A socket would lead to a process of the machine. */
static int
attach_volume(int tree, const struct exe_setup_mount *m)
{
	struct stat st;

	if (fstat(tree, &st) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) || S_ISREG(st.st_mode) || m->kind == EXE_MOUNT_DEVICE
		   ? exe_root_attach(tree, m->dest, S_ISDIR(st.st_mode))
		   : -EMEDIUMTYPE;
}

static int
attach_volumes(struct exe *x)
{
	for (uint32_t i = 0; i < x->setup->n_mounts; i++) {
		int r = attach_volume(exe_volume_tree(i), &x->setup->mounts[i]);

		if (r < 0)
			return exe_inside_failed(x, EXE_STEP_MOUNT, i, r);
	}
	return 0;
}

/* --- steps --- */

static int
set_name(void)
{
	return sethostname(exe_inside.hostname, strlen(exe_inside.hostname)) < 0 ? -errno : 0;
}

/* The pipes, or the terminal, are root's of the container until now. As with Docker, a terminal
 * stays that of group tty. The terminal of a session is not made yet. */
static int
give_pipes(struct exe *x)
{
	for (size_t i = 0; i < ELEMENTSOF(x->ends) && !(x->session && x->tty); i++)
		if (x->ends[i] >= 0 &&
		    fchown(x->ends[i], exe_inside.uid, x->tty ? (gid_t)-1 : exe_inside.gid) < 0)
			return -errno;
	return 0;
}

static int
find_user(struct exe *x)
{
	int r = exe_user_find(x->spec.user);

	return r < 0 ? exe_inside_failed(x, EXE_STEP_CONTAINER, EXE_INSIDE_USER, r) : 0;
}

static int
attach_files(struct exe *x)
{
	int r = exe_tree_attach(exe_inside.clones[CLONE_ETC], AT_FDCWD, ETC_PLACE);

	if (r < 0)
		return exe_inside_failed(x, EXE_STEP_CONTAINER, EXE_INSIDE_FILES, r);
	CRASH_POINT(EXE_CONTAINER_BEFORE_FILES);
	r = exe_options_apply(x, OPTIONS_FILES);
	/* As Docker, unless the image has it. */
	if (r == 0 && symlink("/proc/mounts", "/etc/mtab") < 0 && errno != EEXIST)
		r = exe_inside_failed(x, EXE_STEP_CONTAINER, EXE_INSIDE_FILES, -errno);
	if (r == 0 && umount2(ETC_PLACE, MNT_DETACH) < 0)
		return exe_inside_failed(x, EXE_STEP_CONTAINER, EXE_INSIDE_FILES, -errno);
	return r;
}

/* Files of templates can be the sources of mounts, so they are written before these, as the task's
 * user. A mount can bring the /etc/passwd that has the user; then they are written later. */
static int
write_files(struct exe *x)
{
	int r = exe_user_find(x->spec.user);

	if (r == 0) {
		exe_sandbox_own_files(exe_inside.uid, exe_inside.gid);
		r = exe_files_write(x);
		exe_sandbox_own_files(0, 0);
		if (r < 0)
			return exe_inside_failed(x, EXE_STEP_SECRETS, x->record.detail, r);
		exe_inside.files_written = true;
	}
	exe_inside.n_groups = 0;
	return 0;
}

/* As Docker, a container without a network has a loopback device that works. */
static int
start_loopback(const struct exe *x)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	cleanup_close int fd = -1;

	if (!x->setup->net_private)
		return 0;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo) < 0 ? -errno : 0;
}

/* As Docker, which makes an image's WORKDIR if it is missing. */
static int
make_cwd(struct exe *x)
{
	cleanup_close int fd = x->spec.cwd ? exe_root_place(x->spec.cwd, true) : 0;

	if (!x->spec.cwd)
		return fd = -1, 0;
	return fd < 0 ? exe_inside_failed(x, EXE_STEP_CWD, 0, fd) : 0;
}

static int
protect_root(struct exe *x)
{
	int r =
	    exe_inside.read_only ? exe_tree_set(exe_inside.root, MOUNT_ATTR_RDONLY, false, -1) : 0;

	return r < 0 ? exe_inside_failed(x, EXE_STEP_CONTAINER, EXE_INSIDE_READ_ONLY, r) : 0;
}

static int
fill_root(struct exe *x)
{
	const int *from = exe_inside.clones;
	int r;

	if ((r = exe_root_attach(from[CLONE_PROC], "/proc", true)) < 0)
		return exe_inside_failed(x, EXE_STEP_CONTAINER, EXE_INSIDE_PROC, r);
	if ((r = exe_root_attach(from[CLONE_SYS], "/sys", true)) < 0)
		return exe_inside_failed(x, EXE_STEP_CONTAINER, EXE_INSIDE_SYS, r);
	if ((r = make_dev()) < 0 || (r = exe_null_take(x)) < 0)
		return exe_inside_failed(x, EXE_STEP_CONTAINER, EXE_INSIDE_DEV, r);
	if ((r = make_terminal(x)) < 0)
		return exe_inside_failed(x, EXE_STEP_TERMINAL, 0, r);
	attach_cgroup();
	CRASH_POINT(EXE_CONTAINER_AFTER_DEV);
	if ((r = exe_options_apply(x, OPTIONS_KERNEL)) < 0)
		return r;
	if (!x->setup->privileged && (r = exe_kernel_mask()) < 0)
		return exe_inside_failed(x, EXE_STEP_CONTAINER, EXE_INSIDE_MASK, r);
	if ((r = attach_dirs(x)) < 0)
		return exe_inside_failed(x, EXE_STEP_CONTAINER, EXE_INSIDE_DIRS, r);
	return attach_volumes(x);
}

int
exe_inside_make(struct exe *x)
{
	int r;

	exe_inside.host_ids = x->setup->host_ids;
	if ((r = exe_options_apply(x, OPTIONS_FIRST)) < 0 || (r = exe_root_enter(x)) < 0 ||
	    (r = set_name()) < 0 || (r = start_loopback(x)) < 0)
		return x->record.step
			   ? r
			   : exe_inside_failed(x, EXE_STEP_CONTAINER, EXE_INSIDE_NAME, r);
	if ((r = fill_root(x)) < 0 || (r = attach_files(x)) < 0 || (r = write_files(x)) < 0 ||
	    (r = exe_options_apply(x, OPTIONS_MOUNTS)) < 0 || (r = find_user(x)) < 0 ||
	    (r = exe_options_apply(x, OPTIONS_LAST)) < 0 || (r = make_cwd(x)) < 0 ||
	    (r = protect_root(x)) < 0)
		return r;
	CRASH_POINT(EXE_CONTAINER_MADE);
	close_p(&exe_inside.root);
	r = give_pipes(x);
	return r < 0 ? exe_inside_failed(x, EXE_STEP_PIPES, 0, r) : 0;
}

int
exe_inside_join(struct exe *x)
{
	int r;

	exe_inside.host_ids = x->setup->host_ids;
	r = exe_options_apply(x, OPTIONS_FIRST);
	(void)close_range(EXE_FD_LISTEN, EXE_FD_BINARY - 1, 0);
	close_p(&x->task_dir);
	if (r < 0 || (r = exe_root_open()) < 0 || (r = find_user(x)) < 0 ||
	    (r = exe_options_apply(x, OPTIONS_LAST)) < 0)
		return r;
	close_p(&exe_inside.root);
	r = give_pipes(x);
	return r < 0 ? exe_inside_failed(x, EXE_STEP_PIPES, 0, r) : 0;
}
