/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc_hooks.h: what an alloc needs before its tasks and gives back after them. Each hook is one
 * file, with its own state, and one line in ALLOC_HOOKS. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_ALLOC_HOOKS_H
#define DROVER_SUPERVISOR_ALLOC_ALLOC_HOOKS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"
#include "supervisor/alloc/task_hooks.h"

struct alloc_record;
struct alloc_runner;
struct sup;

/* All callbacks are optional and must be idempotent: they run again after a restart. */
struct alloc_hook {
	const char *name;
	size_t state_size; /* of alloc_hook_state() */

	/* The agent starts: before any alloc is restored. */
	void (*start)(struct sup *sup);
	/* The agent ends: after all allocs are freed. */
	void (*end)(struct sup *sup);

	/* The runner is made, its tasks are not restored yet. kept: what save() kept last. */
	void (*init)(struct alloc_runner *ar, const struct alloc_record *kept);
	/* Adds what a restarted supervisor needs. */
	void (*save)(const struct alloc_runner *ar, struct alloc_record *rec);
	/* The runner is freed: the tasks run on without an agent, or the alloc was removed. Ends
	 * timers and calls, frees what the state points to. */
	void (*shutdown)(struct alloc_runner *ar);

	/* These three end by calling alloc_hook_done() once, now or later. */

	void (*prerun)(struct alloc_runner *ar);
	/* Also undoes a prerun that failed half way, or never ran. */
	void (*postrun)(struct alloc_runner *ar);
	/* The alloc leaves the node for good. A failure is retried. */
	void (*destroy)(struct alloc_runner *ar);

	/* These are complete when they return. */

	/* The alloc is to stop while this prerun waits: the hook ends the wait soon. May be called
	 * more than once. */
	void (*stop)(struct alloc_runner *ar);
	/* The alloc or one of its tasks has changed; called before the source is told. */
	void (*changed)(struct alloc_runner *ar);
	/* The job was updated in place. */
	void (*update)(struct alloc_runner *ar);
	/* All running tasks are about to be restarted; not called for a single task. */
	void (*pre_task_restart)(struct alloc_runner *ar);
	/* All tasks are about to be told to end. */
	void (*pre_kill)(struct alloc_runner *ar);

	struct task_hook task;
};

/* In the order of prerun; postrun and destroy go in reverse. */
#define ALLOC_HOOKS(HOOK)                                                                          \
	HOOK(check)                                                                                \
	HOOK(max_run)                                                                              \
	HOOK(lease)                                                                                \
	HOOK(previous)                                                                             \
	HOOK(identity)                                                                             \
	HOOK(dir)                                                                                  \
	HOOK(disk)                                                                                 \
	HOOK(cores)                                                                                \
	HOOK(health)                                                                               \
	HOOK(services)                                                                             \
	HOOK(csi)                                                                                  \
	HOOK(checks)

#define ALLOC_HOOK_DECLARE(hook) extern const struct alloc_hook alloc_hook_##hook;
ALLOC_HOOKS(ALLOC_HOOK_DECLARE)

#define ALLOC_HOOK_COUNT(hook) +1
#define ALLOC_HOOKS_N          (0 ALLOC_HOOKS(ALLOC_HOOK_COUNT))
extern const struct alloc_hook *const alloc_hook_list[ALLOC_HOOKS_N];
/* Loops over the hooks that have this callback. */
#define hook_foreach(hook, callback)                                                               \
	for (size_t hook##_at = 0; hook##_at < ALLOC_HOOKS_N; hook##_at++)                         \
		for (const struct alloc_hook *hook = alloc_hook_list[hook##_at];                   \
		     hook && hook->callback; hook = NULL)

/* --- for hooks --- */

/* This hook's own memory in this alloc or task, of state_size bytes, zeroed when the runner was
 * made. */
void *alloc_hook_state(const struct alloc_runner *ar, const struct alloc_hook *hook);
void *task_hook_state(const struct task_runner *tr, const struct alloc_hook *hook);
/* The hook that was called is done. r < 0: it failed, e has the sentence. */
void alloc_hook_done(struct alloc_runner *ar, int r, const struct err *e);
/* In postrun: notes one failure of possibly several. The tasks' events report all of them. */
void alloc_hook_note(struct alloc_runner *ar, const char *sentence);

/* --- for the alloc runner --- */

void alloc_hooks_start(struct sup *sup);
void alloc_hooks_end(struct sup *sup);

/* Makes the states and calls each init(). */
void alloc_hooks_new(struct alloc_runner *ar, const struct alloc_record *kept);
/* Calls each shutdown() and frees the states. */
void alloc_hooks_free(struct alloc_runner *ar);
void alloc_hooks_save(const struct alloc_runner *ar, struct alloc_record *rec);

/* A hook was called and has not called alloc_hook_done() yet. */
bool alloc_hooks_busy(const struct alloc_runner *ar);
/* A prerun has failed. */
bool alloc_hooks_failed(const struct alloc_runner *ar);
/* In this phase of the alloc hooks are still to be called. */
bool alloc_hooks_left(const struct alloc_runner *ar);
/* Calls the next of them, if there is one. */
void alloc_hooks_call(struct alloc_runner *ar);
/* A phase of the alloc that calls hooks begins: with its first one. */
void alloc_hooks_begin(struct alloc_runner *ar);
/* Takes what failed in prerun (`"name" failed: …`) or postrun (`name: …; …`); NULL: nothing. The
 * caller frees it. */
char *alloc_hooks_take_failures(struct alloc_runner *ar);
/* Of the hook that waits in its prerun. */
void alloc_hooks_stop(struct alloc_runner *ar);
/* Of all hooks. */
void alloc_hooks_changed(struct alloc_runner *ar);
void alloc_hooks_update(struct alloc_runner *ar);
void alloc_hooks_pre_task_restart(struct alloc_runner *ar);
void alloc_hooks_pre_kill(struct alloc_runner *ar);
/* The name of the hook that the alloc waits for; NULL: none. */
const char *alloc_hooks_waits_for(const struct alloc_runner *ar);

#endif
