// SPDX-License-Identifier: Apache-2.0
/* exe_files.c: writes the files of a start or a session into `secrets` and `local`. Runs in: the
 * task's child, as the task's user. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/id.h"
#include "executor/exe_start.h"
#include "common/spec.h"

/* If the task made a directory under a needed name, it is renamed to a random name. */
static void
put_aside(int dir, const char *name)
{
	char aside[ID_HEX_SIZE];
	struct id id = id_random();

	id_to_hex(&id, aside);
	(void)renameat(dir, name, dir, aside);
}

/* A concurrent reader sees the old or the new contents. An object that the task made under this
 * name is replaced, never written through. */
static int
write_file(int dir, const char *name, const char *data, size_t len)
{
	cleanup_close int fd = -1;
	char fresh[ID_HEX_SIZE];
	struct id id = id_random();
	int r;

	id_to_hex(&id, fresh);
	fd = openat(dir, fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = fd_write_full(fd, data, len);
	if (r == 0 && renameat(dir, fresh, dir, name) < 0) {
		put_aside(dir, name);
		r = renameat(dir, fresh, dir, name) < 0 ? -errno : 0;
	}
	if (r < 0)
		(void)unlinkat(dir, fresh, 0);
	return r;
}

/* Opens `local`, or the directory below it in *name, and makes missing directories; *name becomes
 * the last component. Links are not followed, because the file would end up elsewhere. */
static int
open_local(const char **name)
{
	int dir = open("local", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	const char *slash;

	while (dir >= 0 && (slash = strchr(*name, '/'))) {
		cleanup_close int up = dir;
		char part[NAME_PATH_MAX + 1] = "";

		memcpy(part, *name, (size_t)(slash - *name));
		*name = slash + 1;
		(void)mkdirat(up, part, 0755);
		dir = openat(up, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	}
	return dir < 0 ? -errno : dir;
}

int
exe_files_write(struct exe *x)
{
	struct spec_entry entry;
	const char *name = NULL;
	size_t at = 0;
	int r = 0;

	while (r == 0 && spec_next(x->spec.map, x->spec.size, &at, &entry) == 1) {
		const char *in_local = name ? spec_local_name(name) : NULL;
		cleanup_close int dir = -1;

		if (entry.tag == SPEC_SECRET_NAME)
			name = entry.text;
		if (entry.tag != SPEC_SECRET_DATA)
			continue;
		/* An older version made `secrets` a link; only root can have made it. */
		dir = in_local ? open_local(&in_local)
			       : open("secrets", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		r = dir < 0 ? -errno : write_file(dir, in_local ?: name, entry.text, entry.len);
	}
	return r;
}
