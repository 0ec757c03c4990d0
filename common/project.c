// SPDX-License-Identifier: Apache-2.0
/* project.c: reads the quota project of a directory. Runs in: mount-helper, file-helper. */
#include "common/project.h"

#include <fcntl.h>
#include <linux/dqblk_xfs.h>
#include <linux/fs.h>
#include <linux/quota.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

bool
project_is_enforced(int fd)
{
	struct fs_quota_stat s = { .qs_version = FS_QSTAT_VERSION };

	return syscall(SYS_quotactl_fd, fd, QCMD(Q_XGETQSTAT, PRJQUOTA), 0, &s) == 0 &&
	       (s.qs_flags & FS_QUOTA_PDQ_ENFD);
}

uint32_t
project_read(int dir_fd, struct fsxattr *ret)
{
	if (ioctl(dir_fd, FS_IOC_FSGETXATTR, ret) < 0)
		*ret = (struct fsxattr){ .fsx_projid = UINT32_MAX };
	return ret->fsx_projid - PROJECT_FIRST < PROJECTS ? ret->fsx_projid : 0;
}

bool
project_may_begin(int dir_fd)
{
	struct fsxattr x;
	struct stat st;

	/* Files that were made before their directory became a project would not be counted in
	 * it. */
	(void)project_read(dir_fd, &x);
	return x.fsx_projid == 0 && fstatat(dir_fd, "alloc", &st, AT_SYMLINK_NOFOLLOW) < 0;
}
