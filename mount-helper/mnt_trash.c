// SPDX-License-Identifier: Apache-2.0
/*
 * mnt_trash.c: removal in two steps. Runs in: mount-helper; the second step in a child of it.
 *
 * A tree that a task filled may take minutes to remove, so a request only renames it into .trash
 * (0700) beside it, which is one call, and cannot be half done. One child at a time empties the
 * trash of all roots; what it cannot remove stays there, is logged, listed by MNT_ROOT_LIST (when
 * nobody is at it any more) as
 * ".trash/…", and tried again with the next removal and at the next start.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/path.h"
#include "mount-helper/mnt.h"

#define EMPTY_TIMEOUT_MS (600 * 1000)

static const char *const trashes[] = { "secrets/.trash", "alloc/.trash", "logs/.trash",
	"csi/sock/.trash" };

int
mnt_trash_put(struct mnt *m, MntRoot root, int dir_fd, const char *name, struct err *e)
{
	static unsigned serial;
	const char *slash = strrchr(name, '/');
	char aside[NAME_BYTES_MAX + 32];

	for (;;) {
		(void)snprintf(
		    aside, sizeof aside, "%s.%d.%u", slash ? slash + 1 : name, getpid(), serial++);
		if (renameat2(dir_fd, name, m->trash_fds[root], aside, RENAME_NOREPLACE) == 0) {
			m->trash_full = true;
			return 0;
		}
		if (errno == ENOENT)
			return 0;
		if (errno != EEXIST)
			return err_set(e, -errno, "move %s to the trash", name);
	}
}

static void
empty_one(int data_fd, const char *path)
{
	cleanup_close int fd = fd_open_beneath(data_fd, path, O_PATH | O_DIRECTORY, 0);
	cleanup_dir DIR *d = NULL;
	const char *n;
	int r = fd < 0 ? fd : dir_open_at(fd, ".", &d);

	if (r < 0)
		log_warn("open %s: %s", path, strerrordesc_np(-r));
	while (d && (n = dir_next(d)))
		if ((r = tree_remove_at(fd, n)) < 0)
			log_warn("remove %s/%s: %s", path, n, strerrordesc_np(-r));
}

static int
empty_all(int data_fd, const void *arg, struct mnt_result *ret, struct err *e)
{
	for (size_t i = 0; i < ELEMENTSOF(trashes); i++)
		empty_one(data_fd, trashes[i]);
	return 0;
}

static bool
is_emptying(const struct mnt *m)
{
	for (size_t i = 0; i < MNT_JOBS_MAX; i++)
		if (m->jobs[i].pid > 0 && m->jobs[i].work == empty_all)
			return true;
	return false;
}

bool
mnt_trash_is_busy(const struct mnt *m)
{
	return m->trash_full || is_emptying(m);
}

void
mnt_trash_empty(struct mnt *m)
{
	struct err e = { 0 };

	if (!m->trash_full || is_emptying(m))
		return;
	m->trash_full = false;
	if (mnt_child_start(m, NULL, EMPTY_TIMEOUT_MS, FD_DATA, empty_all, NULL, NULL,
		"empty the trash", &e) < 0)
		log_warn("%s", e.msg);
}
