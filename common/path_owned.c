// SPDX-License-Identifier: Apache-2.0
/* path_owned.c: opens a path that only root can change. Runs in: launcher, the children that read
 * its configuration, exec-helper at its start, network-helper. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/path.h"

#define LINKS_MAX    40 /* the kernel's limit */
#define OVERFLOW_UID 65534

struct walk {
	int fd;          /* O_PATH descriptor of the part walked so far */
	bool is_shared;  /* fd is a directory in which others can make names, as in /tmp */
	bool is_place;   /* the last component may be anybody's directory */
	bool is_private; /* fd is in or below a directory that only root can enter */
	char rest[PATH_MAX];
	int n_links;
};

/* Puts path in front of the rest. */
static int
prepend(struct walk *w, const char *path)
{
	char rest[PATH_MAX];

	if ((size_t)snprintf(rest, sizeof rest, "%s/%s", path, w->rest) >= sizeof rest)
		return -ENAMETOOLONG;
	(void)strcpy(w->rest, rest);
	if (path[0] != '/')
		return 0;
	close_p(&w->fd);
	w->fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	w->is_shared = w->is_private = false;
	return w->fd < 0 ? -errno : 0;
}

static int
begin_walk(struct walk *w, const char *path)
{
	char cwd[PATH_MAX];
	int r = prepend(w, path);

	if (r < 0 || path[0] == '/')
		return r;
	return getcwd(cwd, sizeof cwd) ? prepend(w, cwd) : -errno;
}

/* Removes the next component from the rest and copies it to name. Returns false at the end. */
static bool
take_name(struct walk *w, char name[PATH_MAX], bool *ret_last)
{
	const char *at = w->rest + strspn(w->rest, "/");
	size_t n = strcspn(at, "/");

	memcpy(name, at, n);
	name[n] = '\0';
	at += n + strspn(at + n, "/");
	memmove(w->rest, at, strlen(at) + 1);
	*ret_last = w->rest[0] == '\0';
	return n > 0;
}

/* Sets *e to a sentence with the full path of fd. Returns -EPERM. */
static int
refuse(int fd, const struct statx *st, struct err *e)
{
	char path[PATH_MAX] = "";

	(void)fd_path(fd, path);
	if (st->stx_uid == OVERFLOW_UID)
		return err_say(e, -EPERM,
		    "%s belongs to nobody, or to a user that this user namespace does not map, "
		    "such "
		    "as the host's root: use a path that is root's here",
		    path);
	if (S_ISLNK(st->stx_mode))
		return err_say(e, -EPERM,
		    "%s is a link that others than root can change (owner %u): use a path without "
		    "it",
		    path, st->stx_uid);
	return err_say(e, -EPERM,
	    "%s can be written by others than root (owner %u, mode %04o): chown root and chmod "
	    "go-w, or use another path",
	    path, st->stx_uid, st->stx_mode & 07777);
}

static int
follow_link(struct walk *w, int link_fd)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(link_fd, "", target, sizeof target - 1);

	if (n < 0)
		return -errno;
	target[n] = '\0';
	return ++w->n_links > LINKS_MAX ? -ELOOP : prepend(w, target);
}

/* Opens a directory with O_DIRECTORY, which triggers an automount (autofs). */
static int
open_name(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 && errno == ENOTDIR ? openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC)
					  : fd;
}

static int
step(struct walk *w, const char *name, bool last, mode_t make, struct err *e)
{
	cleanup_close int fd = open_name(w->fd, name);
	bool is_writable, is_dir;
	struct statx st;

	/* The directory above a private one may be one that others can enter. */
	w->is_private &= strcmp(name, "..") != 0;
	if (fd < 0 && errno == ENOENT && last && make && mkdirat(w->fd, name, make) == 0)
		fd = open_name(w->fd, name);
	if (fd < 0 || statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &st) < 0)
		return -errno;
	is_dir = S_ISDIR(st.stx_mode);
	if (w->is_place && last && !S_ISLNK(st.stx_mode) && !(w->is_shared && st.stx_uid != 0)) {
		close_p(&w->fd);
		w->fd = steal_fd(&fd);
		return is_dir ? 0 : -ENOTDIR;
	}
	if (st.stx_uid != 0 || (S_ISLNK(st.stx_mode) && w->is_shared))
		return refuse(fd, &st, e);
	if (S_ISLNK(st.stx_mode))
		return follow_link(w, fd);
	is_writable = st.stx_mode & 022;
	if (is_writable && (last || !is_dir || !(st.stx_mode & S_ISVTX)))
		return refuse(fd, &st, e);
	w->is_shared = is_writable;
	w->is_private |= !(st.stx_mode & 011);
	close_p(&w->fd);
	w->fd = steal_fd(&fd);
	return 0;
}

static int
walk_path(struct walk *w, const char *path, mode_t make, struct err *e)
{
	int r = begin_walk(w, path);
	struct err why = { 0 };
	char name[PATH_MAX];
	bool last;

	while (r == 0 && take_name(w, name, &last))
		r = step(w, name, last, make, &why);
	if (r == 0)
		return w->fd;
	close_p(&w->fd);
	return why.code ? err_say(e, r, "%s", why.msg) : err_set(e, r, "open %s", path);
}

int
path_open_owned(const char *path, mode_t make, struct err *e)
{
	struct walk w = { .fd = -1 };

	return walk_path(&w, path, make, e);
}

int
path_open_place(const char *path, bool *ret_private, struct err *e)
{
	struct walk w = { .fd = -1, .is_place = true };
	int fd = walk_path(&w, path, 0, e);

	*ret_private = w.is_private;
	return fd;
}
