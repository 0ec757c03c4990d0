// SPDX-License-Identifier: Apache-2.0
/* alloc_hooks.c: the hooks of an alloc, one after the other. Runs in: supervisor. */
#include "supervisor/alloc/alloc_hooks.h"

#include <errno.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <systemd/sd-event.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "supervisor/alloc/alloc_runner.h"

#define DESTROY_RETRY_USEC 30000000

#define HOOK_ADDRESS(hook) &alloc_hook_##hook,
static const struct alloc_hook *const hooks[] = { ALLOC_HOOKS(HOOK_ADDRESS) };

struct alloc_hooks {
	size_t at;      /* the hook that runs, or is next, in the order of the phase */
	bool busy;      /* it was called and is not done */
	bool failed;    /* a prerun failed */
	char *failures; /* of this phase, not taken yet; NULL: none */
	struct sd_event_source *retry; /* of a destroy that failed */
	alignas(max_align_t) unsigned char states[];
};

/* --- their states --- */

static size_t
aligned_size(const struct alloc_hook *hook)
{
	return (hook->state_size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
}

void *
alloc_hook_state(const struct alloc_runner *ar, const struct alloc_hook *hook)
{
	unsigned char *state = ar->hooks->states;

	for (size_t i = 0; hooks[i] != hook; i++)
		state += aligned_size(hooks[i]);
	return state;
}

int
alloc_hooks_new(struct alloc_runner *ar, const json_t *kept)
{
	size_t size = sizeof *ar->hooks;
	int r = 0;

	for (size_t i = 0; i < ELEMENTSOF(hooks); i++)
		size += aligned_size(hooks[i]);
	ar->hooks = calloc(1, size);
	if (!ar->hooks)
		return -ENOMEM;
	for (size_t i = 0; i < ELEMENTSOF(hooks) && r >= 0; i++)
		r = hooks[i]->init ? hooks[i]->init(ar, kept) : 0;
	return r;
}

void
alloc_hooks_free(struct alloc_runner *ar)
{
	if (!ar->hooks)
		return;
	for (size_t i = 0; i < ELEMENTSOF(hooks); i++)
		if (hooks[i]->shutdown)
			hooks[i]->shutdown(ar);
	ar->hooks->retry = sd_event_source_disable_unref(ar->hooks->retry);
	free(ar->hooks->failures);
	free(ar->hooks);
	ar->hooks = NULL;
}

void
alloc_hooks_save(const struct alloc_runner *ar, struct text *t)
{
	for (size_t i = 0; i < ELEMENTSOF(hooks); i++)
		if (hooks[i]->save)
			hooks[i]->save(ar, t);
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

/* In the order of the alloc's phase. */
static const struct alloc_hook *
hook_at(const struct alloc_runner *ar, size_t i)
{
	return hooks[ar->phase == ALLOC_PRERUN ? i : ELEMENTSOF(hooks) - 1 - i];
}

static const struct alloc_hook *
current_hook(const struct alloc_runner *ar)
{
	return hook_at(ar, ar->hooks->at);
}

typedef void (*hook_fn)(struct alloc_runner *ar);

/* What this hook does in the alloc's phase; NULL: nothing. */
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
	for (size_t i = ar->hooks->at; i < ELEMENTSOF(hooks); i++)
		if (fn_of(hook_at(ar, i), ar->phase))
			return true;
	return false;
}

void
alloc_hooks_call(struct alloc_runner *ar)
{
	struct alloc_hooks *h = ar->hooks;

	for (; h->at < ELEMENTSOF(hooks); h->at++) {
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

/* --- how a hook ends --- */

static int
on_destroy_retry(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct alloc_runner *ar = userdata;

	ar->hooks->retry = sd_event_source_disable_unref(ar->hooks->retry);
	current_hook(ar)->destroy(ar);
	return 0;
}

static void
destroy_later(struct alloc_runner *ar, const struct err *e)
{
	log_warn("allocation %.8s: %s; it is tried again in 30 s", ar->sa->a.id, e->msg);
	ar->hooks->busy = true;
	if (sd_event_add_time_relative(ar->sup->event, &ar->hooks->retry, CLOCK_MONOTONIC,
		DESTROY_RETRY_USEC, 0, on_destroy_retry, ar) < 0)
		log_error("allocation %.8s: no memory to retry", ar->sa->a.id);
}

void
alloc_hook_note(struct alloc_runner *ar, const char *sentence)
{
	const char *before = ar->hooks->failures, *name = current_hook(ar)->name;
	char *all = NULL;

	if (str_setf(&all, "%s%s%s: %s", str(before), before ? "; " : "", name, sentence) < 0) {
		log_warn("allocation %.8s: %s: %s", ar->sa->a.id, name, sentence);
		return;
	}
	free(ar->hooks->failures);
	ar->hooks->failures = all;
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
		(void)str_setf(
		    &ar->hooks->failures, "\"%s\" failed: %s", current_hook(ar)->name, e->msg);
	} else if (r < 0) {
		alloc_hook_note(ar, e->msg);
	}
	ar->hooks->at++;
	turn_defer(ar->sup, &ar->step);
}

/* --- callbacks that do not wait --- */

void
alloc_hooks_stop(struct alloc_runner *ar)
{
	if (current_hook(ar)->stop)
		current_hook(ar)->stop(ar);
}

void
alloc_hooks_update(struct alloc_runner *ar)
{
	for (size_t i = 0; i < ELEMENTSOF(hooks); i++)
		if (hooks[i]->update)
			hooks[i]->update(ar);
}

void
alloc_hooks_pre_task_restart(struct alloc_runner *ar)
{
	for (size_t i = 0; i < ELEMENTSOF(hooks); i++)
		if (hooks[i]->pre_task_restart)
			hooks[i]->pre_task_restart(ar);
}

void
alloc_hooks_pre_kill(struct alloc_runner *ar)
{
	for (size_t i = 0; i < ELEMENTSOF(hooks); i++)
		if (hooks[i]->pre_kill)
			hooks[i]->pre_kill(ar);
}

const char *
alloc_runner_hook(const struct alloc_runner *ar)
{
	return ar->phase != ALLOC_DONE && ar->hooks->busy ? current_hook(ar)->name : NULL;
}
