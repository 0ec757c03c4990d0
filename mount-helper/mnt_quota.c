// SPDX-License-Identifier: Apache-2.0
/* mnt_quota.c: the disk of an alloc as a project of its file system. Runs in: mount-helper and its
 * child, as root. */
/*
 * Where the file system of alloc/ enforces project quota, alloc/<alloc> is a project with the size
 * of its ephemeral disk as hard limit; what is made below it inherits that. Which project it is
 * says the directory itself, and nothing else. Between projects nothing can be renamed, so an alloc
 * that gets the data of another gets its project too. A data directory that its owner has put into
 * a project stays in it, and is measured.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/dqblk_xfs.h>
#include <linux/fs.h>
#include <linux/quota.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "mount-helper/mnt.h"

/* Ours; few, since xfs never gives back the place of one in its quota file. */
#define IDS_FIRST 0x44000000u
#define IDS       65536u
#define KIB       1024

static int
quota(int fd, int cmd, uint32_t id, void *arg)
{
	return syscall(SYS_quotactl_fd, fd, QCMD(cmd, PRJQUOTA), id, arg) < 0 ? -errno : 0;
}

/* 0: none, or none of ours. */
static uint32_t
read_id(int dir_fd, struct fsxattr *ret)
{
	if (ioctl(dir_fd, FS_IOC_FSGETXATTR, ret) < 0)
		*ret = (struct fsxattr){ .fsx_projid = UINT32_MAX };
	return ret->fsx_projid - IDS_FIRST < IDS ? ret->fsx_projid : 0;
}

/*
 * One that no file has. Where to begin says the inode, which no other directory has: two agents
 * meet only by chance. Not all are tried: who may give his files a project could take all.
 */
static uint32_t
find_id(int dir_fd)
{
	struct stat st;

	for (uint32_t i = 0; fstat(dir_fd, &st) == 0 && i < IDS / 64; i++) {
		uint32_t id = IDS_FIRST + (uint32_t)((st.st_ino + i) % IDS);
		struct if_dqblk b = { 0 };
		int r = quota(dir_fd, Q_GETQUOTA, id, &b);

		if (r == -ENOENT || (r == 0 && b.dqb_curinodes == 0))
			return id;
	}
	return 0;
}

bool
mnt_quota_is_on(int fd)
{
	struct fs_quota_stat s = { .qs_version = FS_QSTAT_VERSION };

	return quota(fd, Q_XGETQSTAT, 0, &s) == 0 && (s.qs_flags & FS_QUOTA_PDQ_ENFD);
}

static int
set_limit(int fd, uint32_t id, uint32_t mib)
{
	struct if_dqblk b = { .dqb_bhardlimit = (uint64_t)mib * KIB, .dqb_valid = QIF_BLIMITS };

	return id == 0 ? 0 : quota(fd, Q_SETQUOTA, id, &b);
}

int
mnt_quota_join(int dir_fd, int from_fd)
{
	struct fsxattr x, from;
	uint32_t id = read_id(dir_fd, &x);
	struct stat st;

	/* One with something in it was made without: what is there would not be counted. */
	if (x.fsx_projid != 0 || fstatat(dir_fd, "alloc", &st, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	id = from_fd >= 0 ? read_id(from_fd, &from) : find_id(dir_fd);
	x.fsx_projid = id;
	x.fsx_xflags |= FS_XFLAG_PROJINHERIT;
	if (id != 0 && (set_limit(dir_fd, id, 0) < 0 || ioctl(dir_fd, FS_IOC_FSSETXATTR, &x) < 0))
		return -errno;
	return 0;
}

int
mnt_quota_limit(int dir_fd, uint32_t mib)
{
	struct fsxattr x;

	return set_limit(dir_fd, read_id(dir_fd, &x), mib);
}

bool
mnt_quota_is_shared(int dir_fd, int other_fd)
{
	struct fsxattr a, b;

	return read_id(dir_fd, &a) != 0 && read_id(dir_fd, &a) == read_id(other_fd, &b);
}

/* The project of an alloc's directory, which is opened; 0: none of ours, and nothing is. */
static uint32_t
open_id(int root_fd, const char *alloc, int *ret_fd)
{
	cleanup_close int fd =
	    openat(root_fd, alloc, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct fsxattr x;
	uint32_t id = fd < 0 ? 0 : read_id(fd, &x);

	if (id != 0)
		*ret_fd = steal_fd(&fd);
	return id;
}

bool
mnt_quota_read(int root_fd, const char *alloc, uint64_t *ret_bytes, uint64_t *ret_limit)
{
	cleanup_close int fd = -1;
	struct if_dqblk b = { 0 };
	uint32_t id = open_id(root_fd, alloc, &fd);

	if (id == 0 || quota(fd, Q_GETQUOTA, id, &b) < 0 || b.dqb_bhardlimit == 0)
		return false;
	*ret_bytes = b.dqb_curspace;
	*ret_limit = b.dqb_bhardlimit * KIB;
	return true;
}

void
mnt_quota_drop(int root_fd, const char *alloc)
{
	cleanup_close int fd = -1;
	uint32_t id = open_id(root_fd, alloc, &fd);

	(void)set_limit(fd, id, 0);
}
