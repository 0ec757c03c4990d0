// SPDX-License-Identifier: Apache-2.0
/* alloc_runner.c: the life of one alloc on this node. Runs in: supervisor. */
#include "supervisor/alloc/alloc_runner.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/list.h"
#include "common/mem.h"
#include "supervisor/alloc/alloc_hooks.h"
#include "supervisor/alloc/alloc_kill.h"
#include "supervisor/alloc/alloc_record.h"
#include "supervisor/alloc/task_events.h"
#include "supervisor/alloc/task_runner.h"
#include "supervisor/core/changed.h"
#include "supervisor/core/journal.h"
#include "supervisor/source/source.h"

static bool
all_dead(const struct alloc_runner *ar)
{
	for (unsigned i = 0; i < ar->n_tasks; i++)
		if (ar->tasks[i].phase != TASK_DEAD)
			return false;
	return true;
}

/* --- its record in state.db --- */

static void
save_record(struct alloc_runner *ar)
{
	cleanup_done(alloc_record) struct alloc_record rec;

	alloc_record_init(&rec);
	rec.done = ar->phase >= ALLOC_DONE;
	rec.destroy = ar->destroy && ar->phase < ALLOC_GONE;
	rec.kill_after_ns = ar->kill.after_ns;
	for (unsigned i = 0; i < ar->n_tasks; i++) {
		const struct task_runner *tr = &ar->tasks[i];

		*map_put(tracker_record, &rec.tasks, tr->task->name) = (struct tracker_record){
			.count = tr->tracker.count,
			.started_ns = tr->tracker.started_ns,
		};
	}
	alloc_hooks_save(ar, &rec);
	alloc_record_write(ar->sup, ar->sa, &rec);
}

static void
on_save(struct sup *sup, struct deferred *d)
{
	save_record(container_of(d, struct alloc_runner, save));
}

static void
restore_record(struct alloc_runner *ar, const struct alloc_record *rec)
{
	ar->destroy = rec->destroy;
	ar->stopping |= rec->destroy;
	ar->kill.after_ns = rec->kill_after_ns;
	for (unsigned i = 0; i < ar->n_tasks; i++) {
		const struct tracker_record *kept =
		    map_get(tracker_record, &rec->tasks, ar->tasks[i].task->name);

		if (!kept)
			continue;
		ar->tasks[i].tracker.count = kept->count;
		ar->tasks[i].tracker.started_ns = kept->started_ns;
	}
}

/* --- tasks --- */

/* At least one sidecar lives, and no other task except poststop tasks. */
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

/* The other tasks end if a task has failed, or if the leader or all main tasks have ended. Returns
 * whether that is so, and adds the event. */
static bool
end_siblings(struct alloc_runner *ar)
{
	const char *failed = NULL;
	bool leader = false;

	for (unsigned i = 0; i < ar->n_tasks; i++) {
		struct task_runner *tr = &ar->tasks[i];
		const struct task_state *s = task_runner_state(tr);

		if (tr->phase != TASK_DEAD || tr->stage == STAGE_POSTSTOP)
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
	return ar->kill.step != KILL_NOT || ar->stopping || ar->ends_at_once || end_siblings(ar);
}

/* Stops the tasks if they are to end, and opens the gates of those that may start. */
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

/* --- phases --- */

/* A task has started, and a poststop task has not ended: it is still to run. */
static bool
has_poststop(struct alloc_runner *ar)
{
	bool begun = false, some = false;

	for (unsigned i = 0; i < ar->n_tasks; i++) {
		begun |= task_runner_state(&ar->tasks[i])->started_at != 0;
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

/* Starts and stops tasks as the phase of the alloc requires. */
static void
act_on_tasks(struct alloc_runner *ar)
{
	switch (ar->phase) {
	case ALLOC_PRERUN:
		/* Continues a stop that the last supervisor began, before its runs report their
		 * end: a task that ended meanwhile would be restarted by its policy. */
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

/* A prerun has failed: all tasks fail. */
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
	journal_warn(JOURNAL_ALLOC, ABOUT_ALLOC(ar->sa), "allocation %.8s: %s", ar->sa->a.id, text);
	alloc_tell_tasks(ar, EVENT_HOOK_MESSAGE, text);
}

static struct histogram setup_times;

const struct histogram *
alloc_setup_times(void)
{
	return &setup_times;
}

/* The only place that writes the phase. */
static void
enter_phase(struct alloc_runner *ar, enum alloc_phase next)
{
	ar->phase = next;
	if (next == ALLOC_RUNNING && ar->made_ns)
		histogram_add(&setup_times, (clock_boot_ns() - ar->made_ns) / 1000);
	changed_mark(ar->sup, CHANGED_ALLOC_PHASE);
	alloc_hooks_begin(ar);
	if (next == ALLOC_ABANDONED && alloc_hooks_failed(ar)) {
		fail_setup(ar);
	} else if (next == ALLOC_DONE) {
		tell_postrun_failures(ar);
		ar->news = true;
		alloc_save_soon(ar);
	}
}

static void
free_destroyed(struct alloc_runner *ar)
{
	struct sup_alloc *sa = ar->sa;
	struct sup *sup = ar->sup;

	/* If the source keeps the row, the next supervisor does not destroy the alloc again. */
	save_record(ar);
	sa->runner = NULL;
	alloc_runner_free(ar);
	sup->source->ops->alloc_destroyed(sup->source, sa);
}

/* Does one step. It is called from the queue of deferred work, so that no callback runs inside
 * another. If the new phase starts or stops tasks, that happens in this step; everything else comes
 * with the next step, after the commit. */
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
	/* The tasks of a restored alloc run already, so its health can be checked now. */
	if (next != ALLOC_RUNNING || ar->restored)
		alloc_step_soon(ar);
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

	alloc_hooks_changed(ar);
	tell_source(ar);
	if (sa->runner == ar)
		advance(ar);
	changed_mark(sup, CHANGED_WORK);
}

static void
receive_tasks(struct alloc_runner *ar)
{
	for (unsigned i = 0; i < ar->n_tasks; i++) {
		task_runner_state(&ar->tasks[i])->state = TASK_STATE_PENDING;
		task_runner_tell(&ar->tasks[i], EVENT_RECEIVED, NULL, false);
	}
}

static void
restore_tasks(struct alloc_runner *ar, bool done)
{
	ar->coordinator = COORDINATOR_PRESTART;
	for (unsigned i = 0; i < ar->n_tasks; i++)
		task_runner_restore(&ar->tasks[i], done);
}

void
alloc_runner_new(struct sup *sup, struct sup_alloc *sa, bool restored)
{
	unsigned n = (unsigned)sa->group->tasks.n;
	struct alloc_runner *ar = mem_zeroed(1, sizeof *ar + n * sizeof ar->tasks[0]);
	cleanup_done(alloc_record) struct alloc_record rec;
	struct alloc_facts facts;

	ar->sup = sup;
	ar->sa = sa;
	ar->n_tasks = n;
	ar->step.run = on_step;
	ar->save.run = on_save;
	ar->restored = restored;
	ar->made_ns = restored ? 0 : clock_boot_ns();
	ar->news = true;
	ar->stopping = alloc_server_terminal(&sa->a);
	sa->runner = ar;
	for (unsigned i = 0; i < n; i++)
		task_runner_init(&ar->tasks[i], ar, &sa->group->tasks.v[i]);
	alloc_record_init(&rec);
	alloc_record_read(sa, &rec);
	restore_record(ar, &rec);
	alloc_hooks_new(ar, &rec);
	if (restored)
		restore_tasks(ar, rec.done);
	else
		receive_tasks(ar);
	facts = find_facts(ar);
	facts.was_done = rec.done;
	enter_phase(ar, alloc_phase_next(ar->phase, &facts));
	alloc_step_soon(ar);
}

void
alloc_runner_free(struct alloc_runner *ar)
{
	if (!ar)
		return;
	turn_forget_deferred(ar->sup, &ar->step);
	turn_forget_deferred(ar->sup, &ar->save);
	alloc_kill_done(ar);
	for (unsigned i = 0; i < ar->n_tasks; i++)
		task_runner_done(&ar->tasks[i]);
	alloc_hooks_free(ar);
	free(ar);
}

/* The job was updated in place: the tasks use its new version from now on. */
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

void
alloc_runner_update(struct alloc_runner *ar)
{
	adopt_version(ar);
	if (ar->sa->a.desired_transition.no_shutdown_delay == OPT_TRUE)
		alloc_kill_hurry(ar);
	if (alloc_server_terminal(&ar->sa->a))
		alloc_stop_soon(ar);
	alloc_report_end(ar);
	alloc_step_soon(ar); /* its deployment may have changed */
}

void
alloc_runner_destroy(struct alloc_runner *ar)
{
	if (!ar->destroy) {
		ar->destroy = true;
		alloc_save_soon(ar);
	}
	alloc_stop_soon(ar);
}

void
alloc_runner_run_gone(struct sup *sup, const struct id *alloc)
{
	struct sup_alloc *sa = alloc_find(sup, alloc);

	for (unsigned i = 0; sa && sa->runner && i < sa->runner->n_tasks; i++)
		task_runner_run_gone(&sa->runner->tasks[i]);
}
