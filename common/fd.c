// SPDX-License-Identifier: Apache-2.0
/* fd.c: helpers for file descriptors. Runs in: every process. */
#include "common/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cleanup.h"

#define FDS_MAX 64

static int
open_resolve(int dir_fd, const char *path, int flags, mode_t mode, uint64_t resolve)
{
	struct open_how how = {
		.flags = (uint64_t)(flags | O_CLOEXEC),
		.mode = (flags & (O_CREAT | O_TMPFILE)) ? mode : 0,
		.resolve = RESOLVE_NO_MAGICLINKS | resolve,
	};
	long fd;

	/* With RESOLVE_BENEATH or RESOLVE_IN_ROOT the kernel returns EAGAIN if a rename happens on
	 * the path meanwhile (openat2(2)). The call is retried. */
	for (int tries = 0; tries < 16; tries++) {
		fd = syscall(SYS_openat2, dir_fd, path, &how, sizeof how);
		if (fd >= 0)
			return (int)fd;
		if (errno != EAGAIN && errno != EINTR)
			break;
	}
	return -errno;
}

int
fd_open_beneath(int dir_fd, const char *path, int flags, mode_t mode)
{
	return open_resolve(dir_fd, path, flags, mode, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
}

int
fd_open_same_mount(int dir_fd, const char *path, int flags)
{
	return open_resolve(
	    dir_fd, path, flags, 0, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
}

int
fd_open_by_links(int dir_fd, const char *path, int flags)
{
	return open_resolve(dir_fd, path, flags, 0, RESOLVE_BENEATH | RESOLVE_NO_XDEV);
}

int
fd_open_in_root(int root_fd, const char *path, int flags)
{
	return open_resolve(root_fd, path, flags, 0, RESOLVE_IN_ROOT);
}

int
fd_reopen(int fd, int flags)
{
	char path[32];
	int again;

	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	again = open(path, flags | O_CLOEXEC | O_NOCTTY);
	return again < 0 ? -errno : again;
}

int
fd_path(int fd, char path[PATH_MAX])
{
	char proc[32];
	ssize_t n;

	(void)snprintf(proc, sizeof proc, "/proc/self/fd/%d", fd);
	n = readlink(proc, path, PATH_MAX - 1);
	if (n < 0)
		return -errno;
	path[n] = '\0';
	return 0;
}

ssize_t
fd_read_full(int fd, void *buf, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = read(fd, (char *)buf + done, len - done);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			break;
		done += n > 0 ? (size_t)n : 0;
	}
	return (ssize_t)done;
}

int
fd_write_full(int fd, const void *buf, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = write(fd, (const char *)buf + done, len - done);

		if (n < 0 && errno != EINTR)
			return -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

ssize_t
fd_read_file(int dir_fd, const char *path, size_t max, char **ret_buf)
{
	cleanup_close int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	cleanup_free char *buf = NULL;
	size_t size = 4096, len = 0;

	if (fd < 0)
		return -errno;
	/* st_size is 0 in /proc and /sys, so it reads until end of file. */
	for (;;) {
		char *bigger = realloc(buf, size + 1);
		ssize_t n;

		if (!bigger)
			return -ENOMEM;
		buf = bigger;
		n = fd_read_full(fd, buf + len, size - len);
		if (n < 0)
			return n;
		len += (size_t)n;
		if (len < size)
			break;
		if (size > max)
			return -EFBIG;
		size *= 2;
	}
	if (len > max)
		return -EFBIG;
	buf[len] = '\0';
	*ret_buf = steal_ptr(&buf);
	return (ssize_t)len;
}

int
fd_write_file(int dir_fd, const char *path, const char *text)
{
	cleanup_close int fd = openat(dir_fd, path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	size_t len = strlen(text);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = write(fd, text, len);
	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EIO;
}

int
fd_memfd_sealed(const char *name, const void *data, size_t len)
{
	cleanup_close int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r;

	if (fd < 0)
		return -errno;
	r = fd_write_full(fd, data, len);
	if (r < 0)
		return r;
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
		return -errno;
	return steal_fd(&fd);
}

int
fd_memfd_map(int fd, size_t max, const void **ret_map, size_t *ret_len)
{
	const int need = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;
	void *map;

	if (seals < 0 || (seals & need) != need)
		return -EPERM;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size < 0 || (size_t)st.st_size > max)
		return -EFBIG;
	if (st.st_size == 0) {
		*ret_map = NULL;
		*ret_len = 0;
		return 0;
	}
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	*ret_map = map;
	*ret_len = (size_t)st.st_size;
	return 0;
}

int
fd_set_cloexec(int fd, bool on)
{
	return fcntl(fd, F_SETFD, on ? FD_CLOEXEC : 0) < 0 ? -errno : 0;
}

int
fd_pack(const int *fds, size_t n, int first)
{
	int high[FDS_MAX];

	if (n > FDS_MAX)
		return -EINVAL;
	/* Moves all descriptors above every target first, then down to their targets, so that no
	 * dup2 overwrites a source that is still needed. */
	for (size_t i = 0; i < n; i++) {
		high[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, first + (int)n);
		if (high[i] < 0)
			return -errno;
	}
	for (size_t i = 0; i < n; i++)
		if (dup2(high[i], first + (int)i) < 0)
			return -errno;
	if (close_range((unsigned)first + (unsigned)n, ~0U, 0) < 0)
		return -errno;
	return 0;
}

int
fd_send_msg(int sock, const void *buf, size_t len, const int *fds, size_t n, int flags)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * FDS_MAX)];
	} control;
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t sent;

	if (n > FDS_MAX)
		return -EINVAL;
	if (n > 0) {
		struct cmsghdr *c;

		memset(&control, 0, sizeof control);
		mh.msg_control = &control;
		mh.msg_controllen = CMSG_SPACE(sizeof(int) * n);
		c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * n);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * n);
	}
	do
		sent = sendmsg(sock, &mh, flags | MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent < 0)
		return -errno;
	return (size_t)sent == len ? 0 : -EIO;
}

ssize_t
fd_recv_msg(int sock, void *buf, size_t len, int *ret_fds, size_t n, size_t *ret_n, int flags)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * FDS_MAX)];
	} control;
	struct iovec iov = { .iov_base = buf, .iov_len = len };
	struct msghdr mh = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = n > 0 ? CMSG_SPACE(sizeof(int) * n) : 0,
	};
	int got[FDS_MAX];
	struct cmsghdr *c;
	size_t count = 0;
	ssize_t size;

	if (n > FDS_MAX)
		return -EINVAL;
	do
		size = recvmsg(sock, &mh, flags | MSG_CMSG_CLOEXEC);
	while (size < 0 && errno == EINTR);
	if (size < 0)
		return -errno;
	/* All control messages are read even after an error: descriptors in one that is skipped
	 * would stay open. */
	for (c = CMSG_FIRSTHDR(&mh); c; c = CMSG_NXTHDR(&mh, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		memcpy(got + count, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
		count += (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	}
	/* The kernel rounds the buffer size up, so one descriptor more than n can arrive. */
	if ((mh.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) || count > n) {
		for (size_t i = 0; i < count; i++)
			(void)close(got[i]);
		return (mh.msg_flags & MSG_TRUNC) ? -EMSGSIZE : -EPROTO;
	}
	if (count > 0)
		memcpy(ret_fds, got, sizeof(int) * count);
	*ret_n = count;
	return size;
}
