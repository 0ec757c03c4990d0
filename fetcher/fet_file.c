// SPDX-License-Identifier: Apache-2.0
/* fet_file.c: copies a file of this machine, which the configuration permits. Runs in: a worker of
 * the fetcher. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "fetcher/fet.h"
#include "proto/artifact_config.h"

/* Returns the part of path below the permitted directory *ret_dir, or NULL. */
static const char *
find_dir(const struct config_artifact *c, const char *path, const char **ret_dir)
{
	for (uint32_t i = 0; i < c->n_file_dirs; i++) {
		size_t len = strlen(c->file_dirs[i]);

		*ret_dir = c->file_dirs[i];
		if (strncmp(path, *ret_dir, len) == 0 && path[len] == '/')
			return path + len + 1;
	}
	return NULL;
}

static int
open_file(const struct config_artifact *c, const char *path, struct err *e)
{
	const char *dir = NULL, *below = find_dir(c, path, &dir);
	cleanup_close int dir_fd = -1;
	int fd;

	if (!below)
		return err_say(e, -EINVAL,
		    "files of this machine cannot be artifacts: use a host volume, or add their "
		    "directory to file_directories of the agent's artifact block");
	dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return err_set(e, -errno, "open the directory %.200s", dir);
	/* Without O_NONBLOCK, the open of a named pipe would wait for a writer. */
	fd = fd_open_beneath(dir_fd, below, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	if (fd == -ELOOP || fd == -EXDEV)
		return err_say(
		    e, fd, "the path of the file leaves %.200s or has a symbolic link", dir);
	return fd < 0 ? err_set(e, fd, "open the file in %.200s as the fetcher's user", dir) : fd;
}

static int
copy(struct fet *f, int from, int to, uint64_t limit, struct err *e)
{
	static char data[1 << 16];
	uint64_t bytes = 0;
	ssize_t n;
	int r = 0;

	while (r == 0 && (n = fd_read_full(from, data, sizeof data)) != 0) {
		if (n < 0)
			return err_set(e, (int)n, "read the file");
		bytes += (uint64_t)n;
		if (bytes > limit)
			return err_say(e, -EFBIG,
			    "the file has more than the %llu bytes that are allowed",
			    (unsigned long long)limit);
		r = fd_write_full(to, data, (size_t)n);
		f->told->bytes = f->bytes + bytes;
	}
	return r < 0 ? err_set(e, r, "store the file") : 0;
}

int
fet_file_get(struct fet *f, const char *path, int file_fd, uint64_t limit, struct err *e)
{
	cleanup_close int fd = open_file(f->config, path, e);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return err_set(e, -errno, "read the file");
	if (!S_ISREG(st.st_mode))
		return err_say(e, -EINVAL, "the source is not a regular file");
	f->told->total = (uint64_t)st.st_size;
	return copy(f, fd, file_fd, limit, e);
}
