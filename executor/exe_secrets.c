// SPDX-License-Identifier: Apache-2.0
/* exe_secrets.c: the task's secrets directory and its first contents. Runs in: executor, as root.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/id.h"
#include "executor/exe.h"
#include "proto/task_spec.h"

/* Whatever is there under a name that is wanted gets out of the way, under one that nobody can have
 * taken. */
static void
put_aside(int dir, const char *name)
{
	char aside[ID_HEX_SIZE];
	struct id id = id_random();

	id_to_hex(&id, aside);
	(void)renameat(dir, name, dir, aside);
}

/*
 * A task of an earlier run may have planted anything here. The file is new and ours; nobody reads
 * here before the task runs.
 */
static int
write_secret(struct exe *x, int dir, const char *name, const char *data, size_t len)
{
	cleanup_close int fd = -1;

	if (unlinkat(dir, name, 0) < 0 && errno == EISDIR)
		put_aside(dir, name);
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || fchown(fd, x->setup->user.uid, x->setup->user.gid) < 0)
		return -errno;
	return fd_write_full(fd, data, len);
}

/* Who reads the file while the task runs sees the old contents or the new ones. */
static int
replace_secret(struct exe *x, int dir, const char *name, const char *data, size_t len)
{
	char fresh[ID_HEX_SIZE];
	struct id id = id_random();
	int r;

	id_to_hex(&id, fresh);
	r = write_secret(x, dir, fresh, data, len);
	if (r == 0 && renameat(dir, fresh, dir, name) < 0) {
		put_aside(dir, name);
		r = renameat(dir, fresh, dir, name) < 0 ? -errno : 0;
	}
	if (r < 0)
		(void)unlinkat(dir, fresh, 0);
	return r;
}

/*
 * `local`, or the directory below it that *name goes through, made where it is missing; *name
 * becomes its last part. `local` belongs to everybody, but lies in a directory of root's: it is no
 * link.
 */
static int
open_local(struct exe *x, const char **name)
{
	int dir = fd_open_beneath(x->task_dir, "local", O_RDONLY | O_DIRECTORY, 0);
	const char *slash;

	while (dir >= 0 && (slash = strchr(*name, '/'))) {
		cleanup_close int up = dir;
		char part[NAME_PATH_MAX + 1] = "";
		bool made;

		memcpy(part, *name, (size_t)(slash - *name));
		*name = slash + 1;
		made = mkdirat(up, part, 0755) == 0;
		dir = openat(up, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (dir < 0 || (made && fchown(dir, x->setup->user.uid, x->setup->user.gid) < 0))
			return -errno;
	}
	return dir;
}

static int
write_all(struct exe *x,
    int (*write_one)(struct exe *x, int dir, const char *name, const char *data, size_t len))
{
	struct spec_entry entry;
	const char *name = NULL;
	size_t at = 0;
	int r = 0;

	while (r == 0 && spec_next(x->spec.map, x->spec.size, &at, &entry) == 1) {
		const char *in_local = name ? spec_local_name(name) : NULL;
		cleanup_close int local = -1;

		if (entry.tag == SPEC_SECRET_NAME)
			name = entry.text;
		if (entry.tag != SPEC_SECRET_DATA)
			continue;
		if (in_local)
			local = open_local(x, &in_local);
		r = in_local && local < 0 ? local
					  : write_one(x, in_local ? local : x->secrets_dir,
						in_local ?: name, entry.text, entry.len);
	}
	return r;
}

int
exe_dirs_open(struct exe *x)
{
	const struct exe_setup *s = x->setup;
	char path[sizeof s->alloc_name + sizeof s->keep.task + 1];

	(void)snprintf(path, sizeof path, "%s/%s", s->alloc_name, s->keep.task);
	x->task_dir = fd_open_beneath(EXE_FD_ALLOC, path, O_PATH | O_DIRECTORY, 0);
	if (x->task_dir < 0)
		return exe_failed(x, EXE_STEP_CWD, -x->task_dir, 0);
	x->secrets_dir = fd_open_beneath(EXE_FD_SECRETS, path, O_RDONLY | O_DIRECTORY, 0);
	if (x->secrets_dir < 0)
		return exe_failed(x, EXE_STEP_SECRETS, -x->secrets_dir, 0);
	return 0;
}

int
exe_secrets_write(struct exe *x)
{
	const struct exe_setup *s = x->setup;
	char link[sizeof s->alloc_name + sizeof s->keep.task + 20];
	int r = exe_dirs_open(x);

	if (r < 0)
		return r;
	if (fchown(x->secrets_dir, s->user.uid, s->user.gid) < 0 ||
	    fchmod(x->secrets_dir, 0700) < 0)
		return exe_failed(x, EXE_STEP_SECRETS, errno, 0);
	r = write_all(x, write_secret);
	if (r < 0)
		return exe_failed(x, EXE_STEP_SECRETS, -r, 0);
	(void)snprintf(link, sizeof link, "../../../secrets/%s/%s", s->alloc_name, s->keep.task);
	/* The task's directory is root's, so nobody else can have made the link. */
	if (s->driver == DRIVER_RAW_EXEC && symlinkat(link, x->task_dir, "secrets") < 0 &&
	    errno != EEXIST)
		return exe_failed(x, EXE_STEP_SECRETS, errno, 0);
	return 0;
}

int
exe_secrets_replace(struct exe *x)
{
	int r;

	x->child_step = EXE_STEP_SECRETS;
	r = write_all(x, replace_secret);
	if (r == 0)
		x->child_step = EXE_STEP_COMMAND;
	return r;
}
