// SPDX-License-Identifier: Apache-2.0
/* lau_data.c: opens, locks and names the data directory, makes its subdirectories, and removes its
 * mounts with -dev. Runs in: launcher. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/fd.h"
#include "common/id.h"
#include "common/log.h"
#include "common/path.h"
#include "common/privs.h"
#include "launcher/launcher.h"
#include "proto/container_ids.h"

#define DEFAULT_DATA "/var/lib/drover"
#define TEMPORARY    "/tmp/drover-XXXXXX"
#define STACKED_MAX  16 /* limit of stacked mounts */
/* The address of a plugin's socket, which must fit in sun_path with its NUL. */
#define PLUGIN_SOCKET "/csi/sock/01234567-0123-0123-0123-0123456789ab/csi.sock"
#define DATA_LEN_MAX  (sizeof(((struct sockaddr_un *)0)->sun_path) - sizeof PLUGIN_SOCKET)

enum owner { OWNER_ROOT, OWNER_DROVER, OWNER_IMAGES, OWNER_UNPACKER };

static const struct made_dir {
	const char *name;
	mode_t mode;
	enum owner owner, group;
} made_dirs[] = {
	{ "state", 0700, OWNER_DROVER, OWNER_DROVER },
	{ "audit", 0700, OWNER_DROVER, OWNER_DROVER },
	{ "alloc", 0711, OWNER_ROOT, OWNER_ROOT },
	{ "logs", 02750, OWNER_ROOT, OWNER_DROVER },
	{ "run", 02750, OWNER_ROOT, OWNER_DROVER },
	{ "csi", 0711, OWNER_ROOT, OWNER_ROOT },
	{ "csi/sock", 0711, OWNER_ROOT, OWNER_ROOT },
	{ "csi/node", 0711, OWNER_ROOT, OWNER_ROOT },
	{ "csi/controller", 0711, OWNER_ROOT, OWNER_ROOT },
	{ "csi/monolith", 0711, OWNER_ROOT, OWNER_ROOT },
	{ "images", 0711, OWNER_ROOT, OWNER_ROOT },
	{ "images/blobs", 02750, OWNER_IMAGES, OWNER_UNPACKER },
	{ "images/layers", 0700, OWNER_UNPACKER, OWNER_UNPACKER },
};

/* Opens the data directory with O_PATH; makes it if it is missing. */
static int
open_chosen(struct launcher *l, struct err *e)
{
	const char *configured = l->config.config->data_dir;
	const char *path = l->data_option ?: configured;
	char temporary[] = TEMPORARY;
	int fd;

	if (!path[0] && !l->dev)
		path = DEFAULT_DATA;
	if (!path[0]) {
		path = mkdtemp(temporary);
		if (!path)
			return err_set(e, -errno, "make a temporary data directory");
		l->data_is_temporary = true;
	}
	fd = path_open_owned(path, 0711, e);
	return fd < 0 ? err_prefix(e, "data directory") : fd;
}

static int
check_path(const char *path, struct err *e)
{
	if (strlen(path) > DATA_LEN_MAX)
		return err_say(e, -ENAMETOOLONG,
		    "the path of data directory %s is %zu bytes too long: the socket address of a "
		    "CSI plugin below it would not fit",
		    path, strlen(path) - DATA_LEN_MAX);
	if (strpbrk(path, " \t\n\\:,"))
		return err_say(e, -EINVAL,
		    "the path of data directory %s must not contain blanks, colons, commas or "
		    "backslashes",
		    path);
	return 0;
}

int
lau_lock_take(int fd, const char *what, struct err *e)
{
	const struct timespec pause = { .tv_nsec = 10 * 1000 * 1000 };
	uint64_t until = clock_ms() + LAU_LOCK_WAIT_MS;
	char text[16] = "";

	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return err_set(e, -errno, "lock %s", what);
		if (clock_ms() < until) {
			(void)nanosleep(&pause, NULL);
			continue;
		}
		if (pread(fd, text, sizeof text - 1, 0) > 0)
			return err_say(e, -EBUSY, "another agent (pid %ld) uses %s",
			    strtol(text, NULL, 10), what);
		return err_say(e, -EBUSY, "another agent uses %s", what);
	}
	return 0;
}

/* Checks the mount options of the file system here, once, instead of in each task. */
static int
check_mount(const struct launcher *l, struct err *e)
{
	struct statvfs fs;

	if (fstatvfs(l->data_fd, &fs) < 0)
		return err_set(e, -errno, "read the mount options of %s", l->data);
	if (fs.f_flag & ST_RDONLY)
		return err_say(e, -EROFS,
		    "data directory %s is on a file system that is mounted read-only", l->data);
	if (fs.f_flag & ST_NOEXEC)
		log_warn("data directory %s is on a file system that is mounted noexec: tasks "
			 "cannot run programs from their own directories",
		    l->data);
	if (fs.f_flag & ST_NODEV)
		log_info("data directory %s is on a file system that is mounted nodev: device "
			 "nodes that a CSI plugin makes there do not work",
		    l->data);
	return 0;
}

/* The pid is only for the message above. The descriptor that the processes share is read-only. */
static int
lock_data(struct launcher *l, struct err *e)
{
	cleanup_close int writer =
	    openat(l->data_fd, "lock", O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r;

	if (writer >= 0)
		l->lock_fd = openat(l->data_fd, "lock", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (writer < 0 || l->lock_fd < 0)
		return err_set(e, -errno, "open %s/lock", l->data);
	r = lau_lock_take(l->lock_fd, l->data, e);
	if (r == 0 && (ftruncate(writer, 0) < 0 || dprintf(writer, "%d\n", (int)getpid()) < 0))
		return err_set(e, -errno, "write %s/lock", l->data);
	return r;
}

/* A directory with foreign contents is refused: the agent would change its mode and owner, and
 * remove entries that have the agent's names. */
static int
check_contents(const struct launcher *l, struct err *e)
{
	/* lost+found of a new file system, and leftovers of a start that was killed. */
	static const char *const allowed[] = { "lost+found", "lock", "instance", "instance.new" };
	cleanup_dir DIR *d = NULL;
	const char *name;
	int r;

	if (faccessat(l->data_fd, "instance", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	r = dir_open_at(l->data_fd, ".", &d);
	if (r < 0)
		return err_set(e, r, "list data directory %s", l->data);
	while ((name = dir_next(d))) {
		bool ok = false;

		for (size_t i = 0; i < ELEMENTSOF(allowed); i++)
			ok |= strcmp(name, allowed[i]) == 0;
		if (!ok)
			return err_say(e, -ENOTEMPTY,
			    "%s contains %s but no file \"instance\", so it is not a data "
			    "directory: choose a new or empty one",
			    l->data, name);
	}
	return 0;
}

int
lau_data_open(struct launcher *l, struct err *e)
{
	cleanup_close int fd = open_chosen(l, e);
	char path[PATH_MAX];
	int r;

	if (fd < 0)
		return fd;
	r = fd_path(fd, path);
	if (r < 0)
		return err_set(e, r, "find the path of the data directory");
	if ((r = check_path(path, e)) < 0)
		return r;
	(void)strcpy(l->data, path);
	l->data_fd = fd_reopen(fd, O_RDONLY | O_DIRECTORY);
	if (l->data_fd < 0)
		return err_set(e, l->data_fd, "open data directory %s", l->data);
	if ((r = check_mount(l, e)) < 0 || (r = check_contents(l, e)) < 0)
		return r;
	return lock_data(l, e);
}

int
lau_file_replace(int dir_fd, const char *name, mode_t mode, const void *data, size_t len)
{
	cleanup_close int fd = -1;
	char temporary[64];
	int r;

	(void)snprintf(temporary, sizeof temporary, "%s.new", name);
	(void)unlinkat(dir_fd, temporary, 0);
	fd = openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (fd < 0)
		return -errno;
	r = fd_write_full(fd, data, len);
	if (r == 0 && (fchmod(fd, mode) < 0 || fsync(fd) < 0 ||
			  renameat(dir_fd, temporary, dir_fd, name) < 0))
		r = -errno;
	if (r < 0)
		(void)unlinkat(dir_fd, temporary, 0);
	return r < 0 || fsync(dir_fd) == 0 ? r : -errno;
}

static int
read_instance(struct launcher *l, struct err *e)
{
	cleanup_free char *text = NULL;
	struct id id = id_random();
	char hex[ID_HEX_SIZE];
	ssize_t n = fd_read_file(l->data_fd, "instance", 64, &text);
	int r;

	if (n >= 8 && strspn(text, "0123456789abcdef") == 8 &&
	    (text[8] == '\n' || text[8] == '\0')) {
		memcpy(l->instance, text, 8);
		return 0;
	}
	if (n != -ENOENT)
		return n < 0 ? err_set(e, (int)n, "read %s/instance", l->data)
			     : err_say(e, -EINVAL, "%s/instance does not hold 8 hexadecimal digits",
				   l->data);
	id_to_hex(&id, hex);
	memcpy(l->instance, hex, 8);
	hex[8] = '\n';
	r = lau_file_replace(l->data_fd, "instance", 0644, hex, 9);
	return r < 0 ? err_set(e, r, "write %s/instance", l->data) : 0;
}

static unsigned
owner_id(const unsigned *ids, enum owner owner)
{
	return owner == OWNER_ROOT     ? 0
	       : owner == OWNER_DROVER ? ids[LAU_USER_DROVER]
	       : owner == OWNER_IMAGES ? ids[LAU_USER_IMAGES]
				       : CONTAINER_ID_FIRST;
}

int
lau_data_make(struct launcher *l, struct err *e)
{
	int r = read_instance(l, e);

	if (r == 0 && fchmod(l->data_fd, 0711) < 0)
		return err_set(e, -errno, "change the mode of %s", l->data);
	if (r < 0 || (r = lau_users_find(l, e)) < 0)
		return r;
	for (size_t i = 0; i < ELEMENTSOF(made_dirs); i++) {
		const struct made_dir *d = &made_dirs[i];

		r = dir_ensure_at(l->data_fd, d->name, d->mode, owner_id(l->users.uid, d->owner),
		    owner_id(l->users.gid, d->group), NULL);
		if (r < 0)
			return err_set(e, r, "make %s/%s", l->data, d->name);
	}
	return 0;
}

/* Opens the directory `name` with O_PATH; *ret_mounted is true if something is mounted on it. */
static int
open_place(const struct launcher *l, const char *name, bool *ret_mounted, struct err *e)
{
	cleanup_close int fd = fd_open_beneath(l->data_fd, name, O_PATH | O_DIRECTORY, 0);
	struct statx stx;

	if (fd < 0 || statx(fd, "", AT_EMPTY_PATH, 0, &stx) < 0)
		return err_set(e, fd < 0 ? fd : -errno, "open %s/%s", l->data, name);
	*ret_mounted = stx.stx_attributes & STATX_ATTR_MOUNT_ROOT;
	return steal_fd(&fd);
}

/* The mount is private, so mounts that executors of raw_exec tasks make below it do not propagate.
 * (A mount namespace that is created later keeps a copy until the directory is removed.) A mount
 * attached below a shared mount becomes shared, so the propagation is set last. */
int
lau_alloc_mount(struct launcher *l, struct err *e)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV };
	struct mount_attr alone = { .propagation = MS_PRIVATE };
	bool mounted = false;
	cleanup_close int fd = open_place(l, "alloc", &mounted, e), tree = -1;

	if (fd < 0)
		return fd;
	if (!mounted)
		tree = open_tree(fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
	if (!mounted &&
	    (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0 ||
		move_mount(tree, "", fd, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) <
		    0))
		return err_set(e, -errno, "mount %s/alloc on itself, nosuid and nodev", l->data);
	if (mount_setattr(mounted ? fd : tree, "", AT_EMPTY_PATH, &alone, sizeof alone) < 0)
		return err_set(e, -errno, "make the mount of %s/alloc private", l->data);
	return 0;
}

/* Unmounts everything on path and below it. */
static void
unmount_all(const struct launcher *l, const char *path)
{
	char at[2 * NAME_MAX + 64];
	int r = 0;

	(void)snprintf(at, sizeof at, "/proc/self/fd/%d/%s", l->data_fd, path);
	for (int i = 0; r == 0 && i < STACKED_MAX; i++)
		r = umount2(at, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 ? -errno : 0;
	if (r == 0)
		log_warn("unmount %s/%s: %d mounts lay on each other, and there may be more",
		    l->data, path, STACKED_MAX);
	else if (r != -EINVAL && r != -ENOENT)
		log_warn("unmount %s/%s: %s", l->data, path, strerrordesc_np(-r));
}

/* Unmounts drover's own mounts: alloc/ with the secrets of raw_exec tasks, and the root of each
 * plugin with its volumes. Only root can create entries in the directories that are read here. */
static void
unmount_own(const struct launcher *l)
{
	static const char *const kinds[] = { "csi/node", "csi/controller", "csi/monolith" };
	char path[2 * NAME_MAX + 16];
	const char *name;

	unmount_all(l, "alloc");
	for (size_t i = 0; i < ELEMENTSOF(kinds); i++) {
		cleanup_dir DIR *d = NULL;

		if (dir_open_at(l->data_fd, kinds[i], &d) < 0)
			continue;
		while ((name = dir_next(d))) {
			(void)snprintf(path, sizeof path, "%s/%s", kinds[i], name);
			unmount_all(l, path);
		}
	}
}

/* Tasks wrote the contents of the data directory, so a child without root removes them. */
static _Noreturn void
remove_contents(const struct launcher *l)
{
	const struct privs p = {
		.uid = l->users.uid[LAU_USER_FILE],
		.gid = l->users.gid[LAU_USER_FILE],
		.caps = CAP_BIT(DAC_OVERRIDE) | CAP_BIT(FOWNER),
		.no_new_privs = true,
	};
	cleanup_dir DIR *d = NULL;
	struct err e = { 0 };
	const char *name;
	int r = privs_drop(&p, &e);

	if (r == 0)
		r = dir_open_at(l->data_fd, ".", &d);
	while (r >= 0 && (name = dir_next(d)))
		r = tree_remove_at(dirfd(d), name);
	if (r < 0)
		log_warn("remove what is in %s: %s", l->data, strerrordesc_np(-r));
	_exit(r < 0);
}

void
lau_data_undo(struct launcher *l)
{
	pid_t pid;

	if (!l->dev || l->data_fd < 0)
		return;
	unmount_own(l);
	if (!l->data_is_temporary)
		return;
	pid = fork();
	if (pid == 0)
		remove_contents(l);
	if (pid > 0)
		(void)waitpid(pid, NULL, 0);
	if (rmdir(l->data) < 0)
		log_warn("remove %s: %s", l->data, strerrordesc_np(errno));
}
