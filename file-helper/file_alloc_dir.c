// SPDX-License-Identifier: Apache-2.0
/* file_alloc_dir.c: the directories of an alloc. Runs in: file-helper. Asked by: supervisor. */
/* clang-format off */
/*
 *	alloc/<alloc>/		own 0710, of the alloc's group ("own": the file-helper's user;
 *				the group: proto/alloc_group.h)
 *	    alloc/		own 01777: shared, but no task can take away what drover put there
 *		data/ tmp/	nobody 0777: for all tasks of the alloc, of any user
 *		logs		own 0755, where exec mounts logs/<alloc>; if all tasks are raw_exec
 *				and see host paths, a link to it
 *	    <task>/		own 0700, until the executor gives it to the task's user
 *		local/ private/	the same
 *		tmp/		own 01777, the same
 *		secrets/	own 0700, where raw_exec's executor mounts a tmpfs of the user's
 *	logs/<alloc>/		executor:drover 2755
 *
 * Earlier versions made them as root: where a directory is to be "own", root's is as good.
 *
 * This is on the path of every start: each directory is one mkdirat(2) with its final mode, below
 * directories whose names no task can change, so that they need no openat2(2). What is there already
 * is checked and not changed.
 */
/* clang-format on */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/crash.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/project.h"
#include "file-helper/file.h"
#include "proto/alloc_group.h"

#define NOBODY   65534
#define TOP_MODE 0710

enum owner {
	OWNER_SELF,
	OWNER_NOBODY,
	OWNER_TASK, /* to be given to the task's user by its executor: the task's directory … */
	OWNER_USER, /* … and those in it, which the task may replace */
};

struct entry {
	const char *suffix; /* after the directory's name */
	mode_t mode;
	enum owner owner;
};

static const struct entry shared_entries[] = {
	{ "", 01777, OWNER_SELF },
	{ "/data", 0777, OWNER_NOBODY },
	{ "/tmp", 0777, OWNER_NOBODY },
};

static const struct entry task_entries[] = {
	{ "", 0700, OWNER_TASK },
	{ "/local", 0700, OWNER_USER },
	{ "/private", 0700, OWNER_USER },
	{ "/tmp", 01777, OWNER_USER },
	{ "/secrets", 0700, OWNER_USER },
};

static bool
is_ours(const struct file *f, const struct stat *st)
{
	return st->st_uid == f->args->uid || st->st_uid == 0;
}

/* Returns 1 if made, 0 if it existed, or -errno. Only our own directories are checked for owner and
 * mode. An existing directory of nobody may have been made by a task, and nothing depends on it;
 * but one that is still ours is left from a crash between the two calls, because no task can make
 * one. */
static int
make_dir(const struct file *f, int dir_fd, const char *path, mode_t mode, enum owner owner,
    struct err *e)
{
	bool nobody = owner == OWNER_NOBODY;
	int made = mkdirat(dir_fd, path, mode) == 0;
	struct stat st;

	if (!made && errno == EEXIST && owner == OWNER_USER)
		return 0;
	if (!made && (errno != EEXIST || fstatat(dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0))
		return err_set(e, -errno, "make %s", path);
	if (owner == OWNER_TASK && !made && !S_ISDIR(st.st_mode))
		return err_say(e, -EEXIST, "%s exists, but is not a directory", path);
	if (owner == OWNER_SELF && !made && (!is_ours(f, &st) || st.st_mode != (S_IFDIR | mode)))
		return err_say(e, -EEXIST,
		    "%s exists, but not with the mode and owner of drover (mode %o, owner %u)",
		    path, st.st_mode, st.st_uid);
	if (nobody && (made || (is_ours(f, &st) && S_ISDIR(st.st_mode))) &&
	    fchownat(dir_fd, path, NOBODY, NOBODY, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(e, -errno, "give %s to nobody", path);
	return made;
}

/* No task can create entries here, so an existing entry is the link. */
static int
make_link(int dir_fd, const char *path, const char *target, struct err *e)
{
	if (symlinkat(target, dir_fd, path) < 0 && errno != EEXIST)
		return err_set(e, -errno, "make the link %s", path);
	return 0;
}

static int
make_entries(const struct file *f, int dir_fd, const char *name, const struct entry *entries,
    size_t n, struct err *e)
{
	char path[NAME_BYTES_MAX + 16];
	int r = 0;

	for (size_t i = 0; r >= 0 && i < n; i++) {
		(void)snprintf(path, sizeof path, "%s%s", name, entries[i].suffix);
		r = make_dir(f, dir_fd, path, entries[i].mode, entries[i].owner, e);
	}
	return r;
}

static int
make_shared(const struct file *f, int dir_fd, const char *alloc, bool raw_exec, struct err *e)
{
	char target[ID_UUID_SIZE + 16];
	int r = make_entries(f, dir_fd, "alloc", shared_entries, ELEMENTSOF(shared_entries), e);

	if (r < 0)
		return r;
	if (!raw_exec)
		return make_dir(f, dir_fd, "alloc/logs", 0755, OWNER_SELF, e);
	(void)snprintf(target, sizeof target, "../../../logs/%s", alloc);
	return make_link(dir_fd, "alloc/logs", target, e);
}

/* The group and the set-group-id bit are inherited from logs/. No task can change the directory, so
 * the owner is also set after a crash. */
static int
make_logs(const struct file *f, const char *alloc, struct err *e)
{
	int logs = f->root_fds[FILE_ROOT_LOGS];

	if ((mkdirat(logs, alloc, 0755) < 0 && errno != EEXIST) ||
	    fchownat(logs, alloc, f->args->executor_uid, (gid_t)-1, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(e, -errno, "make logs/%s", alloc);
	return 0;
}

/* Makes the alloc's directory, which only root and the alloc's group may enter. A directory of an
 * older version is closed now. If this user namespace does not map the group, only root may enter
 * it. */
static int
make_top(const struct file *f, const char *alloc, int *ret_fd, struct err *e)
{
	int allocs = f->root_fds[FILE_ROOT_ALLOC];
	int made = mkdirat(allocs, alloc, TOP_MODE) == 0;
	cleanup_close int fd = -1;
	struct stat st;
	struct id id;
	bool known;

	if (!made && errno != EEXIST)
		return err_set(e, -errno, "make alloc/%s", alloc);
	fd = fd_open_beneath(allocs, alloc, O_RDONLY | O_DIRECTORY, 0);
	if (fd == -ENOTDIR || fd == -ELOOP)
		return err_say(e, -EEXIST, "alloc/%s exists, but is not a directory", alloc);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(e, fd < 0 ? fd : -errno, "open alloc/%s", alloc);
	if (!is_ours(f, &st))
		return err_say(e, -EEXIST,
		    "alloc/%s exists, but does not belong to drover (owner %u)", alloc, st.st_uid);
	known = id_from_uuid(alloc, &id);
	if ((!(known ? is_alloc_group(&id, st.st_gid) : st.st_gid == 0) &&
		fchownat(fd, "", (uid_t)-1, known ? alloc_group(&id) : 0, AT_EMPTY_PATH) < 0 &&
		errno != EINVAL) ||
	    (st.st_mode != (S_IFDIR | TOP_MODE) && fchmod(fd, TOP_MODE) < 0))
		return err_set(e, -errno, "close alloc/%s to others", alloc);
	*ret_fd = steal_fd(&fd);
	return made;
}

static int
make_all(const struct file *f, int dir_fd, const char *alloc,
    const struct file_alloc_dir_make_req *req, struct err *e)
{
	int r = make_shared(f, dir_fd, alloc, req->raw_exec, e);

	for (size_t i = 0; r >= 0 && i < req->n_tasks; i++)
		r = make_entries(
		    f, dir_fd, req->tasks[i].name, task_entries, ELEMENTSOF(task_entries), e);
	return r < 0 ? r : make_logs(f, alloc, e);
}

/* Renames in one call, below directories that were opened without following links. It replaces only
 * an empty directory. The task may have put a directory of somebody else there, which its successor
 * must not get. Returns 1, or 0 if there was nothing to move or it was already moved. */
static int
move_one(const struct file *f, int from_fd, int to_fd, const char *parent, const char *name)
{
	cleanup_close int from = fd_open_beneath(from_fd, parent, O_PATH | O_DIRECTORY, 0);
	cleanup_close int to = fd_open_beneath(to_fd, parent, O_PATH | O_DIRECTORY, 0);
	struct stat dir, st;

	if (from < 0 || to < 0)
		return from == -ENOENT ? 0 : from < 0 ? from : to;
	if (fstat(from, &dir) == 0 && fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    !is_ours(f, &dir) && st.st_uid != dir.st_uid)
		return -EPERM;
	if (renameat(from, name, to, name) == 0)
		return 1;
	return errno == ENOENT || errno == ENOTEMPTY || errno == EEXIST ? 0 : -errno;
}

static bool
is_same_project(int dir_fd, int other_fd)
{
	struct fsxattr x;
	uint32_t id = project_read(dir_fd, &x);

	return id != 0 && id == project_read(other_fd, &x);
}

/* Moves the data of a sticky disk. A failure does not prevent the start. */
static bool
move_data(struct file *f, int dir_fd, int from_fd, const char *from,
    const struct file_alloc_dir_make_req *req)
{
	bool moved = false;
	int r = from_fd;

	if (r >= 0)
		moved = (r = move_one(f, from_fd, dir_fd, "alloc", "data")) > 0;
	for (size_t i = 0; r >= 0 && i < req->n_tasks; i++)
		moved |= (r = move_one(f, from_fd, dir_fd, req->tasks[i].name, "local")) > 0;
	/* Remaining files would still count. */
	if (r >= 0 && is_same_project(dir_fd, from_fd))
		r = file_trash_put(f, FILE_ROOT_ALLOC, from, NULL);
	if (r < 0 && r != -ENOENT)
		log_warn("move the data of alloc %s: %s", from, strerrordesc_np(-r));
	return moved;
}

static int
put_in_trash(struct file *f, const char *alloc, bool keep_logs, struct err *e)
{
	static const enum file_root order[] = { FILE_ROOT_CSI_SOCK, FILE_ROOT_LOGS,
		FILE_ROOT_ALLOC };

	for (size_t i = 0; i < ELEMENTSOF(order); i++) {
		int r;

		if (order[i] == FILE_ROOT_LOGS && keep_logs)
			continue;
		r = file_trash_put(f, order[i], alloc, e);
		if (r < 0)
			return r;
		if (i == 0)
			CRASH_POINT(FILE_AFTER_TRASH);
	}
	return 0;
}

static int
read_request(const struct file_alloc_dir_make_req *req, char alloc[ID_UUID_SIZE],
    char from[ID_UUID_SIZE], struct err *e)
{
	int r = id_alloc_read(&req->alloc, alloc, e);

	if (r >= 0 && !id_is_zero(&req->from))
		r = id_alloc_read(&req->from, from, e);
	if (r < 0)
		return r;
	if (req->n_tasks == 0)
		return err_say(e, -EINVAL, "alloc %s has no tasks", alloc);
	for (size_t i = 0; i < req->n_tasks; i++)
		if (!name_is_task(req->tasks[i].name))
			return err_say(e, -EINVAL, "'%.140s' cannot be the name of a task",
			    req->tasks[i].name);
	return 0;
}

int
file_on_alloc_dir_make(struct file *f, const struct file_alloc_dir_make_req *req,
    struct file_alloc_dir_make_rep *rep, int *ret_fd, struct err *e)
{
	int allocs = f->root_fds[FILE_ROOT_ALLOC], r;
	cleanup_close int dir_fd = -1, from_fd = -ENOENT;
	char alloc[ID_UUID_SIZE], from[ID_UUID_SIZE];
	struct fsxattr x;

	if ((r = read_request(req, alloc, from, e)) < 0 || (r = make_top(f, alloc, &dir_fd, e)) < 0)
		return r;
	rep->made = r;
	CRASH_POINT(FILE_AFTER_ALLOC_DIR);
	if (f->has_quota && req->limit) {
		rep->needs_project = project_may_begin(dir_fd);
		if (rep->needs_project)
			return 0;
	}
	r = make_all(f, dir_fd, alloc, req, e);
	if (r < 0 && rep->made)
		(void)put_in_trash(f, alloc, true, NULL);
	if (r < 0)
		return err_prefix(e, "directories of alloc %s", alloc);
	if (!id_is_zero(&req->from)) {
		from_fd = fd_open_beneath(allocs, from, O_RDONLY | O_DIRECTORY, 0);
		rep->moved = move_data(f, dir_fd, from_fd, from, req);
	}
	rep->has_project = f->has_quota && project_read(dir_fd, &x) != 0;
	CRASH_POINT(FILE_AFTER_LOG_DIR);
	return 0;
}

int
file_on_alloc_dir_remove(struct file *f, const struct file_alloc_dir_remove_req *req,
    struct file_alloc_dir_remove_rep *rep, int *ret_fd, struct err *e)
{
	char alloc[ID_UUID_SIZE];
	int r = id_alloc_read(&req->alloc, alloc, e);

	if (r < 0 || (r = file_volumes_remove(f, alloc, e)) < 0)
		return r;
	CRASH_POINT(FILE_BEFORE_REMOVE);
	return put_in_trash(f, alloc, req->keep_logs, e);
}
