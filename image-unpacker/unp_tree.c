// SPDX-License-Identifier: Apache-2.0
/* unp_tree.c: makes the files of a layer. Runs in: a worker of the image-unpacker. The paths are
 * those of an archive that anybody may have made: they are opened with RESOLVE_IN_ROOT, so that
 * neither ".." nor a link that the layer itself has leads out of its directory. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/path.h"
#include "image-unpacker/unp.h"
#include "proto/container_ids.h"

#define WHITEOUT     ".wh."
#define WHITEOUT_LEN (sizeof WHITEOUT - 1)
#define OPAQUE       WHITEOUT WHITEOUT ".opq"
#define DEPTH_MAX    512 /* components of a path */

struct unp_times {
	char *path;
	struct timespec mtime;
};

/* Copies the last component of a path, which may have slashes at its end, and sets *ret_dir_len to
 * the length of what is before it. */
static int
split(const char *path, char ret_name[NAME_MAX + 1], size_t *ret_dir_len, struct err *e)
{
	size_t end = strlen(path), start;

	while (end > 0 && path[end - 1] == '/')
		end--;
	for (start = end; start > 0 && path[start - 1] != '/';)
		start--;
	if (end - start > NAME_MAX)
		return err_say(e, -ENAMETOOLONG, "the name \"%.60s…\" is too long", path + start);
	memcpy(ret_name, path + start, end - start);
	ret_name[end - start] = '\0';
	*ret_dir_len = start;
	return 0;
}

static int
open_dir(int root_fd, const char *path)
{
	return fd_open_in_root(root_fd, *path ? path : ".", O_RDONLY | O_DIRECTORY);
}

/* Makes the directory at the end of a path whose other directories exist. */
static int
make_dir(struct unp_tree *t, const char *path, size_t len)
{
	char at[UNP_PATH_SIZE];
	cleanup_close int parent = -1;
	char *name;

	memcpy(at, path, len);
	at[len] = '\0';
	name = strrchr(at, '/');
	if (name)
		*name++ = '\0';
	parent = open_dir(t->root_fd, name ? at : "");
	if (parent < 0)
		return parent;
	if (mkdirat(parent, name ? name : at, 0755) < 0)
		return errno == EEXIST ? 0 : -errno;
	t->n_made++;
	return 0;
}

/* Makes the directories of a path that are missing, as root's. Returns a descriptor, or -errno. */
static int
open_or_make_dir(struct unp_tree *t, const char *path)
{
	int fd = open_dir(t->root_fd, path), depth = 0, r = 0;

	if (fd != -ENOENT)
		return fd;
	for (size_t i = 1; r == 0 && path[i - 1]; i++) {
		if ((path[i] != '/' && path[i] != '\0') || path[i - 1] == '/')
			continue;
		r = ++depth > DEPTH_MAX ? -ELOOP : make_dir(t, path, i);
	}
	return r < 0 ? r : open_dir(t->root_fd, path);
}

/* Opens the directory of an entry, and keeps it for the next one. */
static int
enter_dir(struct unp_tree *t, const char *path, size_t len, struct err *e)
{
	int fd;

	if (len >= sizeof t->dir)
		return err_say(e, -ENAMETOOLONG, "the path \"%.60s…\" is too long", path);
	if (t->dir_fd >= 0 && strlen(t->dir) == len && memcmp(t->dir, path, len) == 0)
		return 0;
	close_p(&t->dir_fd);
	memcpy(t->dir, path, len);
	t->dir[len] = '\0';
	fd = open_or_make_dir(t, t->dir);
	if (fd < 0)
		return err_set(e, fd, "open the directory of \"%.200s\"", path);
	t->dir_fd = fd;
	return 0;
}

static int
make_whiteout(struct unp_tree *t, const char *name, struct err *e)
{
	if (strcmp(name, OPAQUE) == 0)
		return fsetxattr(t->dir_fd, "user.overlay.opaque", "y", 1, 0) < 0
			   ? err_set(e, -errno, "mark \"%.200s\" as opaque", t->dir)
			   : 0;
	name += WHITEOUT_LEN;
	/* Others with the prefix twice are for AUFS. */
	if (strncmp(name, WHITEOUT, WHITEOUT_LEN) == 0)
		return 0;
	if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return err_say(e, -EBADMSG, "a whiteout in \"%.200s\" has no name", t->dir);
	if (mknodat(t->dir_fd, name, S_IFCHR, makedev(0, 0)) < 0 && errno != EEXIST)
		return err_set(e, -errno, "make the whiteout of \"%.200s\"", name);
	return 0;
}

/* The target is in the same layer. */
static int
make_hardlink(struct unp_tree *t, const struct unp_entry *en, const char *name, struct err *e)
{
	char target[NAME_MAX + 1], dir[UNP_PATH_SIZE];
	cleanup_close int fd = -1;
	size_t len;
	int r = split(en->target, target, &len, e);

	if (r < 0)
		return r;
	if (len >= sizeof dir)
		return err_say(e, -ENAMETOOLONG, "the path \"%.60s…\" is too long", en->target);
	memcpy(dir, en->target, len);
	dir[len] = '\0';
	fd = open_dir(t->root_fd, dir);
	if (fd < 0 || linkat(fd, target, t->dir_fd, name, 0) < 0)
		return err_set(e, fd < 0 ? fd : -errno,
		    "make \"%.200s\" a link to \"%.200s\", which must be in the same layer",
		    en->path, en->target);
	return 0;
}

/* Removes what an earlier entry of the layer has made there. Returns 1 if a directory stays,
 * because the entry is one too. */
static int
clear_way(struct unp_tree *t, const struct unp_entry *en, const char *name, struct err *e)
{
	struct stat st;
	int r;

	if (fstatat(t->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_set(e, -errno, "find \"%.200s\"", en->path);
	if (S_ISDIR(st.st_mode) && S_ISDIR(en->mode) && !en->hardlink)
		return 1;
	r = tree_remove_at(t->dir_fd, name);
	return r < 0 ? err_set(e, r, "replace \"%.200s\"", en->path) : 0;
}

static int
make_file(struct unp_tree *t, const struct unp_entry *en, const char *name, int *ret_fd)
{
	switch (en->mode & S_IFMT) {
	case S_IFREG:
		*ret_fd = openat(
		    t->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		return *ret_fd < 0 ? -errno : 0;
	case S_IFDIR:
		return mkdirat(t->dir_fd, name, 0700) < 0 ? -errno : 0;
	case S_IFLNK:
		return symlinkat(en->target, t->dir_fd, name) < 0 ? -errno : 0;
	case S_IFIFO:
		return mknodat(t->dir_fd, name, S_IFIFO | 0600, 0) < 0 ? -errno : 0;
	}
	return -EBADMSG;
}

static bool
is_whiteout(const char *name)
{
	return strncmp(name, WHITEOUT, WHITEOUT_LEN) == 0;
}

static bool
is_device(const struct unp_entry *en)
{
	return !en->hardlink && (S_ISCHR(en->mode) || S_ISBLK(en->mode) || S_ISSOCK(en->mode));
}

int
unp_tree_make(struct unp_tree *t, const struct unp_entry *en, int *ret_fd, struct err *e)
{
	char name[NAME_MAX + 1];
	size_t len;
	int r = split(en->path, name, &len, e);

	*ret_fd = -1;
	if (r < 0 || (r = enter_dir(t, en->path, len, e)) < 0)
		return r;
	if (strcmp(name, "..") == 0)
		return err_say(e, -EBADMSG, "the path \"%.200s\" leads out of the image", en->path);
	if (is_whiteout(name))
		return make_whiteout(t, name, e);
	if (is_device(en) || !*name || strcmp(name, ".") == 0)
		return 0;
	r = clear_way(t, en, name, e);
	if (r != 0)
		return r < 0 ? r : 0;
	if (en->hardlink)
		return make_hardlink(t, en, name, e);
	r = make_file(t, en, name, ret_fd);
	return r < 0 ? err_set(e, r, "make \"%.200s\"", en->path) : 0;
}

/* Sets *ret_name to the name of the entry's own file in t->dir_fd, or "" if it has none. */
static int
find_file(const struct unp_entry *en, char ret_name[NAME_MAX + 1], struct err *e)
{
	size_t len;
	int r = split(en->path, ret_name, &len, e);

	if (r < 0)
		return r;
	if (en->hardlink || is_device(en) || is_whiteout(ret_name))
		*ret_name = '\0';
	else if (!*ret_name)
		(void)strcpy(ret_name, ".");
	return 0;
}

static void
note_time(struct unp_tree *t, const struct unp_entry *en)
{
	/* The array grows at powers of 2. */
	if ((t->n_times & (t->n_times - 1)) == 0)
		t->times = mem_resize(t->times, t->n_times ? 2 * t->n_times : 1, sizeof *t->times);
	t->times[t->n_times++] =
	    (struct unp_times){ .path = mem_strdup(en->path), .mtime = en->mtime };
}

int
unp_tree_finish(struct unp_tree *t, const struct unp_entry *en, int fd, struct err *e)
{
	const struct timespec times[] = { en->mtime, en->mtime };
	char name[NAME_MAX + 1];
	int r = find_file(en, name, e);

	if (r < 0 || !*name)
		return r;
	if (en->uid < 0 || en->uid >= CONTAINER_IDS || en->gid < 0 || en->gid >= CONTAINER_IDS)
		return err_say(e, -EBADMSG,
		    "\"%.200s\" belongs to user %lld and group %lld, and containers have the ids 0 "
		    "to 65535",
		    en->path, (long long)en->uid, (long long)en->gid);
	if (fchownat(t->dir_fd, name, (uid_t)en->uid, (gid_t)en->gid, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(e, -errno, "set the owner of \"%.200s\"", en->path);
	if (!S_ISLNK(en->mode) && (fd >= 0 ? fchmod(fd, en->mode & 07777)
					   : fchmodat(t->dir_fd, name, en->mode & 07777, 0)) < 0)
		return err_set(e, -errno, "set the mode of \"%.200s\"", en->path);
	if (S_ISDIR(en->mode))
		note_time(t, en);
	else if (utimensat(t->dir_fd, name, times, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(e, -errno, "set the time of \"%.200s\"", en->path);
	return 0;
}

static bool
is_kept(const char *attribute)
{
	return strcmp(attribute, "security.capability") == 0 ||
	       (strncmp(attribute, "user.", 5) == 0 &&
		   strncmp(attribute, "user.overlay.", 13) != 0);
}

int
unp_tree_set_xattr(struct unp_tree *t, const struct unp_entry *en, const char *attribute,
    const void *value, size_t size, struct err *e)
{
	cleanup_close int fd = -1;
	char name[NAME_MAX + 1];
	int r = find_file(en, name, e);

	if (r < 0 || !*name || !is_kept(attribute) || (!S_ISREG(en->mode) && !S_ISDIR(en->mode)))
		return r;
	fd = openat(t->dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fsetxattr(fd, attribute, value, size, 0) < 0)
		return err_set(
		    e, -errno, "set the attribute %.100s of \"%.200s\"", attribute, en->path);
	return 0;
}

int
unp_tree_close(struct unp_tree *t, struct err *e)
{
	for (size_t i = 0; i < t->n_times; i++) {
		const struct timespec times[] = { t->times[i].mtime, t->times[i].mtime };
		const char *path = t->times[i].path;
		cleanup_close int fd = open_dir(t->root_fd, path);

		/* A later entry may have replaced it. */
		if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
			continue;
		if (fd < 0 || futimens(fd, times) < 0)
			return err_set(e, fd < 0 ? fd : -errno, "set the time of \"%.200s\"", path);
	}
	return 0;
}

void
unp_tree_done(struct unp_tree *t)
{
	for (size_t i = 0; i < t->n_times; i++)
		free(t->times[i].path);
	free_p(&t->times);
	close_p(&t->dir_fd);
}
