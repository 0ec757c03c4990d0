// SPDX-License-Identifier: Apache-2.0
/* alloc_hooks.c: the hooks of an alloc, one after the other. Runs in: supervisor. */
#include "supervisor/alloc/alloc_hooks.h"

#include <stdio.h>
#include <stdlib.h>
#include <systemd/sd-event.h>

#include "common/log.h"
#include "supervisor/alloc/alloc_runner.h"

#define DESTROY_RETRY_USEC 30000000

/* In the order of prerun; postrun and destroy go the other way. */
static const struct alloc_hook *const hooks[] = { &alloc_hook_check, &alloc_hook_max_run,
	&alloc_hook_lease, &alloc_hook_previous, &alloc_hook_identity, &alloc_hook_dir,
	&alloc_hook_cores, &alloc_hook_health, &alloc_hook_services, &alloc_hook_csi,
	&alloc_hook_checks };

/* --- one after the other --- */

bool
alloc_hooks_prerun(struct alloc_runner *ar)
{
	while (ar->hook < ELEMENTSOF(hooks) && !hooks[ar->hook]->prerun)
		ar->hook++;
	if (ar->hook == ELEMENTSOF(hooks))
		return false;
	ar->hook_busy = true;
	hooks[ar->hook]->prerun(ar);
	return true;
}

void
alloc_hooks_turn_back(struct alloc_runner *ar)
{
	ar->hook = ELEMENTSOF(hooks);
}

/* Whatever has failed, all of them run. */
static void
tell_failures(struct alloc_runner *ar)
{
	char text[1024];

	if (!ar->hook_failures)
		return;
	(void)snprintf(text, sizeof text, "post-run hooks failed: %s", ar->hook_failures);
	log_warn("allocation %.8s: %s", ar->sa->a.id, text);
	for (unsigned i = 0; i < ar->n_tasks; i++)
		task_runner_tell(&ar->tasks[i], EVENT_HOOK_MESSAGE, text, false);
	(void)str_set(&ar->hook_failures, NULL);
}

bool
alloc_hooks_postrun(struct alloc_runner *ar)
{
	while (ar->hook > 0) {
		const struct alloc_hook *hook = hooks[--ar->hook];

		if (!hook->postrun)
			continue;
		ar->hook_busy = true;
		hook->postrun(ar);
		return true;
	}
	tell_failures(ar);
	return false;
}

bool
alloc_hooks_destroy(struct alloc_runner *ar)
{
	while (ar->hook > 0) {
		const struct alloc_hook *hook = hooks[--ar->hook];

		if (!hook->destroy)
			continue;
		ar->hook_busy = true;
		hook->destroy(ar);
		return true;
	}
	return false;
}

/* --- how they end --- */

static int
on_destroy_retry(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct alloc_runner *ar = userdata;

	ar->retry = sd_event_source_disable_unref(ar->retry);
	hooks[ar->hook]->destroy(ar);
	return 0;
}

static void
destroy_later(struct alloc_runner *ar, const struct err *e)
{
	log_warn("allocation %.8s: %s; it is tried again in 30 s", ar->sa->a.id, e->msg);
	ar->hook_busy = true;
	if (sd_event_add_time_relative(ar->sup->event, &ar->retry, CLOCK_MONOTONIC,
		DESTROY_RETRY_USEC, 0, on_destroy_retry, ar) < 0)
		log_error("allocation %.8s: no memory to try it again", ar->sa->a.id);
}

static void
fail_setup(struct alloc_runner *ar, const struct err *e)
{
	char text[ERR_MSG_SIZE + 64];

	ar->failed = true;
	(void)snprintf(
	    text, sizeof text, "pre-run hook \"%s\" failed: %s", hooks[ar->hook]->name, e->msg);
	for (unsigned i = 0; i < ar->n_tasks; i++)
		task_runner_fail_setup(&ar->tasks[i], text);
}

void
alloc_hook_note(struct alloc_runner *ar, const char *sentence)
{
	const char *before = ar->hook_failures, *name = hooks[ar->hook]->name;
	char *all = NULL;

	if (str_setf(&all, "%s%s%s: %s", str(before), before ? "; " : "", name, sentence) < 0) {
		log_warn("allocation %.8s: %s: %s", ar->sa->a.id, name, sentence);
		return;
	}
	free(ar->hook_failures);
	ar->hook_failures = all;
}

void
alloc_hook_done(struct alloc_runner *ar, int r, const struct err *e)
{
	ar->hook_busy = false;
	if (ar->phase == ALLOC_PRERUN && r < 0) {
		fail_setup(ar, e);
	} else if (ar->phase == ALLOC_PRERUN) {
		ar->hook++;
	} else if (ar->phase == ALLOC_POSTRUN && r < 0) {
		alloc_hook_note(ar, e->msg);
	} else if (r < 0) {
		destroy_later(ar, e);
		return;
	}
	turn_defer(ar->sup, &ar->step);
}

/* --- those that do not wait --- */

void
alloc_hooks_stop(struct alloc_runner *ar)
{
	if (hooks[ar->hook]->stop)
		hooks[ar->hook]->stop(ar);
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

void
alloc_hooks_shutdown(struct alloc_runner *ar)
{
	for (size_t i = 0; i < ELEMENTSOF(hooks); i++)
		if (hooks[i]->shutdown)
			hooks[i]->shutdown(ar);
}

const char *
alloc_runner_hook(const struct alloc_runner *ar)
{
	return ar->phase != ALLOC_DONE && ar->hook_busy ? hooks[ar->hook]->name : NULL;
}
