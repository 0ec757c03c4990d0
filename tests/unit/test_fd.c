// SPDX-License-Identifier: Apache-2.0
/* test_fd.c: opening below a root, complete reads, sealed memfds, descriptors in messages. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/path.h"
#include "tests/unit/base_directory.h"
#include "tests/unit/unit.h"

static void
make_file(const char *name, const char *data, size_t len)
{
	cleanup_close int fd = openat(base_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fd_write_full(fd, data, len), 0);
}

static int
open_error(const char *path)
{
	int fd = fd_open_beneath(base_fd, path, O_RDONLY, 0);

	if (fd < 0)
		return fd;
	(void)close(fd);
	return 0;
}

START_TEST(nothing_leads_out_of_the_root)
{
	ck_assert_int_eq(mkdirat(base_fd, "d", 0755), 0);
	make_file("d/f", "x", 1);
	ck_assert_int_eq(symlinkat("d", base_fd, "link"), 0);
	ck_assert_int_eq(symlinkat("/etc/passwd", base_fd, "absolute"), 0);
	ck_assert_int_eq(open_error("d/f"), 0);
	ck_assert_int_eq(open_error("d/../d/f"), 0);
	ck_assert_int_eq(open_error("link/f"), -ELOOP);
	ck_assert_int_eq(open_error("absolute"), -ELOOP);
	ck_assert_int_eq(open_error(".."), -EXDEV);
	ck_assert_int_eq(open_error("d/../.."), -EXDEV);
	ck_assert_int_eq(open_error("/etc/passwd"), -EXDEV);
	ck_assert_int_eq(open_error("nothing"), -ENOENT);
}
END_TEST

START_TEST(what_is_opened_is_cloexec)
{
	cleanup_close int fd = -1;

	make_file("f", "x", 1);
	fd = fd_open_beneath(base_fd, "f", O_RDONLY, 0);
	ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(fd_set_cloexec(fd, false), 0);
	ck_assert_int_eq(fcntl(fd, F_GETFD), 0);
	ck_assert_int_eq(fd_set_nonblock(fd, true), 0);
	ck_assert(fcntl(fd, F_GETFL) & O_NONBLOCK);
	ck_assert_int_eq(fd_set_nonblock(fd, false), 0);
	ck_assert(!(fcntl(fd, F_GETFL) & O_NONBLOCK));
}
END_TEST

START_TEST(whole_files)
{
	static const size_t sizes[] = { 0, 1, 4095, 4096, 4097, 8192, 100000 };
	static char data[100000];

	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (char)(i * 7);
	for (size_t i = 0; i < ELEMENTSOF(sizes); i++) {
		cleanup_free char *got = NULL;
		char *none = NULL;

		make_file("f", data, sizes[i]);
		ck_assert_int_eq(fd_read_file(base_fd, "f", sizes[i], &got), (ssize_t)sizes[i]);
		ck_assert_mem_eq(got, data, sizes[i]);
		ck_assert_int_eq(got[sizes[i]], '\0');
		if (sizes[i] > 0)
			ck_assert_int_eq(fd_read_file(base_fd, "f", sizes[i] - 1, &none), -EFBIG);
		ck_assert_ptr_null(none);
		ck_assert_int_eq(unlinkat(base_fd, "f", 0), 0);
	}
}
END_TEST

START_TEST(a_file_without_a_size)
{
	cleanup_free char *got = NULL;

	ck_assert_int_gt(fd_read_file(AT_FDCWD, "/proc/self/status", 1 << 20, &got), 100);
	ck_assert(strncmp(got, "Name:", 5) == 0);
}
END_TEST

START_TEST(pieces_make_a_whole)
{
	int pipe_fds[2], status;
	char buf[64] = "";
	pid_t pid;

	ck_assert_int_eq(pipe2(pipe_fds, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		for (int i = 0; i < 10; i++)
			(void)!write(pipe_fds[1], "abc", 3);
		_exit(0);
	}
	(void)close(pipe_fds[1]);
	ck_assert_int_eq(fd_read_full(pipe_fds[0], buf, 20), 20);
	ck_assert_int_eq(fd_read_full(pipe_fds[0], buf, sizeof buf), 10);
	ck_assert_int_eq(fd_read_full(pipe_fds[0], buf, sizeof buf), 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	(void)close(pipe_fds[0]);
	ck_assert_int_eq(fd_read_full(-1, buf, 1), -EBADF);
	ck_assert_int_eq(fd_write_full(-1, buf, 1), -EBADF);
}
END_TEST

START_TEST(small_files_in_one_write)
{
	cleanup_free char *got = NULL;

	ck_assert_int_eq(fd_write_file(base_fd, "f", "x"), -ENOENT);
	make_file("f", "", 0);
	ck_assert_int_eq(fd_write_file(base_fd, "f", "+memory"), 0);
	ck_assert_int_eq(fd_read_file(base_fd, "f", 100, &got), 7);
	ck_assert_str_eq(got, "+memory");
}
END_TEST

START_TEST(sealed_memfds)
{
	cleanup_close int fd = fd_memfd_sealed("x", "hello", 5),
			  empty = fd_memfd_sealed("x", NULL, 0);
	const void *map = "untouched";
	size_t len = 42;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_lt(ftruncate(fd, 1), 0);
	ck_assert_int_lt(ftruncate(fd, 10), 0);
	ck_assert_int_lt(pwrite(fd, "x", 1, 0), 0);
	ck_assert_int_lt(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
	ck_assert_int_eq(fd_memfd_map(fd, 4, &map, &len), -EFBIG);
	ck_assert_int_eq(fd_memfd_map(fd, 5, &map, &len), 0);
	ck_assert_uint_eq(len, 5);
	ck_assert_mem_eq(map, "hello", 5);
	(void)munmap((void *)(uintptr_t)map, len);
	ck_assert_int_eq(fd_memfd_map(empty, 5, &map, &len), 0);
	ck_assert_ptr_null(map);
	ck_assert_uint_eq(len, 0);
}
END_TEST

/* The owner of an unsealed memfd could shrink it, and the reader would get SIGBUS. */
START_TEST(what_is_not_sealed_is_not_mapped)
{
	static const int enough = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	cleanup_close int file = -1;
	const void *map;
	size_t len;

	for (int seals = 0; seals < 16; seals++) {
		cleanup_close int fd = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);

		ck_assert_int_eq(fd_write_full(fd, "x", 1), 0);
		ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
		if ((seals & enough) == enough) {
			ck_assert_int_eq(fd_memfd_map(fd, 1, &map, &len), 0);
			(void)munmap((void *)(uintptr_t)map, len);
		} else {
			ck_assert_int_eq(fd_memfd_map(fd, 1, &map, &len), -EPERM);
		}
	}
	make_file("f", "x", 1);
	file = openat(base_fd, "f", O_RDWR | O_CLOEXEC);
	ck_assert_int_eq(fd_memfd_map(file, 1, &map, &len), -EPERM);
	ck_assert_int_eq(fd_memfd_map(-1, 1, &map, &len), -EPERM);
}
END_TEST

/* Runs in a child, since it closes everything that is not packed. Returns 0 if the descriptors have
 * the right numbers. */
static int
try_pack(const int *order)
{
	int fds[5];
	char c = 0;

	for (int i = 0; i < 5; i++) {
		fds[i] = memfd_create("x", MFD_CLOEXEC);
		if (dup2(fds[i], order[i]) < 0) /* each may be the target of another */
			return 1;
		fds[i] = order[i];
	}
	for (int i = 0; i < 5; i++)
		if (pwrite(fds[i], (char[]){ (char)('a' + i) }, 1, 0) != 1)
			return 2;
	if (fd_pack(fds, 5, 10) < 0)
		return 3;
	for (int i = 0; i < 5; i++)
		if (pread(10 + i, &c, 1, 0) != 1 || c != 'a' + i || fcntl(10 + i, F_GETFD) != 0)
			return 4;
	for (int fd = 15; fd < 200; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			return 5;
	return 0;
}

START_TEST(packing_overwrites_no_source)
{
	static const int orders[][5] = { { 14, 13, 12, 11, 10 }, { 10, 11, 12, 13, 14 },
		{ 11, 12, 13, 14, 10 }, { 100, 14, 101, 10, 102 }, { 15, 16, 17, 18, 19 } };

	for (size_t i = 0; i < ELEMENTSOF(orders); i++) {
		int status;
		pid_t pid = fork();

		if (pid == 0)
			_exit(try_pack(orders[i]));
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert_msg(status == 0, "order %zu: %d", i, WEXITSTATUS(status));
	}
}
END_TEST

static int
count_fds(void)
{
	cleanup_dir DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(d))
		n++;
	return n;
}

/* For each number sent and each size of the receive buffer. */
START_TEST(descriptors_come_whole_or_not_at_all)
{
	int pair[2], before, fds[6], got[6];

	for (size_t i = 0; i < ELEMENTSOF(fds); i++)
		fds[i] = STDERR_FILENO;
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	before = count_fds();
	for (size_t sent = 0; sent <= ELEMENTSOF(fds); sent++)
		for (size_t room = 0; room <= ELEMENTSOF(got); room++) {
			size_t n = 99;
			char buf[4];
			ssize_t r;

			ck_assert_int_eq(fd_send_msg(pair[0], "abc", 3, fds, sent, 0), 0);
			r = fd_recv_msg(pair[1], buf, sizeof buf, got, room, &n, 0);
			if (sent > room) {
				ck_assert_msg(
				    r == -EPROTO, "%zu sent, room for %zu: %zd", sent, room, r);
			} else {
				ck_assert_int_eq(r, 3);
				ck_assert_uint_eq(n, sent);
				for (size_t i = 0; i < n; i++) {
					ck_assert_int_eq(fcntl(got[i], F_GETFD), FD_CLOEXEC);
					(void)close(got[i]);
				}
			}
			ck_assert_int_eq(count_fds(), before);
		}
	(void)close(pair[0]);
	(void)close(pair[1]);
}
END_TEST

START_TEST(descriptors_behind_something_else_are_seen)
{
	int pair[2], before, on = 1, fds[4] = { 2, 2, 2, 2 }, got[16];
	size_t n = 99;
	char buf[4];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	before = count_fds();
	/* The sender's credentials come first. */
	ck_assert_int_eq(setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on), 0);
	ck_assert_int_eq(fd_send_msg(pair[0], "abc", 3, fds, 4, 0), 0);
	ck_assert_int_eq(fd_recv_msg(pair[1], buf, sizeof buf, got, 16, &n, 0), 3);
	ck_assert_uint_eq(n, 4);
	while (n > 0)
		(void)close(got[--n]);
	ck_assert_int_eq(fd_send_msg(pair[0], "abc", 3, fds, 4, 0), 0);
	/* The buffer holds the credentials and two descriptors. */
	ck_assert_int_eq(fd_recv_msg(pair[1], buf, sizeof buf, got, 10, &n, 0), -EPROTO);
	ck_assert_int_eq(count_fds(), before);
	(void)close(pair[0]);
	(void)close(pair[1]);
}
END_TEST

START_TEST(cut_bytes_are_an_error_and_end_is_zero)
{
	int pair[2], got, fd = STDERR_FILENO, before;
	size_t n;
	char buf[4];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	before = count_fds();
	ck_assert_int_eq(fd_recv_msg(pair[1], buf, sizeof buf, &got, 1, &n, MSG_DONTWAIT), -EAGAIN);
	ck_assert_int_eq(fd_send_msg(pair[0], "abcdef", 6, &fd, 1, 0), 0);
	ck_assert_int_eq(fd_recv_msg(pair[1], buf, sizeof buf, &got, 1, &n, 0), -EMSGSIZE);
	ck_assert_int_eq(count_fds(), before);
	(void)close(pair[0]);
	ck_assert_int_eq(fd_recv_msg(pair[1], buf, sizeof buf, &got, 1, &n, 0), 0);
	(void)close(pair[1]);
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_checked_fixture(tc, make_base, remove_base);
	tcase_add_test(tc, nothing_leads_out_of_the_root);
	tcase_add_test(tc, what_is_opened_is_cloexec);
	tcase_add_test(tc, whole_files);
	tcase_add_test(tc, a_file_without_a_size);
	tcase_add_test(tc, pieces_make_a_whole);
	tcase_add_test(tc, small_files_in_one_write);
	tcase_add_test(tc, sealed_memfds);
	tcase_add_test(tc, what_is_not_sealed_is_not_mapped);
	tcase_add_test(tc, packing_overwrites_no_source);
	tcase_add_test(tc, descriptors_come_whole_or_not_at_all);
	tcase_add_test(tc, descriptors_behind_something_else_are_seen);
	tcase_add_test(tc, cut_bytes_are_an_error_and_end_is_zero);
}

int
main(void)
{
	return unit_run("fd", add);
}
