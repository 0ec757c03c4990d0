/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clone.h: clone3(2) of a child that goes first (CLONE_VFORK). With CLONE_VM it shares the caller's
 * memory until it execs: no page table is copied, and errors come back through memory. Without, it
 * has a copy. Runs in: exec-helper, executor.
 */
#ifndef DROVER_COMMON_CLONE_H
#define DROVER_COMMON_CLONE_H

#include <stdint.h>
#include <sys/types.h>

/*
 * fn(arg) runs in the child and must not return. The caller goes on when the child has exec'ed or
 * exited. flags are clone3's; ret_pidfd (may be NULL) gets one. Returns the child's pid as the
 * caller sees it, or -errno.
 */
pid_t clone_call(uint64_t flags, int cgroup_fd, int *ret_pidfd, void (*fn)(void *arg), void *arg);

#endif
