// SPDX-License-Identifier: Apache-2.0
/* mnt_alloc_dir.c: the directories of an alloc. Runs in: mount-helper, as root. */
/* clang-format off */
/*
 *	alloc/<alloc>/		root 0711
 *	    alloc/		root 01777: shared, but no task can take away what drover put there
 *		data/ tmp/	nobody 0777
 *		logs		root 0755, where exec mounts logs/<alloc>; if all tasks are raw_exec
 *				and see host paths, a link to it
 *	    <task>/		root 0755
 *		local/ private/	nobody 0777
 *		tmp/		nobody 01777
 *		secrets		a link to secrets/<alloc>/<task>, for raw_exec; exec binds that
 *	secrets/<alloc>/	root 0711
 *	    <task>/		root 0700, until its executor gives it to the task's user
 *	logs/<alloc>/		executor:drover 2755
 *
 * This is on the path of every start: each directory is one mkdirat(2) with its final mode, below
 * directories that nobody but root can change, so that names need no openat2(2). What is there
 * already is looked at and not changed.
 */
/* clang-format on */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/crash.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mountinfo.h"
#include "mount-helper/mnt.h"

struct entry {
	const char *suffix; /* behind the directory's name */
	mode_t mode;
	bool nobody; /* owner; else root */
};

static const struct entry shared_entries[] = {
	{ "", 01777, false },
	{ "/data", 0777, true },
	{ "/tmp", 0777, true },
};

static const struct entry task_entries[] = {
	{ "", 0755, false },
	{ "/local", 0777, true },
	{ "/private", 0777, true },
	{ "/tmp", 01777, true },
};

/*
 * 1 made, 0 was there, -errno. Only root's are held to owner and mode. A nobody's that is there may
 * be a task's work, and nothing here depends on it; but one that is still root's is what a crash
 * left between the two calls, since the directory above is root's.
 */
static int
make_dir(int dir_fd, const char *path, mode_t mode, bool nobody, struct err *e)
{
	int made = mkdirat(dir_fd, path, mode) == 0;
	struct stat st;

	if (!made && (errno != EEXIST || fstatat(dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0))
		return err_set(e, -errno, "make %s", path);
	if (!nobody && !made && (st.st_uid != 0 || st.st_mode != (S_IFDIR | mode)))
		return err_say(e, -EEXIST,
		    "%s is there, but it is not what was made (mode %o, owner %u)", path,
		    st.st_mode, st.st_uid);
	if (nobody && (made || (st.st_uid == 0 && S_ISDIR(st.st_mode))) &&
	    fchownat(dir_fd, path, MNT_NOBODY, MNT_NOBODY, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(e, -errno, "give %s to nobody", path);
	return made;
}

/* In a place where only root can put anything: what is there is the link. */
static int
make_link(int dir_fd, const char *path, const char *target, struct err *e)
{
	if (symlinkat(target, dir_fd, path) < 0 && errno != EEXIST)
		return err_set(e, -errno, "make the link %s", path);
	return 0;
}

static int
make_entries(int dir_fd, const char *name, const struct entry *entries, size_t n, struct err *e)
{
	char path[NAME_BYTES_MAX + 16];
	int r = 0;

	for (size_t i = 0; r >= 0 && i < n; i++) {
		(void)snprintf(path, sizeof path, "%s%s", name, entries[i].suffix);
		r = make_dir(dir_fd, path, entries[i].mode, entries[i].nobody, e);
	}
	return r;
}

static int
make_shared(int dir_fd, const char *alloc, bool raw_exec, struct err *e)
{
	char target[ID_UUID_SIZE + 16];
	int r = make_entries(dir_fd, "alloc", shared_entries, ELEMENTSOF(shared_entries), e);

	if (r < 0)
		return r;
	if (!raw_exec)
		return make_dir(dir_fd, "alloc/logs", 0755, false, e);
	(void)snprintf(target, sizeof target, "../../../logs/%s", alloc);
	return make_link(dir_fd, "alloc/logs", target, e);
}

static int
make_task(const struct mnt *m, int dir_fd, const char *alloc, const char *task, struct err *e)
{
	char path[NAME_BYTES_MAX + ID_UUID_SIZE + 16], target[NAME_BYTES_MAX + ID_UUID_SIZE + 64];
	int r = make_entries(dir_fd, task, task_entries, ELEMENTSOF(task_entries), e);

	if (r < 0)
		return r;
	(void)snprintf(path, sizeof path, "%s/%s", alloc, task);
	/*
	 * Given to the task's user by its executor, who alone knows him: what is there is not
	 * looked at.
	 */
	if (mkdirat(m->root_fds[MNT_ROOT__MNT_ROOT_SECRETS], path, 0700) < 0 && errno != EEXIST)
		return err_set(e, -errno, "make secrets/%s", path);
	(void)snprintf(target, sizeof target, "../../../secrets/%s", path);
	(void)snprintf(path, sizeof path, "%s/secrets", task);
	return make_link(dir_fd, path, target, e);
}

/*
 * Group and set-group-id bit come from logs/ itself. Only root can reach it, so the owner is set
 * also after a crash.
 */
static int
make_logs(const struct mnt *m, const char *alloc, struct err *e)
{
	int logs = m->root_fds[MNT_ROOT__MNT_ROOT_LOGS];

	if ((mkdirat(logs, alloc, 0755) < 0 && errno != EEXIST) ||
	    fchownat(logs, alloc, m->args->executor_uid, (gid_t)-1, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(e, -errno, "make logs/%s", alloc);
	return 0;
}

static int
make_all(struct mnt *m, int dir_fd, const char *alloc, const MntAllocDirMakeReq *req, struct err *e)
{
	int r = make_shared(dir_fd, alloc, req->raw_exec, e);

	if (r < 0)
		return r;
	r = make_dir(m->root_fds[MNT_ROOT__MNT_ROOT_SECRETS], alloc, 0711, false, e);
	for (size_t i = 0; r >= 0 && i < req->n_tasks; i++)
		r = make_task(m, dir_fd, alloc, req->tasks[i], e);
	return r < 0 ? r : make_logs(m, alloc, e);
}

/*
 * In one call, by name below directories that are opened without a link. Whatever has that name
 * moves; but where a directory is it takes only an empty one's place. 1, or 0 if there was nothing,
 * or it was moved before.
 */
static int
move_one(int from_fd, int to_fd, const char *parent, const char *name)
{
	cleanup_close int from = fd_open_beneath(from_fd, parent, O_PATH | O_DIRECTORY, 0);
	cleanup_close int to = fd_open_beneath(to_fd, parent, O_PATH | O_DIRECTORY, 0);

	if (from < 0 || to < 0)
		return from == -ENOENT ? 0 : from < 0 ? from : to;
	if (renameat(from, name, to, name) == 0)
		return 1;
	return errno == ENOENT || errno == ENOTEMPTY || errno == EEXIST ? 0 : -errno;
}

/* A sticky disk. What cannot be moved keeps nobody from starting. */
static bool
move_data(struct mnt *m, int dir_fd, int from_fd, const char *from, const MntAllocDirMakeReq *req)
{
	bool moved = false;
	int r = from_fd;

	if (r >= 0)
		moved = (r = move_one(from_fd, dir_fd, "alloc", "data")) > 0;
	for (size_t i = 0; r >= 0 && i < req->n_tasks; i++)
		moved |= (r = move_one(from_fd, dir_fd, req->tasks[i], "local")) > 0;
	/* What is left would still count. */
	if (r >= 0 && mnt_quota_is_shared(dir_fd, from_fd))
		r = mnt_trash_put(
		    m, MNT_ROOT__MNT_ROOT_ALLOC, m->root_fds[MNT_ROOT__MNT_ROOT_ALLOC], from, NULL);
	if (r < 0 && r != -ENOENT)
		log_warn("move the data of alloc %s: %s", from, strerrordesc_np(-r));
	return moved;
}

static int
put_in_trash(struct mnt *m, const char *alloc, bool keep_logs, struct err *e)
{
	static const MntRoot order[] = { MNT_ROOT__MNT_ROOT_SECRETS, MNT_ROOT__MNT_ROOT_CSI_SOCK,
		MNT_ROOT__MNT_ROOT_LOGS, MNT_ROOT__MNT_ROOT_ALLOC };

	mnt_quota_drop(m->root_fds[MNT_ROOT__MNT_ROOT_ALLOC], alloc);
	for (size_t i = 0; i < ELEMENTSOF(order); i++) {
		int r;

		if (order[i] == MNT_ROOT__MNT_ROOT_LOGS && keep_logs)
			continue;
		r = mnt_trash_put(m, order[i], m->root_fds[order[i]], alloc, e);
		if (r < 0)
			return r;
		if (i == 0)
			CRASH_POINT(MNT_AFTER_TRASH);
	}
	return 0;
}

int
mnt_on_alloc_dir_make(
    void *state, const struct ipc_packet *p, ProtobufCMessage *rep, int *ret_fd, struct err *e)
{
	struct mnt *m = state;
	const MntAllocDirMakeReq *req = (const MntAllocDirMakeReq *)(const void *)p->msg;
	bool limits = m->has_quota && req->disk_mb > 0;
	int allocs = m->root_fds[MNT_ROOT__MNT_ROOT_ALLOC], made, r, limited = 0;
	cleanup_close int dir_fd = -1, from_fd = -ENOENT;
	char alloc[ID_UUID_SIZE], from[ID_UUID_SIZE];

	r = mnt_alloc_read(&req->alloc, alloc, e);
	if (r >= 0 && req->from.len > 0)
		r = mnt_alloc_read(&req->from, from, e);
	if (r < 0)
		return r;
	if (req->n_tasks == 0)
		return err_say(e, -EINVAL, "alloc %s has no tasks", alloc);
	for (size_t i = 0; i < req->n_tasks; i++)
		if (!name_is_task(req->tasks[i]))
			return err_say(
			    e, -EINVAL, "'%.140s' cannot be the name of a task", req->tasks[i]);
	made = make_dir(allocs, alloc, 0711, false, e);
	if (made < 0)
		return made;
	CRASH_POINT(MNT_AFTER_ALLOC_DIR);
	if (req->from.len > 0)
		from_fd = fd_open_beneath(allocs, from, O_RDONLY | O_DIRECTORY, 0);
	dir_fd = openat(allocs, alloc, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir_fd >= 0 && limits)
		limited = mnt_quota_join(dir_fd, from_fd);
	r = dir_fd < 0 ? err_set(e, -errno, "open alloc/%s", alloc)
		       : make_all(m, dir_fd, alloc, req, e);
	if (r < 0 && made)
		(void)put_in_trash(m, alloc, true, NULL);
	if (r < 0)
		return err_prefix(e, "directories of alloc %s", alloc);
	((MntAllocDirMakeRep *)(void *)rep)->made = made;
	((MntAllocDirMakeRep *)(void *)rep)->moved =
	    req->from.len > 0 && move_data(m, dir_fd, from_fd, from, req);
	if (limits && limited == 0)
		limited = mnt_quota_limit(dir_fd, req->disk_mb);
	if (limited < 0)
		log_warn("limit the disk of alloc %s, which is measured instead: %s", alloc,
		    strerrordesc_np(-limited));
	CRASH_POINT(MNT_AFTER_LOG_DIR);
	return 0;
}

/*
 * drover mounts nothing below an alloc; somebody else may have. Its volumes are below
 * csi/…/per-alloc/<alloc>/. What is in the trash already has more than the id for its name.
 */
static int
refuse_mounts(struct mnt *m, const char *alloc, struct err *e)
{
	const char *path;
	int r = mnt_mounts_look(m, &path, e);

	if (r < 0)
		return r;
	for (; *path; path += strlen(path) + 1)
		for (const char *at = path; (at = strstr(at, alloc)); at++)
			if (mountinfo_below(at, alloc))
				return err_say(e, -EBUSY,
				    "alloc %s cannot be removed: %s/%.256s is still mounted", alloc,
				    m->data_dir, path);
	return 0;
}

int
mnt_on_alloc_dir_remove(
    void *state, const struct ipc_packet *p, ProtobufCMessage *rep, int *ret_fd, struct err *e)
{
	struct mnt *m = state;
	const MntAllocDirRemoveReq *req = (const MntAllocDirRemoveReq *)(const void *)p->msg;
	char alloc[ID_UUID_SIZE];
	int r;

	if ((r = mnt_alloc_read(&req->alloc, alloc, e)) < 0 ||
	    (r = refuse_mounts(m, alloc, e)) < 0 || (r = mnt_volume_alloc_remove(m, alloc, e)) < 0)
		return r;
	CRASH_POINT(MNT_BEFORE_REMOVE);
	return put_in_trash(m, alloc, req->keep_logs, e);
}
