/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc_hooks.h: hooks set up what an alloc needs before its tasks run and undo it afterwards. Each
 * hook is one file, with its own state, and one line in ALLOC_HOOKS. Runs in: supervisor.
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

	/* Called once when the agent starts, before any alloc is restored. */
	void (*start)(struct sup *sup);
	/* Called once when the agent starts, after all allocs are restored. */
	void (*restored)(struct sup *sup);
	/* Called once when the agent ends, after all runners are freed. */
	void (*end)(struct sup *sup);

	/* The runner was made, but its tasks are not restored yet. kept: what the last supervisor
	 * saved. */
	void (*init)(struct alloc_runner *ar, const struct alloc_record *kept);
	/* Adds the hook's data to the record, for a restarted supervisor. */
	void (*save)(const struct alloc_runner *ar, struct alloc_record *rec);
	/* The runner is being freed, because the agent ends or the alloc was removed: the hook
	 * cancels its timers and calls and frees what its state points to. */
	void (*shutdown)(struct alloc_runner *ar);

	/* Each of these three calls alloc_hook_done() once, within the call or later. */

	void (*prerun)(struct alloc_runner *ar);
	/* Also called if prerun failed half way or was not called. */
	void (*postrun)(struct alloc_runner *ar);
	/* The alloc is removed from the node. A failure is retried. */
	void (*destroy)(struct alloc_runner *ar);

	/* These are complete when they return. */

	/* The alloc is to stop while this hook waits in its prerun: the hook ends its wait soon.
	 * May be called more than once. */
	void (*stop)(struct alloc_runner *ar);
	/* The alloc or one of its tasks has changed. The source is notified after this call. */
	void (*changed)(struct alloc_runner *ar);
	/* The job was updated in place. */
	void (*update)(struct alloc_runner *ar);
	/* All running tasks are about to be restarted; not called for a single task. */
	void (*pre_task_restart)(struct alloc_runner *ar);
	/* All tasks are about to be stopped. */
	void (*pre_kill)(struct alloc_runner *ar);

	struct task_hook task;
};

/* Defines alloc_hook_<hook>; its callbacks follow, as initializers. */
#define ALLOC_HOOK(hook, label, size, ...)                                                         \
	const struct alloc_hook alloc_hook_##hook = {                                              \
		.name = (label), .state_size = (size), __VA_ARGS__                                 \
	}

/* In the order of prerun. postrun and destroy are called in reverse order. */
#define ALLOC_HOOKS(HOOK)                                                                          \
	HOOK(check)                                                                                \
	HOOK(max_run)                                                                              \
	HOOK(lease)                                                                                \
	HOOK(previous)                                                                             \
	HOOK(identity)                                                                             \
	HOOK(dir)                                                                                  \
	HOOK(secrets)                                                                              \
	HOOK(artifacts)                                                                            \
	HOOK(templates)                                                                            \
	HOOK(disk)                                                                                 \
	HOOK(cores)                                                                                \
	HOOK(network)                                                                              \
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

/* Returns the hook's state of this alloc or task: state_size bytes, zero when the runner was made.
 */
void *alloc_hook_state(const struct alloc_runner *ar, const struct alloc_hook *hook);
void *task_hook_state(const struct task_runner *tr, const struct alloc_hook *hook);
/* The hook that was called is done. r < 0: it failed, and e has a sentence. */
void alloc_hook_done(struct alloc_runner *ar, int r, const struct err *e);
/* In postrun: adds a sentence about a failure. Events of the tasks report all of them. */
void alloc_hook_note(struct alloc_runner *ar, const char *sentence);

/* --- for the alloc runner --- */

void alloc_hooks_start(struct sup *sup);
void alloc_hooks_restored(struct sup *sup);
void alloc_hooks_end(struct sup *sup);

/* Makes the states of all hooks and calls each init(). */
void alloc_hooks_new(struct alloc_runner *ar, const struct alloc_record *kept);
/* Calls each shutdown() and frees the states. */
void alloc_hooks_free(struct alloc_runner *ar);
void alloc_hooks_save(const struct alloc_runner *ar, struct alloc_record *rec);

/* A hook was called and has not called alloc_hook_done() yet. */
bool alloc_hooks_busy(const struct alloc_runner *ar);
/* A prerun has failed. */
bool alloc_hooks_failed(const struct alloc_runner *ar);
/* Some hooks are still to be called in this phase of the alloc. */
bool alloc_hooks_left(const struct alloc_runner *ar);
/* Calls the next hook of this phase, if there is one. */
void alloc_hooks_call(struct alloc_runner *ar);
/* Starts with the first hook again, for a new phase. */
void alloc_hooks_begin(struct alloc_runner *ar);
/* Returns the failure of prerun (`"name" failed: …`) or all failures of postrun (`name: …; …`),
 * once; NULL: there is none. The caller frees it. */
char *alloc_hooks_take_failures(struct alloc_runner *ar);
/* Calls stop() of the hook that waits in its prerun. */
void alloc_hooks_stop(struct alloc_runner *ar);
/* Each calls the callback of its own name of all hooks. */
void alloc_hooks_changed(struct alloc_runner *ar);
void alloc_hooks_update(struct alloc_runner *ar);
void alloc_hooks_pre_task_restart(struct alloc_runner *ar);
void alloc_hooks_pre_kill(struct alloc_runner *ar);
/* Returns the name of the hook that the alloc waits for; NULL: none. */
const char *alloc_hooks_waits_for(const struct alloc_runner *ar);

#endif
