// SPDX-License-Identifier: Apache-2.0
/*
 * local_reconcile.c: makes the allocs of a job match its wanted version, slot by slot: local_slot.h
 * decides, this acts. Slots that do not fit are recorded in a blocked evaluation. When an alloc
 * changes, only its slot is examined, not the whole job. Runs in: supervisor.
 */
#include "supervisor/server/place/local_reconcile.h"

#include <systemd/sd-event.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "supervisor/alloc/client.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/server/deploy/local_rollout.h"
#include "supervisor/server/job/local_allocs.h"
#include "supervisor/server/job/local_marks.h"
#include "supervisor/server/job/local_reschedule.h"
#include "supervisor/server/place/local_facts.h"
#include "supervisor/server/place/local_fit.h"
#include "supervisor/server/place/local_place.h"
#include "supervisor/server/place/local_unplaced.h"

/* Removes a slot that waits under ev. Without waiting slots ev is complete, unless slots are
 * unplaced.
 */
static void
drop_waiter(struct local *l, struct local_eval *ev)
{
	if (--ev->n_waiting == 0 && ev->ev.status != EVAL_BLOCKED)
		local_eval_close(l, ev, EVAL_COMPLETE, NULL);
}

static void
forget_wait(struct local *l, struct local_slot *slot)
{
	struct local_eval *ev = slot->waits;

	slot->waits = NULL;
	if (ev)
		drop_waiter(l, ev);
}

static void
wait_for_end(struct local *l, struct local_slot *slot, struct local_eval *ev)
{
	struct local_eval *before = slot->waits;

	if (before == ev)
		return;
	slot->waits = ev;
	ev->n_waiting++;
	if (before)
		drop_waiter(l, before);
}

static void
on_reschedule(void *arg)
{
	struct local_slot *slot = arg;

	local_mark_slot(slot->job->l, slot);
}

static void
forget_reschedule(struct local_slot *slot)
{
	sup_timer_cancel(&slot->reschedule);
}

static void
reschedule_later(struct local *l, struct local_slot *slot, struct local_eval *ev)
{
	struct alloc *a = &slot->current->sa->a;
	int64_t at = local_reschedule_at(slot->current->sa), left = at - clock_real_ns();

	sup_timer_set(l->base.sup, &slot->reschedule, CLOCK_MONOTONIC,
	    left > 0 ? (uint64_t)left / 1000 + 1 : 0, on_reschedule, slot);
	wait_for_end(l, slot, ev);
	if (ev->ev.wait_until < at)
		ev->ev.wait_until = at;
	if (str_eq(a->followup_eval_id, ev->ev.id))
		return;
	str_set(&a->followup_eval_id, ev->ev.id);
	a->modify_index = local_index_next(l);
	alloc_changed(l->base.sup, slot->current->sa);
}

/* Stops an alloc that is being rescheduled. The row says so, so that the replacement counts this
 * attempt even if it is placed after a restart of the agent. */
static void
stop_rescheduled(struct local *l, struct local_alloc *la)
{
	la->sa->a.desired_transition.reschedule = OPT_TRUE;
	local_alloc_stop(l, la, "alloc was rescheduled because it failed");
}

/* Records in ev, which is followed by the blocked evaluation, why one slot of the group was not
 * placed. */
static void
add_failure(struct local_eval *ev, const char *group, const struct alloc_metric *m)
{
	struct alloc_metric *known = map_get(alloc_metric, &ev->ev.failed_tg_allocs, group);

	if (known)
		known->coalesced_failures++;
	else
		alloc_metric_copy(m, map_put(alloc_metric, &ev->ev.failed_tg_allocs, group));
	++*int_map_at(&ev->ev.queued_allocations, group);
}

bool
local_reconcile_place(struct local *l, struct local_slot *slot, struct local_eval *ev)
{
	cleanup_done(alloc_metric) struct alloc_metric m;
	struct job_ref *ref = local_facts_next_version(slot);
	struct local_beside beside = { .used = local_usage_now(l) };
	struct local_shortage shortage;
	struct local_eval *b;
	struct err e = { 0 };

	alloc_metric_init(&m);
	if (local_constraint_is_on_peers(&ref->job))
		beside.peers = local_peers_count(slot->job, slot->group->name);
	if (local_fit_check(l, &beside, &ref->job, slot->group->name, slot->index, &m, &shortage)) {
		if (local_place_alloc(l, slot, ref, ev->ev.id, &m, &e) < 0)
			journal_error(JOURNAL_JOB, ABOUT_JOB(slot->job),
			    "job %s: place %s[%lld]: %s", slot->job->name, slot->group->name,
			    (long long)slot->index, e.msg);
		local_unplaced_remove(l, slot);
		return true;
	}
	b = local_unplaced_block(l, slot->job, ev);
	slot->unplaced_version = ref->job.version;
	local_unplaced_add(l, slot, &shortage);
	if (b != ev)
		add_failure(ev, slot->group->name, &m);
	if (local_unplaced_set_reason(b, slot->group->name, &m))
		local_eval_changed(l, b);
	return false;
}

static void
update_in_place(struct local *l, struct local_alloc *la, struct local_eval *ev)
{
	struct sup_alloc *sa = la->sa;
	struct job_ref *old = sa->job, *new = local_job_wanted_ref(la->job);

	sa->job = job_ref_get(new);
	sa->group = job_group(&new->job, sa->a.task_group);
	if (!la->runs_by)
		la->runs_by = old;
	else
		job_ref_put(old);
	str_set(&sa->a.eval_id, ev->ev.id);
	local_deployment_assign(la->slot, &new->job, &sa->a);
	sa->a.modify_index = sa->a.alloc_modify_index = local_index_next(l);
	alloc_changed(l->base.sup, sa);
	client_alloc_update(l->base.sup, sa);
}

static void
act_on_slot(struct local *l, struct local_slot *slot, const struct local_slot_facts *f,
    enum local_slot_action action, struct local_eval *ev)
{
	struct local_slot_steps steps = local_slot_get_steps(f, action);
	struct local_alloc *la = slot->current;

	if (!steps.waits)
		forget_wait(l, slot);
	if (!steps.keeps_timer)
		forget_reschedule(slot);
	if (steps.counts_attempt)
		stop_rescheduled(l, la);
	if (!steps.keeps_unplaced)
		local_unplaced_remove(l, slot);
	if (steps.releases_alloc)
		local_alloc_retire(l, la);
	switch (action) {
	case LOCAL_SLOT_KEEP:
		break;
	case LOCAL_SLOT_STOP:
		local_alloc_stop(l, la,
		    local_job_wanted(slot->job)->stop ? "alloc not needed: its job was stopped"
						      : "alloc not needed due to job update");
		break;
	case LOCAL_SLOT_REPLACE:
		local_alloc_stop(l, la, "alloc is being updated due to job update");
		wait_for_end(l, slot, ev);
		break;
	case LOCAL_SLOT_WAIT:
		/* The row says that it is replaced, also after a restart of the agent. */
		local_alloc_stop_replaced(l, la);
		wait_for_end(l, slot, ev);
		break;
	case LOCAL_SLOT_LATER:
		reschedule_later(l, slot, ev);
		break;
	case LOCAL_SLOT_UPDATE:
		update_in_place(l, la, ev);
		break;
	case LOCAL_SLOT_PLACE:
		if (la)
			local_alloc_stop_replaced(l, la);
		(void)local_reconcile_place(l, slot, ev);
		break;
	}
}

static void
finish_eval(struct local *l, struct local_job *j, struct local_eval *ev)
{
	const struct local_deployment *dep = local_deployment_active(j);

	/* A client that waits for the evaluation follows this deployment next. */
	if (ev && dep)
		str_set(&ev->ev.deployment_id, dep->d.id);
	if (ev && ev != j->blocked && ev->n_waiting == 0) {
		local_eval_close(l, ev, EVAL_COMPLETE, NULL);
	} else if (ev && ev != j->blocked) {
		str_set(&ev->ev.status_description,
		    ev->ev.wait_until ? "waits until failed allocations may be rescheduled"
				      : "waits for allocations to end before they are replaced");
		local_eval_changed(l, ev);
	}
	local_unplaced_unblock(l, j);
	if (j->blocked)
		turn_write(l->base.sup, &j->blocked->row);
}

/* Returns the evaluation for an action that was not requested; NULL if it needs none. */
static struct local_eval *
choose_eval(struct local *l, struct local_slot *slot, const struct local_slot_facts *f,
    enum local_slot_action action)
{
	switch (local_slot_choose_eval(action, slot->waits != NULL, slot->job->blocked != NULL)) {
	case LOCAL_EVAL_NONE:
		return NULL;
	case LOCAL_EVAL_WAITING:
		return slot->waits;
	case LOCAL_EVAL_BLOCKED:
		return slot->job->blocked;
	case LOCAL_EVAL_NEW:
		break;
	}
	return local_eval_new(l, slot->job, f->stopped ? "alloc-stop" : "alloc-failure");
}

void
local_reconcile_slot(struct local *l, struct local_slot *slot, struct local_eval *ev)
{
	struct local_slot_facts f = local_facts_get(slot, local_job_wanted(slot->job), false);
	enum local_slot_action action = local_slot_decide(&f);

	if (!ev)
		ev = choose_eval(l, slot, &f, action);
	act_on_slot(l, slot, &f, action, ev);
	if (ev || slot->job->blocked)
		finish_eval(l, slot->job, ev);
	/* The end of this slot's alloc may permit another alloc of the job. */
	if (slot->job->n_unplaced > 0 && local_constraint_is_on_peers(local_job_wanted(slot->job)))
		local_mark_node(l);
}

/* Makes the slots for the counts of the wanted version, and those of its canaries. */
static void
make_slots(struct local_job *j)
{
	const struct job *wanted = local_job_wanted(j);
	const struct local_deployment *dep = local_deployment_active(j);

	for (size_t i = 0; i < wanted->task_groups.n && !job_is_parent(wanted); i++) {
		const struct task_group *g = &wanted->task_groups.v[i];
		const struct deployment_group *dg =
		    dep ? map_get(deployment_group, &dep->d.groups, g->name) : NULL;

		if (g->count > 0)
			(void)local_slot_get(j, g->name, g->count - 1);
		if (dg && dg->desired_canaries > 0)
			(void)local_canary_get(j, g->name, dg->desired_canaries - 1);
	}
}

static struct local_slot_state
get_state(const struct local_slot *slot)
{
	return (struct local_slot_state){
		.waits = slot->waits != NULL,
		.unplaced = slot->queue != NULL,
		.same_version = slot->queue && slot->unplaced_version ==
						   local_facts_next_version(slot)->job.version,
	};
}

/* One examination of a job. */
struct pass {
	struct local *l;
	struct local_job *j;
	struct local_eval *ev; /* made when it is needed */
	bool requested;        /* by an operator, with an evaluation */
	bool again;
};

static void
pass_slot(struct pass *p, struct local_slot *slot, int64_t *budget)
{
	struct local_slot_facts f = local_facts_get(slot, local_job_wanted(p->j), p->again);
	struct local_slot_state state = get_state(slot);
	enum local_slot_action action;

	local_slot_spend_budget(&f, budget);
	action = local_slot_decide(&f);
	if (!p->requested && local_slot_is_arranged(&state, action))
		return;
	if (!p->ev && local_slot_needs_eval(action))
		p->ev = local_eval_new(p->l, p->j,
		    local_deployment_active(p->j) ? "deployment-watcher" : "node-update");
	act_on_slot(p->l, slot, &f, action, p->ev);
}

void
local_reconcile_job(struct local *l, struct local_job *j, struct local_eval *ev, bool again)
{
	struct pass p = { .l = l, .j = j, .ev = ev, .requested = ev != NULL, .again = again };

	make_slots(j);
	for (size_t i = 0; i < j->n_groups; i++) {
		struct local_group *g = j->groups[i];
		int64_t budget = local_rollout_budget(j, g), none = 0;

		for (size_t k = 0; k < g->n_slots; k++)
			pass_slot(&p, g->slots[k], &budget);
		for (size_t k = 0; k < g->n_canaries; k++)
			pass_slot(&p, g->canaries[k], &none);
	}
	finish_eval(l, j, p.ev);
}

void
local_reconcile_promote(struct local *l, struct local_slot *slot, struct local_slot *canary)
{
	struct local_alloc *old = slot->current, *la = canary->current;

	forget_wait(l, slot);
	forget_reschedule(slot);
	local_unplaced_remove(l, slot);
	la->slot = slot;
	slot->current = la;
	canary->current = NULL;
	la->sa->a.deployment_status->canary = false;
	la->sa->a.modify_index = la->sa->a.alloc_modify_index = local_index_next(l);
	alloc_changed(l->base.sup, la->sa);
	client_alloc_update(l->base.sup, la->sa); /* canary_tags do not apply any more */
	if (!old)
		return;
	local_alloc_stop(l, old, "alloc not needed due to job update");
	str_set(&old->sa->a.next_allocation, la->sa->a.id);
	if (old->over)
		local_alloc_retire(l, old);
}

/* Resumes the newest pending and the newest blocked evaluation of the job, and cancels the others
 * that were open when the agent ended. */
static struct local_eval *
resume_evals(struct local *l, struct local_job *j)
{
	struct local_eval *pending = NULL, *ev;

	LIST_FOREACH (ev, &j->evals, of_job) {
		if (ev->ev.status == EVAL_PENDING && !pending) {
			pending = ev;
		} else if (ev->ev.status == EVAL_BLOCKED && !j->blocked) {
			j->blocked = ev;
			/* They are counted again by local_reconcile_job(). */
			for (size_t i = 0; i < ev->ev.queued_allocations.n; i++)
				ev->ev.queued_allocations.v[i].value = 0;
		} else {
			local_eval_close(l, ev, EVAL_CANCELLED, "superseded by a newer evaluation");
		}
	}
	return pending ? pending : j->blocked;
}

void
local_reconcile_resume(struct local *l, struct local_job *j)
{
	local_reconcile_job(l, j, resume_evals(l, j), false);
}
