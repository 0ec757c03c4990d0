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
 * Opens path with openat2(RESOLVE_BENEATH | NO_SYMLINKS | NO_MAGICLINKS): it cannot leave dir_fd,
 * and no component may be a link. O_CLOEXEC is added to flags. Returns a descriptor that the caller
 * closes, or -errno (-ELOOP for a link, -EXDEV for an escape).
 */
int fd_open_beneath(int dir_fd, const char *path, int flags, mode_t mode);
/*
 * As fd_open_beneath(), for an existing path that must not enter another mount: -EXDEV for a mount
 * point, also for a bind mount of the same file system. The mounted file system is not accessed.
 */
int fd_open_same_mount(int dir_fd, const char *path, int flags);
/* As fd_open_same_mount(), but follows links that do not lead out of dir_fd. */
int fd_open_by_links(int dir_fd, const char *path, int flags);
/*
 * Opens path as a process with the root directory root_fd would: links are followed but stay below
 * it. Magic links of /proc are refused (-ELOOP).
 */
int fd_open_in_root(int root_fd, const char *path, int flags);

/* Opens fd's file again through /proc with these flags and O_CLOEXEC, as a new open file
 * description. Returns a descriptor that the caller closes, or -errno (-ENXIO for a socket). */
int fd_reopen(int fd, int flags);

/* Writes the current path of fd's file, without links. Returns 0 or -errno. */
int fd_path(int fd, char path[PATH_MAX]);

/* Reads until len bytes or end of file. Returns the number of bytes, or -errno. */
ssize_t fd_read_full(int fd, void *buf, size_t len);
/* Writes all len bytes. Returns 0 or -errno. */
int fd_write_full(int fd, const void *buf, size_t len);
/* Reads the whole file, at most max bytes (-EFBIG beyond), and appends a NUL. The caller frees
 * *ret_buf. Returns the size without the NUL, or -errno. */
ssize_t fd_read_file(int dir_fd, const char *path, size_t max, char **ret_buf);
/* Writes text to an existing file with one write(2), as files of /proc and cgroups require. Returns
 * 0 or -errno. */
int fd_write_file(int dir_fd, const char *path, const char *text);

/* Makes a memfd with these contents and all seals of memfd_create(2). Returns a descriptor that the
 * caller closes, or -errno. */
int fd_memfd_sealed(const char *name, const void *data, size_t len);
/*
 * Maps a memfd of another process read-only. Returns 0 or -errno: -EPERM unless it is a memfd that
 * is sealed against shrinking, growing and writing; -EFBIG beyond max. An empty memfd gives a NULL
 * map. The caller munmap()s *ret_map, *ret_len.
 */
int fd_memfd_map(int fd, size_t max, const void **ret_map, size_t *ret_len);

int fd_set_cloexec(int fd, bool on);
int fd_set_nonblock(int fd, bool on);
/* For a child before exec: moves the descriptors fds[0..n) to first..first+n), without CLOEXEC, and
 * closes all descriptors after them. Returns 0 or -errno. */
int fd_pack(const int *fds, size_t n, int first);

/* Sends len bytes with n descriptors in one message. Returns 0 or -errno. */
int fd_send_msg(int sock, const void *buf, size_t len, const int *fds, size_t n, int flags);
/*
 * Receives one message into buf with at most n descriptors, which are CLOEXEC and the caller's to
 * close. Returns its size, 0 at end of file, or -errno: -EMSGSIZE if the bytes were truncated,
 * -EPROTO if the descriptors were. Sets *ret_n to their number; after an error none is left open.
 */
ssize_t fd_recv_msg(
    int sock, void *buf, size_t len, int *ret_fds, size_t n, size_t *ret_n, int flags);

#endif
