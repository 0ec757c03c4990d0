/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc_hooks.h: what an alloc needs before its tasks and what is taken back after them, one file
 * each, in the list of alloc_hooks.c. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_ALLOC_HOOKS_H
#define DROVER_SUPERVISOR_ALLOC_ALLOC_HOOKS_H

#include <stdbool.h>

#include "common/err.h"

struct alloc_runner;

/* Any subset. Everything must bear to come again: after a restart of the agent it does. */
struct alloc_hook {
	const char *name;

	/* These three end by calling alloc_hook_done() once, now or later. */
	void (*prerun)(struct alloc_runner *ar);
	/* Also undoes a prerun that failed half way, or never was. */
	void (*postrun)(struct alloc_runner *ar);
	/* The alloc goes from the node for good. What fails is tried again. */
	void (*destroy)(struct alloc_runner *ar);

	/* These have done what they do when they return. */

	/* It is to be stopped while this one's prerun waits: ends that soon. May come again. */
	void (*stop)(struct alloc_runner *ar);
	/* A new version of its job, in place. */
	void (*update)(struct alloc_runner *ar);
	/* All its tasks that run are about to be restarted; not when it is a single one. */
	void (*pre_task_restart)(struct alloc_runner *ar);
	/* All its tasks are about to be told to end. */
	void (*pre_kill)(struct alloc_runner *ar);
	/* This process has no more to do with it: its tasks run on without an agent, or it is gone.
	 */
	void (*shutdown)(struct alloc_runner *ar);
};

extern const struct alloc_hook alloc_hook_check, alloc_hook_max_run, alloc_hook_lease,
    alloc_hook_previous, alloc_hook_identity, alloc_hook_dir, alloc_hook_cores, alloc_hook_health,
    alloc_hook_services, alloc_hook_csi, alloc_hook_checks;

/* --- for hooks --- */

/* r < 0 with *e: the hook's sentence. */
void alloc_hook_done(struct alloc_runner *ar, int r, const struct err *e);
/* In postrun: one thing that failed, of several perhaps. The tasks' events tell all of them. */
void alloc_hook_note(struct alloc_runner *ar, const char *sentence);

/* --- for the alloc runner --- */

/* Begins with the next one. False: all have been. */
bool alloc_hooks_prerun(struct alloc_runner *ar);
/* Before the first call of each of the next two: they go the other way, from the last one on. */
void alloc_hooks_turn_back(struct alloc_runner *ar);
bool alloc_hooks_postrun(struct alloc_runner *ar);
bool alloc_hooks_destroy(struct alloc_runner *ar);
/* Of one that waits in its prerun. */
void alloc_hooks_stop(struct alloc_runner *ar);
/* Of all of them. */
void alloc_hooks_update(struct alloc_runner *ar);
void alloc_hooks_pre_task_restart(struct alloc_runner *ar);
void alloc_hooks_pre_kill(struct alloc_runner *ar);
void alloc_hooks_shutdown(struct alloc_runner *ar);
/* The one that it waits for, before its tasks or after them; NULL: none. */
const char *alloc_runner_hook(const struct alloc_runner *ar);

#endif
