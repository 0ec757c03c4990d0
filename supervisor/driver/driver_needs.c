// SPDX-License-Identifier: Apache-2.0
/* driver_needs.c: what containers need of this machine: skopeo, the kernel, its user namespaces,
 * and a file system that maps ids. Runs in: supervisor. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "proto/skopeo.h"
#include "supervisor/driver/driver.h"

#define NAMESPACES_MAX "/proc/sys/user/max_user_namespaces"
#define XFS_MAGIC      0x58465342
#define NUMBER_SIZE    24

bool
driver_kernel_is_older(const char *release, unsigned major, unsigned minor)
{
	unsigned has_major = 0, has_minor = 0;

	return sscanf(release, "%u.%u", &has_major, &has_minor) == 2 &&
	       (has_major != major ? has_major < major : has_minor < minor);
}

int
driver_check_needs(const struct driver_ops *driver, struct err *e)
{
	cleanup_free char *max = NULL;
	struct utsname un = { 0 };

	if (!driver->containers)
		return 0;
	(void)uname(&un);
	if (driver_kernel_is_older(un.release, 5, 19))
		return err_say(e, -ENOTSUP,
		    "containers need Linux 5.19 or newer, and this machine has %s", un.release);
	if (access("/proc/self/ns/user", F_OK) < 0)
		return err_say(e, -ENOTSUP,
		    "containers need user namespaces, which this kernel does not have");
	if (fd_read_file(AT_FDCWD, NAMESPACES_MAX, NUMBER_SIZE, &max) >= 0 && atoll(max) == 0)
		return err_say(e, -ENOTSUP,
		    "containers need user namespaces, and user.max_user_namespaces is 0: set it "
		    "with sysctl");
	return access(SKOPEO, X_OK) < 0 ? err_say(e, -ENOENT, SKOPEO_MISSING) : 0;
}

bool
driver_needs_start(const struct sup *sup, const struct driver_ops *driver)
{
	struct utsname un = { 0 };
	struct statfs fs = { 0 };

	if (!driver->containers || statfs(sup->args.data_dir, &fs) < 0)
		return false;
	switch (fs.f_type) {
	case EXT4_SUPER_MAGIC:
	case XFS_MAGIC:
	case BTRFS_SUPER_MAGIC:
		return false;
	case TMPFS_MAGIC:
		(void)uname(&un);
		return driver_kernel_is_older(un.release, 6, 3);
	default:
		return true;
	}
}
