// SPDX-License-Identifier: Apache-2.0
/*
 * test_filters.c: tries every system call number under every filter of the tree, in a child that
 * has loaded it: a call that is not on the list kills, a denied call gives the errno of the list.
 * The tables are made from the lists.
 */
#include <errno.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "tests/filters.h"
#include "tests/unit/unit.h"

#define NUMBERS 600 /* more than the kernel has */
#define X32     0x40000000l
/*
 * uretprobe and uprobe: newer kernels exempt them from filters, because they insert them into
 * programs themselves; called from anywhere else they only fail (kernel/seccomp.c,
 * seccomp_uprobe_exception()).
 */
#define FIRST_PASSED_BY 335
#define LAST_PASSED_BY  336
/* The flags of glibc's pthread_create(). */
#define THREAD_FLAGS                                                                               \
	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |        \
	    CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID)
/* An argument that no list allows, and that is no address, descriptor or pid in case a filter lets
 * the call through. */
#define NONSENSE 0x5a5a5a5a5a5a5a5al

static const struct filter {
	const char *def;
	const struct sock_fprog *prog;
	const int *allowed, *denied, *nosys;
	bool kills;
	int newest; /* the highest number that lists which allow by default know */
} filters[] = {
#define FILTER(name, def_)                                                                         \
	{ def_, &name##_prog, name##_allowed, name##_denied, name##_nosys, name##_kills,           \
		name##_newest },
	ALL_FILTERS
#undef FILTER
};

enum outcome { EXIT_EPERM = 1, EXIT_ENOSYS, EXIT_OTHER, KILLED };

static const char *const outcomes[] = { "?", "EPERM", "ENOSYS", "was let through", "killed" };

/* Without libc: its wrappers make calls of their own, and errno does not help if no other call is
 * permitted. */
static inline long
call(long nr, long a, long b, long c, long d)
{
	register long r10 __asm__("r10") = d;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "memory");
	return ret;
}

static void __attribute__((noreturn)) child(const struct filter *f, long nr, const long a[4])
{
	struct rlimit none = { 0, 0 };
	long r;

	(void)setrlimit(RLIMIT_CORE, &none);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, f->prog) < 0)
		_exit(99);
	r = call(nr, a[0], a[1], a[2], a[3]);
	(void)call(SYS_exit_group,
	    r == -EPERM    ? EXIT_EPERM
	    : r == -ENOSYS ? EXIT_ENOSYS
			   : EXIT_OTHER,
	    0, 0, 0);
	__builtin_trap();
}

static enum outcome
try_with(const struct filter *f, long nr, const long a[4])
{
	int status;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		child(f, nr, a);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		return WTERMSIG(status) == SIGSYS ? KILLED : EXIT_OTHER;
	ck_assert_int_ne(WEXITSTATUS(status), 99);
	return (enum outcome)WEXITSTATUS(status);
}

static enum outcome
try(const struct filter *f, long nr)
{
	static const long nonsense[4] = { NONSENSE, NONSENSE, NONSENSE, NONSENSE };

	return try_with(f, nr, nonsense);
}

static bool
has(const int *numbers, long nr)
{
	while (*numbers >= 0 && *numbers != nr)
		numbers++;
	return *numbers >= 0;
}

/* NONSENSE matches no argument that a list allows or denies, so every call gets the default except
 * those listed with any arguments. */
static void
check(const struct filter *f, long nr)
{
	enum outcome want = KILLED, got;

	if (nr >= FIRST_PASSED_BY && nr <= LAST_PASSED_BY)
		return;
	if (has(f->allowed, nr) ||
	    (!f->kills && nr <= f->newest && !has(f->denied, nr) && !has(f->nosys, nr)))
		return;
	if (!f->kills && nr > f->newest && nr < X32)
		want = EXIT_ENOSYS;
	if (has(f->denied, nr))
		want = EXIT_EPERM;
	if (has(f->nosys, nr))
		want = EXIT_ENOSYS;
	got = try(f, nr);
	ck_assert_msg(got == want, "%s: system call %ld: wanted %s, found %s", f->def, nr,
	    outcomes[want], outcomes[got]);
}

START_TEST(every_number)
{
	const struct filter *f = &filters[_i];

	for (long nr = 0; nr < NUMBERS; nr++)
		check(f, nr);
}
END_TEST

/* The other ABIs of this machine, and numbers without a call. */
START_TEST(every_number_of_the_x32_abi)
{
	static const long odd[] = { 1024, 4095, 65535, 0x3fffffff, 0x7fffffff };
	const struct filter *f = &filters[_i];

	for (long nr = 0; nr < NUMBERS; nr++)
		check(f, X32 | nr);
	for (size_t i = 0; i < ELEMENTSOF(odd); i++)
		check(f, odd[i]);
}
END_TEST

/* Calls getpid() through the entry point of 32-bit programs, where all numbers differ. */
static int
call_32bit_getpid(const struct filter *f)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		long r;

		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, f->prog) < 0)
			_exit(99);
		__asm__ volatile("int $0x80"
				 : "=a"(r)
				 : "a"(20l)
				 : "memory", "r8", "r9", "r10", "r11");
		(void)call(SYS_exit_group, 1, 0, 0, 0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

START_TEST(the_32_bit_gate)
{
	int signo = call_32bit_getpid(&filters[_i]);

	/* A kernel without this entry point answers with SIGSEGV. */
	ck_assert_msg(signo == SIGSYS || signo == SIGSEGV, "%s: signal %d", filters[_i].def, signo);
}
END_TEST

/* User namespaces give access to most of the kernel's vulnerable code: no filtered process can make
 * one. */
START_TEST(no_user_namespace)
{
	static const struct clone_args wanted = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
	static const struct {
		long nr, a[4];
	} ways[] = {
		{ SYS_clone3, { (long)(uintptr_t)&wanted, sizeof wanted } },
		{ SYS_clone, { CLONE_NEWUSER | SIGCHLD } },
		{ SYS_clone, { CLONE_NEWUSER | THREAD_FLAGS } },
		{ SYS_unshare, { CLONE_NEWUSER } },
	};
	const struct filter *f = &filters[_i];

	for (size_t i = 0; i < ELEMENTSOF(ways); i++)
		ck_assert_msg(try_with(f, ways[i].nr, ways[i].a) != EXIT_OTHER,
		    "%s: way %zu was let through", f->def, i);
}
END_TEST

/* csi-helper has gRPC's threads, and starts no process. */
START_TEST(threads_where_they_are_needed)
{
	static const long thread[4] = { THREAD_FLAGS }, process[4] = { SIGCHLD };
	const struct filter *f = &filters[0];

	while (strcmp(f->def, "csi-helper/csi_syscalls.def") != 0)
		ck_assert_ptr_ne(++f, &filters[ELEMENTSOF(filters)]);
	/* Both the new thread and its creator end the process with their next instructions. */
	ck_assert_int_eq(try_with(f, SYS_clone, thread), EXIT_OTHER);
	ck_assert_int_eq(try_with(f, SYS_clone, process), KILLED);
	ck_assert_int_eq(try(f, SYS_clone3), EXIT_ENOSYS);
}
END_TEST

START_TEST(all_filters_are_here)
{
	ck_assert_uint_ge(ELEMENTSOF(filters), 8);
	for (size_t i = 0; i < ELEMENTSOF(filters); i++)
		ck_assert_uint_gt(filters[i].prog->len, 4);
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_loop_test(tc, every_number, 0, (int)ELEMENTSOF(filters));
	tcase_add_loop_test(tc, every_number_of_the_x32_abi, 0, (int)ELEMENTSOF(filters));
	tcase_add_loop_test(tc, the_32_bit_gate, 0, (int)ELEMENTSOF(filters));
	tcase_add_loop_test(tc, no_user_namespace, 0, (int)ELEMENTSOF(filters));
	tcase_add_test(tc, threads_where_they_are_needed);
	tcase_add_test(tc, all_filters_are_here);
}

int
main(void)
{
	return unit_run("filters", add);
}
