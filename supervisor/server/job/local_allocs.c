// SPDX-License-Identifier: Apache-2.0
/* local_allocs.c: what the server knows of each alloc, from its placement to its removal.
 * Runs in: supervisor. */
#include <stdlib.h>

#include "common/clock.h"
#include "common/mem.h"
#include "supervisor/alloc/client.h"
#include "supervisor/core/journal.h"
#include "supervisor/server/capacity/local_cores.h"
#include "supervisor/server/capacity/local_ports.h"
#include "supervisor/server/feed/local_changes.h"
#include "supervisor/server/feed/local_events.h"
#include "supervisor/server/job/local_allocs.h"
#include "supervisor/server/job/local_marks.h"
#include "supervisor/server/job/local_reschedule.h"

struct local_allocs {
	TAILQ_HEAD(, local_alloc) done; /* oldest first */
	unsigned n_done;
};

void
local_allocs_init(struct local *l)
{
	l->allocs = mem_new(struct local_allocs);
	TAILQ_INIT(&l->allocs->done);
}

static const struct sup_alloc *
sa_of(const struct local_news *n)
{
	return container_of(n, struct local_alloc, news)->sa;
}

static void
get_head(struct local *l, const struct local_news *n, struct event_head *ret)
{
	const struct alloc *a = &sa_of(n)->a;

	*ret = (struct event_head){ .topic = "Allocation",
		.type =
		    a->alloc_modify_index == a->modify_index ? "PlanResult" : "AllocationUpdated",
		.namespace = a->namespace,
		.keys = { a->id, a->job_id, a->deployment_id } };
}

/* Prints the alloc without its job, which has events of its own, and without its tasks' tokens. */
static void
print_event(struct local *l, const struct local_news *n, struct text *t)
{
	struct alloc view = sa_of(n)->a;

	view.signed_identities = (struct string_map){ 0 };
	model_to_text(&alloc_type, &view, 0, t);
}

static const struct local_news_type alloc_news = { "Allocation", get_head, print_event };

void
local_alloc_changed(struct local *l, struct local_alloc *la)
{
	uint64_t index = la->sa->a.modify_index;

	if (la->news.index == index)
		return;
	local_job_touch(la->job, index);
	local_changes_record(l, LOCAL_ALLOCS, index);
	local_changes_put(l, &la->news, &alloc_news, index);
}

static void
reserve_resources(struct local *l, struct local_alloc *la)
{
	local_usage_add(&la->usage, la->sa->group);
	local_usage_reserve(l, &la->usage);
	local_cores_mark(l, &la->sa->a, true);
	local_ports_reserve(l, la->sa);
}

void
local_alloc_end(struct local *l, struct local_alloc *la)
{
	if (la->over)
		return;
	la->over = true;
	local_usage_release(l, &la->usage);
	local_cores_mark(l, &la->sa->a, false);
	local_ports_release(l, la->sa);
	local_mark_capacity(l);
}

static bool
is_canary(const struct alloc *a)
{
	return a->deployment_status && a->deployment_status->canary;
}

/* Returns true if a is the newer alloc of its slot. A promoted canary may be older than the alloc
 * that it replaced, which was stopped. */
static bool
is_newer(const struct alloc *a, const struct alloc *than)
{
	if (alloc_server_terminal(a) != alloc_server_terminal(than))
		return alloc_server_terminal(than);
	return a->create_index >= than->create_index;
}

struct local_alloc *
local_alloc_new(struct local *l, struct sup_alloc *sa, struct local_job *j)
{
	struct local_slot *slot = (is_canary(&sa->a) ? local_canary_get : local_slot_get)(
	    j, sa->a.task_group, alloc_name_index(sa->a.name));
	struct local_alloc *la;

	if (!slot)
		return NULL;
	la = mem_new(struct local_alloc);
	la->slot = slot;
	la->sa = sa;
	la->job = j;
	LIST_INSERT_HEAD(&j->allocs, la, of_job);
	if (!slot->current || is_newer(&sa->a, &slot->current->sa->a))
		slot->current = la;
	if (alloc_client_terminal(&sa->a))
		la->over = true;
	else
		reserve_resources(l, la);
	sa->source_data = la;
	return la;
}

static void
unlink_done(struct local *l, struct local_alloc *la)
{
	if (!la->done)
		return;
	TAILQ_REMOVE(&l->allocs->done, la, done_entry);
	la->done = false;
	l->allocs->n_done--;
}

static void
free_alloc(struct local *l, struct local_alloc *la)
{
	unlink_done(l, la);
	local_changes_remove(l, &la->news);
	LIST_REMOVE(la, of_job);
	if (la->slot->current == la)
		la->slot->current = NULL;
	job_ref_put(la->runs_by);
	la->sa->source_data = NULL;
	free(la);
}

void
local_allocs_free(struct local *l)
{
	alloc_foreach(l->base.sup, sa)
	{
		if (local_alloc_of(sa))
			free_alloc(l, local_alloc_of(sa));
	}
	free(l->allocs);
}

void
local_alloc_remove(struct local *l, struct local_alloc *la)
{
	uint64_t index = local_index_next(l);

	local_job_touch(la->job, index);
	local_changes_record(l, LOCAL_ALLOCS, index);
	free_alloc(l, la);
}

void
local_alloc_stop(struct local *l, struct local_alloc *la, const char *why)
{
	struct alloc *a = &la->sa->a;

	if (alloc_server_terminal(a))
		return;
	a->desired_status = DESIRED_STOP;
	str_set(&a->desired_description, why);
	a->modify_index = a->alloc_modify_index = local_index_next(l);
	a->modify_time = clock_real_ns();
	alloc_changed(l->base.sup, la->sa);
	client_alloc_update(l->base.sup, la->sa);
}

void
local_alloc_stop_replaced(struct local *l, struct local_alloc *la)
{
	local_alloc_stop(l, la,
	    la->sa->a.client_status == CLIENT_LOST ? "alloc is lost since its lease has ended"
						   : "alloc is being replaced");
}

void
local_alloc_skip_delay(struct local *l, struct local_alloc *la)
{
	struct alloc *a = &la->sa->a;

	if (a->desired_transition.no_shutdown_delay == OPT_TRUE || alloc_client_terminal(a))
		return;
	a->desired_transition.no_shutdown_delay = OPT_TRUE;
	a->modify_index = a->alloc_modify_index = local_index_next(l);
	alloc_changed(l->base.sup, la->sa);
	client_alloc_update(l->base.sup, la->sa);
}

static void
destroy_alloc(struct local *l, struct local_alloc *la)
{
	unlink_done(l, la);
	if (la->destroyed)
		return;
	la->destroyed = true;
	client_alloc_destroy(l->base.sup, la->sa);
}

void
local_alloc_retire(struct local *l, struct local_alloc *la)
{
	if (la->job->purge) {
		destroy_alloc(l, la);
		return;
	}
	if (la->done || la->destroyed)
		return;
	la->done = true;
	TAILQ_INSERT_TAIL(&l->allocs->done, la, done_entry);
	l->allocs->n_done++;
	if ((uint64_t)l->allocs->n_done > l->base.sup->config->gc_max_allocs)
		destroy_alloc(l, TAILQ_FIRST(&l->allocs->done));
}

void
local_allocs_forget(struct local *l, int64_t before_ns)
{
	struct local_alloc *la, *next;

	TAILQ_FOREACH_SAFE (la, &l->allocs->done, done_entry, next)
		if (la->n_claims == 0 && local_reschedule_failed_at(&la->sa->a) < before_ns)
			destroy_alloc(l, la);
}

/* An alloc that occupies its slot stays known, so that it is not placed again; only what is left of
 * it on the node is removed. */
bool
local_alloc_collect(struct source *s, struct sup_alloc *sa)
{
	struct local_alloc *la = local_alloc_of(sa);

	if (!la || la->destroyed || (la->collected && !la->done) || !client_alloc_ended(sa))
		return false;
	if (la->done) {
		destroy_alloc(local_of(s), la);
		return true;
	}
	la->collected = true;
	client_alloc_destroy(s->sup, sa);
	return true;
}

bool
local_alloc_collect_oldest(struct source *s)
{
	struct local_alloc *la;

	TAILQ_FOREACH (la, &local_of(s)->allocs->done, done_entry)
		if (local_alloc_collect(s, la->sa))
			return true;
	alloc_foreach(s->sup, sa)
	{
		if (local_alloc_collect(s, sa))
			return true;
	}
	return false;
}

void
local_allocs_retire(struct local *l, struct local_job *j)
{
	struct local_alloc *la, *next;

	LIST_FOREACH_SAFE (la, &j->allocs, of_job, next)
		if (la->over)
			local_alloc_retire(l, la);
}

int
local_allocs_load(struct local *l, struct err *e)
{
	struct sup *sup = l->base.sup;
	int r = alloc_table_load(sup, local_jobs_ref, e);

	if (r < 0)
		return r;
	alloc_foreach(sup, sa)
	{
		const struct job *job = &sa->job->job;
		struct local_job *j = local_job_find_any(l, job->namespace, job->id);

		if (j && local_alloc_new(l, sa, j))
			continue;
		journal_error(JOURNAL_STATE, ABOUT_ALLOC(sa),
		    "allocation %s is not one of job %s: it is ignored", sa->a.id, job->id);
	}
	return 0;
}
