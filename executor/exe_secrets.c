// SPDX-License-Identifier: Apache-2.0
/* exe_secrets.c: the task's secrets directory and its first contents. Runs in: executor, as root.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/id.h"
#include "executor/exe.h"
#include "proto/task_spec.h"

/*
 * A task of an earlier run may have planted anything here, also a directory, which then gets out of
 * the way under a name that nobody can have taken. The file is new and ours; nobody reads here
 * before the task runs.
 */
static int
write_secret(struct exe *x, int dir, const char *name, const char *data, size_t len)
{
	cleanup_close int fd = -1;
	char aside[ID_HEX_SIZE];
	struct id id;

	if (unlinkat(dir, name, 0) < 0 && errno == EISDIR) {
		id = id_random();
		id_to_hex(&id, aside);
		(void)renameat(dir, name, dir, aside);
	}
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || fchown(fd, x->setup->user.uid, x->setup->user.gid) < 0)
		return -errno;
	return fd_write_full(fd, data, len);
}

static int
write_all(struct exe *x, int dir)
{
	struct spec_entry entry;
	const char *name = NULL;
	size_t at = 0;
	int r = 0;

	while (r == 0 && spec_next(x->spec.map, x->spec.size, &at, &entry) == 1) {
		if (entry.tag == SPEC_SECRET_NAME)
			name = entry.text;
		else if (entry.tag == SPEC_SECRET_DATA)
			r = write_secret(x, dir, name, entry.text, entry.len);
	}
	return r;
}

int
exe_secrets_write(struct exe *x)
{
	const struct exe_setup *s = x->setup;
	cleanup_close int dir = -1;
	static const char up[] = "../../../secrets/";
	char link[sizeof up + sizeof s->alloc_name + sizeof s->keep.task],
	    *path = link + sizeof up - 1;
	int r;

	(void)snprintf(link, sizeof link, "%s%s/%s", up, s->alloc_name, s->keep.task);
	x->task_dir = fd_open_beneath(EXE_FD_ALLOC, path, O_PATH | O_DIRECTORY, 0);
	if (x->task_dir < 0)
		return exe_failed(x, EXE_STEP_CWD, -x->task_dir, 0);
	dir = fd_open_beneath(EXE_FD_SECRETS, path, O_RDONLY | O_DIRECTORY, 0);
	if (dir < 0)
		return exe_failed(x, EXE_STEP_SECRETS, -dir, 0);
	if (fchown(dir, s->user.uid, s->user.gid) < 0 || fchmod(dir, 0700) < 0)
		return exe_failed(x, EXE_STEP_SECRETS, errno, 0);
	r = write_all(x, dir);
	if (r < 0)
		return exe_failed(x, EXE_STEP_SECRETS, -r, 0);
	/* The task's directory is root's, so nobody else can have made the link. */
	if (s->driver == DRIVER_RAW_EXEC && symlinkat(link, x->task_dir, "secrets") < 0 &&
	    errno != EEXIST)
		return exe_failed(x, EXE_STEP_SECRETS, errno, 0);
	return 0;
}
