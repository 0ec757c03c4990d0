/* SPDX-License-Identifier: Apache-2.0 */
/*
 * musl.h: system calls and constants that musl 1.2.3 does not have, under glibc's names. The
 * Makefile includes it before any other header where musl is linked. Runs in: executor.
 */
#ifndef DROVER_COMMON_MUSL_H
#define DROVER_COMMON_MUSL_H

#include <linux/close_range.h>
#include <linux/mount.h>
#include <linux/stat.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int
close_range(unsigned first, unsigned last, int flags)
{
	return (int)syscall(SYS_close_range, first, last, flags);
}

static inline int
statx(int dir, const char *path, int flags, unsigned mask, struct statx *st)
{
	return (int)syscall(SYS_statx, dir, path, flags, mask, st);
}

#define RENAME_NOREPLACE 1

static inline int
renameat2(int from, const char *from_path, int to, const char *to_path, unsigned flags)
{
	return (int)syscall(SYS_renameat2, from, from_path, to, to_path, flags);
}

static inline int
open_tree(int dir, const char *path, unsigned flags)
{
	return (int)syscall(SYS_open_tree, dir, path, flags);
}

static inline int
move_mount(int from, const char *from_path, int to, const char *to_path, unsigned flags)
{
	return (int)syscall(SYS_move_mount, from, from_path, to, to_path, flags);
}

static inline int
mount_setattr(int dir, const char *path, unsigned flags, struct mount_attr *attr, size_t size)
{
	return (int)syscall(SYS_mount_setattr, dir, path, flags, attr, size);
}

static inline int
fsopen(const char *type, unsigned flags)
{
	return (int)syscall(SYS_fsopen, type, flags);
}

static inline int
fsconfig(int fd, unsigned cmd, const char *key, const void *value, int aux)
{
	return (int)syscall(SYS_fsconfig, fd, cmd, key, value, aux);
}

/* musl's strerror() is thread-safe and always in English. */
static inline const char *
strerrordesc_np(int error)
{
	return strerror(error);
}

static inline int
fsmount(int fd, unsigned flags, unsigned attr)
{
	return (int)syscall(SYS_fsmount, fd, flags, attr);
}

#endif
