// SPDX-License-Identifier: Apache-2.0
/*
 * mnt_trash.c: moves what a plugin's user may have filled out of the way, in one call. file-helper
 * empties that trash (file_trash.c). Runs in: mount-helper, as root.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mount-helper/mnt.h"

int
mnt_trash_put(const struct mnt *m, int dir_fd, const char *name, struct err *e)
{
	static unsigned serial;
	const char *slash = strrchr(name, '/');
	char aside[NAME_BYTES_MAX + 32];

	for (;;) {
		(void)snprintf(
		    aside, sizeof aside, "%s.%d.%u", slash ? slash + 1 : name, getpid(), serial++);
		if (renameat2(dir_fd, name, m->trash_fd, aside, RENAME_NOREPLACE) == 0 ||
		    errno == ENOENT)
			return 0;
		if (errno != EEXIST)
			return err_set(e, -errno, "move %s to the trash", name);
	}
}
