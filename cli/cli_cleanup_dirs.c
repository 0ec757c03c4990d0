// SPDX-License-Identifier: Apache-2.0
/*
 * cli_cleanup_dirs.c: drover cleanup: mounts, runtime directories, and temporary data directories
 * that agents left. The lock of a directory is held while it is cleaned, so that no agent starts
 * with it. Runs in: cli, as root.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli_cleanup.h"
#include "common/cleanup.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/mountinfo.h"
#include "common/path.h"

#define ALLOC     "/alloc"
#define TEMPORARY "/tmp/drover-" /* and six characters: drover agent -dev without -data-dir */
#define RUNTIME   "/run/drover*"

/* Locks a file or directory. Returns the descriptor that holds the lock; -EWOULDBLOCK if an agent
 * has it, or another -errno. */
static int
lock_open(int dir, const char *path)
{
	cleanup_close int fd = openat(dir, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	return steal_fd(&fd);
}

/* Returns whether path, which has no mounts below it any more, is to be removed by its name. */
static bool
is_temporary(const char *path)
{
	return strncmp(path, TEMPORARY, strlen(TEMPORARY)) == 0 &&
	       strlen(path) == strlen(TEMPORARY) + 6 && !strchr(path + strlen(TEMPORARY), '/');
}

/* parent: the directory that path is in, or -1 to open it by its name. */
static void
remove_dir(struct cleanup *c, const char *kind, int parent, const char *path)
{
	cleanup_free char *up = mem_strdup(path);
	cleanup_close int opened =
	    parent < 0 ? open(dirname(up), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	int dir = parent < 0 ? opened : parent, r = dir < 0 ? -errno : 0;
	struct err e = { 0 };

	if (r == 0 && !c->dry_run)
		r = tree_remove_at(dir, strrchr(path, '/') + 1);
	if (r < 0)
		(void)err_set(&e, r, "remove %s", path);
	cleanup_did(c, kind, path, r, &e);
}

int
cleanup_mounts(const char *type, struct strings *ret, struct err *e)
{
	cleanup_free char *text = NULL;
	struct mountinfo m;
	int r = mountinfo_read(&text);
	char *at = text;

	if (r < 0)
		return err_set(e, r, "list the mounts");
	while ((r = mountinfo_next(&at, &m)) != 0)
		if (r > 0 && strncmp(m.type, type, strlen(type)) == 0)
			strings_add(ret, m.target);
	return 0;
}

/* Unmounts all below the data directory, the last mounted first; not a file system that an operator
 * mounted for the data itself. */
static void
unmount_below(struct cleanup *c, const char *data)
{
	cleanup_done(strings) struct strings found = { 0 };
	struct err e = { 0 };

	if (cleanup_mounts("", &found, &e) < 0)
		return;
	for (size_t i = found.n; i-- > 0;) {
		const char *rest = mountinfo_below(found.v[i], data);
		int r = 0;

		if (!rest || !*rest)
			continue;
		if (!c->dry_run && umount2(found.v[i], MNT_DETACH | UMOUNT_NOFOLLOW) < 0 &&
		    errno != EINVAL)
			r = err_set(&e, -errno, "unmount %s", found.v[i]);
		cleanup_did(c, "mount", found.v[i], r, &e);
	}
}

static void
clean_data(struct cleanup *c, int dir, const char *data, bool dev)
{
	cleanup_free char *rt = mem_printf("%s/rt", data);

	if (dev && !cleanup_networks(c, rt))
		return;
	unmount_below(c, data);
	if (dev && faccessat(dir, "rt", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		remove_dir(c, "runtime directory", dir, rt);
	if (dev && is_temporary(data))
		remove_dir(c, "data directory", -1, data);
}

/* Returns whether what an agent left in this data directory may be removed; says why not. */
static bool
may_clean(struct cleanup *c, const char *data, const char *id, bool dev, bool named)
{
	const struct cleanup_group *g = cleanup_group_of(c, id);

	if (g && g->in_use)
		return false;
	if (g && g->populated) /* its cgroup is reported */
		return false;
	if (dev || named || c->all)
		return true;
	cleanup_say(c, "data directory", data, "kept",
	    "it belongs to an installed agent that does not run: add -all to clean it");
	return false;
}

/* A directory that others than root can change proves nothing: its files could name any agent, and
 * it could be replaced while it is cleaned. */
static void
look_at_data(struct cleanup *c, const char *data, bool named)
{
	struct err e = { 0 };
	cleanup_close int owned = path_open_owned(data, 0, &e);
	cleanup_close int dir =
	    owned < 0 ? owned : openat(owned, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_close int lock = -1;
	cleanup_free char *id = NULL;
	bool dev;

	if (owned == -EPERM && named) {
		cleanup_say(c, "data directory", data, "kept", "%s", e.msg);
		return;
	}
	if (dir < 0 || fd_read_file(dir, "instance", 64, &id) < 8 ||
	    strspn(id, "0123456789abcdef") != 8) {
		if (named)
			cleanup_say(c, "data directory", data, "kept", "it is not one of an agent");
		return;
	}
	id[8] = '\0';
	lock = lock_open(dir, "lock");
	if (lock == -EWOULDBLOCK) {
		c->runs = true;
		if (named)
			cleanup_say(c, "data directory", data, "kept", "its agent runs");
		return;
	}
	dev = faccessat(dir, "uids", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	if (may_clean(c, data, id, dev, named))
		clean_data(c, dir, data, dev);
}

/* Adds the data directories whose alloc/ is mounted. */
static int
find_mounted(struct strings *found, struct err *e)
{
	cleanup_done(strings) struct strings mounts = { 0 };
	int r = cleanup_mounts("", &mounts, e);

	for (size_t i = 0; r == 0 && i < mounts.n; i++) {
		size_t len = strlen(mounts.v[i]);
		cleanup_free char *data = NULL;

		if (len <= strlen(ALLOC) || strcmp(mounts.v[i] + len - strlen(ALLOC), ALLOC) != 0)
			continue;
		data = mem_strdup(mounts.v[i]);
		data[len - strlen(ALLOC)] = '\0';
		if (!strings_has(found, data))
			strings_add(found, data);
	}
	return r;
}

int
cleanup_data_dirs(struct cleanup *c, struct err *e)
{
	cleanup_done(strings) struct strings found = { 0 };
	glob_t temporary = { 0 };
	int r;

	for (size_t i = 0; i < c->data_dirs.n; i++) {
		cleanup_free char *real = realpath(c->data_dirs.v[i], NULL);

		strings_add(&found, real ?: c->data_dirs.v[i]);
	}
	r = find_mounted(&found, e);
	if (glob(TEMPORARY "??????", GLOB_NOSORT, NULL, &temporary) == 0)
		for (size_t i = 0; i < temporary.gl_pathc; i++)
			if (!strings_has(&found, temporary.gl_pathv[i]))
				strings_add(&found, temporary.gl_pathv[i]);
	globfree(&temporary);
	for (size_t i = 0; r == 0 && i < found.n; i++)
		look_at_data(c, found.v[i], i < c->data_dirs.n);
	return r;
}

/* With -all, after everything else. A socket of systemd in it is removed with drover.socket. */
void
cleanup_runtime_dirs(struct cleanup *c)
{
	glob_t found = { 0 };

	if (glob(RUNTIME, GLOB_NOSORT, NULL, &found) != 0)
		return;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		const char *path = found.gl_pathv[i];
		cleanup_close int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		int r;

		if (dir < 0 || faccessat(dir, "lease", F_OK, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		r = flock(dir, LOCK_EX | LOCK_NB);
		if (r < 0 || c->runs)
			cleanup_say(c, "runtime directory", path, "kept",
			    r < 0 ? "its agent runs" : "agents or tasks run");
		else if (cleanup_networks(c, path))
			remove_dir(c, "runtime directory", -1, path);
	}
	globfree(&found);
}
