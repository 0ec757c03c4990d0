// SPDX-License-Identifier: Apache-2.0
/* alloc_runner.c: the life of one alloc on this node. Runs in: supervisor. */
#include "supervisor/alloc/alloc_runner.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>

#include "common/clock.h"
#include "common/list.h"
#include "common/log.h"
#include "model/task_event.h"
#include "supervisor/alloc/alloc_health.h"
#include "supervisor/alloc/hook_max_run.h"
#include "supervisor/core/changed.h"
#include "supervisor/core/sup_child.h"

static bool
all_dead(const struct alloc_runner *ar)
{
	for (unsigned i = 0; i < ar->n_tasks; i++)
		if (ar->tasks[i].phase != TASK_DEAD)
			return false;
	return true;
}

/* --- the JSON that is kept beside the alloc --- */

void
alloc_client_save(struct alloc_runner *ar)
{
	struct text t = { 0 };

	text_printf(&t, "{\"done\":%s,\"destroy\":%s,\"kill_after\":%lld,\"tasks\":{",
	    ar->phase >= ALLOC_DONE ? "true" : "false",
	    ar->destroy && ar->phase < ALLOC_GONE ? "true" : "false", (long long)ar->kill.after_ns);
	for (unsigned i = 0; i < ar->n_tasks; i++) {
		const struct task_runner *tr = &ar->tasks[i];

		if (i > 0)
			text_append(&t, ",", 1);
		text_json_string(&t, tr->task->name);
		text_printf(&t, ":{\"count\":%lld,\"started\":%lld}", (long long)tr->tracker.count,
		    (long long)tr->tracker.started_ns);
	}
	text_append(&t, "}", 1);
	alloc_hooks_save(ar, &t);
	text_append(&t, "}", 1);
	if (t.failed) {
		text_done(&t);
		return; /* costs no more than restart counts, should the agent restart now */
	}
	free(ar->sa->client_json);
	ar->sa->client_json = realloc(t.text, t.len + 1) ?: t.text; /* it is kept for long */
	alloc_changed(ar->sup, ar->sa);
}

/* *ret_done: the last supervisor had brought it to ALLOC_DONE. */
static int
client_load(struct alloc_runner *ar, bool *ret_done)
{
	json_t *all = ar->sa->client_json ? json_loads(ar->sa->client_json, 0, NULL) : NULL;
	json_t *tasks = json_object_get(all, "tasks");
	int r;

	*ret_done = json_is_true(json_object_get(all, "done"));
	ar->destroy = json_is_true(json_object_get(all, "destroy"));
	ar->stopping |= ar->destroy;
	ar->kill.after_ns = json_integer_value(json_object_get(all, "kill_after"));
	for (unsigned i = 0; i < ar->n_tasks; i++) {
		json_t *one = json_object_get(tasks, ar->tasks[i].task->name);

		if (!one)
			continue;
		ar->tasks[i].tracker.count = json_integer_value(json_object_get(one, "count"));
		ar->tasks[i].tracker.started_ns =
		    json_integer_value(json_object_get(one, "started"));
	}
	r = alloc_hooks_new(ar, all);
	json_decref(all);
	return r;
}

/* --- tasks --- */

/* At least one sidecar lives, and no other task but poststop ones. */
static bool
only_sidecars_live(struct alloc_runner *ar)
{
	bool some = false;

	for (unsigned i = 0; i < ar->n_tasks; i++) {
		const struct task_runner *tr = &ar->tasks[i];

		if (tr->phase == TASK_DEAD || tr->stage == STAGE_POSTSTOP)
			continue;
		if (tr->stage != STAGE_PRESTART_SIDECAR && tr->stage != STAGE_POSTSTART_SIDECAR)
			return false;
		some = true;
	}
	return some;
}

static void
tell_live(struct alloc_runner *ar, enum task_event_type type, const char *text)
{
	for (unsigned i = 0; i < ar->n_tasks; i++) {
		struct task_runner *tr = &ar->tasks[i];

		if (tr->phase != TASK_DEAD && tr->stage != STAGE_POSTSTOP && !tr->killed &&
		    !task_runner_has_event(tr, type))
			task_runner_tell(tr, type, text, false);
	}
}

/* A task that failed, the leader's end and that of all main tasks end the others. */
static bool
end_siblings(struct alloc_runner *ar)
{
	const char *failed = NULL;
	bool leader = false;

	for (unsigned i = 0; i < ar->n_tasks; i++) {
		struct task_runner *tr = &ar->tasks[i];
		const struct task_state *s = task_runner_state(tr);

		if (tr->phase != TASK_DEAD || tr->stage == STAGE_POSTSTOP || !s)
			continue;
		if (s->failed && !failed)
			failed = tr->task->name;
		leader |= !s->failed && tr->task->leader;
	}
	if (leader)
		tell_live(ar, EVENT_LEADER_DEAD, NULL);
	else if (failed)
		tell_live(ar, EVENT_SIBLING_FAILED, failed);
	else if (only_sidecars_live(ar))
		tell_live(ar, EVENT_MAIN_DEAD, NULL);
	else
		return false;
	return true;
}

static bool
is_to_end(struct alloc_runner *ar)
{
	return ar->kill.step != KILL_NOT || ar->stopping || ar->disk_exceeded || end_siblings(ar);
}

/* Ends the tasks where there is a reason to, and opens the gates of those that may start. */
static void
drive_tasks(struct alloc_runner *ar)
{
	struct stage_count stages[STAGES] = { 0 };

	if (is_to_end(ar))
		alloc_kill(ar);
	for (unsigned i = 0; i < ar->n_tasks; i++)
		task_runner_count(&ar->tasks[i], stages);
	ar->coordinator = coordinator_next(ar->coordinator, stages);
	for (unsigned i = 0; i < ar->n_tasks; i++)
		task_runner_set_gate(&ar->tasks[i],
		    coordinator_opens(ar->coordinator, ar->tasks[i].stage) && !ar->starts_nothing);
	if (ar->starts_nothing)
		alloc_kill_poststop(ar);
}

/* A lost alloc stays lost, so this is noted once. */
static void
note_lost(struct alloc *a)
{
	struct alloc_state_change *change = list_add(alloc_state_change, &a->alloc_states);

	if (!change || str_set(&change->value, client_status_names[CLIENT_LOST]) < 0)
		log_error("allocation %.8s: no memory to note that it is lost", a->id);
	if (change)
		change->time = clock_real_ns();
}

static enum client_status
find_status(struct alloc_runner *ar, const char **ret_description)
{
	const struct source_ops *ops = ar->sup->source->ops;
	struct alloc *a = &ar->sa->a;
	enum client_status now = alloc_client_status(a, ar->sa->group, ret_description);

	if (now != CLIENT_FAILED || !ops->is_lost || !ops->is_lost(a))
		return now;
	if (a->client_status != CLIENT_LOST && alloc_client_terminal(a))
		return now;
	if (a->client_status != CLIENT_LOST)
		note_lost(a);
	*ret_description = "Tasks were stopped: no heartbeat was answered in time";
	return CLIENT_LOST;
}

void
alloc_runner_task_changed(struct alloc_runner *ar)
{
	struct alloc *a = &ar->sa->a;
	const char *description;

	a->client_status = find_status(ar, &description);
	if (alloc_is_overdue(ar) && a->client_status == CLIENT_COMPLETE)
		description = ALLOC_OVERDUE;
	(void)str_set(&a->client_description, description);
	a->modify_time = clock_real_ns();
	alloc_changed(ar->sup, ar->sa);
	ar->news = true;
	turn_defer(ar->sup, &ar->step);
}

/* --- phases --- */

/* A task has started, so the poststop tasks are still to run. */
static bool
has_poststop(struct alloc_runner *ar)
{
	bool begun = false, some = false;

	for (unsigned i = 0; i < ar->n_tasks; i++) {
		const struct task_state *s = task_runner_state(&ar->tasks[i]);

		begun |= s && s->started_at != 0;
		some |= ar->tasks[i].stage == STAGE_POSTSTOP && ar->tasks[i].phase != TASK_DEAD;
	}
	return begun && some;
}

static struct alloc_facts
find_facts(struct alloc_runner *ar)
{
	return (struct alloc_facts){
		.restored = ar->restored,
		.hooks_left = alloc_hooks_left(ar),
		.hook_failed = alloc_hooks_failed(ar),
		.stopping = ar->stopping,
		.destroy = ar->destroy,
		.starts_nothing = ar->starts_nothing,
		.poststop_left = has_poststop(ar),
		.tasks_dead = all_dead(ar),
	};
}

/* What the tasks of an alloc in this phase are to do now. */
static void
act_on_tasks(struct alloc_runner *ar)
{
	switch (ar->phase) {
	case ALLOC_PRERUN:
		/* Also a stop that the last supervisor began, and before its runs report: a run
		 * that ended meanwhile would be restarted by its policy. */
		if (!alloc_hooks_failed(ar) && is_to_end(ar))
			alloc_kill(ar);
		break;
	case ALLOC_RUNNING:
		drive_tasks(ar);
		break;
	case ALLOC_ABANDONED:
		alloc_kill(ar);
		alloc_kill_poststop(ar);
		break;
	default:
		break;
	}
}

/* A prerun hook has failed: so do all tasks. */
static void
fail_setup(struct alloc_runner *ar)
{
	cleanup_free char *why = alloc_hooks_take_failures(ar);
	char text[ERR_MSG_SIZE + 64];

	(void)snprintf(text, sizeof text, "pre-run hook %s", why ? why : "failed");
	for (unsigned i = 0; i < ar->n_tasks; i++)
		task_runner_fail_setup(&ar->tasks[i], text);
}

static void
tell_postrun_failures(struct alloc_runner *ar)
{
	cleanup_free char *why = alloc_hooks_take_failures(ar);
	char text[1024];

	if (!why)
		return;
	(void)snprintf(text, sizeof text, "post-run hooks failed: %s", why);
	log_warn("allocation %.8s: %s", ar->sa->a.id, text);
	for (unsigned i = 0; i < ar->n_tasks; i++)
		task_runner_tell(&ar->tasks[i], EVENT_HOOK_MESSAGE, text, false);
}

/* The only place that writes the phase. */
static void
enter_phase(struct alloc_runner *ar, enum alloc_phase next)
{
	ar->phase = next;
	changed_mark(ar->sup, CHANGED_ALLOC_PHASE);
	alloc_hooks_begin(ar);
	if (next == ALLOC_ABANDONED && alloc_hooks_failed(ar)) {
		fail_setup(ar);
	} else if (next == ALLOC_DONE) {
		tell_postrun_failures(ar);
		ar->news = true;
		alloc_client_save(ar);
	}
}

static void
free_destroyed(struct alloc_runner *ar)
{
	struct sup_alloc *sa = ar->sa;
	struct sup *sup = ar->sup;

	/* A restart does not destroy it again if the source keeps the rest. */
	alloc_client_save(ar);
	sa->runner = NULL;
	alloc_runner_free(ar);
	sup->source->ops->alloc_destroyed(sup->source, sa);
}

/* Goes one step, from the queue of deferred work: no callback runs inside another. Tasks are driven
 * at once in a phase that does so; for anything else the next step comes after the commit. */
static void
advance(struct alloc_runner *ar)
{
	struct alloc_facts facts;
	enum alloc_phase next;

	if (alloc_hooks_busy(ar)) {
		if (ar->phase == ALLOC_PRERUN && ar->stopping)
			alloc_hooks_stop(ar);
		return;
	}
	act_on_tasks(ar);
	facts = find_facts(ar);
	next = alloc_phase_next(ar->phase, &facts);
	if (next == ar->phase) {
		alloc_hooks_call(ar);
		return;
	}
	enter_phase(ar, next);
	if (next == ALLOC_GONE) {
		free_destroyed(ar);
		return;
	}
	if (next == ALLOC_RUNNING || next == ALLOC_ABANDONED)
		advance(ar);
	/* The tasks of a restored alloc run already: its health can be judged from now on. */
	if (next != ALLOC_RUNNING || ar->restored)
		turn_defer(ar->sup, &ar->step);
}

static void
tell_source(struct alloc_runner *ar)
{
	struct source *source = ar->sup->source;

	if (!ar->news)
		return;
	ar->news = false;
	source->ops->alloc_updated(source, ar->sa);
}

static void
on_step(struct sup *sup, struct deferred *d)
{
	struct alloc_runner *ar = container_of(d, struct alloc_runner, step);
	struct sup_alloc *sa = ar->sa;

	alloc_health_check(ar);
	tell_source(ar);
	if (sa->runner == ar && ar->unsaved) {
		ar->unsaved = false;
		alloc_client_save(ar);
	}
	if (sa->runner == ar)
		advance(ar);
	changed_mark(sup, CHANGED_WORK);
}

static int
receive_tasks(struct alloc_runner *ar)
{
	for (unsigned i = 0; i < ar->n_tasks; i++) {
		struct task_state *s = task_runner_state(&ar->tasks[i]);
		struct task_event ev;

		if (!s)
			return -ENOMEM;
		task_event_make(&ev, EVENT_RECEIVED, clock_real_ns(), NULL);
		s->state = TASK_STATE_PENDING;
		task_runner_event(&ar->tasks[i], &ev);
	}
	return 0;
}

struct alloc_runner *
alloc_runner_new(struct sup *sup, struct sup_alloc *sa, bool restored)
{
	unsigned n = (unsigned)sa->group->tasks.n;
	struct alloc_runner *ar = calloc(1, sizeof *ar + n * sizeof ar->tasks[0]);
	struct alloc_facts facts;
	bool done;

	if (!ar)
		return NULL;
	ar->sup = sup;
	ar->sa = sa;
	ar->n_tasks = n;
	ar->step.run = on_step;
	ar->restored = restored;
	ar->news = true;
	ar->stopping = alloc_server_terminal(&sa->a);
	sa->runner = ar;
	for (unsigned i = 0; i < n; i++)
		task_runner_init(&ar->tasks[i], ar, &sa->group->tasks.v[i]);
	if (client_load(ar, &done) < 0)
		goto fail;
	if (restored) {
		ar->coordinator = COORDINATOR_PRESTART;
		for (unsigned i = 0; i < n; i++)
			task_runner_restore(&ar->tasks[i], done);
	} else if (receive_tasks(ar) < 0) {
		goto fail;
	}
	facts = find_facts(ar);
	facts.was_done = done;
	enter_phase(ar, alloc_phase_next(ar->phase, &facts));
	turn_defer(sup, &ar->step);
	return ar;

fail:
	alloc_runner_free(ar);
	sa->runner = NULL;
	return NULL;
}

void
alloc_runner_free(struct alloc_runner *ar)
{
	if (!ar)
		return;
	turn_forget_deferred(ar->sup, &ar->step);
	alloc_kill_done(ar);
	for (unsigned i = 0; i < ar->n_tasks; i++)
		task_runner_done(&ar->tasks[i]);
	alloc_hooks_free(ar);
	free(ar);
}

/* An update in place: the tasks follow the new version from now on. */
static void
adopt_version(struct alloc_runner *ar)
{
	for (unsigned i = 0; i < ar->n_tasks; i++) {
		struct task_runner *tr = &ar->tasks[i];
		const struct task *task = alloc_task(ar->sa, tr->task->name);

		if (task && task != tr->task)
			task_runner_update(tr, task);
	}
	if (!alloc_server_terminal(&ar->sa->a))
		alloc_hooks_update(ar);
}

/* Ends every shutdown_delay, also one that has begun. */
static void
skip_delays(struct alloc_runner *ar)
{
	alloc_kill_hurry(ar);
	for (unsigned i = 0; i < ar->n_tasks; i++)
		task_runner_hurry(&ar->tasks[i]);
}

/* An alloc that has ended makes no more news by itself: the source is told once more. */
static void
report_if_over(struct alloc_runner *ar)
{
	ar->news |= alloc_client_terminal(&ar->sa->a);
}

void
alloc_runner_update(struct alloc_runner *ar)
{
	adopt_version(ar);
	if (ar->sa->a.desired_transition.no_shutdown_delay == OPT_TRUE)
		skip_delays(ar);
	if (alloc_server_terminal(&ar->sa->a))
		alloc_runner_stop(ar);
	report_if_over(ar);
	turn_defer(ar->sup, &ar->step); /* the alloc may belong to another deployment now */
}

void
alloc_runner_stop(struct alloc_runner *ar)
{
	ar->stopping = true;
	report_if_over(ar);
	turn_defer(ar->sup, &ar->step);
}

void
alloc_runner_destroy(struct alloc_runner *ar)
{
	if (!ar->destroy) {
		ar->destroy = true;
		alloc_client_save(ar);
	}
	alloc_runner_stop(ar);
}

void
alloc_runner_disk_exceeded(
    struct alloc_runner *ar, const char *text, int64_t limit_bytes, bool fails)
{
	ar->disk_exceeded = fails;
	for (unsigned i = 0; i < ar->n_tasks; i++) {
		struct task_runner *tr = &ar->tasks[i];
		struct task_event ev;

		if (tr->phase == TASK_DEAD || tr->stage == STAGE_POSTSTOP || tr->killed)
			continue;
		task_event_disk_exceeded(&ev, clock_real_ns(), text, limit_bytes);
		if (fails)
			task_event_set_fails(&ev);
		task_runner_event(tr, &ev);
	}
	if (fails)
		skip_delays(ar);
}

void
alloc_runner_run_gone(struct sup *sup, const struct id *alloc)
{
	struct sup_alloc *sa = alloc_find(sup, alloc);

	for (unsigned i = 0; sa && sa->runner && i < sa->runner->n_tasks; i++)
		task_runner_run_gone(&sa->runner->tasks[i]);
}
