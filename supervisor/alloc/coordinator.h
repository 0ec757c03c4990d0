/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coordinator.h: which tasks of an alloc may start now: each task belongs to a stage, each state
 * opens the gates of some stages. A shut gate does not stop a task that runs. Pure. Runs in:
 * supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_COORDINATOR_H
#define DROVER_SUPERVISOR_ALLOC_COORDINATOR_H

#include <stdbool.h>

#include "model/task.h"

enum task_stage {
	STAGE_PRESTART,
	STAGE_PRESTART_SIDECAR,
	STAGE_MAIN,
	STAGE_POSTSTART,
	STAGE_POSTSTART_SIDECAR,
	STAGE_POSTSTOP,
	STAGES
};

enum coordinator_state {
	COORDINATOR_INIT, /* no task has started, or all begin anew */
	COORDINATOR_PRESTART,
	COORDINATOR_MAIN,
	COORDINATOR_POSTSTART,
	COORDINATOR_WAIT, /* all tasks of the stages before have started; waits for their end */
	COORDINATOR_POSTSTOP,
	COORDINATOR_STATES
};

/* The tasks of one stage. dead includes failed. */
struct stage_count {
	unsigned n, pending, running, dead, failed;
};

enum task_stage task_stage(const struct task *task);
/* The state that follows from the tasks' states, over as many transitions as apply. */
enum coordinator_state coordinator_next(
    enum coordinator_state state, const struct stage_count stages[STAGES]);
bool coordinator_opens(enum coordinator_state state, enum task_stage stage);

#endif
