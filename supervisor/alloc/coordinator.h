/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coordinator.h: decides which tasks of an alloc may start now. Each task belongs to a stage, and
 * each state of the coordinator opens the gates of some stages. A closed gate does not stop a
 * running task. Pure. Runs in: supervisor.
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
	COORDINATOR_INIT, /* no task has started, or all are being restarted */
	COORDINATOR_PRESTART,
	COORDINATOR_MAIN,
	COORDINATOR_POSTSTART,
	COORDINATOR_WAIT, /* all tasks except poststop tasks have started; waits for their end */
	COORDINATOR_POSTSTOP,
	COORDINATOR_STATES
};

/* The tasks of one stage. dead includes failed. */
struct stage_count {
	unsigned n, pending, running, dead, failed;
};

enum task_stage task_stage(const struct task *task);
/* Returns the state after all transitions that the counts permit. */
enum coordinator_state coordinator_next(
    enum coordinator_state state, const struct stage_count stages[STAGES]);
bool coordinator_opens(enum coordinator_state state, enum task_stage stage);

#endif
