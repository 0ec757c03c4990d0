// SPDX-License-Identifier: Apache-2.0
/* task_tokens.c: gives new tokens to a running task: writes their files, then applies change_mode.
 * Runs in: supervisor. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/alloc/alloc_token.h"
#include "supervisor/alloc/task_events.h"
#include "supervisor/alloc/task_runner.h"
#include "supervisor/alloc/task_session.h"
#include "supervisor/core/journal.h"
#include "supervisor/driver/signal_name.h"

#define FILE_RETRIES  10
#define FILE_RETRY_MS 2000

void
task_tokens_filled(struct task_runner *tr)
{
	struct alloc_identities *ids = alloc_identities_of(tr->ar);
	bool news = false;

	for (size_t i = 0; ids && i < ids->n; i++) {
		struct token *t = &ids->v[i];

		if (t->tr != tr || !t->jwt)
			continue;
		news |= !t->given;
		t->given = true;
		t->giving = false;
	}
	if (news)
		alloc_save_soon(tr->ar);
}

/* Applies change_mode. Further restarts do nothing, because the task does not run any more. */
static void
apply_change_mode(struct task_runner *tr, const struct workload_identity *w)
{
	int signo = w->change_mode == IDENTITY_SIGNAL ? signal_from_name(str(w->change_signal)) : 0;
	char text[NAME_BYTES_MAX + 64];

	(void)snprintf(text, sizeof text, "Identity[%s]: new %stoken acquired", str(w->name),
	    signo ? "Identity " : "");
	if (w->change_mode == IDENTITY_RESTART)
		(void)task_runner_restart(tr, text, false, 0);
	else if (signo > 0)
		(void)task_runner_signal(tr, signo, text, NULL);
}

/* The files were written, or cannot be written. Restarts are first: after one no signal is sent. */
static void
finish_giving(struct alloc_identities *ids, struct task_runner *tr)
{
	ids->file_failures = 0;
	for (enum identity_change mode = IDENTITY_RESTART; mode >= IDENTITY_SIGNAL; mode--)
		for (size_t i = 0; i < ids->n; i++)
			if (ids->v[i].tr == tr && ids->v[i].giving &&
			    ids->v[i].spec->change_mode == mode)
				apply_change_mode(tr, ids->v[i].spec);
	for (size_t i = 0; i < ids->n; i++)
		if (ids->v[i].tr == tr && ids->v[i].giving) {
			ids->v[i].given = true;
			ids->v[i].giving = false;
		}
	alloc_save_soon(ids->ar);
}

/* Retries, so that a token is written even if a process of the agent dies meanwhile. */
static bool
try_again(struct alloc_identities *ids, struct task_runner *tr, const struct err *e)
{
	if (ids->file_failures++ >= FILE_RETRIES)
		return false;
	journal_warn(JOURNAL_TASK, ABOUT_TASK(ids->ar->sa, tr->task->name),
	    "allocation %.8s task %s: its new tokens are not written yet: %s", ids->ar->sa->a.id,
	    tr->task->name, e->msg);
	for (size_t i = 0; i < ids->n; i++)
		if (ids->v[i].tr == tr)
			ids->v[i].giving = false;
	tokens_wake(ids, FILE_RETRY_MS);
	return true;
}

static void
on_files(struct sup *sup, void *arg, int r, const struct err *e)
{
	struct task_runner *tr = arg;
	struct alloc_identities *ids = alloc_identities_of(tr->ar);
	char text[ERR_MSG_SIZE + 64];

	identity_task_state(tr)->files = NULL;
	if (r < 0 && try_again(ids, tr, e))
		return;
	if (r < 0) {
		(void)snprintf(
		    text, sizeof text, "identity: a new token could not be written: %s", e->msg);
		task_runner_tell(tr, EVENT_HOOK_MESSAGE, text, false);
	}
	finish_giving(ids, tr);
	task_tokens_give(ids, tr); /* tokens that were renewed meanwhile */
}

/* Returns 1 if the files are being written or retried, 0 if there are none or retries are used up.
 */
static int
write_files(struct alloc_identities *ids, struct task_runner *tr)
{
	cleanup_free struct task_file *files = mem_zeroed(ids->n, sizeof *files);
	cleanup_free char(*names)[IDENTITY_FILE_SIZE] = mem_zeroed(ids->n, sizeof *names);
	struct identity_task_state *state = identity_task_state(tr);
	struct err e = { 0 };
	size_t n = 0;

	for (size_t i = 0; i < ids->n; i++) {
		const struct token *t = &ids->v[i];

		if (!t->giving || t->tr != tr || !t->spec->file ||
		    identity_file(t->spec, names[n], &e) < 0)
			continue;
		files[n] = (struct task_file){ { 0600, -1, -1, names[n] }, t->jwt, strlen(t->jwt) };
		n++;
	}
	if (n == 0)
		return 0;
	state->files = task_files_replace(tr, files, n, on_files, tr, &e);
	if (!state->files && !try_again(ids, tr, &e))
		return 0;
	return 1;
}

/*
 * Files are written before a signal is sent, because the task may read them then. A task between
 * two runs gets its tokens with the next start; a task that is being started, when it runs.
 */
void
task_tokens_give(struct alloc_identities *ids, struct task_runner *tr)
{
	bool any = false;

	if ((tr->phase != TASK_RUNNING && tr->phase != TASK_DELAYING) ||
	    identity_task_state(tr)->files)
		return;
	for (size_t i = 0; i < ids->n; i++) {
		struct token *t = &ids->v[i];

		if (t->tr == tr && t->jwt && !t->given)
			any = t->giving = true;
	}
	if (any && write_files(ids, tr) == 0)
		finish_giving(ids, tr);
}

void
task_tokens_runs(struct task_runner *tr)
{
	struct alloc_identities *ids = alloc_identities_of(tr->ar);

	if (!ids)
		return;
	task_tokens_give(ids, tr);
	/* If all tasks had ended before this one was restarted, no timer is set for renewals. */
	if (!sup_timer_is_set(&ids->timer) && !ids->asking)
		tokens_wake(ids, 1);
}

void
task_tokens_released(struct task_runner *tr)
{
	task_files_forget(steal_ptr(&identity_task_state(tr)->files));
}
