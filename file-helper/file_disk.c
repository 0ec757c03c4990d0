// SPDX-License-Identifier: Apache-2.0
/* file_disk.c: finds out whether the disk of the data directory answers. Runs in: a worker of the
 * file-helper. Asked by: supervisor, for probes. */
#include <errno.h>
#include <fcntl.h>
#include <sys/vfs.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "file-helper/file.h"

#define TIMEOUT_MS 4000

/* A frozen file system reports its free space, but makes no file, not even one without a name. What
 * it answers is not of interest here: an error is an answer, too. */
static int
ask_disk(int fd, const void *arg, struct worker_result *ret, struct err *e)
{
	cleanup_close int file = -1;
	struct statfs fs;

	if (fstatfs(fd, &fs) == 0)
		file = fd_open_beneath(fd, ".", O_TMPFILE | O_WRONLY, 0600);
	return 0;
}

int
file_on_disk_ask(struct file *f, const struct file_disk_ask_req *req, struct file_disk_ask_rep *rep,
    int *ret_fd, struct err *e)
{
	return worker_start(&f->workers, f->workers.request, TIMEOUT_MS,
	    &f->root_fds[FILE_ROOT_ALLOC], 1, ask_disk, NULL, NULL, "ask the disk of alloc/", e);
}
