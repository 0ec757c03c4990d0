// SPDX-License-Identifier: Apache-2.0
/*
 * local_deploy.c: takes the steps of active deployments: replaces the next allocs when the ones
 * before are healthy, promotes canaries, and fails a version that does not become healthy, after
 * which the last stable version may be registered again. Runs in: supervisor.
 */
#include "supervisor/server/drive/local_deploy.h"

#include <errno.h>
#include <stdio.h>
#include <systemd/sd-event.h>

#include "common/clock.h"
#include "common/log.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/server/deploy/local_rollout.h"
#include "supervisor/server/drive/local_register.h"
#include "supervisor/server/job/local_marks.h"
#include "supervisor/server/place/local_reconcile.h"

/* Registers the last stable version again. Returns whether it did; description says so, or why not.
 */
static bool
revert_job(struct local *l, struct local_job *j, const char *why, char *description, size_t size,
    int64_t *ret_version)
{
	const struct job *stable = local_job_stable(j);
	cleanup_done(job) struct job job;

	job_init(&job);
	if (!stable) {
		(void)snprintf(
		    description, size, "%s - no stable job version to auto revert to", why);
		return false;
	}
	*ret_version = (int64_t)stable->version;
	/* It would fail again, and be rolled back again, without end. */
	if (model_equal(&job_type, stable, local_job_wanted(j))) {
		(void)snprintf(description, size,
		    "%s - not rolling back to stable job version %lld as current job has same "
		    "specification",
		    why, (long long)*ret_version);
		return false;
	}
	job_copy(stable, &job);
	(void)local_job_change(l, &job, NULL);
	(void)snprintf(description, size, "%s - rolling back to job version %lld", why,
	    (long long)*ret_version);
	return true;
}

struct local_eval *
local_deploy_fail(struct local *l, struct local_deployment *dep, const char *why, bool wants_revert,
    int64_t *ret_version)
{
	struct local_job *j = dep->job;
	struct local_eval *ev;
	char description[256];
	bool reverted = false;

	local_deployment_finish(l, dep, DEPLOYMENT_FAILED, why);
	if (wants_revert) {
		reverted = revert_job(l, j, why, description, sizeof description, ret_version);
		str_set(&dep->d.status_description, description);
		log_info("job %s: %s", j->name, description);
	}
	ev = local_eval_new(l, j, "deployment-watcher");
	local_reconcile_job(l, j, ev, reverted);
	return ev;
}

static int64_t
deadline_of(const struct deployment_group *g, const struct local_progress *p)
{
	int64_t by = g->require_progress_by, after = p->last_healthy_ns;

	if (after && !__builtin_add_overflow(after, g->progress_deadline, &after) && after > by)
		by = after;
	return by;
}

static struct local_group_facts
get_group_facts(
    const struct local_deployment *dep, const char *name, const struct deployment_group *g)
{
	struct local_progress p;

	local_rollout_count(dep, name, g, &p);
	return (struct local_group_facts){
		.desired = g->desired_total,
		.desired_canaries = local_rollout_has_canaries(g) ? g->desired_canaries : 0,
		.healthy = p.done,
		.healthy_canaries = p.canaries,
		.hopeless = p.hopeless,
		.auto_promote = g->auto_promote,
		.auto_revert = g->auto_revert,
		.has_deadline = g->progress_deadline > 0,
		.deadline_ns = deadline_of(g, &p),
	};
}

static void on_deadline(void *arg);

static void
set_deadline(struct local *l, struct local_deployment *dep, int64_t at_ns)
{
	int64_t left = at_ns - clock_real_ns();

	if (at_ns == INT64_MAX)
		sup_timer_cancel(&dep->deadline);
	else
		sup_timer_set(l->base.sup, &dep->deadline, CLOCK_MONOTONIC,
		    left > 0 ? (uint64_t)left / 1000 + 1 : 0, on_deadline, dep);
}

static void
finish_successful(struct local *l, struct local_deployment *dep)
{
	local_job_set_stable(l, dep->job);
	local_deployment_finish(l, dep, DEPLOYMENT_SUCCESSFUL, "Deployment completed successfully");
}

static void
promote_all(struct local *l, struct local_deployment *dep)
{
	struct err e = { 0 };

	if (local_deploy_promote(l, dep, NULL, NULL, &e) < 0)
		log_error("job %s: %s", dep->job->name, e.msg);
}

static void
take_step(struct local *l, struct local_deployment *dep, const struct local_outlook *o)
{
	int64_t version;

	switch (local_rule_step(o)) {
	case LOCAL_STEP_SUCCEED:
		finish_successful(l, dep);
		return;
	case LOCAL_STEP_FAIL_UNHEALTHY:
		(void)local_deploy_fail(
		    l, dep, "Failed due to unhealthy allocations", o->revert, &version);
		return;
	case LOCAL_STEP_FAIL_LATE:
		(void)local_deploy_fail(
		    l, dep, "Failed due to progress deadline", o->revert, &version);
		return;
	case LOCAL_STEP_PROMOTE:
		promote_all(l, dep);
		break;
	case LOCAL_STEP_REPLACE:
		local_reconcile_job(l, dep->job, NULL, false);
		break;
	}
	set_deadline(l, dep, o->deadline_ns);
}

void
local_deploy_examine(struct local *l, struct local_job *j)
{
	struct local_deployment *dep = local_deployment_active(j);
	struct local_outlook o = LOCAL_OUTLOOK;
	int64_t now = clock_real_ns();

	if (!dep || dep->d.status != DEPLOYMENT_RUNNING)
		return;
	for (size_t i = 0; i < dep->d.groups.n; i++) {
		struct local_group_facts f =
		    get_group_facts(dep, dep->d.groups.v[i].key, &dep->d.groups.v[i].value);

		local_rule_add_group(&o, &f, now);
	}
	take_step(l, dep, &o);
}

static void
on_deadline(void *arg)
{
	struct local_deployment *dep = arg;

	local_mark_deployment(dep->job->l, dep->job);
}

/* A deadline that passed while the agent did not run starts again. */
static void
restart_deadline(struct local *l, struct local_deployment *dep)
{
	int64_t now = clock_real_ns();

	for (size_t i = 0; i < dep->d.groups.n; i++) {
		struct deployment_group *g = &dep->d.groups.v[i].value;

		if (g->progress_deadline <= 0 || g->require_progress_by > now)
			continue;
		g->require_progress_by = now + g->progress_deadline;
		turn_write(l->base.sup, &dep->row);
	}
}

void
local_deploy_resume(struct local *l, struct local_job *j)
{
	struct local_deployment *dep = local_deployment_active(j);

	if (!dep)
		return;
	restart_deadline(l, dep);
	local_mark_deployment(l, j);
}

static bool
is_selected(const struct strings *groups, const char *name)
{
	return !groups || strings_has(groups, name);
}

int
local_deploy_check(const struct local_deployment *dep, const struct strings *groups, struct err *e)
{
	bool some = false;

	for (size_t i = 0; i < dep->d.groups.n; i++) {
		const struct deployment_group *g = &dep->d.groups.v[i].value;
		struct local_progress p;

		if (!is_selected(groups, dep->d.groups.v[i].key) || !local_rollout_has_canaries(g))
			continue;
		local_rollout_count(dep, dep->d.groups.v[i].key, g, &p);
		if (p.canaries < g->desired_canaries)
			return err_say(e, -EBUSY,
			    "Task group \"%.140s\" has %lld/%lld healthy allocations",
			    dep->d.groups.v[i].key, (long long)p.canaries,
			    (long long)g->desired_canaries);
		some = true;
	}
	return some ? 0 : err_say(e, -EBUSY, "no canaries to promote");
}

static void
promote_group(
    struct local *l, struct local_deployment *dep, const char *name, struct deployment_group *g)
{
	const struct local_group *slots = local_group_find(dep->job, name);

	g->promoted = true;
	if (g->progress_deadline > 0)
		g->require_progress_by = clock_real_ns() + g->progress_deadline;
	for (int64_t i = 0; i < g->desired_canaries; i++)
		local_reconcile_promote(l, slots->slots[i], slots->canaries[i]);
}

int
local_deploy_promote(struct local *l, struct local_deployment *dep, const struct strings *groups,
    struct local_eval *ev, struct err *e)
{
	struct deployment view;
	int r = local_deploy_check(dep, groups, e);

	if (r < 0)
		return r;
	/* The allocs say which of them are canaries only until the promotion. */
	local_deployment_view(dep, &view);
	deployment_done(&dep->d);
	dep->d = view;
	dep->key.name = dep->d.id;
	for (size_t i = 0; i < dep->d.groups.n; i++) {
		struct deployment_group *g = &dep->d.groups.v[i].value;

		if (is_selected(groups, dep->d.groups.v[i].key) && local_rollout_has_canaries(g))
			promote_group(l, dep, dep->d.groups.v[i].key, g);
	}
	str_set(&dep->d.status_description, local_deployment_describe(dep));
	local_deployment_changed(l, dep);
	log_info("job %s: deployment %.8s is promoted", dep->job->name, dep->d.id);
	local_reconcile_job(l, dep->job, ev, false);
	local_mark_deployment(l, dep->job);
	return 0;
}

void
local_deploy_pause(struct local *l, struct local_deployment *dep, bool pause)
{
	dep->d.status = pause ? DEPLOYMENT_PAUSED : DEPLOYMENT_RUNNING;
	str_set(&dep->d.status_description,
	    pause ? "Deployment is paused" : local_deployment_describe(dep));
	for (size_t i = 0; i < dep->d.groups.n; i++) {
		struct deployment_group *g = &dep->d.groups.v[i].value;

		if (!pause && g->progress_deadline > 0)
			g->require_progress_by = clock_real_ns() + g->progress_deadline;
	}
	local_deployment_changed(l, dep);
	sup_timer_cancel(&dep->deadline);
	local_mark_deployment(l, dep->job);
}
