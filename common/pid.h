/* SPDX-License-Identifier: Apache-2.0 */
/* pid.h: which process a pid is. Runs in: exec-helper, executor. */
#ifndef DROVER_COMMON_PID_H
#define DROVER_COMMON_PID_H

#include <stdint.h>

/*
 * Field 22 of <proc_fd>/<pid>/stat: with the boot's id and the pid it names a process for ever. 0:
 * there is no such process.
 */
uint64_t pid_start_ticks(int proc_fd, uint32_t pid);

#endif
