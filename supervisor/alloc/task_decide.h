/* SPDX-License-Identifier: Apache-2.0 */
/* task_decide.h: decides what follows a run of a task. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_TASK_DECIDE_H
#define DROVER_SUPERVISOR_ALLOC_TASK_DECIDE_H

#include <stdbool.h>
#include <stdint.h>

struct task_runner;

/* Asks the restart policy unless the task was killed, and records the decision in the task's events
 * and state. True: it starts again after *ret_delay_ns. */
bool task_decide(struct task_runner *tr, int64_t *ret_delay_ns);

#endif
