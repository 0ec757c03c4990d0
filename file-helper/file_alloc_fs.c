// SPDX-License-Identifier: Apache-2.0
/* file_alloc_fs.c: reads below an alloc's directory for `alloc fs`. Runs in: a worker of the
 * file-helper. Asked by: supervisor. Tasks own these files and may change them at any time, so each
 * component is one openat2(2) below the previous directory, and links are expanded here. All
 * directories from the root down stay open: ".." means the previous one, even after a rename, and a
 * directory at depth 2 is known to be a task's, however it was reached. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/path.h"
#include "file-helper/file.h"
#include "proto/alloc_fs.h"

#define DEPTH_MAX  128
#define LINKS_MAX  40
#define TIMEOUT_MS 5000

struct walk {
	int fds[DEPTH_MAX]; /* number of descriptors; the last may be anything but a link */
	unsigned n, links;
	mode_t mode;             /* of the last */
	char name[NAME_MAX + 1]; /* name of the last one in its directory */
	bool in_task;            /* fds[1] is the directory of a task, not the shared one */
	const char *own;         /* path whose first part is the only task's; NULL: all are */
	char rest[2 * PATH_MAX];
};

/* Prepends the link's target to the rest of the path. */
static int
follow_link(struct walk *w, int link_fd, const char *rest)
{
	char target[PATH_MAX], both[sizeof w->rest];
	ssize_t n = readlinkat(link_fd, "", target, sizeof target - 1);

	if (n < 0)
		return -errno;
	target[n] = '\0';
	if (target[0] == '/')
		return -EXDEV;
	if (++w->links > LINKS_MAX)
		return -ELOOP;
	if ((size_t)snprintf(both, sizeof both, "%s/%s", target, rest) >= sizeof both)
		return -ENAMETOOLONG;
	memcpy(w->rest, both, sizeof both);
	return 0;
}

/* Returns whether a name in the alloc's directory is the directory of another task. */
static bool
is_foreign(const struct walk *w, const char *name)
{
	size_t len = strlen(name);

	return w->n == 1 && w->own && strcmp(name, "alloc") != 0 &&
	       (strncmp(w->own, name, len) != 0 || w->own[len] != '/');
}

/* Resolves one component. Returns 1 if it is a link; then w->rest is the new path. */
static int
step(struct walk *w, const char *name, const char *rest)
{
	cleanup_close int fd = -1;
	struct stat st;

	if (!S_ISDIR(w->mode))
		return -ENOTDIR;
	if (!*name || strcmp(name, ".") == 0)
		return 0;
	if (strcmp(name, "..") == 0)
		return w->n == 1 ? -EXDEV : close(w->fds[--w->n]);
	if (is_foreign(w, name))
		return -EXDEV;
	if (w->n == 2 && w->in_task &&
	    (strcmp(name, "secrets") == 0 || strcmp(name, "private") == 0))
		return -EACCES;
	if (w->n == DEPTH_MAX)
		return -ENAMETOOLONG;
	fd = fd_open_same_mount(w->fds[w->n - 1], name, O_PATH | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) < 0)
		return fd < 0 ? fd : -errno;
	if (S_ISLNK(st.st_mode))
		return follow_link(w, fd, rest) ?: 1;
	if (w->n == 1)
		w->in_task = strcmp(name, "alloc") != 0;
	w->mode = st.st_mode;
	(void)strcpy(w->name, name);
	w->fds[w->n++] = steal_fd(&fd);
	return 0;
}

static int
walk_path(struct walk *w, const char *path)
{
	char name[NAME_MAX + 1];
	const char *at = w->rest;
	int r = 0;

	if ((size_t)snprintf(w->rest, sizeof w->rest, "%s", path) >= sizeof w->rest)
		return -ENAMETOOLONG;
	while (r >= 0 && *at) {
		size_t len = strcspn(at, "/");

		if (len > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(name, at, len);
		name[len] = '\0';
		at += len + (at[len] == '/');
		r = step(w, name, at);
		if (r > 0)
			at = w->rest;
	}
	return r < 0 ? r : w->fds[w->n - 1];
}

/* Opens the file by its name; whatever has that name now is a file of the alloc. An object that is
 * not a regular file is not opened, or closed at once. */
static int
open_file(const struct walk *w)
{
	cleanup_close int fd = -1;
	struct stat st;

	if (!S_ISREG(w->mode))
		return S_ISDIR(w->mode) ? -EISDIR : -EOPNOTSUPP;
	fd = fd_open_same_mount(w->fds[w->n - 2], w->name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) < 0)
		return fd < 0 ? fd : -errno;
	return S_ISREG(st.st_mode) ? steal_fd(&fd) : -EOPNOTSUPP;
}

/* An entry that was removed in the meantime is skipped. */
static int
put_entry(FILE *out, int fd, const char *name)
{
	struct alloc_fs_entry entry;
	struct stat st;

	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | AT_NO_AUTOMOUNT) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (ftell(out) > (long)(ALLOC_FS_LIST_MAX - sizeof entry - NAME_MAX))
		return -EFBIG;
	entry.size = st.st_size;
	entry.mtime_ns = st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec;
	entry.mode = st.st_mode;
	(void)fwrite(&entry, sizeof entry, 1, out);
	(void)fputs(*name ? name : ".", out);
	(void)fputc('\0', out);
	return 0;
}

/* Writes the entry of the directory, then those of its contents. */
static int
list(int fd, bool names)
{
	cleanup_free char *buf = NULL;
	cleanup_dir DIR *d = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&buf, &size);
	const char *name;
	int r = out ? put_entry(out, fd, "") : -errno;

	if (r >= 0 && names)
		r = dir_open_at(fd, ".", &d);
	while (r >= 0 && d && (name = dir_next(d)))
		r = put_entry(out, dirfd(d), name);
	if (out && fclose(out) != 0 && r >= 0)
		r = -ENOMEM;
	return r < 0 ? r : fd_memfd_sealed("files", buf, size);
}

static int
work(int fd, const void *arg, struct worker_result *ret, struct err *e)
{
	struct walk w = { .fds = { fd }, .n = 1, .mode = S_IFDIR };
	const struct file_alloc_fs_req *req = arg;
	bool own = req->op == FILE_OP_OPEN_OWN;
	int r;

	w.own = own ? req->path : NULL;
	r = walk_path(&w, req->path);
	if (r >= 0 && (own || req->op == FILE_OP_OPEN))
		r = open_file(&w);
	else if (r >= 0)
		r = list(r, req->op == FILE_OP_LIST);
	if (r < 0)
		return err_set(e, r, "%.256s", req->path);
	ret->fd = r;
	return 0;
}

int
file_on_alloc_fs(struct file *f, const struct file_alloc_fs_req *req, struct file_alloc_fs_rep *rep,
    int *ret_fd, struct err *e)
{
	cleanup_close int dir = -1;
	char alloc[ID_UUID_SIZE];
	int r = id_alloc_read(&req->alloc, alloc, e);

	if (r < 0)
		return r;
	if ((req->root != FILE_ROOT_ALLOC && req->root != FILE_ROOT_LOGS) ||
	    req->op == FILE_OP_NONE)
		return err_say(e, -EINVAL, "there is no operation %d on files below root %d",
		    (int)req->op, (int)req->root);
	dir = fd_open_same_mount(f->root_fds[req->root], alloc, O_PATH | O_DIRECTORY);
	if (dir < 0)
		return err_set(e, dir, "open the directory of alloc %s", alloc);
	return worker_start(
	    &f->workers, f->workers.request, TIMEOUT_MS, &dir, 1, work, req, NULL, "read files", e);
}
