/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe_tasks.h: the tasks that probes make, from the row, which is written first and says when
 * they end at the latest, to the proof that nothing of them is left. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_HEALTH_PROBE_TASKS_H
#define DROVER_SUPERVISOR_HEALTH_PROBE_TASKS_H

#include "common/id.h"
#include "supervisor/core/sup.h"

struct probe_task;

/* How a task's events reach its check. */
struct probe_task_events {
	/* The row is written. */
	void (*planned)(void *arg);
	/* It has reached its latest time: the check must end it. */
	void (*expired)(void *arg);
	/* The task was removed. With why, the first try to remove it has failed; it is repeated
	 * without the check. Not called from within a call below. */
	void (*removed)(void *arg, const char *why);
};

/* Reads the rows of the last supervisor's; then, after runs_reap_others(), removes their tasks. */
int probe_tasks_load(struct sup *sup, struct err *e);
void probe_tasks_remove_left(struct sup *sup);
void probe_tasks_free(struct sup *sup);
/* Returns how many wait for their removal, and why the oldest does (NULL: it has just begun). */
unsigned probe_tasks_left(struct sup *sup, const char **ret_why);

/* Returns how many have a run that does not end, because a process of it hangs in the kernel. */
unsigned probe_tasks_stuck(struct sup *sup);

/* Writes the row of a task that will be made. */
struct probe_task *probe_task_plan(struct sup *sup, const struct probe_task_events *ev, void *arg);
/* The id in place of an alloc's, and the name of the task: "health-check-" and a part of the id. */
const struct id *probe_task_id(const struct probe_task *t);
const char *probe_task_name(const struct probe_task *t);
/* Removes it: directories and mounts once its run is reaped, then the row. To be called after
 * run_release(), once. */
void probe_task_remove(struct probe_task *t);
/* Its run was told to end, and the check does not wait for that. */
void probe_task_leave_run(struct probe_task *t);
/* The check ends: no more events come. A removal that has begun goes on. */
void probe_task_leave(struct probe_task *t);

/* A run was reaped and its row is deleted. */
void probe_tasks_run_gone(struct sup *sup, const struct id *id);
/* For leaks: whether id is that of a probe's task with a row. */
bool probe_task_is_known(struct sup *sup, const struct id *id);

#endif
