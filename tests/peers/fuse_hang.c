// SPDX-License-Identifier: Apache-2.0
/*
 * fuse_hang.c: a FUSE file system that reads a statfs request and never answers it: the caller
 * hangs, even after SIGKILL, until this process ends. `fuse_hang MOUNTPOINT` prints "mounted" and
 * stays in the foreground; after a SIGKILL its mount is dead (ENOTCONN) until it is unmounted.
 * With a second argument it does not answer getattr either, so a stat(2) of its root hangs.
 */
#define FUSE_USE_VERSION 35
#include <fuse_lowlevel.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static void
on_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct stat st = { .st_ino = ino, .st_mode = S_IFDIR | 0755, .st_nlink = 2 };

	(void)fi;
	(void)fuse_reply_attr(req, &st, 0);
}

static void
on_getattr_hang(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)req;
	(void)ino;
	(void)fi;
	(void)printf("getattr\n");
	(void)fflush(stdout);
}

static void
on_statfs(fuse_req_t req, fuse_ino_t ino)
{
	(void)req;
	(void)ino;
	(void)printf("statfs\n");
	(void)fflush(stdout);
}

static struct fuse_lowlevel_ops ops = { .getattr = on_getattr, .statfs = on_statfs };

int
main(int argc, char **argv)
{
	char *fuse_argv[] = { argv[0], (char *)"-oallow_other", NULL };
	struct fuse_args args = FUSE_ARGS_INIT(2, fuse_argv);
	struct fuse_session *se;

	if (argc > 2)
		ops.getattr = on_getattr_hang;
	se = fuse_session_new(&args, &ops, sizeof ops, NULL);
	if (argc < 2 || !se || fuse_session_mount(se, argv[1]) < 0)
		return 1;
	(void)printf("mounted\n");
	(void)fflush(stdout);
	return fuse_session_loop(se) < 0;
}
