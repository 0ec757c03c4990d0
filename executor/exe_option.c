// SPDX-License-Identifier: Apache-2.0
/* exe_option.c: the options of a container, from its job and its image. They come from the
 * supervisor and need no trust: all of them are applied by root of the container, who has no
 * capability outside. Runs in: the container's child. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/path.h"
#include "common/privs.h"
#include "common/spec.h"
#include "executor/exe_inside.h"
#include "executor/exe_start.h"
#include "executor/exe_tree.h"
#include "proto/image_config.h"

/* --- first --- */

static int
set_hostname(const char *value)
{
	int n = snprintf(exe_inside.hostname, sizeof exe_inside.hostname, "%s", value);

	return n < 1 || (size_t)n >= sizeof exe_inside.hostname ? -ENAMETOOLONG : 0;
}

static int
set_caps(const char *value)
{
	exe_inside.caps = strtoull(value, NULL, 16) & exe_sandbox_bounding();
	if (exe_inside.host_ids) /* with others it could undo what protects /proc and /sys */
		exe_inside.caps &= CONTAINER_MOST_CAPS;
	return 0;
}

static int
set_shm(const char *value)
{
	exe_inside.shm_bytes = strtoull(value, NULL, 10);
	return 0;
}

static int
set_flag(const char *value)
{
	static const struct {
		const char *name;
		bool *flag;
	} flags[] = {
		{ "no_new_privs", &exe_inside.no_new_privs },
		{ "read_only", &exe_inside.read_only },
		{ "init", &exe_inside.init },
	};

	for (size_t i = 0; i < ELEMENTSOF(flags); i++)
		if (strcmp(flags[i].name, value) == 0)
			return *flags[i].flag = true, 0;
	return -EINVAL;
}

/* --- kernel --- */

static bool
is_of_ipc(const char *name, size_t len)
{
	static const char *const names[] = { "kernel.msgmax", "kernel.msgmnb", "kernel.msgmni",
		"kernel.sem", "kernel.shmall", "kernel.shmmax", "kernel.shmmni",
		"kernel.shm_rmid_forced", "fs.mqueue.msg_default", "fs.mqueue.msg_max",
		"fs.mqueue.msgsize_default", "fs.mqueue.msgsize_max", "fs.mqueue.queues_max" };

	for (size_t i = 0; i < ELEMENTSOF(names); i++)
		if (strlen(names[i]) == len && memcmp(names[i], name, len) == 0)
			return true;
	return false;
}

/* "net.core.somaxconn=1024": the kernel lets root of a user namespace write only what belongs to
 * its own namespaces, but uid 0 of the machine everything. */
static int
set_sysctl(const char *value)
{
	size_t len = strcspn(value, "=");
	char path[256];

	if (exe_inside.host_ids && !is_of_ipc(value, len))
		return -EPERM;
	if (value[len] != '=' ||
	    (size_t)snprintf(path, sizeof path, "/proc/sys/%.*s", (int)len, value) >= sizeof path)
		return -EINVAL;
	for (char *c = path + strlen("/proc/sys/"); *c; c++)
		if (*c == '/')
			return -EINVAL;
		else if (*c == '.')
			*c = '/';
	return fd_write_file(AT_FDCWD, path, value + len + 1);
}

/* --- mounts --- */

/* "NAME:CONTENTS": a file of /etc that is not the image's. It is on disk beside the upper
 * directory, so it can be written. */
static int
mount_etc(const char *value)
{
	size_t len = strcspn(value, ":");
	cleanup_close int file = -1, tree = -1;
	char name[64], from[80], path[72];
	int r;

	(void)snprintf(name, sizeof name, "%.*s", (int)len, value);
	if (value[len] != ':' || len >= sizeof name || strchr(name, '/'))
		return -EINVAL;
	(void)snprintf(from, sizeof from, ETC_PLACE "/%s", name);
	(void)snprintf(path, sizeof path, "/etc/%s", name);
	file = open(from, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	r = file < 0 ? -errno : fd_write_full(file, value + len + 1, strlen(value + len + 1));
	if (r < 0)
		return r;
	tree = open_tree(AT_FDCWD, from, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	return tree < 0 ? -errno : exe_root_attach(tree, path, false);
}

/* Reads a number and the colon after it. */
static bool
take_number(const char **at, int base, uint64_t *ret)
{
	char *end;

	*ret = strtoull(*at, &end, base);
	if (end == *at || *end != ':')
		return false;
	*at = end + 1;
	return true;
}

/* "BYTES:MODE:DESTINATION"; 0 bytes: the kernel's default. */
static int
mount_tmpfs(const char *value)
{
	uint64_t bytes, mode;
	char size[24], bits[12];
	const char *options[] = { "mode", bits, "size", size, NULL };
	cleanup_close int tree = -1;

	if (!take_number(&value, 10, &bytes) || !take_number(&value, 8, &mode))
		return -EINVAL;
	(void)snprintf(size, sizeof size, "%llu", (unsigned long long)bytes);
	(void)snprintf(bits, sizeof bits, "%o", (unsigned)mode & 07777);
	if (bytes == 0)
		options[2] = NULL;
	tree = exe_fs_new("tmpfs", options, PLAIN | MOUNT_ATTR_NOEXEC);
	return tree < 0 ? tree : exe_root_attach(tree, value, true);
}

/* Opens one component of a source, and makes it if it is missing. Anything else that leads away is
 * refused: "..", a link, another mount. */
static int
open_part(int dir, const char *name)
{
	int fd = fd_open_same_mount(dir, name, O_PATH);

	if (fd != -ENOENT)
		return fd;
	/* Another task of the allocation may make it meanwhile. */
	return mkdirat(dir, name, 0755) < 0 && errno != EEXIST
		   ? -errno
		   : fd_open_same_mount(dir, name, O_PATH);
}

/* Opens a path in one of the task's directories, or in the container's root itself. Tasks of the
 * allocation can change what is there, also now, and the mounts that cover parts of /proc and /sys
 * do not cover a clone of these. The logs are a mount of their own, which is read-only, and so are
 * clones of it. */
static int
open_source(const char *path)
{
	static const char *const tops[] = { "/alloc", "/local", "/secrets" };
	static const char logs[] = "/alloc/logs";
	size_t len = path[0] == '/' ? 1 + strcspn(path + 1, "/") : 0, n = strlen(logs);

	if (strncmp(path, logs, n) == 0 && (path[n] == '/' || path[n] == '\0'))
		return path_walk(
		    fcntl(exe_inside.clones[CLONE_LOGS], F_DUPFD_CLOEXEC, 0), path + n, open_part);
	for (size_t i = 0; i < ELEMENTSOF(tops); i++)
		if (strlen(tops[i]) == len && memcmp(tops[i], path, len) == 0)
			return path_walk(exe_root_place(tops[i], true), path + len, open_part);
	return len > 1 ? path_walk(exe_root_place("/", true), path, open_part) : -EINVAL;
}

/* "rw:SOURCE:DESTINATION": both in the container, the source in one of the task's directories or in
 * its root. It is made if it is missing. */
static int
mount_bind(const char *value)
{
	bool read_only = strncmp(value, "ro:", 3) == 0;
	const char *dest = strlen(value) > 3 ? strchr(value + 3, ':') : NULL;
	cleanup_close int from = -1, tree = -1;
	char source[PATH_MAX];
	struct stat st;
	int r;

	if (!dest || (size_t)(dest - value) >= sizeof source)
		return -EINVAL;
	(void)snprintf(source, sizeof source, "%.*s", (int)(dest - value - 3), value + 3);
	from = open_source(source);
	if (from < 0 || fstat(from, &st) < 0)
		return from < 0 ? from : -errno;
	tree = open_tree(from, "", TREE_FLAGS);
	if (tree < 0)
		return -errno;
	r = read_only ? exe_tree_set(tree, PLAIN | MOUNT_ATTR_RDONLY, false, -1) : 0;
	return r < 0 ? r : exe_root_attach(tree, dest + 1, S_ISDIR(st.st_mode));
}

/* --- last --- */

/* "RESOURCE:SOFT:HARD", numbers of the kernel. */
static int
set_limit(const char *value)
{
	uint64_t resource, soft;
	struct rlimit limit;

	if (!take_number(&value, 10, &resource) || !take_number(&value, 10, &soft) ||
	    resource >= RLIM_NLIMITS)
		return -EINVAL;
	limit.rlim_cur = soft;
	limit.rlim_max = strtoull(value, NULL, 10);
	exe_inside.own_nofile |= resource == RLIMIT_NOFILE;
	return setrlimit((int)resource, &limit) < 0 ? -errno : 0;
}

/* As Docker's stdin of a container that nobody is attached to: a read waits. The one descriptor
 * reads and writes, so the pipe always has a writer. */
static int
open_stdin(const char *value)
{
	cleanup_close int fd = -1;
	char path[32];
	int ends[2];

	(void)value;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
	fd = open(path, O_RDWR | O_CLOEXEC);
	(void)close(ends[0]);
	(void)close(ends[1]);
	if (fd < 0 || fchown(fd, exe_inside.uid, exe_inside.gid) < 0 || dup2(fd, STDIN_FILENO) < 0)
		return -errno;
	return 0;
}

static const struct option {
	const char *name;
	enum options_phase phase;
	int (*apply)(const char *value);
} options[] = {
	{ "hostname", OPTIONS_FIRST, set_hostname },
	{ "caps", OPTIONS_FIRST, set_caps },
	{ "shm", OPTIONS_FIRST, set_shm },
	{ "flag", OPTIONS_FIRST, set_flag },
	{ "sysctl", OPTIONS_KERNEL, set_sysctl },
	{ "etc", OPTIONS_FILES, mount_etc },
	{ "tmpfs", OPTIONS_MOUNTS, mount_tmpfs },
	{ "bind", OPTIONS_MOUNTS, mount_bind },
	{ "group", OPTIONS_LAST, exe_user_add_group },
	{ "limit", OPTIONS_LAST, set_limit },
	{ "stdin", OPTIONS_LAST, open_stdin },
};

static int
apply_option(const char *text, enum options_phase phase)
{
	size_t len = strcspn(text, "=");

	for (size_t i = 0; i < ELEMENTSOF(options); i++)
		if (strlen(options[i].name) == len && memcmp(options[i].name, text, len) == 0)
			return options[i].phase == phase ? options[i].apply(text + len + 1) : 0;
	return -EINVAL;
}

int
exe_options_apply(struct exe *x, enum options_phase phase)
{
	struct spec_entry entry;
	uint32_t number = 0;
	size_t at = 0;

	while (spec_next(x->spec.map, x->spec.size, &at, &entry) == 1) {
		int r = 0;

		if (entry.tag == SPEC_OPTION && (number++, r = apply_option(entry.text, phase)) < 0)
			return exe_inside_failed(
			    x, EXE_STEP_CONTAINER, EXE_INSIDE_OPTION | number << 8, r);
	}
	return 0;
}
