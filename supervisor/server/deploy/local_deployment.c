// SPDX-License-Identifier: Apache-2.0
/* local_deployment.c: deployments: their rows, and how they begin and end. Runs in: supervisor. */
#include "supervisor/server/deploy/local_deployment.h"

#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/id.h"
#include "common/mem.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/store.h"
#include "supervisor/server/deploy/local_rollout.h"
#include "supervisor/server/feed/local_changes.h"
#include "supervisor/server/feed/local_events.h"
#include "supervisor/server/job/local_allocs.h"
#include "supervisor/server/job/local_marks.h"
#include "supervisor/server/job/local_outdated.h"

#define KEPT_OF_JOB 6

struct local_deployments {
	struct local_map map;
};

void
local_deployments_init(struct local *l)
{
	l->deployments = mem_new(struct local_deployments);
}

struct local_deployment *
local_deployment_find(struct local *l, const char *id)
{
	return local_deployment_of(local_map_find(&l->deployments->map, id));
}

struct local_key **
local_deployments_sorted(const struct local *l, size_t *ret_n)
{
	return local_map_sorted(&l->deployments->map, ret_n);
}

struct local_deployment *
local_deployment_newest(const struct local_job *j)
{
	return SLIST_FIRST(&j->deployments);
}

struct local_deployment *
local_deployment_active(const struct local_job *j)
{
	struct local_deployment *dep = local_deployment_newest(j);

	return dep && deployment_is_active(&dep->d) ? dep : NULL;
}

static void
free_deployment(struct local_deployment *dep)
{
	sup_timer_cancel(&dep->deadline);
	deployment_done(&dep->d);
	free(dep);
}

static int
write_deployment(struct sup *sup, struct dirty *d, struct err *e)
{
	struct local_deployment *dep = container_of(d, struct local_deployment, row);
	struct text json = { 0 };
	int r;

	if (dep->gone)
		return STORE_EXEC(sup->store, STMT_DEPLOYMENT_DELETE, e, SV_TEXT(dep->d.id));
	model_to_text(&deployment_type, &dep->d, MODEL_COMPACT, &json);
	r = STORE_EXEC(sup->store, STMT_DEPLOYMENT_PUT, e, SV_TEXT(dep->d.id), SV_TEXT(json.text));
	text_done(&json);
	return r;
}

static void
on_deployment_written(struct sup *sup, struct dirty *d)
{
	struct local_deployment *dep = container_of(d, struct local_deployment, row);

	if (dep->gone)
		free_deployment(dep);
}

static const struct local_deployment *
deployment_of(const struct local_news *n)
{
	return container_of(n, struct local_deployment, news);
}

static void
get_head(struct local *l, const struct local_news *n, struct event_head *ret)
{
	const struct deployment *d = &deployment_of(n)->d;

	*ret = (struct event_head){ .topic = "Deployment",
		.type = "DeploymentStatusUpdate",
		.namespace = d->namespace,
		.keys = { d->id, d->job_id } };
}

static void
print_event(struct local *l, const struct local_news *n, struct text *t)
{
	cleanup_done(deployment) struct deployment view;

	local_deployment_view(deployment_of(n), &view);
	model_to_text(&deployment_type, &view, 0, t);
}

static const struct local_news_type deployment_news = { "Deployment", get_head, print_event };

void
local_deployment_changed(struct local *l, struct local_deployment *dep)
{
	dep->d.modify_index = local_index_next(l);
	dep->d.modify_time = clock_real_ns();
	turn_write(l->base.sup, &dep->row);
	local_job_touch(dep->job, dep->d.modify_index);
	local_changes_record(l, LOCAL_DEPLOYMENTS, dep->d.modify_index);
	local_changes_put(l, &dep->news, &deployment_news, dep->d.modify_index);
}

/* Adds dep as the newest deployment of the job. */
static void
insert_deployment(struct local *l, struct local_deployment *dep, struct local_job *j)
{
	local_map_add(&l->deployments->map, &dep->key, dep->d.id);
	dep->row.write = write_deployment;
	dep->row.point = CRASH_ROW_DEPLOYMENT;
	dep->row.written = on_deployment_written;
	dep->job = j;
	SLIST_INSERT_HEAD(&j->deployments, dep, older);
}

/* Deletes the row of dep, which was removed from its job. */
static void
delete_row(struct local *l, struct local_deployment *dep)
{
	local_map_remove(&l->deployments->map, &dep->key);
	local_changes_remove(l, &dep->news);
	sup_timer_cancel(&dep->deadline);
	dep->job = NULL;
	dep->gone = true;
	turn_write(l->base.sup, &dep->row);
}

/* Deletes the oldest deployments of a job that has at least one. */
static void
trim_deployments(struct local *l, struct local_job *j)
{
	struct local_deployment *last = local_deployment_newest(j), *dep;

	for (unsigned n = 1; n < KEPT_OF_JOB && SLIST_NEXT(last, older); n++)
		last = SLIST_NEXT(last, older);
	while ((dep = SLIST_NEXT(last, older))) {
		SLIST_REMOVE(&j->deployments, dep, local_deployment, older);
		delete_row(l, dep);
	}
}

void
local_deployments_forget(struct local *l, struct local_job *j)
{
	struct local_deployment *dep;

	while ((dep = local_deployment_newest(j))) {
		SLIST_REMOVE_HEAD(&j->deployments, older);
		delete_row(l, dep);
	}
}

static void
drop_deployment(struct local *l, struct local_key *key)
{
	struct local_deployment *dep = local_deployment_of(key);

	local_changes_remove(l, &dep->news);
	turn_forget_write(l->base.sup, &dep->row);
	free_deployment(dep);
}

void
local_deployments_free(struct local *l)
{
	local_map_done(&l->deployments->map, l, drop_deployment);
	free(l->deployments);
}

/* Returns how many allocs of the group the new version of the job replaces. */
static int64_t
count_outdated(const struct local_job *j, const struct job *job, const struct task_group *g)
{
	const struct local_group *now = local_group_find(j, g->name);
	int64_t n = 0;

	for (size_t i = 0; now && i < now->n_slots && (int64_t)i < g->count; i++) {
		const struct local_alloc *la = now->slots[i]->current;

		n += la && local_alloc_outdated(la->sa, job, g) == LOCAL_UPDATE_REPLACE;
	}
	return n;
}

static void
fill_group(struct deployment *d, const struct local_job *j, const struct job *job,
    const struct task_group *group)
{
	const struct update_strategy *u = group->update;
	struct deployment_group *g = map_put(deployment_group, &d->groups, group->name);

	g->auto_revert = u->auto_revert == OPT_TRUE;
	g->auto_promote = u->auto_promote == OPT_TRUE;
	g->progress_deadline = u->progress_deadline;
	g->desired_total = group->count;
	if (g->progress_deadline > 0)
		g->require_progress_by = d->create_time + g->progress_deadline;
	if (u->canary > 0 && count_outdated(j, job, group) > 0)
		g->desired_canaries = u->canary < group->count ? u->canary : group->count;
}

const char *
local_deployment_describe(const struct local_deployment *dep)
{
	bool some = false, all = true;

	for (size_t i = 0; i < dep->d.groups.n; i++) {
		const struct deployment_group *g = &dep->d.groups.v[i].value;

		some |= local_rollout_has_canaries(g);
		all &= !local_rollout_has_canaries(g) || g->auto_promote;
	}
	return !some ? "Deployment is running"
	       : all ? "Deployment is running pending automatic promotion"
		     : "Deployment is running but requires manual promotion";
}

static bool
is_deployed(const struct job *job, const struct task_group *g)
{
	return job->type == JOB_SERVICE && !job->stop && g->count > 0 && g->update &&
	       g->update->max_parallel > 0;
}

static void
fill_deployment(struct deployment *d, const struct local_job *j, const struct job *job)
{
	struct id id = id_random_uuid();
	char text[ID_UUID_SIZE];

	id_to_uuid(&id, text);
	d->job_version = job->version;
	d->job_create_index = job->create_index;
	d->job_modify_index = job->modify_index;
	/* Nomad's names: a deployment's JobSpecModifyIndex is its job's JobModifyIndex. */
	d->job_spec_modify_index = job->job_modify_index;
	d->eval_priority = job->priority;
	d->status = DEPLOYMENT_RUNNING;
	d->create_time = clock_real_ns();
	str_set(&d->id, text);
	str_set(&d->namespace, job->namespace);
	str_set(&d->job_id, job->id);
	for (size_t i = 0; i < job->task_groups.n; i++) {
		const struct task_group *g = &job->task_groups.v[i];

		if (is_deployed(job, g))
			fill_group(d, j, job, g);
	}
}

/* Begins the deployment of the wanted version, if one of its groups has an update block in effect.
 */
static void
begin_deployment(struct local *l, struct local_job *j)
{
	const struct job *job = local_job_wanted(j);
	struct local_deployment *dep;
	bool some = false;

	for (size_t i = 0; i < job->task_groups.n; i++)
		some |= is_deployed(job, &job->task_groups.v[i]);
	if (!some)
		return;
	dep = mem_new(struct local_deployment);
	deployment_init(&dep->d);
	fill_deployment(&dep->d, j, job);
	str_set(&dep->d.status_description, local_deployment_describe(dep));
	insert_deployment(l, dep, j);
	local_deployment_changed(l, dep);
	dep->d.create_index = dep->d.modify_index;
	trim_deployments(l, j);
	local_mark_deployment(l, j);
}

void
local_deployment_replace(struct local *l, struct local_job *j)
{
	struct local_deployment *before = local_deployment_active(j);

	if (before)
		local_deployment_finish(l, before, DEPLOYMENT_CANCELLED,
		    local_job_wanted(j)->stop ? "Cancelled because job is stopped"
					      : "Cancelled due to newer version of job");
	begin_deployment(l, j);
}

void
local_deployment_assign(const struct local_slot *slot, const struct job *job, struct alloc *a)
{
	struct local_deployment *dep = local_deployment_active(slot->job);

	if (dep && (dep->d.job_version != job->version ||
		       !map_get(deployment_group, &dep->d.groups, slot->group->name)))
		dep = NULL;
	deployment_status_free(a->deployment_status);
	a->deployment_status = NULL;
	str_set(&a->deployment_id, dep ? dep->d.id : NULL);
	if (!slot->canary)
		return;
	a->deployment_status = deployment_status_new();
	a->deployment_status->canary = true;
}

static void
count_alloc(struct deployment *d, const struct alloc *a)
{
	const struct deployment_status *s = a->deployment_status;
	struct deployment_group *g;

	if (!str_eq(a->deployment_id, d->id))
		return;
	g = map_get(deployment_group, &d->groups, a->task_group);
	if (!g)
		return;
	g->placed++;
	if (!s)
		return;
	g->healthy += s->healthy == OPT_TRUE;
	g->unhealthy += s->healthy == OPT_FALSE;
	if (s->healthy == OPT_TRUE && g->progress_deadline > 0 &&
	    s->timestamp + g->progress_deadline > g->require_progress_by)
		g->require_progress_by = s->timestamp + g->progress_deadline;
	if (s->canary)
		strings_add(&g->placed_canaries, a->id);
}

static void
count_allocs(const struct local_deployment *dep, struct deployment *d)
{
	const struct local_alloc *la;

	for (size_t i = 0; i < d->groups.n; i++) {
		struct deployment_group *g = &d->groups.v[i].value;

		g->placed = g->healthy = g->unhealthy = 0;
		if (local_rollout_has_canaries(g))
			strings_done(&g->placed_canaries);
	}
	LIST_FOREACH (la, &dep->job->allocs, of_job)
		count_alloc(d, &la->sa->a);
}

void
local_deployment_view(const struct local_deployment *dep, struct deployment *ret)
{
	deployment_copy(&dep->d, ret);
	if (deployment_is_active(ret))
		count_allocs(dep, ret);
}

void
local_deployment_finish(struct local *l, struct local_deployment *dep, enum deployment_state status,
    const char *description)
{
	count_allocs(dep, &dep->d);
	dep->d.status = status;
	str_set(&dep->d.status_description, description);
	sup_timer_cancel(&dep->deadline);
	local_deployment_changed(l, dep);
	journal_info(JOURNAL_JOB, ABOUT_JOB(dep->job),
	    "job %s: deployment %.8s of version %llu: %s", dep->job->name, dep->d.id,
	    (unsigned long long)dep->d.job_version, description);
}

static int
load_deployment(void *arg, const struct store_row *row, struct err *e)
{
	struct local *l = arg;
	const char *json = store_col_text(row, 0);
	struct local_deployment *dep = mem_new(struct local_deployment);
	struct local_job *j = NULL;
	struct err why = { 0 };

	deployment_init(&dep->d);
	if (model_from_text(&deployment_type, json, strlen(json), &dep->d, &why) < 0 || !dep->d.id)
		journal_error(
		    JOURNAL_STATE, NULL, "state.db: a deployment is ignored: %s", why.msg);
	else
		j = local_job_find_any(l, str(dep->d.namespace), str(dep->d.job_id));
	if (j)
		insert_deployment(l, dep, j);
	else
		free_deployment(dep);
	return 0;
}

int
local_deployments_load(struct local *l, struct err *e)
{
	return store_each(l->base.sup->store, STMT_DEPLOYMENT_ALL, NULL, 0, load_deployment, l, e);
}
