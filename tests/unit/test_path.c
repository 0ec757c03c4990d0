// SPDX-License-Identifier: Apache-2.0
/* test_path.c: directories are made with their mode, and trees of a hostile task are removed. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/path.h"
#include "tests/unit/base_directory.h"
#include "tests/unit/unit.h"

static void
make_file(int dir_fd, const char *name)
{
	cleanup_close int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
}

static bool
exists(const char *name)
{
	struct stat st;

	return fstatat(base_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static mode_t
mode_of(const char *name)
{
	struct stat st;

	ck_assert_int_eq(fstatat(base_fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st.st_mode & 07777;
}

/* --- making directories --- */

START_TEST(mode_whatever_the_umask)
{
	static const mode_t modes[] = { 0700, 0711, 0755, 0777, 01777, 02750 };
	mode_t old = umask(0777);
	char name[16];

	for (size_t i = 0; i < ELEMENTSOF(modes); i++) {
		cleanup_close int fd = -1;

		(void)snprintf(name, sizeof name, "d%zu", i);
		ck_assert_int_eq(dir_make_at(base_fd, name, modes[i], getuid(), getgid(), &fd), 1);
		ck_assert_int_ge(fd, 0);
		ck_assert_uint_eq(mode_of(name), modes[i]);
	}
	(void)umask(old);
}
END_TEST

START_TEST(what_was_there_keeps_its_mode)
{
	ck_assert_int_eq(mkdirat(base_fd, "d", 0755), 0);
	ck_assert_int_eq(dir_make_at(base_fd, "d", 0700, getuid(), getgid(), NULL), 0);
	ck_assert_uint_eq(mode_of("d"), 0755);
	ck_assert_int_eq(dir_ensure_at(base_fd, "d", 0700, getuid(), getgid(), NULL), 0);
	ck_assert_uint_eq(mode_of("d"), 0700);
}
END_TEST

START_TEST(no_link_and_no_file_is_taken_for_a_directory)
{
	int fd = -7;

	ck_assert_int_eq(mkdirat(base_fd, "real", 0755), 0);
	ck_assert_int_eq(symlinkat("real", base_fd, "link"), 0);
	ck_assert_int_eq(symlinkat("/nowhere", base_fd, "dangling"), 0);
	make_file(base_fd, "file");
	ck_assert_int_eq(mkfifoat(base_fd, "fifo", 0600), 0);
	for (int i = 0; i < 2; i++) {
		int (*make)(int, const char *, mode_t, uid_t, gid_t, int *) =
		    i ? dir_ensure_at : dir_make_at;

		ck_assert_int_eq(make(base_fd, "link", 0700, getuid(), getgid(), &fd), -ELOOP);
		ck_assert_int_eq(make(base_fd, "dangling", 0700, getuid(), getgid(), &fd), -ELOOP);
		ck_assert_int_eq(make(base_fd, "file", 0700, getuid(), getgid(), &fd), -EEXIST);
		ck_assert_int_eq(make(base_fd, "fifo", 0700, getuid(), getgid(), &fd), -EEXIST);
		ck_assert_int_lt(make(base_fd, "no/such", 0700, getuid(), getgid(), &fd), 0);
		ck_assert_int_lt(make(base_fd, "", 0700, getuid(), getgid(), &fd), 0);
	}
	ck_assert_int_eq(fd, -7);
	ck_assert_uint_eq(mode_of("real"), 0755);
}
END_TEST

/* --- removing trees --- */

START_TEST(what_is_not_there_is_removed)
{
	ck_assert_int_eq(tree_remove_at(base_fd, "nothing"), 0);
}
END_TEST

START_TEST(one_of_each_kind)
{
	cleanup_close int d = -1;

	ck_assert_int_eq(mkdirat(base_fd, "t", 0755), 0);
	d = openat(base_fd, "t", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	make_file(d, "file");
	ck_assert_int_eq(mkfifoat(d, "fifo", 0600), 0);
	ck_assert_int_eq(symlinkat("..", d, "up"), 0);
	ck_assert_int_eq(symlinkat(".", d, "loop"), 0);
	ck_assert_int_eq(mkdirat(d, "locked", 0), 0);
	ck_assert_int_eq(mkdirat(d, "\n\\ \"\xff", 0755), 0);
	ck_assert_int_eq(mkdirat(d, ".0", 0755), 0); /* a name that moved directories get */
	ck_assert_int_eq(mkdirat(d, ".0/x", 0755), 0);
	ck_assert_int_eq(mkdirat(d, "a", 0755), 0);
	ck_assert_int_eq(mkdirat(d, "a/b", 0755), 0);
	ck_assert_int_eq(mkdirat(d, "a/b/c", 0755), 0);
	make_file(base_fd, "beside");
	ck_assert_int_eq(tree_remove_at(base_fd, "t"), 0);
	ck_assert(!exists("t") && exists("beside"));
}
END_TEST

START_TEST(links_are_removed_and_not_followed)
{
	ck_assert_int_eq(mkdirat(base_fd, "victim", 0755), 0);
	ck_assert_int_eq(mkdirat(base_fd, "victim/full", 0755), 0);
	ck_assert_int_eq(symlinkat("victim", base_fd, "link"), 0);
	ck_assert_int_eq(tree_remove_at(base_fd, "link"), 0);
	ck_assert_int_eq(mkdirat(base_fd, "t", 0755), 0);
	ck_assert_int_eq(mkdirat(base_fd, "t/d", 0755), 0);
	ck_assert_int_eq(symlinkat("../../victim", base_fd, "t/d/link"), 0);
	ck_assert_int_eq(tree_remove_at(base_fd, "t"), 0);
	ck_assert(!exists("link") && !exists("t") && exists("victim/full"));
}
END_TEST

/* Deeper than PATH_MAX, RLIMIT_NOFILE and any stack. */
START_TEST(any_depth)
{
	int at = dup(base_fd);

	for (int i = 0; i < 5000; i++) {
		int next;

		ck_assert_int_eq(mkdirat(at, "d", 0755), 0);
		if (i % 100 == 0)
			make_file(at, "f");
		next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		(void)close(at);
		at = next;
	}
	(void)close(at);
	ck_assert_int_eq(tree_remove_at(base_fd, "d"), 0);
	ck_assert(!exists("d"));
}
END_TEST

START_TEST(any_width)
{
	char name[32];

	ck_assert_int_eq(mkdirat(base_fd, "t", 0755), 0);
	for (int i = 0; i < 5000; i++) {
		(void)snprintf(name, sizeof name, "t/%d", i);
		if (i % 2)
			make_file(base_fd, name);
		else
			ck_assert_int_eq(mkdirat(base_fd, name, 0755), 0);
		if (i % 4 == 0) {
			(void)snprintf(name, sizeof name, "t/%d/x", i);
			make_file(base_fd, name);
		}
	}
	ck_assert_int_eq(tree_remove_at(base_fd, "t"), 0);
	ck_assert(!exists("t"));
}
END_TEST

/* A task that makes new entries and replaces directories with links while its tree is removed. */
static void __attribute__((noreturn)) interfere(int dir_fd)
{
	for (;;) {
		(void)mkdirat(dir_fd, "t/x", 0755);
		(void)mkdirat(dir_fd, "t/x/y", 0755);
		(void)renameat(dir_fd, "t/x", dir_fd, "t/z");
		(void)!symlinkat("../victim", dir_fd, "t/x");
		(void)unlinkat(dir_fd, "t/x", 0);
	}
}

START_TEST(nothing_outside_whoever_interferes)
{
	pid_t pid;

	ck_assert_int_eq(mkdirat(base_fd, "victim", 0755), 0);
	ck_assert_int_eq(mkdirat(base_fd, "victim/y", 0755), 0);
	make_file(base_fd, "victim/y/keep");
	pid = fork();
	if (pid == 0)
		interfere(base_fd);
	for (int i = 0; i < 300; i++) {
		int r;

		(void)mkdirat(base_fd, "t", 0755);
		(void)mkdirat(base_fd, "t/x", 0755);
		(void)mkdirat(base_fd, "t/x/y", 0755);
		r = tree_remove_at(base_fd, "t");
		ck_assert_msg(r == 0 || r == -ENOTEMPTY, "%d", r);
	}
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	ck_assert_int_eq(tree_remove_at(base_fd, "t"), 0);
	ck_assert(exists("victim/y/keep"));
}
END_TEST

/* Runs in a child with its own mount namespace. Exit code 0 if the mount point and its contents
 * stayed. */
static int
try_mount(unsigned long flags)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    chdir(base) < 0)
		return 77;
	if (mkdir("other", 0755) < 0 || mkdir("t", 0755) < 0 || mkdir("t/a", 0755) < 0 ||
	    mkdir("t/a/m", 0755) < 0)
		return 1;
	if (mount(flags ? "other" : "tmpfs", "t/a/m", flags ? NULL : "tmpfs", flags, NULL) < 0)
		return 2;
	make_file(AT_FDCWD, "t/a/m/keep");
	if (tree_remove_at(AT_FDCWD, "t") != -EBUSY)
		return 3;
	/* The mount point may have been moved up, but it exists: under a bind mount, "other" shows
	 * it. */
	return flags && access("other/keep", F_OK) < 0 ? 4 : 0;
}

START_TEST(mounts_below_stay)
{
	static const unsigned long flags[] = { 0, MS_BIND };
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(geteuid() == 0 ? try_mount(flags[_i]) : 77);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	ck_assert_msg(WEXITSTATUS(status) == 0 || (geteuid() != 0 && WEXITSTATUS(status) == 77),
	    "%d", WEXITSTATUS(status));
}
END_TEST

/* Runs in a user namespace with one user, root inside and unprivileged outside, as -dev may. */
static int
open_in_user_namespace(void)
{
	struct err e = { 0 };

	if (geteuid() == 0 && (setresuid(1234, 1234, 1234) < 0 || prctl(PR_SET_DUMPABLE, 1) < 0))
		return 1;
	if (unshare(CLONE_NEWUSER) < 0)
		return 77;
	if (path_open_owned("/usr", 0, &e) >= 0)
		return 2;
	if (!strstr(e.msg, "does not map")) {
		(void)fprintf(stderr, "%s\n", e.msg);
		return 3;
	}
	return 0;
}

START_TEST(the_hosts_root_in_a_user_namespace_that_does_not_map_it)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(open_in_user_namespace());
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77));
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_checked_fixture(tc, make_base, remove_base);
	tcase_add_test(tc, mode_whatever_the_umask);
	tcase_add_test(tc, what_was_there_keeps_its_mode);
	tcase_add_test(tc, no_link_and_no_file_is_taken_for_a_directory);
	tcase_add_test(tc, what_is_not_there_is_removed);
	tcase_add_test(tc, one_of_each_kind);
	tcase_add_test(tc, links_are_removed_and_not_followed);
	tcase_add_test(tc, any_depth);
	tcase_add_test(tc, any_width);
	tcase_add_test(tc, nothing_outside_whoever_interferes);
	tcase_add_loop_test(tc, mounts_below_stay, 0, 2);
	tcase_add_test(tc, the_hosts_root_in_a_user_namespace_that_does_not_map_it);
}

int
main(void)
{
	return unit_run("path", add);
}
