// SPDX-License-Identifier: Apache-2.0
/* mnt_quota.c: limits the disk usage of allocs by project quota (project.h). Runs in: mount-helper,
 * as root, because quotactl(2) needs CAP_SYS_ADMIN. Asked by: supervisor. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/quota.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/project.h"
#include "mount-helper/mnt.h"

#define KIB           1024
#define FILES_PER_MIB 256 /* as file-helper counts files without quota */

static int
quota(int fd, int cmd, uint32_t id, void *arg)
{
	return syscall(SYS_quotactl_fd, fd, QCMD(cmd, PRJQUOTA), id, arg) < 0 ? -errno : 0;
}

/* Finds an unused project id; 0: none. The search starts at a number derived from the inode, which
 * is unique, so that two agents rarely collide. It is bounded, because a user who may set project
 * ids could use all of them. */
static uint32_t
find_id(int dir_fd)
{
	struct stat st;

	for (uint32_t i = 0; fstat(dir_fd, &st) == 0 && i < PROJECTS / 64; i++) {
		uint32_t id = PROJECT_FIRST + (uint32_t)((st.st_ino + i) % PROJECTS);
		struct if_dqblk b = { 0 };
		int r = quota(dir_fd, Q_GETQUOTA, id, &b);

		if (r == -ENOENT || (r == 0 && b.dqb_curinodes == 0))
			return id;
	}
	return 0;
}

static int
set_limit(int fd, uint32_t id, uint32_t mib)
{
	struct if_dqblk b = {
		.dqb_bhardlimit = (uint64_t)mib * KIB,
		.dqb_ihardlimit = (uint64_t)mib * FILES_PER_MIB,
		.dqb_valid = QIF_BLIMITS | QIF_ILIMITS,
	};

	return id == 0 ? 0 : quota(fd, Q_SETQUOTA, id, &b);
}

/* Makes a new directory a project, or part of from_fd's project, without a limit, because nothing
 * could be made in a full project. */
static int
join(int dir_fd, int from_fd)
{
	struct fsxattr x, from;
	uint32_t id;

	if (!project_may_begin(dir_fd))
		return 0;
	id = from_fd >= 0 ? project_read(from_fd, &from) : find_id(dir_fd);
	(void)project_read(dir_fd, &x);
	x.fsx_projid = id;
	x.fsx_xflags |= FS_XFLAG_PROJINHERIT;
	if (id != 0 && (set_limit(dir_fd, id, 0) < 0 || ioctl(dir_fd, FS_IOC_FSSETXATTR, &x) < 0))
		return -errno;
	return 0;
}

static int
open_alloc(const struct mnt *m, const char *alloc)
{
	return fd_open_same_mount(
	    m->root_fds[MNT_PLACE_ALLOC], alloc, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

int
mnt_on_disk_limit(struct mnt *m, const struct mnt_disk_limit_req *req,
    struct mnt_disk_limit_rep *rep, int *ret_fd, struct err *e)
{
	cleanup_close int dir_fd = -1, from_fd = -1;
	char alloc[ID_UUID_SIZE], from[ID_UUID_SIZE];
	int r = id_alloc_read(&req->alloc, alloc, e);
	struct fsxattr x;

	if (r < 0 || (!id_is_zero(&req->from) && (r = id_alloc_read(&req->from, from, e)) < 0))
		return r;
	dir_fd = open_alloc(m, alloc);
	if (dir_fd < 0)
		return err_set(e, dir_fd, "open the directory of alloc %s", alloc);
	if (!id_is_zero(&req->from))
		from_fd = open_alloc(m, from);
	/* The rest of the previous alloc is removed after this. */
	if (from_fd >= 0 && (r = mnt_secrets_unmount(m, from, "", e)) < 0)
		return r;
	if (req->disk_mb == 0)
		r = join(dir_fd, from_fd);
	else
		r = set_limit(dir_fd, project_read(dir_fd, &x), req->disk_mb);
	return r < 0 ? err_set(e, r, "limit the disk of alloc %s", alloc) : 0;
}

void
mnt_quota_drop(const struct mnt *m, const char *alloc)
{
	cleanup_close int fd = open_alloc(m, alloc);
	struct fsxattr x;

	if (fd >= 0)
		(void)set_limit(fd, project_read(fd, &x), 0);
}
