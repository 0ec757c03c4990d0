// SPDX-License-Identifier: Apache-2.0
/* local_changes.c: at which index what was changed last, for whoever waits for it or follows it.
 * Runs in: supervisor. */
#include "supervisor/http/api_wait.h"
#include "supervisor/server/deploy/local_deployment.h"
#include "supervisor/server/feed/local_events.h"
#include "supervisor/server/claim/local_service.h"

static void
on_wake(struct sup *sup, struct deferred *d)
{
	api_wait_look(sup);
	local_event_streams_look();
}

/* Whoever knows an index of before the restart is told what there is now: the last changes before
 * it may have had indexes that no row has. */
void
local_changes_init(struct local *l)
{
	l->loaded_index = l->index;
	for (size_t i = 0; i < LOCAL_KINDS; i++)
		l->last_change[i] = l->index;
	l->wake.run = on_wake;
}

static void
note(struct local *l, enum local_kind kind, struct local_job *j, uint64_t index)
{
	if (l->last_change[kind] < index)
		l->last_change[kind] = index;
	if (j && j->index < index)
		j->index = index;
	turn_defer(l->base.sup, &l->wake);
}

void
local_alloc_changed(struct local *l, struct local_alloc *la)
{
	uint64_t index = la->sa->a.modify_index;

	if (la->news.index == index)
		return;
	note(l, LOCAL_ALLOCS, la->job, index);
	local_news_put(&l->news_list, &la->news, NEWS_ALLOC, index);
}

void
local_eval_told(struct local *l, struct local_eval *ev)
{
	note(l, LOCAL_EVALS, ev->job, ev->ev.modify_index);
	local_news_put(&l->news_list, &ev->news, NEWS_EVAL, ev->ev.modify_index);
}

void
local_deployment_told(struct local *l, struct local_deployment *dep)
{
	note(l, LOCAL_DEPLOYMENTS, dep->job, dep->d.modify_index);
	local_news_put(&l->news_list, &dep->news, NEWS_DEPLOYMENT, dep->d.modify_index);
}

void
local_job_changed(struct local *l, struct local_job *j, uint64_t index)
{
	note(l, LOCAL_JOBS, j, index);
	if (j->news.index < index)
		local_news_put(&l->news_list, &j->news, NEWS_JOB, index);
}

void
local_node_changed(struct local *l)
{
	note(l, LOCAL_NODES, NULL, local_index_next(l));
	local_news_put(&l->news_list, &l->news, NEWS_NODE, l->index);
}

void
local_service_changed(struct local *l, struct source_service *s)
{
	note(l, LOCAL_SERVICES, NULL, s->reg.modify_index);
	local_news_put(
	    &l->news_list, &local_service_of(s)->news, NEWS_SERVICE, s->reg.modify_index);
}

void
local_volumes_changed(struct local *l, uint64_t index)
{
	note(l, LOCAL_VOLUMES, NULL, index);
}

void
local_alloc_gone(struct local *l, struct local_alloc *la)
{
	note(l, LOCAL_ALLOCS, la->job, local_index_next(l));
}

void
local_job_gone(struct local *l, struct local_job *j)
{
	uint64_t index = j->news.index ? j->news.index : local_index_next(l);

	/* That it is purged was told; whoever has not been yet still is. */
	local_event_keep(l, NEWS_JOB, &j->news, "JobDeregistered", index);
	note(l, LOCAL_JOBS, NULL, index);
}

void
local_service_gone(struct local *l, struct source_service *s)
{
	uint64_t index = local_index_next(l);

	local_event_keep(
	    l, NEWS_SERVICE, &local_service_of(s)->news, "ServiceDeregistration", index);
	note(l, LOCAL_SERVICES, NULL, index);
}
