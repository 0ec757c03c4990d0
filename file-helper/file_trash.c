// SPDX-License-Identifier: Apache-2.0
/*
 * file_trash.c: removal in two steps. Runs in: file-helper; the second step in a worker.
 *
 * A tree that a task filled may take minutes to remove, so a request only renames it into .trash
 * (0700) beside it, which is one call, and cannot be half done. One worker at a time empties the
 * trash of all roots; what it cannot remove stays there, is logged, listed by FILE_ROOT_LIST (when
 * no worker is at it any more) as ".trash/…", and tried again with the next removal and at the next
 * start.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/path.h"
#include "file-helper/file.h"

#define EMPTY_TIMEOUT_MS (600 * 1000)

static const struct trash {
	enum file_root root;
	const char *name;
} trashes[] = {
	{ FILE_ROOT_ALLOC, "alloc" },
	{ FILE_ROOT_LOGS, "logs" },
	{ FILE_ROOT_CSI_SOCK, "csi/sock" },
};

int
file_trash_put(struct file *f, enum file_root root, const char *path, struct err *e)
{
	static unsigned serial;
	const char *slash = strrchr(path, '/');
	char aside[NAME_BYTES_MAX + 32];

	for (;;) {
		(void)snprintf(
		    aside, sizeof aside, "%s.%d.%u", slash ? slash + 1 : path, getpid(), serial++);
		if (renameat2(f->root_fds[root], path, f->trash_fds[root], aside,
			RENAME_NOREPLACE) == 0) {
			f->trash_full = true;
			return 0;
		}
		if (errno == ENOENT)
			return 0;
		if (errno != EEXIST)
			return err_set(e, -errno, "move %s to the trash", path);
	}
}

static void
empty_one(int fd, const char *root)
{
	cleanup_dir DIR *d = NULL;
	const char *n;
	int r = dir_open_at(fd, ".", &d);

	if (r < 0)
		log_warn("open %s/.trash: %s", root, strerrordesc_np(-r));
	while (d && (n = dir_next(d)))
		if ((r = tree_remove_at(fd, n)) < 0)
			log_warn("remove %s/.trash/%s: %s", root, n, strerrordesc_np(-r));
}

static int
empty_all(int fd, const void *arg, struct worker_result *ret, struct err *e)
{
	for (size_t i = 0; i < ELEMENTSOF(trashes); i++)
		empty_one(fd + (int)i, trashes[i].name);
	return 0;
}

bool
file_trash_is_busy(const struct file *f)
{
	return f->trash_full || workers_run(&f->workers, empty_all);
}

void
file_trash_empty(struct file *f)
{
	int fds[ELEMENTSOF(trashes)];
	struct err e = { 0 };

	if (!f->trash_full || workers_run(&f->workers, empty_all))
		return;
	f->trash_full = false;
	for (size_t i = 0; i < ELEMENTSOF(trashes); i++)
		fds[i] = f->trash_fds[trashes[i].root];
	if (worker_start(&f->workers, NULL, EMPTY_TIMEOUT_MS, fds, ELEMENTSOF(fds), empty_all, NULL,
		NULL, "empty the trash", &e) < 0)
		log_warn("%s", e.msg);
}
