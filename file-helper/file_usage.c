// SPDX-License-Identifier: Apache-2.0
/* file_usage.c: measures the disk usage of allocs. Runs in: a worker of the file-helper. Asked by:
 * supervisor. */
#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/fd.h"
#include "common/path.h"
#include "common/project.h"
#include "file-helper/file.h"

#define DEPTH_MAX  128   /* deeper directories are not counted */
#define EACH_MS    2000  /* a tree that takes longer counts with the part that was seen */
#define ALL_MS     20000 /* allocs that are not reached count 0 */
#define TIMEOUT_MS 30000
/* The minimum that a file counts for: an empty file also uses an inode, and their number is
 * limited. */
#define FILE_LEAST 4096

struct wanted {
	size_t n;
	char allocs[FILE_ALLOCS_MAX][ID_UUID_SIZE];
};

/* Links are not followed. A file with several names counts once, and for at least `least` bytes. */
static uint64_t
count_below(int dir_fd, const char *path, unsigned depth, uint64_t least, uint64_t until_ms)
{
	cleanup_dir DIR *d = NULL;
	uint64_t bytes = 0, own;
	struct stat st;
	const char *n;

	if (depth == 0 || dir_open_at(dir_fd, path, &d) < 0)
		return 0;
	while (clock_ms() < until_ms && (n = dir_next(d))) {
		if (fstatat(dirfd(d), n, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
			continue;
		own = (uint64_t)st.st_blocks * 512;
		own = own < least ? least : own;
		bytes += own / (S_ISDIR(st.st_mode) || st.st_nlink == 0 ? 1 : st.st_nlink);
		if (S_ISDIR(st.st_mode))
			bytes += count_below(dirfd(d), n, depth - 1, least, until_ms);
	}
	return bytes;
}

/* If the alloc's directory is a project with a limit, statfs reports the limit and its free space.
 * Otherwise, or if the limit exceeds the file system's size, both stay 0. */
static void
ask_project(int root_fd, const char *alloc, uint64_t *ret_bytes, uint64_t *ret_limit)
{
	cleanup_close int fd = fd_open_beneath(root_fd, alloc, O_RDONLY | O_DIRECTORY, 0);
	struct statfs all, own;
	struct fsxattr x;

	if (fd < 0 || project_read(fd, &x) == 0 || fstatfs(root_fd, &all) < 0 ||
	    fstatfs(fd, &own) < 0 || own.f_blocks >= all.f_blocks)
		return;
	*ret_bytes = (uint64_t)(own.f_blocks - own.f_bfree) * (uint64_t)own.f_bsize;
	*ret_limit = (uint64_t)own.f_blocks * (uint64_t)own.f_bsize;
}

static int
count_all(int fd, const void *arg, struct worker_result *ret, struct err *e)
{
	const struct wanted *w = arg;
	struct {
		uint64_t bytes, limit;
	} used[FILE_ALLOCS_MAX] = { 0 };
	uint64_t end_ms = clock_ms() + ALL_MS, until_ms;

	for (size_t i = 0; i < w->n; i++) {
		uint64_t counted = 0;

		until_ms = clock_ms() + EACH_MS;
		ask_project(fd, w->allocs[i], &used[i].bytes, &used[i].limit);
		/* A full project counts too: processes with CAP_SYS_RESOURCE may exceed the limit.
		 * The project itself limits the number of files. */
		if (used[i].bytes >= used[i].limit)
			counted = count_below(fd, w->allocs[i], DEPTH_MAX,
			    used[i].limit > 0 ? 0 : FILE_LEAST,
			    until_ms < end_ms ? until_ms : end_ms);
		if (counted > used[i].bytes)
			used[i].bytes = counted;
	}
	ret->fd = fd_memfd_sealed("usage", used, w->n * sizeof used[0]);
	return ret->fd < 0 ? err_set(e, ret->fd, "store the disk usage of the allocations") : 0;
}

int
file_on_disk_usage(struct file *f, const struct file_disk_usage_req *req,
    struct file_disk_usage_rep *rep, int *ret_fd, struct err *e)
{
	struct wanted w = { .n = req->n_allocs };
	int r = 0;

	if (w.n == 0)
		return err_say(e, -EINVAL, "the usage of no alloc was asked for");
	for (size_t i = 0; r >= 0 && i < w.n; i++)
		r = id_alloc_read(&req->allocs[i].id, w.allocs[i], e);
	return r < 0 ? r
		     : worker_start(&f->workers, f->workers.request, TIMEOUT_MS,
			   &f->root_fds[FILE_ROOT_ALLOC], 1, count_all, &w, NULL,
			   "count what allocs use of the disk", e);
}
