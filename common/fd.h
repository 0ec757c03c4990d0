/* SPDX-License-Identifier: Apache-2.0 */
/* fd.h: descriptors: opening below a root, whole reads and writes, sealed memfds. Runs in: every
 * process. */
#ifndef DROVER_COMMON_FD_H
#define DROVER_COMMON_FD_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * openat2(RESOLVE_BENEATH | NO_SYMLINKS | NO_MAGICLINKS): path never leaves dir_fd and is no link
 * anywhere. flags get O_CLOEXEC. Returns a descriptor that the caller closes, or -errno (-ELOOP for
 * a link, -EXDEV for an escape).
 */
int fd_open_beneath(int dir_fd, const char *path, int flags, mode_t mode);
/*
 * The same, and it never enters another mount: -EXDEV for a mount point, also for a bind of the
 * same file system, without a question to what is mounted there. For what exists.
 */
int fd_open_same_mount(int dir_fd, const char *path, int flags);
/*
 * Opens path as a process would whose root directory is root_fd: links are followed and stay below
 * it, but for those of /proc, which are refused (-ELOOP).
 */
int fd_open_in_root(int root_fd, const char *path, int flags);

/* Opens fd's file again by /proc, with these flags and O_CLOEXEC: a new open file description.
 * Returns a descriptor that the caller closes, or -errno (-ENXIO for a socket). */
int fd_reopen(int fd, int flags);

/* The path by which fd's file can be reached now, without links. 0 or -errno. */
int fd_path(int fd, char path[PATH_MAX]);

/* Reads until len bytes or end of file. Returns the number of bytes, or -errno. */
ssize_t fd_read_full(int fd, void *buf, size_t len);
/* Writes all of it, or returns -errno. */
int fd_write_full(int fd, const void *buf, size_t len);
/* The whole file, at most max bytes (-EFBIG beyond), with a NUL after it. *ret_buf is the caller's
 * to free. Returns its size. */
ssize_t fd_read_file(int dir_fd, const char *path, size_t max, char **ret_buf);
/* A small file in one write(2), as /proc and cgroup files want it; the file must exist. Returns 0
 * or -errno. */
int fd_write_file(int dir_fd, const char *path, const char *text);

/* A memfd with these contents and every seal of memfd_create(2). Returns a descriptor or -errno. */
int fd_memfd_sealed(const char *name, const void *data, size_t len);
/*
 * Maps a memfd that somebody else made, read-only. -EPERM unless it is a memfd that can neither
 * shrink, grow nor be written any more; -EFBIG beyond max. An empty one gives a NULL map. The
 * caller munmap()s *ret_map, *ret_len.
 */
int fd_memfd_map(int fd, size_t max, const void **ret_map, size_t *ret_len);

int fd_set_cloexec(int fd, bool on);
int fd_set_nonblock(int fd, bool on);
/* Moves the descriptors fds[0..n) to first..first+n), without CLOEXEC, and closes everything after
 * them. For a child before exec. */
int fd_pack(const int *fds, size_t n, int first);

/* Sends len bytes with n descriptors in one message. Returns 0 or -errno. */
int fd_send_msg(int sock, const void *buf, size_t len, const int *fds, size_t n, int flags);
/*
 * Receives one message into buf with at most n descriptors (CLOEXEC). Returns its size, 0 at end of
 * file, or -errno: -EMSGSIZE when the bytes were cut, -EPROTO when descriptors were. *ret_n is
 * their number; on error none is left open.
 */
ssize_t fd_recv_msg(
    int sock, void *buf, size_t len, int *ret_fds, size_t n, size_t *ret_n, int flags);

#endif
