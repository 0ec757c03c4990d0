// SPDX-License-Identifier: Apache-2.0
/* alloc_runner.c: the life of one alloc on this node. Runs in: supervisor. */
#include "supervisor/alloc/alloc_runner.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>

#include "common/log.h"
#include "model/task_event.h"
#include "supervisor/alloc/alloc_identity.h"
#include "supervisor/core/changed.h"
#include "supervisor/service/checks.h"
#include "supervisor/core/sup_child.h"

static bool
all_dead(const struct alloc_runner *ar)
{
	for (unsigned i = 0; i < ar->n_tasks; i++)
		if (ar->tasks[i].phase != TASK_DEAD)
			return false;
	return true;
}

/* --- what is kept beside the alloc --- */

void
alloc_client_save(struct alloc_runner *ar)
{
	struct text t = { 0 };

	text_printf(&t, "{\"done\":%s,\"destroy\":%s,\"kill_after\":%lld,\"tasks\":{",
	    ar->phase >= ALLOC_DONE ? "true" : "false", ar->destroy ? "true" : "false",
	    (long long)ar->kill_after_ns);
	for (unsigned i = 0; i < ar->n_tasks; i++) {
		const struct task_runner *tr = &ar->tasks[i];

		if (i > 0)
			text_append(&t, ",", 1);
		text_json_string(&t, tr->task->name);
		text_printf(&t, ":{\"count\":%lld,\"started\":%lld}", (long long)tr->tracker.count,
		    (long long)tr->tracker.started_ns);
	}
	text_printf(&t, "},\"checks\":");
	checks_save(ar, &t);
	if (ar->identities) {
		text_append(&t, ",\"identities\":", 14);
		alloc_identities_save(ar->identities, &t);
	}
	text_append(&t, "}", 1);
	if (t.failed) {
		text_done(&t);
		return; /* restart counts begin anew after the next restart of the agent: no more
			   than that */
	}
	free(ar->sa->client_json);
	ar->sa->client_json = realloc(t.text, t.len + 1) ?: t.text; /* it stays for long */
	alloc_changed(ar->sup, ar->sa);
}

static int
client_load(struct alloc_runner *ar)
{
	json_t *all = ar->sa->client_json ? json_loads(ar->sa->client_json, 0, NULL) : NULL;
	json_t *tasks = json_object_get(all, "tasks");
	int r;

	if (json_is_true(json_object_get(all, "done")))
		ar->phase = ALLOC_DONE;
	ar->destroy = json_is_true(json_object_get(all, "destroy"));
	ar->stopping |= ar->destroy;
	ar->kill_after_ns = json_integer_value(json_object_get(all, "kill_after"));
	for (unsigned i = 0; i < ar->n_tasks; i++) {
		json_t *one = json_object_get(tasks, ar->tasks[i].task->name);

		if (!one)
			continue;
		ar->tasks[i].tracker.count = json_integer_value(json_object_get(one, "count"));
		ar->tasks[i].tracker.started_ns =
		    json_integer_value(json_object_get(one, "started"));
	}
	checks_restore(ar, json_incref(json_object_get(all, "checks")));
	r = alloc_identities_new(ar, json_object_get(all, "identities"), &ar->identities);
	json_decref(all);
	return r;
}

/* --- tasks --- */

/* Is there a sidecar that lives, and nothing else that does? */
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

/* A task that failed, the leader's end and that of all main tasks end the others (semantics.md
 * 1.4). */
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
	return ar->kill != KILL_NOT || ar->stopping || ar->disk_exceeded || end_siblings(ar);
}

/* Not even what comes after the others. */
static bool
nothing_starts(const struct alloc_runner *ar)
{
	return ar->lease_over || ar->overdue;
}

/* The tasks' end, where there is a reason for it; else their beginning. */
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
		    coordinator_opens(ar->coordinator, ar->tasks[i].stage) && !nothing_starts(ar));
	if (nothing_starts(ar))
		alloc_kill_poststop(ar);
}

/* It is lost once, and then for good. */
static void
note_lost(struct alloc *a)
{
	struct alloc_state_change *change = list_add(alloc_state_change, &a->alloc_states);

	if (!change || str_set(&change->value, client_status_names[CLIENT_LOST]) < 0)
		log_error("allocation %.8s: no memory to note that it is lost", a->id);
	if (change)
		change->time = task_now_ns();
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
	if (ar->overdue && a->client_status == CLIENT_COMPLETE)
		description = ALLOC_OVERDUE;
	(void)str_set(&a->client_description, description);
	a->modify_time = task_now_ns();
	alloc_changed(ar->sup, ar->sa);
	ar->news = true;
	turn_defer(ar->sup, &ar->step);
}

/* --- hooks --- */

static void
begin_postrun(struct alloc_runner *ar)
{
	ar->phase = ALLOC_POSTRUN;
	alloc_hooks_turn_back(ar);
}

/* It is to end, and what it began has tasks that come after that. */
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

static void
step_running(struct alloc_runner *ar)
{
	drive_tasks(ar);
	if (all_dead(ar))
		begin_postrun(ar);
}

static void
step_prerun(struct alloc_runner *ar)
{
	/* Also what the last supervisor had begun to end, before anything is heard of its runs: one
	 * that ended meanwhile would be restarted by its policy. */
	if (ar->failed || is_to_end(ar))
		alloc_kill(ar);
	if (ar->failed || (ar->stopping && (ar->overdue || !has_poststop(ar)))) {
		alloc_kill_poststop(ar);
		if (all_dead(ar))
			begin_postrun(ar);
	} else if (!alloc_hooks_prerun(ar)) {
		ar->phase = ALLOC_RUNNING;
		step_running(ar);
	}
}

static void
step_postrun(struct alloc_runner *ar)
{
	if (alloc_hooks_postrun(ar))
		return;
	ar->phase = ALLOC_DONE;
	ar->news = true;
	alloc_client_save(ar);
}

/* --- the end --- */

static void
step_done(struct alloc_runner *ar)
{
	if (!ar->destroy)
		return;
	ar->phase = ALLOC_DESTROYING;
	alloc_hooks_turn_back(ar);
}

static void
step_destroying(struct alloc_runner *ar)
{
	struct sup_alloc *sa = ar->sa;
	struct sup *sup = ar->sup;

	if (alloc_hooks_destroy(ar))
		return;
	ar->destroy = false; /* it is: should the source keep the rest, no start does it again */
	alloc_client_save(ar);
	sa->runner = NULL;
	alloc_runner_free(ar);
	sup->source->ops->alloc_destroyed(sup->source, sa);
}

/* One step at a time, each out of the queue of deferred work: no callback ever runs inside another.
 */
static void
advance(struct alloc_runner *ar)
{
	enum alloc_phase before = ar->phase;

	if (ar->hook_busy) {
		if (ar->phase == ALLOC_PRERUN && ar->stopping)
			alloc_hooks_stop(ar);
		return;
	}
	switch (ar->phase) {
	case ALLOC_PRERUN:
		step_prerun(ar);
		break;
	case ALLOC_RUNNING:
		step_running(ar);
		break;
	case ALLOC_POSTRUN:
		step_postrun(ar);
		break;
	case ALLOC_DONE:
		step_done(ar);
		break;
	case ALLOC_DESTROYING:
		step_destroying(ar);
		return;
	}
	/* A restored one runs already: its health can be judged from now on. */
	if (ar->phase != before && (ar->phase != ALLOC_RUNNING || ar->restored))
		turn_defer(ar->sup, &ar->step);
}

/* Not of each hook: nobody but this runner knows of those. */
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
	struct alloc_runner *ar =
	    (struct alloc_runner *)(void *)((char *)d - offsetof(struct alloc_runner, step));
	struct sup_alloc *sa = ar->sa;

	alloc_health_look(ar);
	tell_source(ar);
	if (sa->runner == ar && ar->checks_news) {
		ar->checks_news = false;
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

		if (!s || task_event_make(&ev, EVENT_RECEIVED, task_now_ns(), NULL) < 0)
			return -ENOMEM;
		s->state = TASK_STATE_PENDING;
		task_runner_event(&ar->tasks[i], &ev);
	}
	return 0;
}

static void
restore_disk(struct task_runner *tr)
{
	const struct task_state *s = task_runner_state(tr);

	for (size_t i = 0; s && i < s->events.n; i++) {
		if (!task_event_is(&s->events.v[i], EVENT_DISK_EXCEEDED))
			continue;
		tr->ar->disk_full = true;
		tr->ar->disk_exceeded |= s->events.v[i].fails_task;
	}
}

struct alloc_runner *
alloc_runner_new(struct sup *sup, struct sup_alloc *sa, bool restored)
{
	unsigned n = (unsigned)sa->group->tasks.n;
	struct alloc_runner *ar = calloc(1, sizeof *ar + n * sizeof ar->tasks[0]);

	if (!ar)
		return NULL;
	ar->sup = sup;
	ar->sa = sa;
	ar->n_tasks = n;
	ar->step.run = on_step;
	ar->restored = restored;
	ar->news = true;
	ar->overdue = restored && !alloc_client_terminal(&sa->a) && alloc_is_overdue(ar);
	ar->stopping = alloc_server_terminal(&sa->a) || ar->overdue;
	sa->runner = ar;
	for (unsigned i = 0; i < n; i++)
		task_runner_init(&ar->tasks[i], ar, &sa->group->tasks.v[i]);
	if (client_load(ar) < 0)
		goto fail;
	if (restored) {
		ar->coordinator = COORDINATOR_PRESTART;
		for (unsigned i = 0; i < n; i++) {
			restore_disk(&ar->tasks[i]);
			task_runner_restore(&ar->tasks[i]);
		}
		if (ar->phase != ALLOC_DONE && all_dead(ar))
			begin_postrun(ar);
	} else if (receive_tasks(ar) < 0) {
		goto fail;
	}
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
	child_call_cancel(ar->sup, ar->call);
	ar->retry = sd_event_source_disable_unref(ar->retry);
	ar->kill_timer = sd_event_source_disable_unref(ar->kill_timer);
	for (unsigned i = 0; i < ar->n_tasks; i++)
		task_runner_done(&ar->tasks[i]);
	alloc_hooks_shutdown(ar);
	free(ar->hook_failures);
	free(ar);
}

/* An update in place: what the tasks are run by is the new version's from now on. */
static void
take_version(struct alloc_runner *ar)
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

/* No shutdown_delay is to be waited for, also one that has begun. */
static void
hurry(struct alloc_runner *ar)
{
	alloc_kill_hurry(ar);
	for (unsigned i = 0; i < ar->n_tasks; i++)
		task_runner_hurry(&ar->tasks[i]);
}

/* What lives tells by its end; of what has ended nothing else would be said again. */
static void
tell_if_over(struct alloc_runner *ar)
{
	ar->news |= alloc_client_terminal(&ar->sa->a);
}

void
alloc_runner_update(struct alloc_runner *ar)
{
	take_version(ar);
	if (ar->sa->a.desired_transition.no_shutdown_delay == OPT_TRUE)
		hurry(ar);
	if (alloc_server_terminal(&ar->sa->a))
		alloc_runner_stop(ar);
	tell_if_over(ar);
	turn_defer(ar->sup, &ar->step); /* it may be of another deployment */
}

void
alloc_runner_stop(struct alloc_runner *ar)
{
	ar->stopping = true;
	tell_if_over(ar);
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

		if (tr->phase == TASK_DEAD || tr->stage == STAGE_POSTSTOP || tr->killed ||
		    task_event_disk_exceeded(&ev, task_now_ns(), text, limit_bytes) < 0)
			continue;
		if (fails)
			(void)task_event_set_fails(&ev);
		task_runner_event(tr, &ev);
	}
	if (fails)
		hurry(ar);
}

void
alloc_runner_run_gone(struct sup *sup, const struct id *alloc)
{
	struct sup_alloc *sa = alloc_find(sup, alloc);

	for (unsigned i = 0; sa && sa->runner && i < sa->runner->n_tasks; i++)
		task_runner_run_gone(&sa->runner->tasks[i]);
}
