/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clone.h: clone3(2) with CLONE_VFORK: the caller waits until the child execs or exits. With
 * CLONE_VM the child shares the caller's memory until then: no page table is copied, and errors
 * come back through memory. Without it the child has a copy. Runs in: exec-helper, executor.
 */
#ifndef DROVER_COMMON_CLONE_H
#define DROVER_COMMON_CLONE_H

#include <stdint.h>
#include <sys/types.h>

/*
 * Runs fn(arg), which must not return, in a child. The caller continues when the child has exec'ed
 * or exited. flags are those of clone3; *ret_pidfd (may be NULL) gets a pidfd, which the caller
 * closes. Returns the child's pid as the caller sees it, or -errno.
 */
pid_t clone_call(uint64_t flags, int cgroup_fd, int *ret_pidfd, void (*fn)(void *arg), void *arg);

#endif
