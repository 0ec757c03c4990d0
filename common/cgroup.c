// SPDX-License-Identifier: Apache-2.0
/* cgroup.c: the cgroups of one agent. Runs in: launcher, exec-helper, mount-helper. */
#include "common/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/fd.h"
#include "common/mountinfo.h"
#include "common/path.h"

#define DEPTH_MAX 16
#define PATH_SIZE 512

static const char *const tree_names[CGROUP_TREES] = {
	[CGROUP_V2] = "cgroup2",
	[CGROUP_MEMORY] = "memory",
	[CGROUP_CPU] = "cpu",
	[CGROUP_PIDS] = "pids",
	[CGROUP_CPUSET] = "cpuset",
	[CGROUP_SYSTEMD] = "name=systemd",
};

/* The directory is not called "tasks" in v1, where each cgroup has a file of that name. */
static const char *
tasks_name(int tree)
{
	return tree == CGROUP_V2 ? "tasks" : "runs";
}

/* Returns whether list, whose words are separated by any of the characters in sep, contains
 * word. */
static bool
has_word(const char *list, const char *sep, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = list; *at; at += strcspn(at, sep), at += strspn(at, sep))
		if (strcspn(at, sep) == len && strncmp(at, word, len) == 0)
			return true;
	return false;
}

static int
take_mount(struct cgroup *c, const struct mountinfo *m)
{
	const bool v2 = strcmp(m->type, "cgroup2") == 0;

	if (!v2 && strcmp(m->type, "cgroup") != 0)
		return 0;
	for (int t = 0; t < CGROUP_TREES; t++) {
		if (c->root[t] >= 0 || v2 != (t == CGROUP_V2) ||
		    (!v2 && !has_word(m->options, ",", tree_names[t])))
			continue;
		c->root[t] = open(m->target, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (c->root[t] < 0)
			return -errno;
	}
	return 0;
}

/* Mounts cgroup2 outside of any namespace. Every mount of cgroup2 shows the kernel's only
 * hierarchy. */
static int
mount_detached(void)
{
	const unsigned attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
	cleanup_close int fs = fsopen("cgroup2", FSOPEN_CLOEXEC);

	return fs < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0
		   ? -1
		   : fsmount(fs, FSMOUNT_CLOEXEC, attributes);
}

static int
find_trees(struct cgroup *c, struct err *e)
{
	cleanup_free char *text = NULL;
	struct mountinfo m;
	int more, r;

	for (int t = 0; t < CGROUP_TREES; t++)
		c->root[t] = c->exec[t] = c->tasks[t] = -1;
	c->in_v2 = c->missing = 0;
	r = mountinfo_read(&text);
	if (r < 0)
		return err_set(e, r, "read /proc/self/mountinfo");
	for (char *at = text; (more = mountinfo_next(&at, &m)) != 0;)
		if (more > 0 && (r = take_mount(c, &m)) < 0)
			return err_set(e, r, "open the cgroup hierarchy at %s", m.target);
	if (c->root[CGROUP_SYSTEMD] >= 0 && access("/run/systemd/system", F_OK) < 0)
		close_p(&c->root[CGROUP_SYSTEMD]);
	if (c->root[CGROUP_V2] < 0 && (c->root[CGROUP_V2] = mount_detached()) < 0)
		return err_set(
		    e, -errno, "cgroup2 is not mounted, and making a mount of it failed");
	return 0;
}

/* Enables all controllers of dir for its children. Errors are ignored: cgroup_open() checks which
 * controllers the tasks' directory ends up with. */
static void
enable_controllers(int dir)
{
	for (int t = CGROUP_MEMORY; t <= CGROUP_CPUSET; t++) {
		char word[16];

		(void)snprintf(word, sizeof word, "+%s", tree_names[t]);
		(void)fd_write_file(dir, "cgroup.subtree_control", word);
	}
}

/* Copies cpuset.cpus and cpuset.mems from the parent. Both are empty in a new v1 cpuset, and no
 * process can enter it until they are set. */
static void
cpuset_inherit(int from, int to)
{
	static const char *const files[] = { "cpuset.cpus", "cpuset.mems" };

	for (size_t i = 0; i < ELEMENTSOF(files); i++) {
		cleanup_free char *text = NULL, *has = NULL;

		if (fd_read_file(to, files[i], 4096, &has) == 1 &&
		    fd_read_file(from, files[i], 4096, &text) > 0)
			(void)fd_write_file(to, files[i], text);
	}
}

/* Opens the directory path of one hierarchy, component by component. With make it creates what is
 * missing. */
static int
open_path(int root, const char *path, bool make, int tree)
{
	cleanup_close int dir = openat(root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char copy[PATH_SIZE], *at = copy, *name;

	if (dir < 0)
		return -errno;
	if (strlen(path) >= sizeof copy)
		return -ENAMETOOLONG;
	(void)strcpy(copy, path);
	while ((name = strsep(&at, "/"))) {
		int next;

		if (name[0] == '\0')
			continue;
		if (make && tree == CGROUP_V2)
			enable_controllers(dir);
		if (make && mkdirat(dir, name, 0755) < 0 && errno != EEXIST)
			return -errno;
		next = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return -errno;
		if (make && tree == CGROUP_CPUSET)
			cpuset_inherit(dir, next);
		(void)close(dir);
		dir = next;
	}
	return steal_fd(&dir);
}

/* Opens the directory for runs with cores of their own. It is a sibling of tasks/, so that tasks/
 * can be limited to the remaining cores. */
static int
open_cores(struct cgroup *c, const char *parent, bool make, struct err *e)
{
	char path[PATH_SIZE];
	int dir;

	(void)snprintf(path, sizeof path, "%s/cores", parent);
	dir = open_path(c->root[CGROUP_V2], path, make, CGROUP_V2);
	if (dir < 0)
		return err_set(e, dir, "cgroup %s", path);
	if (make)
		enable_controllers(dir);
	c->tasks[CGROUP_CPUSET] = dir;
	return 0;
}

int
cgroup_open(struct cgroup *c, const char *parent, bool make, struct err *e)
{
	cleanup_free char *enabled = NULL;
	int r = find_trees(c, e);

	if (r < 0)
		return r;
	for (int t = 0; t < CGROUP_TREES; t++) {
		cleanup_close int dir = -1;

		if (c->root[t] < 0)
			continue;
		dir = open_path(c->root[t], parent, make, t);
		if (dir < 0)
			return err_set(e, dir, "cgroup %s in hierarchy %s", parent, tree_names[t]);
		/* Kernels from 6.13 on kill whatever is cloned into a cgroup that was killed once,
		 * so an empty one is created anew. */
		if (make && t == CGROUP_V2)
			(void)unlinkat(dir, "exec", AT_REMOVEDIR);
		c->exec[t] = open_path(dir, "exec", make, t);
		c->tasks[t] = open_path(dir, tasks_name(t), make, t);
		if (c->exec[t] < 0 || c->tasks[t] < 0)
			return err_set(e, c->exec[t] < 0 ? c->exec[t] : c->tasks[t],
			    "cgroup %s/{exec,tasks} in hierarchy %s", parent, tree_names[t]);
	}
	if (make)
		enable_controllers(c->tasks[CGROUP_V2]);
	/* New cgroups then copy this cpuset's cores and memory nodes instead of starting empty. */
	if (make && c->tasks[CGROUP_CPUSET] >= 0)
		(void)fd_write_file(c->tasks[CGROUP_CPUSET], "cgroup.clone_children", "1");
	r = (int)fd_read_file(c->tasks[CGROUP_V2], "cgroup.subtree_control", 4096, &enabled);
	if (r < 0)
		return err_set(e, r, "cgroup %s: read which controllers its tasks have", parent);
	for (int t = CGROUP_MEMORY; t <= CGROUP_CPUSET; t++) {
		if (has_word(enabled, " \n", tree_names[t]))
			c->in_v2 |= CGROUP_BIT(t);
		else if (c->root[t] < 0)
			c->missing |= CGROUP_BIT(t);
	}
	return c->in_v2 & CGROUP_BIT(CGROUP_CPUSET) ? open_cores(c, parent, make, e) : 0;
}

static uint64_t
kernel_limit(const char *file)
{
	cleanup_free char *text = NULL;

	return fd_read_file(AT_FDCWD, file, 64, &text) > 0 ? strtoull(text, NULL, 10) : 0;
}

uint64_t
cgroup_pids_share(unsigned percent)
{
	uint64_t pids = kernel_limit("/proc/sys/kernel/pid_max"),
		 threads = kernel_limit("/proc/sys/kernel/threads-max");

	return (pids < threads ? pids : threads) * percent / 100;
}

/* Lets group write cpuset.cpus of the three cgroups whose runs share cores, and no other file. */
static int
give_cores(const struct cgroup *c, gid_t group)
{
	const int dirs[] = { c->exec[CGROUP_V2], c->tasks[CGROUP_V2], c->exec[CGROUP_CPUSET] };

	for (size_t i = 0; i < ELEMENTSOF(dirs); i++)
		if (dirs[i] >= 0 &&
		    (fchownat(dirs[i], "cpuset.cpus", 0, group, 0) < 0 ||
			fchmodat(dirs[i], "cpuset.cpus", 0664, 0) < 0) &&
		    errno != ENOENT)
			return -errno;
	return 0;
}

int
cgroup_guard(const struct cgroup *c, gid_t group, struct err *e)
{
	const uint64_t pids = cgroup_pids_share(CGROUP_PIDS_ALL);
	char text[24];
	int r = give_cores(c, group);

	if (r < 0)
		return err_set(e, r, "let group %u write cpuset.cpus", (unsigned)group);
	for (int t = 0; t < CGROUP_TREES; t++)
		if (c->exec[t] >= 0 && (fchownat(c->exec[t], "..", 0, group, 0) < 0 ||
					   fchmodat(c->exec[t], "..", 0750, 0) < 0))
			return err_set(e, -errno, "change owner and mode of a cgroup");
	(void)snprintf(text, sizeof text, "%llu", (unsigned long long)pids);
	if (pids)
		r = fd_write_file(
		    c->exec[c->in_v2 & CGROUP_BIT(CGROUP_PIDS) ? CGROUP_V2 : CGROUP_PIDS],
		    "../pids.max", text);
	/* If the controller is missing, the caller has already warned about that. */
	return r == 0 || c->missing & CGROUP_BIT(CGROUP_PIDS)
		   ? 0
		   : err_set(e, r, "limit the processes of all tasks");
}

void
cgroup_close(struct cgroup *c)
{
	for (int t = 0; t < CGROUP_TREES; t++) {
		close_p(&c->root[t]);
		close_p(&c->exec[t]);
		close_p(&c->tasks[t]);
		c->root[t] = c->exec[t] = c->tasks[t] = -1;
	}
}

void
cgroup_missing_names(const struct cgroup *c, char *buf, size_t size)
{
	size_t at = 0;

	buf[0] = '\0';
	for (int t = CGROUP_MEMORY; t <= CGROUP_CPUSET && at < size; t++)
		if (c->missing & CGROUP_BIT(t))
			at += (size_t)snprintf(
			    buf + at, size - at, "%s%s", at > 0 ? ", " : "", tree_names[t]);
}

int
cgroup_kill(int dir_fd)
{
	return fd_write_file(dir_fd, "cgroup.kill", "1");
}

/* cgroup.events says "populated 0" when neither the cgroup nor any cgroup below it has a process
 * other than zombies. */
static int
read_populated(int events_fd)
{
	char text[128];
	ssize_t n = pread(events_fd, text, sizeof text - 1, 0);

	if (n < 0)
		return -errno;
	text[n] = '\0';
	return strstr(text, "populated 0") == NULL;
}

int
cgroup_is_populated(int dir_fd)
{
	cleanup_close int fd = openat(dir_fd, "cgroup.events", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : read_populated(fd);
}

int
cgroup_wait_empty(int dir_fd, int timeout_ms)
{
	cleanup_close int fd = openat(dir_fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
	struct pollfd p = { .fd = fd, .events = POLLPRI };
	const uint64_t end = clock_ms() + (uint64_t)timeout_ms;
	int r = fd < 0 ? -errno : read_populated(fd);

	for (; r == 1; r = read_populated(fd)) {
		uint64_t now = clock_ms();

		if (now >= end)
			return -ETIMEDOUT;
		if (poll(&p, 1, (int)(end - now)) < 0 && errno != EINTR)
			return -errno;
	}
	return r;
}

static int
rmdir_deep(int dir_fd, const char *name, int depth)
{
	cleanup_dir DIR *d = NULL;
	const char *n;
	int r;

	if (unlinkat(dir_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	if (errno != EBUSY || depth == DEPTH_MAX)
		return -errno;
	r = dir_open_at(dir_fd, name, &d);
	if (r < 0)
		return r;
	while ((n = dir_next(d))) /* fails for a cgroup's files, which rmdir removes with it */
		(void)rmdir_deep(dirfd(d), n, depth + 1);
	return unlinkat(dir_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : -errno;
}

int
cgroup_rmdir(int dir_fd, const char *name)
{
	return rmdir_deep(dir_fd, name, 0);
}

/*
 * Removes parent's last component in one hierarchy and then all its parents that are empty. A
 * cgroup that is empty in cgroup2 may be busy in another hierarchy for a moment, so the rmdir is
 * retried.
 */
static int
remove_path(int root, const char *parent, int timeout_ms)
{
	char path[PATH_SIZE], *slash;
	int r = snprintf(path, sizeof path, "%s", parent + strspn(parent, "/"));

	if ((size_t)r >= sizeof path)
		return -ENAMETOOLONG;
	while ((r = cgroup_rmdir(root, path)) == -EBUSY && timeout_ms-- > 0)
		(void)poll(NULL, 0, 1);
	while (r == 0 && (slash = strrchr(path, '/'))) {
		*slash = '\0';
		if (unlinkat(root, path, AT_REMOVEDIR) < 0)
			break;
	}
	return r;
}

int
cgroup_remove(const char *parent, int timeout_ms, struct err *e)
{
	cleanup_close int dir = -1;
	struct cgroup c;
	int r = find_trees(&c, e);

	if (r >= 0)
		dir = open_path(c.root[CGROUP_V2], parent, false, CGROUP_V2);
	if (dir >= 0 &&
	    ((r = cgroup_kill(dir)) < 0 || (r = cgroup_wait_empty(dir, timeout_ms)) < 0))
		(void)err_set(e, r, "empty cgroup %s", parent);
	for (int t = CGROUP_TREES - 1; r >= 0 && t >= 0; t--)
		if (c.root[t] >= 0 && (r = remove_path(c.root[t], parent, timeout_ms)) < 0)
			(void)err_set(
			    e, r, "remove cgroup %s in hierarchy %s", parent, tree_names[t]);
	cgroup_close(&c);
	return r;
}

/* Returns whether path is `<dir>/<run>` or below it. */
static bool
is_in(const char *path, const char *dir, const char *run)
{
	char want[64];
	int n = snprintf(want, sizeof want, "%s/%s", dir, run);

	return n > 0 && (size_t)n < sizeof want && strncmp(path, want, (size_t)n) == 0 &&
	       (path[n] == '/' || path[n] == '\0');
}

bool
cgroup_has_pid(const char *parent, const char *run, pid_t pid)
{
	char path[64], want[PATH_SIZE], text[16384] = "", *at = text, *line;
	cleanup_close int fd = -1;
	int n;

	(void)snprintf(path, sizeof path, "/proc/%d/cgroup", (int)pid);
	n = snprintf(want, sizeof want, "0::%s/", parent);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (n < 0 || (size_t)n >= sizeof want || fd_read_full(fd, text, sizeof text - 1) < 0)
		return false;
	while ((line = strsep(&at, "\n")))
		if (strncmp(line, want, (size_t)n) == 0)
			return is_in(line + n, "tasks", run) || is_in(line + n, "cores", run);
	return false;
}
