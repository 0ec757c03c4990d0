// SPDX-License-Identifier: Apache-2.0
/* mnt_usage.c: how much of the disk allocs take. Runs in: a child of the mount-helper, as root. */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/fd.h"
#include "common/path.h"
#include "mount-helper/mnt.h"

#define ALLOCS_MAX 64
#define DEPTH_MAX  128   /* what is deeper is not counted */
#define EACH_MS    2000  /* a tree that takes longer counts with what was seen of it */
#define ALL_MS     20000 /* those that are not reached count 0 */
#define TIMEOUT_MS 30000

struct wanted {
	size_t n;
	char allocs[ALLOCS_MAX][ID_UUID_SIZE];
};

/* Never following a link, never into another mount. A file of several names counts once in all. */
static uint64_t
count_below(int dir_fd, const char *path, unsigned depth, uint64_t until_ms)
{
	cleanup_dir DIR *d = NULL;
	uint64_t bytes = 0;
	struct stat st;
	const char *n;

	if (depth == 0 || dir_open_at(dir_fd, path, &d) < 0)
		return 0;
	while (clock_ms() < until_ms && (n = dir_next(d))) {
		if (fstatat(dirfd(d), n, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
			continue;
		bytes += (uint64_t)st.st_blocks * 512 /
			 (S_ISDIR(st.st_mode) || st.st_nlink == 0 ? 1 : st.st_nlink);
		if (S_ISDIR(st.st_mode))
			bytes += count_below(dirfd(d), n, depth - 1, until_ms);
	}
	return bytes;
}

static int
count_all(int fd, const void *arg, struct mnt_result *ret, struct err *e)
{
	const struct wanted *w = arg;
	struct {
		uint64_t bytes, limit;
	} used[ALLOCS_MAX] = { 0 };
	uint64_t end_ms = clock_ms() + ALL_MS, until_ms;

	for (size_t i = 0; i < w->n; i++) {
		until_ms = clock_ms() + EACH_MS;
		if (!mnt_quota_read(fd, w->allocs[i], &used[i].bytes, &used[i].limit))
			used[i].bytes = count_below(
			    fd, w->allocs[i], DEPTH_MAX, until_ms < end_ms ? until_ms : end_ms);
	}
	ret->fd = fd_memfd_sealed("usage", used, w->n * sizeof used[0]);
	return ret->fd < 0 ? err_set(e, ret->fd, "tell how much of the disk is used") : 0;
}

static void
answer(struct mnt *m, const struct mnt_job *j, struct mnt_result *res)
{
	MntDiskUsageRep rep = MNT_DISK_USAGE_REP__INIT;

	(void)proc_answer(&mnt_spec, j->type, j->serial, 0, &rep.base, res->fd, &res->e, &res->e);
}

int
mnt_on_disk_usage(
    void *state, const struct ipc_packet *p, ProtobufCMessage *rep, int *ret_fd, struct err *e)
{
	struct mnt *m = state;
	const MntDiskUsageReq *req = (const MntDiskUsageReq *)(const void *)p->msg;
	struct wanted w = { .n = req->n_allocs };
	int r = 0;

	if (w.n == 0 || w.n > ALLOCS_MAX)
		return err_say(e, -EINVAL, "the usage of 1 to %d allocs can be asked for, not %zu",
		    ALLOCS_MAX, w.n);
	for (size_t i = 0; r >= 0 && i < w.n; i++)
		r = mnt_alloc_read(&req->allocs[i], w.allocs[i], e);
	return r < 0 ? r
		     : mnt_child_start(m, p, TIMEOUT_MS, m->root_fds[MNT_ROOT__MNT_ROOT_ALLOC],
			   count_all, &w, answer, "count what allocs use of the disk", e);
}
