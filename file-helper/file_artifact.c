// SPDX-License-Identifier: Apache-2.0
/*
 * file_artifact.c: gives a fetched artifact to an alloc. Runs in: file-helper; the copying in a
 * worker. Asked by: supervisor.
 *
 * The fetcher handles what servers on the internet send, so its tree is checked here, entry by
 * entry, while it is copied: the fetcher's user owns nothing of the copy, and it counts against the
 * alloc's disk. The copy is made in a directory that no task can enter, then moved into the
 * destination, where tasks may change everything at any time: each component is opened without
 * following links, and each entry is replaced by one rename.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/crash.h"
#include "common/fd.h"
#include "common/path.h"
#include "file-helper/file.h"

#define STAGING    ".fetch"
#define MARK       "done" /* of the fetcher, when an artifact is complete */
#define DEPTH_MAX  128
#define CHUNK      ((size_t)1 << 30)
#define TIMEOUT_MS (3600 * 1000)

enum { FD_ALLOC_DIR, FD_STAGING_DIR };

/* The order of proc_args.agent_uids. */
enum {
#define AGENT_USER(id, name) USER_##id,
#include "proto/agent_users.def"
#undef AGENT_USER
};

int
file_staging_make(const struct file *f, struct err *e)
{
	int r = dir_ensure_at(f->root_fds[FILE_ROOT_ALLOC], STAGING, 0700,
	    f->args->agent_uids[USER_FETCHER], f->args->gid, NULL);

	return r < 0 ? err_set(e, r, "make alloc/" STAGING) : 0;
}

/* --- copying --- */

struct copy {
	uint64_t bytes, files; /* what may still be copied */
	uid_t owner;           /* of the copy */
	gid_t group;
	struct err *e;
};

/* -1: it stays this process's own. */
static int
give(const struct copy *c, int dir_fd, const char *name)
{
	if (c->owner == (uid_t)-1 ||
	    fchownat(dir_fd, name, c->owner, c->group, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	return err_set(c->e, -errno, "change the owner of \"%.200s\"", name);
}

static int
copy_data(struct copy *c, int from, int to, const char *name)
{
	struct stat st;
	ssize_t n = 1;

	if (fstat(from, &st) < 0)
		return err_set(c->e, -errno, "read \"%.200s\"", name);
	if (!S_ISREG(st.st_mode))
		return err_say(
		    c->e, -EINVAL, "\"%.200s\" is neither a file nor a directory nor a link", name);
	if ((uint64_t)st.st_size > c->bytes)
		return err_say(c->e, -EFBIG, "the artifact is larger than is allowed");
	while (n > 0) {
		n = copy_file_range(
		    from, NULL, to, NULL, c->bytes < CHUNK ? (size_t)c->bytes + 1 : CHUNK, 0);
		if (n < 0)
			return err_set(c->e, -errno, "copy \"%.200s\"", name);
		if ((uint64_t)n > c->bytes)
			return err_say(c->e, -EFBIG, "the artifact is larger than is allowed");
		c->bytes -= (uint64_t)n;
	}
	(void)futimens(to, (struct timespec[]){ { .tv_nsec = UTIME_OMIT }, st.st_mtim });
	return 0;
}

static int
copy_file(struct copy *c, int from_fd, const char *from, int to_fd, const char *to, mode_t mode)
{
	cleanup_close int in = fd_open_beneath(from_fd, from, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	cleanup_close int out = -1;
	int r;

	if (in < 0)
		return err_set(c->e, in, "open \"%.200s\"", from);
	out = fd_open_beneath(to_fd, to, O_WRONLY | O_CREAT | O_EXCL, mode & 0777);
	if (out < 0)
		return err_set(c->e, out, "make \"%.200s\"", from);
	r = copy_data(c, in, out, from);
	return r < 0 ? r : give(c, to_fd, to);
}

/* Whether a link `depth` directories below the artifact's root stays in it. Its ".." must come
 * first: they begin at the link's own directory, which is no link. After another name, which may be
 * a link,
 * ".." could be anywhere. */
static bool
stays_inside(const char *target, unsigned depth)
{
	bool down = false;

	for (; *target; target += strspn(target, "/")) {
		size_t len = strcspn(target, "/");

		if (len == 2 && target[0] == '.' && target[1] == '.') {
			if (down || depth-- == 0)
				return false;
		} else if (len != 1 || target[0] != '.') {
			down = true;
		}
		target += len;
	}
	return true;
}

static int
copy_link(struct copy *c, int from_fd, const char *from, int to_fd, unsigned depth)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(from_fd, from, target, sizeof target - 1);

	if (n < 0)
		return err_set(c->e, -errno, "read the link \"%.200s\"", from);
	target[n] = '\0';
	if (*target == '/' || !stays_inside(target, depth))
		return err_say(
		    c->e, -EINVAL, "the link \"%.200s\" leads out of the artifact", from);
	return symlinkat(target, to_fd, from) < 0
		   ? err_set(c->e, -errno, "make the link \"%.200s\"", from)
		   : give(c, to_fd, from);
}

static int
copy_tree(struct copy *c, int from_fd, const char *from, int to_fd, const char *to, unsigned depth)
{
	cleanup_close int dir = fd_open_beneath(from_fd, from, O_RDONLY | O_DIRECTORY, 0),
			  made = -1;
	cleanup_dir DIR *d = NULL;
	struct stat st;
	const char *n;
	int r = 0;

	if (dir < 0 || fstat(dir, &st) < 0)
		return err_set(c->e, dir < 0 ? dir : -errno, "open \"%.200s\"", from);
	if (depth == DEPTH_MAX)
		return err_say(c->e, -EINVAL, "the artifact has more than %d levels of directories",
		    DEPTH_MAX);
	if (mkdirat(to_fd, to, (st.st_mode & 0777) | 0700) < 0 ||
	    (made = fd_open_beneath(to_fd, to, O_RDONLY | O_DIRECTORY, 0)) < 0)
		return err_set(
		    c->e, made < -1 ? made : -errno, "make the directory \"%.200s\"", to);
	if (dir_open_at(dir, ".", &d) < 0)
		return err_say(c->e, -EIO, "list \"%.200s\"", from);
	while (r >= 0 && (n = dir_next(d))) {
		if (c->files-- == 0)
			return err_say(
			    c->e, -EFBIG, "the artifact has more files than are allowed");
		if (fstatat(dir, n, &st, AT_SYMLINK_NOFOLLOW) < 0)
			r = err_set(c->e, -errno, "read \"%.200s\"", n);
		else if (S_ISDIR(st.st_mode))
			r = copy_tree(c, dir, n, made, n, depth + 1);
		else if (S_ISLNK(st.st_mode))
			r = copy_link(c, dir, n, made, depth);
		else
			r = copy_file(c, dir, n, made, n, st.st_mode);
		CRASH_POINT(FILE_AFTER_COPY_ENTRY);
	}
	return r < 0 ? r : give(c, to_fd, to);
}

/* --- placing --- */

/* Opens the directory of the last component of dest, which *ret_name is then, and makes what is
 * missing. */
static int
open_parent(int alloc_fd, const char *dest, const char **ret_name, struct err *e)
{
	cleanup_close int at = fd_open_beneath(alloc_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	const char *slash;

	while (at >= 0 && (slash = strchr(dest, '/'))) {
		cleanup_free char *name = strndup(dest, (size_t)(slash - dest));
		int next;

		if (!name)
			return -ENOMEM;
		if (mkdirat(at, name, 0755) < 0 && errno != EEXIST)
			return err_set(e, -errno, "make the directory \"%.200s\"", name);
		next = fd_open_same_mount(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
		if (next < 0)
			return err_set(e, next, "open the directory \"%.200s\"", name);
		(void)close(at);
		at = next;
		dest = slash + 1;
	}
	*ret_name = dest;
	return at < 0 ? err_set(e, at, "open the destination") : steal_fd(&at);
}

static int move_over(
    int from_fd, const char *from, int to_fd, const char *to, unsigned depth, struct err *e);

static int
move_entries(
    int from_fd, const char *from, int to_fd, const char *to, unsigned depth, struct err *e)
{
	cleanup_close int in = fd_open_beneath(from_fd, from, O_RDONLY | O_DIRECTORY, 0);
	cleanup_close int out = fd_open_same_mount(to_fd, to, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
	cleanup_dir DIR *d = NULL;
	const char *n;
	int r = 0;

	if (in < 0 || out < 0 || (r = dir_open_at(in, ".", &d)) < 0)
		return err_set(e, in < 0 ? in : out < 0 ? out : r, "open \"%.200s\"", to);
	while (r >= 0 && (n = dir_next(d))) {
		r = move_over(in, n, out, n, depth + 1, e);
		CRASH_POINT(FILE_AFTER_MOVE_ENTRY);
	}
	return r;
}

/* A directory is moved as a whole if there is none, else entry by entry. Everything else that has
 * the name, a link too, is replaced. */
static int
move_over(int from_fd, const char *from, int to_fd, const char *to, unsigned depth, struct err *e)
{
	struct stat new, old;
	bool exists = fstatat(to_fd, to, &old, AT_SYMLINK_NOFOLLOW) == 0;

	if (fstatat(from_fd, from, &new, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(e, -errno, "read \"%.200s\"", from);
	if (exists && S_ISDIR(new.st_mode) && S_ISDIR(old.st_mode))
		return depth < DEPTH_MAX ? move_entries(from_fd, from, to_fd, to, depth, e)
					 : err_say(e, -EINVAL, "the destination is too deep");
	if (exists && S_ISDIR(old.st_mode))
		return err_say(e, -EISDIR, "the destination \"%.200s\" is a directory", to);
	if (exists && S_ISDIR(new.st_mode))
		return err_say(e, -ENOTDIR, "the destination \"%.200s\" is not a directory", to);
	return renameat(from_fd, from, to_fd, to) < 0
		   ? err_set(e, -errno, "move \"%.200s\" to its destination", to)
		   : 0;
}

/* The arguments of the worker. */
struct placement {
	const struct file_artifact_place_req *req;
	uid_t owner;
	gid_t group;
};

static int
place(const struct placement *p, int alloc_fd, int staging_fd, const char *copy, struct err *e)
{
	struct copy c = { .bytes = p->req->max_bytes,
		.files = p->req->max_files,
		.owner = p->owner,
		.group = p->group,
		.e = e };
	cleanup_close int parent = -1;
	const char *name = NULL;
	struct stat st;
	int r;

	if (fstatat(staging_fd, "out", &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(e, -errno, "find what was fetched");
	if (S_ISDIR(st.st_mode))
		r = copy_tree(&c, staging_fd, "out", alloc_fd, copy, 0);
	else
		r = copy_file(&c, staging_fd, "out", alloc_fd, copy, st.st_mode);
	CRASH_POINT(FILE_AFTER_COPY);
	if (r < 0)
		return r;
	parent = open_parent(alloc_fd, p->req->dest, &name, e);
	r = parent < 0 ? parent : move_over(alloc_fd, copy, parent, name, 0, e);
	CRASH_POINT(FILE_AFTER_PLACE);
	return r;
}

static int
work(int fd, const void *arg, struct worker_result *ret, struct err *e)
{
	const struct placement *p = arg;
	int alloc_fd = fd + FD_ALLOC_DIR, r;
	char copy[IPC_NAME_SIZE + 16];

	(void)snprintf(copy, sizeof copy, ".artifact-%s", p->req->task);
	/* A worker may have died in the middle. */
	r = tree_remove_at(alloc_fd, copy);
	if (r < 0)
		return err_set(e, r, "remove an earlier copy");
	r = place(p, alloc_fd, fd + FD_STAGING_DIR, copy, e);
	(void)tree_remove_at(alloc_fd, copy);
	return r;
}

static bool
is_word(const char *text, size_t len, const char *word)
{
	return len == strlen(word) && strncmp(text, word, len) == 0;
}

/* The destination is in <task> or in alloc, and not in a directory that others must not read. */
static int
check_dest(const struct file_artifact_place_req *req, struct err *e)
{
	unsigned depth = 0;

	for (const char *at = req->dest;; depth++) {
		size_t len = strcspn(at, "/");

		if (len == 0 || len > NAME_MAX || is_word(at, len, ".") || is_word(at, len, ".."))
			return err_say(e, -EINVAL, "the destination is not a path");
		if (depth == 0 && !is_word(at, len, req->task) && !is_word(at, len, "alloc"))
			return err_say(
			    e, -EINVAL, "the destination is not in a directory of the task");
		if (depth == 1 && (is_word(at, len, "secrets") || is_word(at, len, "private")))
			return err_say(e, -EACCES, "no artifact can be in %.7s/", at);
		if (!at[len])
			return 0;
		at += len + 1;
	}
}

static void
drop(struct file *f, const struct id *staging)
{
	char path[sizeof STAGING + ID_HEX_SIZE] = STAGING "/";

	id_to_hex(staging, path + sizeof STAGING);
	(void)file_trash_put(f, FILE_ROOT_ALLOC, path, NULL);
}

int
file_on_artifact_place(struct file *f, const struct file_artifact_place_req *req,
    struct file_artifact_place_rep *rep, int *ret_fd, struct err *e)
{
	const struct placement p = { req, req->chown ? f->args->executor_uid : (uid_t)-1,
		f->args->executor_gid };
	cleanup_close int alloc_fd = -1, staging_fd = -1;
	char alloc[ID_UUID_SIZE], path[sizeof STAGING + ID_HEX_SIZE] = STAGING "/";
	struct stat st;
	int r = id_alloc_read(&req->alloc, alloc, e);

	if (r < 0 || (r = check_dest(req, e)) < 0)
		return r;
	if (!name_is_task(req->task))
		return err_say(e, -EINVAL, "'%.140s' cannot be the name of a task", req->task);
	id_to_hex(&req->staging, path + sizeof STAGING);
	alloc_fd = fd_open_same_mount(f->root_fds[FILE_ROOT_ALLOC], alloc, O_RDONLY | O_DIRECTORY);
	staging_fd = fd_open_same_mount(f->root_fds[FILE_ROOT_ALLOC], path, O_RDONLY | O_DIRECTORY);
	if (staging_fd == -ENOENT)
		return err_say(e, -ENODATA, "the fetcher did not complete the artifact");
	if (alloc_fd < 0 || staging_fd < 0)
		return err_set(e, alloc_fd < 0 ? alloc_fd : staging_fd, "open the directory of %s",
		    alloc_fd < 0 ? alloc : "what was fetched");
	if (fstatat(staging_fd, MARK, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_say(e, -ENODATA, "the fetcher did not complete the artifact");
	return worker_start(&f->workers, f->workers.request, TIMEOUT_MS,
	    (int[]){ [FD_ALLOC_DIR] = alloc_fd, [FD_STAGING_DIR] = staging_fd }, 2, work, &p, NULL,
	    "place an artifact", e);
}

static bool
is_kept(const struct file_artifact_drop_req *req, const struct id *staging)
{
	for (uint32_t i = 0; i < req->n_keep; i++)
		if (id_equal(&req->keep[i].id, staging))
			return true;
	return false;
}

int
file_on_artifact_drop(struct file *f, const struct file_artifact_drop_req *req,
    struct file_artifact_drop_rep *rep, int *ret_fd, struct err *e)
{
	cleanup_dir DIR *d = NULL;
	struct id staging;
	const char *n;
	int r;

	if (!id_is_zero(&req->staging)) {
		drop(f, &req->staging);
		return 0;
	}
	r = dir_open_at(f->root_fds[FILE_ROOT_ALLOC], STAGING, &d);
	if (r < 0)
		return err_set(e, r, "list alloc/" STAGING);
	while ((n = dir_next(d)))
		if (id_from_hex(n, &staging) && !is_kept(req, &staging))
			drop(f, &staging);
	return 0;
}
