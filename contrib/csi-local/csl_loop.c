// SPDX-License-Identifier: Apache-2.0
/* csl_loop.c: loop devices of the files of block volumes. Runs in: drover-csi-local, with
 * CAP_SYS_ADMIN. */
#include "contrib/csi-local/csl_loop.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <linux/major.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/path.h"

#define ATTACH_TRIES 64 /* other programs may take a free device before we do */
#define PATH_SIZE    32

static int
open_loop(int number, int flags, struct err *e)
{
	char path[PATH_SIZE];
	int fd;

	(void)snprintf(path, sizeof path, "/dev/loop%d", number);
	fd = open(path, flags | O_CLOEXEC);
	return fd < 0 ? err_set(e, -errno, "open %s", path) : fd;
}

/*
 * Calls fn for each loop device of the file, until it returns something other than 0, and returns
 * that. A device that cannot be opened is not one of the plugin's.
 */
static int
for_each_loop(int file_fd, int (*fn)(int fd, const struct loop_info64 *, void *), void *arg)
{
	cleanup_dir DIR *dir = opendir("/dev");
	struct stat file;
	const char *name;
	int r = 0, number;
	char end;

	if (!dir || fstat(file_fd, &file) < 0)
		return -errno;
	while (r == 0 && (name = dir_next(dir))) {
		cleanup_close int fd = -1;
		struct loop_info64 info;

		if (sscanf(name, "loop%d%c", &number, &end) == 1)
			fd = open_loop(number, O_RDONLY | O_NONBLOCK, NULL);
		if (fd < 0 || ioctl(fd, LOOP_GET_STATUS64, &info) < 0)
			continue;
		if (info.lo_device == file.st_dev && info.lo_inode == file.st_ino)
			r = fn(fd, &info, arg);
	}
	return r;
}

static int
match_readonly(int fd, const struct loop_info64 *info, void *arg)
{
	const bool *readonly = arg;

	(void)fd;
	if (((info->lo_flags & LO_FLAGS_READ_ONLY) != 0) != *readonly)
		return 0;
	return (int)info->lo_number + 1;
}

/* Returns the number of the device, or -errno. */
static int
attach_new(int file_fd, bool readonly, struct err *e)
{
	struct loop_config config = { .fd = (unsigned int)file_fd };
	cleanup_close int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);

	if (control < 0)
		return err_set(e, -errno, "open /dev/loop-control");
	config.info.lo_flags = readonly ? LO_FLAGS_READ_ONLY : 0;
	(void)strcpy((char *)config.info.lo_file_name, "csi-local");
	for (int i = 0; i < ATTACH_TRIES; i++) {
		cleanup_close int fd = -1;
		int number = ioctl(control, LOOP_CTL_GET_FREE);

		if (number < 0)
			return err_set(e, -errno, "get a free loop device");
		fd = open_loop(number, O_RDWR, e);
		if (fd < 0)
			return fd;
		if (ioctl(fd, LOOP_CONFIGURE, &config) == 0)
			return number;
		if (errno != EBUSY)
			return err_set(e, -errno, "attach the file to /dev/loop%d", number);
	}
	return err_say(e, -EBUSY, "attach the file: other programs took every free loop device");
}

int
csl_loop_attach(int file_fd, bool readonly, dev_t *ret, struct err *e)
{
	int r = for_each_loop(file_fd, match_readonly, &readonly);

	if (r < 0)
		return err_set(e, r, "look for the loop device");
	r = r > 0 ? r - 1 : attach_new(file_fd, readonly, e);
	if (r >= 0)
		*ret = makedev(LOOP_MAJOR, (unsigned int)r);
	return r < 0 ? r : 0;
}

static int
clear_loop(int fd, const struct loop_info64 *info, void *arg)
{
	(void)info;
	(void)arg;
	return ioctl(fd, LOOP_CLR_FD) < 0 && errno != ENXIO ? -errno : 0;
}

int
csl_loop_detach(int file_fd, struct err *e)
{
	int r = for_each_loop(file_fd, clear_loop, NULL);

	return r < 0 ? err_set(e, r, "detach the loop device") : 0;
}

static int
resize_loop(int fd, const struct loop_info64 *info, void *arg)
{
	(void)info;
	(void)arg;
	return ioctl(fd, LOOP_SET_CAPACITY) < 0 ? -errno : 0;
}

int
csl_loop_resize(int file_fd, struct err *e)
{
	int r = for_each_loop(file_fd, resize_loop, NULL);

	return r < 0 ? err_set(e, r, "resize the loop device") : 0;
}

static int
sync_loop(int fd, const struct loop_info64 *info, void *arg)
{
	(void)info;
	(void)arg;
	return fsync(fd) < 0 ? -errno : 0;
}

int
csl_loop_sync(int file_fd, struct err *e)
{
	int r = for_each_loop(file_fd, sync_loop, NULL);

	return r < 0 ? err_set(e, r, "sync the loop device") : 0;
}

int
csl_loop_open(dev_t device, struct err *e)
{
	return open_loop((int)minor(device), O_PATH, e);
}
