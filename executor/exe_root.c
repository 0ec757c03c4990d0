// SPDX-License-Identifier: Apache-2.0
/*
 * exe_root.c: the root of a container: an overlay of its layers, and of a directory that takes what
 * it writes. Runs in: the container's child, as root of its user namespace.
 *
 * All paths of the image are resolved after pivot_root, when nothing of the machine can be reached
 * by any of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/crash.h"
#include "common/fd.h"
#include "common/path.h"
#include "executor/exe_inside.h"
#include "executor/exe_start.h"
#include "executor/exe_tree.h"

static const char *const nodes[] = { "null", "zero", "full", "random", "urandom", "tty" };

/* A restarted task gets a new container. What the last one wrote may be of any depth. */
static int
make_upper(struct exe *x, int dir)
{
	static const char *const names[] = { "upper", "work", "etc" };
	int r = 0;

	for (size_t i = 0; i < ELEMENTSOF(names) && r == 0; i++) {
		r = tree_remove_at(dir, names[i]);
		if (r == 0 && mkdirat(dir, names[i], 0755) < 0)
			r = -errno;
	}
	return r < 0 ? exe_inside_failed(x, EXE_STEP_LAYERS, EXE_ROOT_UPPER, r) : 0;
}

static int
attach_in(int tree, const char *name)
{
	return mkdir(name, 0755) < 0 ? -errno : exe_tree_attach(tree, AT_FDCWD, name);
}

/* Works in a file system of its own on /mnt, so that all paths are short: mount(2) takes one page
 * of options. */
static int
mount_overlay(struct exe *x)
{
	char options[2048] = "userxattr,upperdir=p/upper,workdir=p/work,lowerdir=";
	size_t len = strlen(options);
	int r = exe_fs_attach(
	    "tmpfs", (const char *const[]){ "size", "1m", NULL }, 0, AT_FDCWD, "/mnt");

	if (r < 0 || chdir("/mnt") < 0)
		return r < 0 ? r : -errno;
	r = attach_in(exe_inside.clones[CLONE_PRIVATE], "p");
	if (r == 0 && (r = make_upper(x, exe_inside.clones[CLONE_PRIVATE])) < 0)
		return r;
	for (uint32_t i = 0; i < x->setup->n_layers && r == 0; i++) {
		char name[12];

		(void)snprintf(name, sizeof name, "%u", i);
		r = attach_in(exe_inside.layers[i], name);
		len += (size_t)snprintf(
		    options + len, sizeof options - len, "%s%s", i ? ":" : "", name);
	}
	if (x->setup->n_layers == 0) {
		(void)mkdir("0", 0755);
		(void)strcpy(options + len, "0");
	}
	if (r < 0 || mkdir("root", 0755) < 0)
		return r < 0 ? r : -errno;
	return mount("overlay", "root", "overlay", 0, options) < 0 ? -errno : 0;
}

/* A user namespace may mount proc and sysfs only while it sees those of the machine. The latter
 * belongs to the network namespace: a container in that of the machine gets the machine's, without
 * what is mounted there; of the allocation's, root of the machine has made it. */
static int
prepare_kernel_fs(const struct exe *x)
{
	static const char *const none[] = { NULL };
	int *to = exe_inside.clones;

	to[CLONE_PROC] = exe_fs_new("proc", none, PLAIN | MOUNT_ATTR_NOEXEC);
	if (x->setup->net_private)
		to[CLONE_SYS] =
		    exe_fs_new("sysfs", none, PLAIN | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY);
	else if (!x->setup->own_network &&
		 (to[CLONE_SYS] = open_tree(
		      AT_FDCWD, "/sys", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE)) < 0)
		to[CLONE_SYS] = -errno;
	to[CLONE_ETC] = open_tree(AT_FDCWD, "p/etc", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (to[CLONE_ETC] < 0)
		to[CLONE_ETC] = -errno;
	for (size_t i = 0; i < ELEMENTSOF(nodes); i++) {
		char path[24];

		(void)snprintf(path, sizeof path, "/dev/%s", nodes[i]);
		to[CLONE_NULL + i] = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
		if (to[CLONE_NULL + i] < 0)
			to[CLONE_NULL + i] = -errno;
	}
	for (int i = CLONE_SYS; i < CLONES; i++)
		if (to[i] < 0)
			return to[i];
	return 0;
}

/* Descriptors of the machine's directories are closed before the first path of the image is
 * resolved. */
static void
close_machine(struct exe *x)
{
	(void)close_range(EXE_FD_LISTEN, EXE_FD_BINARY - 1, 0);
	close_p(&x->task_dir);
	for (uint32_t i = 0; i < x->setup->n_layers; i++)
		close_p(&exe_inside.layers[i]);
}

int
exe_root_open(void)
{
	exe_inside.root = openat(AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return exe_inside.root < 0 ? -errno : 0;
}

int
exe_root_enter(struct exe *x)
{
	int r = mount_overlay(x);

	if (r < 0)
		return x->record.step ? r
				      : exe_inside_failed(x, EXE_STEP_LAYERS, EXE_ROOT_OVERLAY, r);
	CRASH_POINT(EXE_CONTAINER_AFTER_OVERLAY);
	if ((r = prepare_kernel_fs(x)) < 0)
		return exe_inside_failed(x, EXE_STEP_CONTAINER, EXE_INSIDE_PROC, r);
	if (chdir("root") < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
	    umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return exe_inside_failed(x, EXE_STEP_LAYERS, EXE_ROOT_PIVOT, -errno);
	CRASH_POINT(EXE_CONTAINER_AFTER_PIVOT);
	close_machine(x);
	r = exe_root_open();
	return r < 0 ? exe_inside_failed(x, EXE_STEP_LAYERS, EXE_ROOT_PIVOT, r) : 0;
}

/* Links of an image that may follow one another. */
#define LINKS_MAX 10

static int make_parts(const char *path, bool is_dir, unsigned links);

/* As Docker, makes what a link that leads nowhere names, inside of the root. */
static int
make_target(const char *link, bool is_dir, unsigned links)
{
	char target[PATH_MAX], path[PATH_MAX];
	const char *slash = strrchr(link, '/');
	ssize_t n = readlink(link, target, sizeof target - 1);
	int len;

	if (n < 0)
		return -errno;
	if (links == LINKS_MAX)
		return -ELOOP;
	target[n] = '\0';
	len = snprintf(
	    path, sizeof path, "%.*s/%s", target[0] == '/' ? 0 : (int)(slash - link), link, target);
	return len < (int)sizeof path ? make_parts(path, is_dir, links + 1) : -ENAMETOOLONG;
}

/* Makes the component that ends at path + len, unless it is there. */
static int
make_part(const char *path, size_t len, bool is_dir, unsigned links)
{
	char part[PATH_MAX];
	cleanup_close int fd = -1;

	memcpy(part, path, len);
	part[len] = '\0';
	fd = fd_open_in_root(exe_inside.root, part, O_PATH);
	if (fd >= 0 || fd != -ENOENT)
		return fd < 0 ? fd : 0;
	if ((is_dir ? mkdir(part, 0755) : mknod(part, S_IFREG | 0644, 0)) == 0)
		return 0;
	return errno == EEXIST ? make_target(part, is_dir, links) : -errno;
}

static int
make_parts(const char *path, bool is_dir, unsigned links)
{
	size_t len = strlen(path);
	int r = 0;

	for (size_t at = 1; at < len && r >= 0;) {
		at += strcspn(path + at, "/");
		r = make_part(path, at, at < len || is_dir, links);
		at += strspn(path + at, "/");
	}
	return r;
}

int
exe_root_place(const char *path, bool is_dir)
{
	int r;

	if (path[0] != '/' || strlen(path) >= PATH_MAX)
		return -EINVAL;
	r = make_parts(path, is_dir, 0);
	return r < 0 ? r : fd_open_in_root(exe_inside.root, path, O_PATH);
}

/* Not on the root itself, where a link of the image may lead: what is mounted on it is what "/.."
 * leads to, while the masks are looked for below "/". */
int
exe_root_attach(int tree, const char *path, bool is_dir)
{
	cleanup_close int at = exe_root_place(path, is_dir);
	struct stat place, root;

	if (at < 0)
		return at;
	if (fstat(at, &place) < 0 || fstat(exe_inside.root, &root) < 0)
		return -errno;
	if (place.st_dev == root.st_dev && place.st_ino == root.st_ino)
		return -ENOTUNIQ; /* for which run_text.c has a sentence */
	return exe_tree_attach(tree, at, "");
}
