// SPDX-License-Identifier: Apache-2.0
/* exe_kernel.c: what a container does not see of /proc and /sys, and cannot write there. The kernel
 * asks there for uid 0 of the machine, not for a capability, and a container can be uid 0 of the
 * machine (host_ids): it gets a stricter /proc and /sys. Runs in: the container's child, as root of
 * its user namespace. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "executor/exe_inside.h"
#include "executor/exe_start.h"
#include "executor/exe_tree.h"

/* As Docker hides and protects them. Those that this kernel does not have are skipped. */
static const char *const masked[] = { "/proc/acpi", "/proc/asound", "/proc/interrupts",
	"/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/sched_debug", "/proc/scsi",
	"/proc/timer_list", "/proc/timer_stats", "/sys/devices/virtual/powercap", "/sys/firmware" };
static const char *const protected[] = { "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys",
	"/proc/sysrq-trigger" };
/* Paths below /proc and /sys that only uid 0 of the machine may read. They have the byte counts of
 * serial lines, the machine's serial numbers, and which memory is in use; a read of stat_refresh
 * makes all processors work. */
static const char *const proc_root_only[] = { "tty/driver", "sys/vm/stat_refresh" };
static const char *const sys_root_only[] = { "devices/virtual/dmi", "kernel/mm/page_idle" };

static int
mask_at(int at, bool is_dir, int empty)
{
	cleanup_close int tree = open_tree(is_dir ? empty : AT_FDCWD, is_dir ? "" : "/dev/null",
	    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (is_dir ? AT_EMPTY_PATH : 0));

	return tree < 0 ? -errno : exe_tree_attach(tree, at, "");
}

static int
mask_path(const char *path, int empty)
{
	cleanup_close int at = fd_open_in_root(exe_inside.root, path, O_PATH);
	struct stat st;

	if (at < 0)
		return at == -ENOENT ? 0 : at;
	return fstat(at, &st) < 0 ? -errno : mask_at(at, S_ISDIR(st.st_mode), empty);
}

static int
protect_path(const char *path)
{
	cleanup_close int at = fd_open_in_root(exe_inside.root, path, O_PATH), tree = -1;
	int r;

	if (at < 0)
		return at == -ENOENT ? 0 : at;
	tree = open_tree(at, "", TREE_FLAGS | AT_RECURSIVE);
	if (tree < 0)
		return -errno;
	r = exe_tree_set(tree, PLAIN | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY, true, -1);
	return r < 0 ? r : exe_tree_attach(tree, at, "");
}

/* As Docker does since GHSA-6fw5-f8r9-fgfm, for each processor: how often it was too hot shows what
 * others do. */
static int
mask_throttles(int empty)
{
	int r = 0;

	for (unsigned cpu = 0; r == 0; cpu++) {
		char path[64];
		size_t len = (size_t)snprintf(
		    path, sizeof path, "/sys/devices/system/cpu/cpu%u/thermal_throttle", cpu);

		r = mask_path(path, empty);
		path[len - strlen("/thermal_throttle")] = '\0';
		if (access(path, F_OK) < 0)
			break;
	}
	return r;
}

/* Hides what only root of the machine may read at the top of /proc, as /proc/kpageflags. What
 * nobody may read is protected by the mount. */
static int
mask_root_only(int proc, int empty)
{
	cleanup_dir DIR *d = NULL;
	int fd = openat(proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;

	if (fd < 0 || !(d = fdopendir(fd)))
		return -errno;
	for (struct dirent *e; r == 0 && (e = readdir(d));) {
		cleanup_close int at = openat(fd, e->d_name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		struct stat st;

		if (at >= 0 && fstat(at, &st) == 0 && (st.st_mode & 0440) &&
		    !(st.st_mode & S_IROTH) && !strchr("0123456789", e->d_name[0]))
			r = mask_at(at, S_ISDIR(st.st_mode), empty);
	}
	return r;
}

static int
mask_below(int dir, const char *const *paths, size_t n, int empty)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		cleanup_close int at = openat(dir, paths[i], O_PATH | O_NOFOLLOW | O_CLOEXEC);
		struct stat st;

		if (at >= 0)
			r = fstat(at, &st) < 0 ? -errno : mask_at(at, S_ISDIR(st.st_mode), empty);
		else if (errno != ENOENT)
			r = -errno;
	}
	return r;
}

/* Leaves processors and virtual devices in /sys/devices. Uid 0 may map the memory of a PCI device
 * by its files there, without any capability. */
static int
hide_devices(int sys)
{
	static const char *const options[] = { "mode", "0555", "size", "4k", NULL };
	static const char *const shown[] = { "system", "virtual" };
	cleanup_close int dir = exe_fs_new("tmpfs", options, PLAIN | MOUNT_ATTR_NOEXEC);
	cleanup_close int at = openat(sys, "devices", O_PATH | O_NOFOLLOW | O_CLOEXEC);
	int r = dir < 0 ? dir : at < 0 ? -errno : exe_tree_attach(dir, at, "");

	for (size_t i = 0; i < ELEMENTSOF(shown) && r == 0; i++) {
		cleanup_close int tree =
		    open_tree(at, shown[i], OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

		r = tree < 0 || mkdirat(dir, shown[i], 0555) < 0
			? -errno
			: exe_tree_attach(tree, dir, shown[i]);
	}
	return r < 0 ? r : exe_tree_set(dir, MOUNT_ATTR_RDONLY, false, -1);
}

/* For uid 0 of the machine. By their descriptors, because an image can make /proc and /sys links.
 * All of /proc is read-only then: the kernel asks for the uid alone in /proc/sys, in files of
 * modules and of networks (/proc/PID/net), and in those of processes. */
static int
restrict_host_ids(int proc, int sys, int empty)
{
	int r = mask_root_only(proc, empty);

	if (r == 0)
		r = mask_below(proc, proc_root_only, ELEMENTSOF(proc_root_only), empty);
	if (r == 0)
		r = mask_below(sys, sys_root_only, ELEMENTSOF(sys_root_only), empty);
	if (r == 0)
		r = hide_devices(sys);
	return r < 0 ? r : exe_tree_set(proc, MOUNT_ATTR_RDONLY, false, -1);
}

/* Kernels before 6.15 clone only from a mount that is attached, so the empty directory is on
 * /dev/shm for a moment. */
int
exe_kernel_mask(void)
{
	static const char *const options[] = { "mode", "0555", "size", "4k", NULL };
	cleanup_close int empty =
	    exe_fs_new("tmpfs", options, PLAIN | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY);
	int r = empty < 0 ? empty : exe_tree_attach(empty, AT_FDCWD, "/dev/shm");

	for (size_t i = 0; i < ELEMENTSOF(protected) && r == 0; i++)
		r = protect_path(protected[i]);
	for (size_t i = 0; i < ELEMENTSOF(masked) && r == 0; i++)
		r = mask_path(masked[i], empty);
	if (r == 0)
		r = mask_throttles(empty);
	if (r == 0 && exe_inside.host_ids)
		r = restrict_host_ids(
		    exe_inside.clones[CLONE_PROC], exe_inside.clones[CLONE_SYS], empty);
	if (empty >= 0 && umount2("/dev/shm", MNT_DETACH) < 0 && r == 0)
		r = -errno;
	return r;
}
