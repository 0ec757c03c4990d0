/* SPDX-License-Identifier: Apache-2.0 */
/* pid.h: identifies the process behind a pid. Runs in: exec-helper, executor. */
#ifndef DROVER_COMMON_PID_H
#define DROVER_COMMON_PID_H

#include <stdint.h>

/*
 * Returns field 22 (start time in ticks) of <proc_fd>/<pid>/stat, or 0 if there is no such process.
 * Boot id, pid and start time together identify a process forever.
 */
uint64_t pid_start_ticks(int proc_fd, uint32_t pid);

#endif
