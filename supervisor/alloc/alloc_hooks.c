// SPDX-License-Identifier: Apache-2.0
/* alloc_hooks.c: runs the hooks of an alloc, one after the other. Runs in: supervisor. */
#include "supervisor/alloc/alloc_hooks.h"

#include <stdalign.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/sup_timer.h"

#define DESTROY_RETRY_USEC 30000000

#define HOOK_ADDRESS(hook) &alloc_hook_##hook,
const struct alloc_hook *const alloc_hook_list[] = { ALLOC_HOOKS(HOOK_ADDRESS) };

struct alloc_hooks {
	size_t at;      /* the current hook, in the order of the phase */
	bool busy;      /* the current hook was called and has not called alloc_hook_done() */
	bool failed;    /* a prerun failed */
	char *failures; /* sentences about failures in this phase; NULL: none */
	struct sup_timer retry; /* of a destroy that failed */
	/* For each hook: its state, then one state for each task. */
	alignas(max_align_t) unsigned char states[];
};

void
alloc_hooks_start(struct sup *sup)
{
	hook_foreach (hook, start)
		hook->start(sup);
}

void
alloc_hooks_restored(struct sup *sup)
{
	hook_foreach (hook, restored)
		hook->restored(sup);
}

void
alloc_hooks_end(struct sup *sup)
{
	hook_foreach (hook, end)
		hook->end(sup);
}

/* --- the states of hooks --- */

static size_t
aligned_size(size_t size)
{
	return (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
}

static size_t
states_size(const struct alloc_runner *ar, const struct alloc_hook *hook)
{
	return aligned_size(hook->state_size) + ar->n_tasks * aligned_size(hook->task.state_size);
}

void *
alloc_hook_state(const struct alloc_runner *ar, const struct alloc_hook *hook)
{
	unsigned char *state = ar->hooks->states;

	for (size_t i = 0; alloc_hook_list[i] != hook; i++)
		state += states_size(ar, alloc_hook_list[i]);
	return state;
}

void *
task_hook_state(const struct task_runner *tr, const struct alloc_hook *hook)
{
	unsigned char *state = alloc_hook_state(tr->ar, hook);
	size_t at = (size_t)(tr - tr->ar->tasks);

	return state + aligned_size(hook->state_size) + at * aligned_size(hook->task.state_size);
}

void
alloc_hooks_new(struct alloc_runner *ar, const struct alloc_record *kept)
{
	size_t size = sizeof *ar->hooks;

	for (size_t i = 0; i < ALLOC_HOOKS_N; i++)
		size += states_size(ar, alloc_hook_list[i]);
	ar->hooks = mem_zeroed(1, size);
	hook_foreach (hook, init)
		hook->init(ar, kept);
}

void
alloc_hooks_free(struct alloc_runner *ar)
{
	hook_foreach (hook, shutdown)
		hook->shutdown(ar);
	sup_timer_cancel(&ar->hooks->retry);
	free(ar->hooks->failures);
	free_p(&ar->hooks);
}

void
alloc_hooks_save(const struct alloc_runner *ar, struct alloc_record *rec)
{
	hook_foreach (hook, save)
		hook->save(ar, rec);
}

bool
alloc_hooks_busy(const struct alloc_runner *ar)
{
	return ar->hooks->busy;
}

bool
alloc_hooks_failed(const struct alloc_runner *ar)
{
	return ar->hooks->failed;
}

/* --- one hook after the other --- */

/* Returns the hook number i in the order of the alloc's phase. */
static const struct alloc_hook *
hook_at(const struct alloc_runner *ar, size_t i)
{
	return alloc_hook_list[ar->phase == ALLOC_PRERUN ? i : ALLOC_HOOKS_N - 1 - i];
}

static const struct alloc_hook *
current_hook(const struct alloc_runner *ar)
{
	return hook_at(ar, ar->hooks->at);
}

typedef void (*hook_fn)(struct alloc_runner *ar);

/* Returns the callback that this phase calls; NULL: the hook has none. */
static hook_fn
fn_of(const struct alloc_hook *hook, enum alloc_phase phase)
{
	switch (phase) {
	case ALLOC_PRERUN:
		return hook->prerun;
	case ALLOC_POSTRUN:
		return hook->postrun;
	case ALLOC_DESTROYING:
		return hook->destroy;
	default:
		return NULL;
	}
}

void
alloc_hooks_begin(struct alloc_runner *ar)
{
	ar->hooks->at = 0;
}

bool
alloc_hooks_left(const struct alloc_runner *ar)
{
	for (size_t i = ar->hooks->at; i < ALLOC_HOOKS_N; i++)
		if (fn_of(hook_at(ar, i), ar->phase))
			return true;
	return false;
}

void
alloc_hooks_call(struct alloc_runner *ar)
{
	struct alloc_hooks *h = ar->hooks;

	for (; h->at < ALLOC_HOOKS_N; h->at++) {
		hook_fn fn = fn_of(current_hook(ar), ar->phase);

		if (!fn)
			continue;
		h->busy = true;
		fn(ar);
		return;
	}
}

char *
alloc_hooks_take_failures(struct alloc_runner *ar)
{
	return steal_ptr(&ar->hooks->failures);
}

/* --- the end of a hook --- */

static void
on_destroy_retry(void *arg)
{
	struct alloc_runner *ar = arg;

	current_hook(ar)->destroy(ar);
}

static void
destroy_later(struct alloc_runner *ar, const struct err *e)
{
	journal_warn(JOURNAL_ALLOC, ABOUT_ALLOC(ar->sa),
	    "allocation %.8s: %s; it is tried again in 30 s", ar->sa->a.id, e->msg);
	ar->hooks->busy = true;
	sup_timer_set(
	    ar->sup, &ar->hooks->retry, CLOCK_MONOTONIC, DESTROY_RETRY_USEC, on_destroy_retry, ar);
}

void
alloc_hook_note(struct alloc_runner *ar, const char *sentence)
{
	cleanup_free char *before = steal_ptr(&ar->hooks->failures);

	ar->hooks->failures = mem_printf(
	    "%s%s%s: %s", str(before), before ? "; " : "", current_hook(ar)->name, sentence);
}

void
alloc_hook_done(struct alloc_runner *ar, int r, const struct err *e)
{
	ar->hooks->busy = false;
	if (r < 0 && ar->phase == ALLOC_DESTROYING) {
		destroy_later(ar, e);
		return;
	}
	if (r < 0 && ar->phase == ALLOC_PRERUN) {
		ar->hooks->failed = true;
		str_setf(&ar->hooks->failures, "\"%s\" failed: %s", current_hook(ar)->name, e->msg);
	} else if (r < 0) {
		alloc_hook_note(ar, e->msg);
	}
	ar->hooks->at++;
	alloc_step_soon(ar);
}

/* --- callbacks that do not wait --- */

void
alloc_hooks_stop(struct alloc_runner *ar)
{
	if (current_hook(ar)->stop)
		current_hook(ar)->stop(ar);
}

void
alloc_hooks_changed(struct alloc_runner *ar)
{
	hook_foreach (hook, changed)
		hook->changed(ar);
}

void
alloc_hooks_update(struct alloc_runner *ar)
{
	hook_foreach (hook, update)
		hook->update(ar);
}

void
alloc_hooks_pre_task_restart(struct alloc_runner *ar)
{
	hook_foreach (hook, pre_task_restart)
		hook->pre_task_restart(ar);
}

void
alloc_hooks_pre_kill(struct alloc_runner *ar)
{
	hook_foreach (hook, pre_kill)
		hook->pre_kill(ar);
}

const char *
alloc_hooks_waits_for(const struct alloc_runner *ar)
{
	return ar->phase != ALLOC_DONE && ar->hooks->busy ? current_hook(ar)->name : NULL;
}
