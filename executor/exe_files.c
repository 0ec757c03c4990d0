// SPDX-License-Identifier: Apache-2.0
/* exe_files.c: writes the files of a start or a session. Runs in: the task's child, as the task's
 * user. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/crash.h"
#include "common/fd.h"
#include "common/id.h"
#include "executor/exe_start.h"
#include "common/spec.h"

/* Clients that wait while the supervisor does not accept them; connect(2) of further ones blocks,
 * or fails with EAGAIN if the socket is non-blocking, as those of Go's programs are. A client that
 * waits costs about 2 KiB of the kernel; what it has sent is memory of the task's cgroup. */
#define API_BACKLOG 1024

/* Another session may write the same file at the same time. */
#define LINK_TRIES 3

#define FRESH_SIZE (sizeof ".drover-" + 32)
_Static_assert(FRESH_SIZE >= ID_HEX_SIZE, "a random name fits too");

static int
put_aside(int dir, const char *name)
{
	struct id id = id_random();
	char aside[ID_HEX_SIZE];

	id_to_hex(&id, aside);
	return renameat(dir, name, dir, aside) < 0 ? -errno : 0;
}

/* Moves a new file to its name, where it replaces anything that the task made there; a directory
 * gets a random name. */
static int
move_to(int dir, const char *fresh, const char *name)
{
	int r = renameat(dir, fresh, dir, name) < 0 ? -errno : 0;

	if (r == -EISDIR && put_aside(dir, name) == 0)
		r = renameat(dir, fresh, dir, name) < 0 ? -errno : 0;
	if (r < 0)
		(void)unlinkat(dir, fresh, 0);
	return r;
}

/* Opens a file without a name, so that nothing is left of it if this process is killed. Where the
 * file system has no such files, it gets the random name *fresh, else *fresh becomes empty. */
static int
open_fresh(int dir, char fresh[FRESH_SIZE])
{
	int fd = openat(dir, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
	struct id id = id_random();

	fresh[0] = '\0';
	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
		return fd < 0 ? -errno : fd;
	id_to_hex(&id, fresh);
	fd = openat(dir, fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

/* Gives a complete file a temporary name until it is moved to its own. The temporary name follows
 * from the file's own name: the next writer replaces a file that a killed writer left there, and
 * sessions that write different files at the same time do not meet. */
static int
link_fresh(int dir, int fd, const char *name, char fresh[FRESH_SIZE])
{
	uint64_t hash = 0xcbf29ce484222325ull; /* FNV-1a */
	int r = -EEXIST;
	char path[32];

	for (const char *at = name; *at; at++)
		hash = (hash ^ (unsigned char)*at) * 0x100000001b3ull;
	(void)snprintf(fresh, FRESH_SIZE, ".drover-%016llx", (unsigned long long)hash);
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	for (int i = 0; i < LINK_TRIES && r == -EEXIST; i++) {
		if (unlinkat(dir, fresh, 0) < 0 && errno == EISDIR)
			(void)put_aside(dir, fresh);
		r = linkat(AT_FDCWD, path, dir, fresh, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
	}
	return r;
}

/* A concurrent reader sees the old or the new contents. An object that the task made under this
 * name is replaced, never written through. */
static int
write_file(int dir, const char *name, const struct spec_file *file, const char *data, size_t len)
{
	char fresh[FRESH_SIZE];
	cleanup_close int fd = open_fresh(dir, fresh);
	bool shared = !fresh[0]; /* the temporary name, with other sessions */
	int r = fd < 0 ? fd : fd_write_full(fd, data, len);

	if (r == 0 && shared)
		r = link_fresh(dir, fd, name, fresh);
	if (r == 0 && (file->uid >= 0 || file->gid >= 0) &&
	    fchown(fd, (uid_t)file->uid, (gid_t)file->gid) < 0)
		r = -errno;
	if (r == 0 && fchmod(fd, file->mode) < 0)
		r = -errno;
	CRASH_POINT(EXE_TASK_BEFORE_RENAME);
	if (r < 0) {
		if (fresh[0])
			(void)unlinkat(dir, fresh, 0);
		return r;
	}
	r = move_to(dir, fresh, name);
	/* Another session that writes this file has moved this one to its name, or has put its own
	 * in place of it: the other one is the later writer. */
	return r == -ENOENT && shared ? 0 : r;
}

/* A raw_exec task's shared directory is beside its own. An older version made `secrets` a link;
 * only root can have made it. */
static int
open_first(const struct exe *x, const char *name)
{
	int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
	bool beside = x->setup->driver == DRIVER_RAW_EXEC && strcmp(name, "alloc") == 0;

	if (strcmp(name, "secrets") != 0)
		flags |= O_NOFOLLOW;
	return open(beside ? "../alloc" : name, flags);
}

/* Opens the directory of a path, and makes missing directories; *path becomes the last component.
 * Links are not followed, because the file would end up elsewhere. */
static int
open_dir(const struct exe *x, const char **path)
{
	int dir = -1;
	const char *slash;

	while ((slash = strchr(*path, '/'))) {
		cleanup_close int up = dir;
		char part[NAME_MAX + 1] = "";

		if (slash - *path > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(part, *path, (size_t)(slash - *path));
		*path = slash + 1;
		(void)mkdirat(up < 0 ? AT_FDCWD : up, part, 0755);
		dir = up < 0 ? open_first(x, part)
			     : openat(up, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (dir < 0)
			return -errno;
	}
	return dir < 0 ? open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : dir;
}

int
exe_files_write(struct exe *x)
{
	struct spec_entry entry;
	struct spec_file file = { 0 };
	uint32_t number = 0;
	size_t at = 0;
	int r = 0;

	while (r == 0 && spec_next(x->spec.map, x->spec.size, &at, &entry) == 1) {
		const char *name = file.path;
		cleanup_close int dir = -1;

		if (entry.tag == SPEC_FILE)
			r = spec_file_parse(entry.text, &file);
		if (entry.tag != SPEC_FILE_DATA)
			continue;
		number++;
		dir = open_dir(x, &name);
		r = dir < 0 ? dir : write_file(dir, name, &file, entry.text, entry.len);
	}
	x->record.detail = r < 0 ? number : 0;
	return r;
}

/* The file is open, on a mount that only root could change. */
int
exe_resolv_conf_write(struct exe *x)
{
	static const char option[] = "etc=resolv.conf:";
	struct spec_entry entry;
	size_t at = 0;
	int r = 0;

	while (
	    x->resolv_conf >= 0 && r == 0 && spec_next(x->spec.map, x->spec.size, &at, &entry) == 1)
		if (entry.tag == SPEC_OPTION && strncmp(entry.text, option, strlen(option)) == 0)
			r = fd_write_full(x->resolv_conf, entry.text + strlen(option),
			    entry.len - strlen(option));
	close_p(&x->resolv_conf);
	return r;
}

/* The path is relative, so that it is short enough for a socket's name, however deep the directory
 * of the data is. The socket that a raw_exec task had before a restart is replaced. */
void
exe_files_listen(struct exe *x)
{
	cleanup_close int dir = open("secrets", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	struct id id = id_random();
	char fresh[ID_HEX_SIZE];
	mode_t mask;
	int r;

	if (x->api < 0 || dir < 0)
		return;
	id_to_hex(&id, fresh);
	(void)snprintf(at.sun_path, sizeof at.sun_path, "secrets/%s", fresh);
	mask = umask(0177);
	r = bind(x->api, (struct sockaddr *)&at, sizeof at);
	(void)umask(mask);
	if (r == 0 && move_to(dir, fresh, "api.sock") == 0)
		(void)listen(x->api, API_BACKLOG);
	(void)close(x->api); /* the executor has it */
}
