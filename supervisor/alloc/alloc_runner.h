/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc_runner.h: the life of one alloc on this node: hooks before its tasks, the tasks, hooks
 * after them. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_ALLOC_RUNNER_H
#define DROVER_SUPERVISOR_ALLOC_ALLOC_RUNNER_H

#include "supervisor/alloc/alloc_hooks.h"
#include "supervisor/alloc/alloc_kill.h"
#include "supervisor/alloc/alloc_phase.h"
#include "supervisor/alloc/coordinator.h"
#include "supervisor/alloc/task_runner.h"
#include "supervisor/source/source.h"
#include "supervisor/table/alloc_table.h"

struct alloc_runner {
	struct sup *sup;
	struct sup_alloc *sa;
	enum alloc_phase phase;
	enum coordinator_state coordinator;
	struct alloc_kill kill;
	struct alloc_hooks *hooks;
	struct deferred step; /* finds the next phase, outside of the callbacks that led there */
	bool restored;        /* the alloc was given before this supervisor started */
	bool stopping;        /* the source wants it stopped, or the node drains */
	bool destroy;         /* and removed */
	bool starts_nothing;  /* not even a poststop task: its lease or its time is over */
	bool disk_exceeded;   /* its directory is larger than it may be: its tasks fail */
	bool news;            /* the source has not been told of the latest change */
	bool unsaved;         /* the JSON that is kept beside the alloc is to be written */
	unsigned n_tasks;
	struct task_runner tasks[]; /* in the group's order */
};

/* restored: the alloc ran when the last supervisor ended. NULL: no memory. */
struct alloc_runner *alloc_runner_new(struct sup *sup, struct sup_alloc *sa, bool restored);
void alloc_runner_free(struct alloc_runner *ar);
/* The source has changed the alloc. */
void alloc_runner_update(struct alloc_runner *ar);
void alloc_runner_stop(struct alloc_runner *ar);
void alloc_runner_destroy(struct alloc_runner *ar);
/* A task's state changed: recomputes the alloc's, tells the source, checks the other tasks. */
void alloc_runner_task_changed(struct alloc_runner *ar);
/* Its directory has reached its limit, or (fails) passed it: then all tasks fail without delay.
 * text: for the tasks' events. */
void alloc_runner_disk_exceeded(
    struct alloc_runner *ar, const char *text, int64_t limit_bytes, bool fails);
/* A run of this alloc was reaped and its row is deleted. */
void alloc_runner_run_gone(struct sup *sup, const struct id *alloc);
/* A task of the alloc has run at some time. */
bool alloc_has_started(const struct alloc *a);
/* Writes what the client keeps beside the alloc (sup_alloc.client_json). */
void alloc_client_save(struct alloc_runner *ar);

#endif
