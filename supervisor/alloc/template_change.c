// SPDX-License-Identifier: Apache-2.0
/*
 * template_change.c: gives new files to a running task, then applies change_mode: a restart, or
 * signals and scripts. Runs in: supervisor.
 *
 * A digest is saved when its change was applied: if the agent dies before, the next one writes the
 * file again and applies change_mode again, so that no change is lost.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/mem.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/alloc/task_events.h"
#include "supervisor/alloc/task_runner.h"
#include "supervisor/alloc/task_session.h"
#include "supervisor/alloc/task_templates.h"
#include "supervisor/alloc/template_file.h"
#include "supervisor/driver/session.h"
#include "supervisor/driver/signal_name.h"

/* Before another try; after a failure twice as long each time. */
#define AGAIN_USEC     1000000
#define AGAIN_MAX_USEC 60000000
#define ITEMS_AT_ONCE  16

enum step { STEP_WRITING, STEP_FAILED_WRITE, STEP_SPLAY, STEP_SCRIPTS };

struct template_change {
	struct task_templates *all;
	enum step step;
	struct task_files *files; /* of STEP_WRITING */
	struct sup_timer timer;   /* of the other steps */
	uint64_t wait_usec;       /* before the last try to write */
	uint64_t apply_at_ms;     /* the end of the splay, on clock_ms(); 0: it has not begun */
	struct sup_timer more;    /* the script has printed more */
	struct session *session;  /* of STEP_SCRIPTS */
	size_t script;            /* the template whose script runs */
};

static void begin_writing(struct template_change *c);
static void run_scripts(struct template_change *c);

static void
end_session(struct template_change *c)
{
	session_free(steal_ptr(&c->session));
	sup_timer_cancel(&c->timer);
	sup_timer_cancel(&c->more);
}

void
template_change_stop(struct task_templates *all)
{
	struct template_change *c = steal_ptr(&all->change);

	if (!c)
		return;
	task_files_forget(c->files);
	end_session(c);
	for (size_t i = 0; i < all->n; i++)
		all->v[i].giving = all->v[i].applying = false;
	free(c);
}

static bool
is_changed(const struct rendered *one)
{
	return one->output && strcmp(one->rendered, one->written) != 0;
}

static bool
any_changed(const struct task_templates *all)
{
	for (size_t i = 0; i < all->n; i++)
		if (is_changed(&all->v[i]))
			return true;
	return false;
}

static void
was_applied(struct rendered *one)
{
	one->applying = false;
	memcpy(one->applied, one->written, sizeof one->applied);
	alloc_save_soon(one->of->tr->ar);
}

/* Everything is applied; what has changed meanwhile is the next change. */
static void
end_change(struct template_change *c)
{
	struct task_templates *all = c->all;

	template_change_stop(all);
	template_change_begin(all);
}

/* --- change_mode --- */

static void
send_signals(struct task_templates *all)
{
	for (int signo = 1; signo < 65; signo++) {
		bool wanted = false;

		for (size_t i = 0; i < all->n; i++) {
			const struct task_template *t = template_of(&all->v[i]);

			if (!all->v[i].applying || t->change_mode != TEMPLATE_SIGNAL ||
			    signal_from_name(str(t->change_signal)) != signo)
				continue;
			wanted = true;
			was_applied(&all->v[i]);
		}
		if (wanted)
			(void)task_runner_signal(all->tr, signo, "Template re-rendered", NULL);
	}
}

static bool
is_applying(const struct task_templates *all, enum template_change_mode mode)
{
	for (size_t i = 0; i < all->n; i++)
		if (all->v[i].applying && template_of(&all->v[i])->change_mode == mode)
			return true;
	return false;
}

/* If one template wants a restart, there is no signal and no script: the next start has all files.
 */
static void
apply(void *arg)
{
	struct template_change *c = arg;
	struct task_templates *all = c->all;

	if (all->tr->phase != TASK_RUNNING) { /* the next start has the files */
		template_change_stop(all);
		return;
	}
	if (is_applying(all, TEMPLATE_RESTART) && task_runner_can_restart(all->tr)) {
		for (size_t i = 0; i < all->n; i++)
			all->v[i].applying = false;
		(void)task_runner_restart(
		    all->tr, "Template with change_mode restart re-rendered", false, 0);
		return; /* c is freed */
	}
	send_signals(all);
	c->step = STEP_SCRIPTS;
	c->script = 0;
	run_scripts(c);
}

/* --- scripts --- */

static void
tell_script(struct rendered *one, enum task_event_type type, const char *format, const char *end)
{
	const struct template_script *s = template_of(one)->change_script;
	char text[ERR_MSG_SIZE];

	(void)snprintf(text, sizeof text, format, str(s->command), end);
	task_runner_tell(one->of->tr, type, text, false);
}

static void
script_failed(struct template_change *c, const char *why)
{
	struct rendered *one = &c->all->v[c->script];
	const struct template_script *s = template_of(one)->change_script;

	was_applied(one);
	tell_script(
	    one, EVENT_HOOK_FAILED, "Template failed to run script %.200s on change: %s", why);
	if (s->fail_on_error)
		template_failed(one, why);
	run_scripts(c);
}

static void
script_ended(struct template_change *c)
{
	struct session *session = steal_ptr(&c->session);
	struct rendered *one = &c->all->v[c->script];
	int signo, code = session_exit_code(session, &signo);
	char text[64];

	session_free(session);
	sup_timer_cancel(&c->timer);
	sup_timer_cancel(&c->more);
	(void)snprintf(text, sizeof text, "Exit code: %d", code);
	if (code != 0) {
		script_failed(c, text);
		return;
	}
	was_applied(one);
	tell_script(one, EVENT_HOOK_MESSAGE, "Template successfully ran script %.200s. %s", text);
	run_scripts(c);
}

/* Reads the output of the script, and throws it away. */
static void
on_session(void *arg)
{
	struct template_change *c = arg;
	enum session_item item = SESSION_NOTHING;
	struct err e;
	char out[4096];
	size_t len;

	/* A script can print faster than this reads: other work comes in between. */
	for (unsigned i = 0; i < ITEMS_AT_ONCE; i++) {
		item = session_next(c->session, out, sizeof out, &len);
		if (item == SESSION_NOTHING || item == SESSION_EXITED || item == SESSION_FAILED)
			break;
	}
	if (item != SESSION_NOTHING && item != SESSION_EXITED && item != SESSION_FAILED) {
		sup_timer_set(c->all->tr->ar->sup, &c->more, CLOCK_MONOTONIC, 0, on_session, c);
	} else if (item == SESSION_EXITED) {
		script_ended(c);
	} else if (item == SESSION_FAILED) {
		e = *session_error(c->session);
		end_session(c);
		script_failed(c, e.msg);
	}
}

static void
on_script_late(void *arg)
{
	struct template_change *c = arg;

	end_session(c);
	script_failed(c, "it did not end within its timeout");
}

/* There are too many sessions, or the task's configuration is still being evaluated. */
static bool
is_for_now(const struct err *e)
{
	return e->code == -EBUSY || e->code == -EAGAIN;
}

static void
script_again(void *arg)
{
	run_scripts(arg);
}

static void
begin_script(struct template_change *c)
{
	struct task_templates *all = c->all;
	const struct template_script *s = template_of(&all->v[c->script])->change_script;
	cleanup_free char **command = mem_zeroed(s->args.n + 1, sizeof *command);
	struct err e = { 0 };

	command[0] = s->command;
	for (size_t i = 0; i < s->args.n; i++)
		command[i + 1] = s->args.v[i];
	c->session = task_exec(all->tr, command, s->args.n + 1, false, on_session, c, &e);
	if (c->session)
		sup_timer_set(all->tr->ar->sup, &c->timer, CLOCK_MONOTONIC,
		    (uint64_t)(s->timeout / 1000), on_script_late, c);
	else if (is_for_now(&e))
		sup_timer_set(
		    all->tr->ar->sup, &c->timer, CLOCK_MONOTONIC, AGAIN_USEC, script_again, c);
	else
		script_failed(c, e.msg);
}

/* One after the other. */
static void
run_scripts(struct template_change *c)
{
	struct task_templates *all = c->all;

	for (; c->script < all->n; c->script++)
		if (all->v[c->script].applying &&
		    template_of(&all->v[c->script])->change_mode == TEMPLATE_SCRIPT &&
		    template_of(&all->v[c->script])->change_script) {
			begin_script(c);
			return;
		}
	end_change(c);
}

/* --- files --- */

/* A random part of the longest splay, so that not all tasks of a cluster restart at once. */
static uint64_t
find_splay_ms(const struct task_templates *all)
{
	int64_t max = 0;

	for (size_t i = 0; i < all->n; i++)
		if (all->v[i].applying && template_of(&all->v[i])->splay > max)
			max = template_of(&all->v[i])->splay;
	return max > 0 ? (uint64_t)random() % (uint64_t)(max / NS_PER_MS + 1) : 0;
}

static void
begin_splay(struct template_change *c)
{
	bool any = false;

	for (size_t i = 0; i < c->all->n; i++)
		any |= c->all->v[i].applying;
	if (!any) {
		end_change(c);
		return;
	}
	if (c->apply_at_ms == 0)
		c->apply_at_ms = clock_ms() + find_splay_ms(c->all);
	/* An output that was rendered while files were written does not wait for the splay. */
	if (any_changed(c->all) && clock_ms() < c->apply_at_ms) {
		begin_writing(c);
		return;
	}
	c->step = STEP_SPLAY;
	sup_timer_set_at(
	    c->all->tr->ar->sup, &c->timer, CLOCK_MONOTONIC, c->apply_at_ms * 1000, apply, c);
}

static void
write_again(void *arg)
{
	begin_writing(arg);
}

static void
fail_writing(struct template_change *c, const struct err *e)
{
	char text[ERR_MSG_SIZE + 64];

	if (c->step != STEP_FAILED_WRITE && !is_for_now(e)) {
		(void)snprintf(text, sizeof text, "a new file could not be written: %s", e->msg);
		task_runner_tell(c->all->tr, EVENT_TEMPLATE, text, false);
		c->step = STEP_FAILED_WRITE;
	}
	c->wait_usec = is_for_now(e) ? AGAIN_USEC : 2 * c->wait_usec;
	if (c->wait_usec > AGAIN_MAX_USEC)
		c->wait_usec = AGAIN_MAX_USEC;
	sup_timer_set(
	    c->all->tr->ar->sup, &c->timer, CLOCK_MONOTONIC, c->wait_usec, write_again, c);
}

static void
on_written(struct sup *sup, void *arg, int r, const struct err *e)
{
	struct template_change *c = arg;

	c->files = NULL;
	if (r < 0) {
		fail_writing(c, e);
		return;
	}
	for (size_t i = 0; i < c->all->n; i++) {
		struct rendered *one = &c->all->v[i];

		if (!one->giving)
			continue;
		one->giving = false;
		memcpy(one->written, one->given, sizeof one->written);
		if (strcmp(one->written, one->rendered) == 0)
			template_release_output(one);
		one->applying = template_of(one)->change_mode != TEMPLATE_NOOP;
		if (!one->applying)
			was_applied(one);
	}
	begin_splay(c);
}

static void
begin_writing(struct template_change *c)
{
	struct task_templates *all = c->all;
	cleanup_free struct task_file *files = mem_zeroed(all->n, sizeof *files);
	cleanup_free char(*paths)[TASK_PATH_SIZE] = mem_zeroed(all->n, sizeof *paths);
	struct err e = { 0 };
	size_t n = 0;

	c->step = c->step == STEP_FAILED_WRITE ? c->step : STEP_WRITING;
	for (size_t i = 0; e.code == 0 && i < all->n; i++) {
		struct rendered *one = &all->v[i];

		one->giving = is_changed(one);
		if (!one->giving)
			continue;
		(void)template_file_make(one, paths[n], &files[n], &e);
		memcpy(one->given, one->rendered, sizeof one->given);
		/* From now on the file may have either output. The request is sent after this
		 * turn's commit, so a restarted agent knows that it does not know. */
		one->written[0] = one->applied[0] = '\0';
		alloc_save_soon(all->tr->ar);
		n++;
	}
	if (e.code == 0 && n == 0) {
		begin_splay(c);
		return;
	}
	if (e.code == 0)
		c->files = task_files_replace(all->tr, files, n, on_written, c, &e);
	if (e.code < 0)
		fail_writing(c, &e);
}

bool
template_runs_first(const struct rendered *one)
{
	const struct task_template *t = template_of(one);

	return t->change_mode == TEMPLATE_SCRIPT && t->change_script &&
	       t->change_script->run_on_first_render && !one->applied[0];
}

void
template_change_first(struct task_templates *all)
{
	bool any = false;

	for (size_t i = 0; i < all->n; i++) {
		/* A restarted agent does not know the file: it is written again first. */
		all->v[i].applying = all->v[i].written[0] && template_runs_first(&all->v[i]);
		any |= all->v[i].applying;
	}
	if (!any)
		return;
	all->change = mem_new(struct template_change);
	*all->change =
	    (struct template_change){ .all = all, .step = STEP_SCRIPTS, .wait_usec = AGAIN_USEC };
	run_scripts(all->change);
}

void
template_change_begin(struct task_templates *all)
{
	if (all->done || all->tr->phase != TASK_RUNNING || !any_changed(all))
		return;
	if (!all->change) {
		all->change = mem_new(struct template_change);
		*all->change = (struct template_change){ .all = all, .wait_usec = AGAIN_USEC };
	} else if (all->change->step == STEP_SPLAY) {
		sup_timer_cancel(&all->change->timer);
	} else {
		return; /* end_change() comes back */
	}
	begin_writing(all->change);
}
