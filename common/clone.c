// SPDX-License-Identifier: Apache-2.0
/* clone.c: clone3 of a child that runs before its parent continues. Runs in: exec-helper,
 * executor. */
#include "common/clone.h"

#include <linux/sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Inline, because with CLONE_VM the child runs on the caller's stack: if a function made the system
 * call and the child returned from it, the child would overwrite the return address that the caller
 * still needs.
 */
static inline long __attribute__((always_inline)) raw_clone3(struct clone_args *args)
{
#if defined(__x86_64__)
	long r = SYS_clone3;

	__asm__ volatile("syscall"
			 : "+a"(r)
			 : "D"(args), "S"(sizeof *args)
			 : "rcx", "r11", "memory");
	return r;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = SYS_clone3;
	register long x0 __asm__("x0") = (long)args;
	register long x1 __asm__("x1") = sizeof *args;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1) : "memory");
	return x0;
#else
#error "clone3 is written for x86_64 and aarch64"
#endif
}

#ifdef __SANITIZE_ADDRESS__
void __asan_handle_vfork(void *sp); /* from libasan, which calls it for vfork(2) */
#endif

pid_t __attribute__((noinline))
clone_call(uint64_t flags, int cgroup_fd, int *ret_pidfd, void (*fn)(void *arg), void *arg)
{
	struct clone_args args = {
		.flags = flags | (ret_pidfd ? CLONE_PIDFD : 0),
		.pidfd = (uint64_t)(uintptr_t)ret_pidfd,
		.exit_signal = SIGCHLD,
		.cgroup = cgroup_fd < 0 ? 0 : (uint64_t)cgroup_fd,
	};
	long pid = raw_clone3(&args);

	if (pid == 0) {
		fn(arg);
		_exit(127);
	}
#ifdef __SANITIZE_ADDRESS__
	/* The child did not return from its frames below this one, so ASan's marks for them are
	 * still set. */
	__asan_handle_vfork(__builtin_frame_address(0));
#endif
	return (pid_t)pid;
}
