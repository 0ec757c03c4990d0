// SPDX-License-Identifier: Apache-2.0
/* local_allocs.c: what the local source knows of each alloc, from its placement to its removal.
 * Runs in: supervisor. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "supervisor/server/deploy/local_deployment.h"
#include "supervisor/server/place/local_reschedule.h"

static void
take_resources(struct local *l, struct local_alloc *la)
{
	local_room_add(&la->room, la->sa->group);
	l->used.cpu += la->room.cpu;
	l->used.memory_mb += la->room.memory_mb;
	l->used.cores += la->room.cores;
	l->used.disk_mb += la->room.disk_mb;
	local_cores_mark(l, &la->sa->a, true);
	local_ports_take(l, la);
}

static void
give_back_resources(struct local *l, struct local_alloc *la)
{
	if (la->over)
		return;
	la->over = true;
	l->used.cpu -= la->room.cpu;
	l->used.memory_mb -= la->room.memory_mb;
	l->used.cores -= la->room.cores;
	l->used.disk_mb -= la->room.disk_mb;
	local_cores_mark(l, &la->sa->a, false);
	local_ports_give_back(l, la);
	local_mark_capacity(l);
}

static bool
is_canary(const struct alloc *a)
{
	return a->deployment_status && a->deployment_status->canary;
}

/* A canary that was promoted may be older than what it took the place of. */
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
	struct local_alloc *la = calloc(1, sizeof *la);

	if (!la)
		return NULL;
	la->slot = (is_canary(&sa->a) ? local_canary_get : local_slot_get)(
	    j, sa->a.task_group, alloc_name_index(sa->a.name));
	if (!la->slot) {
		free(la);
		return NULL;
	}
	la->sa = sa;
	la->job = j;
	la->next = j->allocs;
	if (la->next)
		la->next->prev = la;
	j->allocs = la;
	if (!la->slot->current || is_newer(&sa->a, &la->slot->current->sa->a))
		la->slot->current = la;
	if (alloc_client_terminal(&sa->a))
		la->over = true;
	else
		take_resources(l, la);
	sa->source_data = la;
	return la;
}

static void
unlink_done(struct local *l, struct local_alloc *la)
{
	if (!la->done)
		return;
	*(la->prev_done ? &la->prev_done->next_done : &l->first_done) = la->next_done;
	*(la->next_done ? &la->next_done->prev_done : &l->last_done) = la->prev_done;
	la->done = false;
	l->n_done--;
}

void
local_alloc_free(struct local *l, struct local_alloc *la)
{
	unlink_done(l, la);
	local_news_remove(&l->news_list, &la->news);
	*(la->prev ? &la->prev->next : &la->job->allocs) = la->next;
	if (la->next)
		la->next->prev = la->prev;
	if (la->slot->current == la)
		la->slot->current = NULL;
	job_ref_put(la->runs_by);
	la->sa->source_data = NULL;
	free(la);
}

void
local_alloc_stop(struct local *l, struct local_alloc *la, const char *why)
{
	struct alloc *a = &la->sa->a;

	if (alloc_server_terminal(a))
		return;
	a->desired_status = DESIRED_STOP;
	(void)str_set(&a->desired_description, why);
	a->modify_index = a->alloc_modify_index = local_index_next(l);
	a->modify_time = local_now_ns();
	alloc_changed(l->base.sup, la->sa);
	client_alloc_update(l->base.sup, la->sa);
}

void
local_alloc_succeeded(struct local *l, struct local_alloc *la)
{
	local_alloc_stop(l, la,
	    la->sa->a.client_status == CLIENT_LOST ? "alloc is lost since its lease has ended"
						   : "alloc is being replaced");
}

void
local_alloc_hurry(struct local *l, struct local_alloc *la)
{
	struct alloc *a = &la->sa->a;

	if (a->desired_transition.no_shutdown_delay == OPT_TRUE || alloc_client_terminal(a))
		return;
	a->desired_transition.no_shutdown_delay = OPT_TRUE;
	a->modify_index = a->alloc_modify_index = local_index_next(l);
	alloc_changed(l->base.sup, la->sa);
	client_alloc_update(l->base.sup, la->sa);
}

/* By its executor, or kept from starting after a restart (alloc/hook_lease.c). */
static bool
is_lease_event(const struct task_event *ev)
{
	return string_map_get(&ev->details, EVENT_DETAIL_LEASE) ||
	       strstr(str(ev->setup_error), "hook \"heartbeat_stop\"");
}

bool
local_alloc_stopped_by_lease(const struct alloc *a)
{
	for (size_t i = 0; i < a->task_states.n; i++) {
		const struct task_state *s = &a->task_states.v[i].value;

		for (size_t k = 0; k < s->events.n; k++) {
			if (is_lease_event(&s->events.v[k]))
				return true;
		}
	}
	return false;
}

static void
destroy(struct local *l, struct local_alloc *la)
{
	unlink_done(l, la);
	if (la->destroyed)
		return;
	la->destroyed = true;
	client_alloc_destroy(l->base.sup, la->sa);
}

void
local_alloc_done(struct local *l, struct local_alloc *la)
{
	if (la->job->purge) {
		destroy(l, la);
		return;
	}
	if (la->done || la->destroyed)
		return;
	la->done = true;
	la->prev_done = l->last_done;
	la->next_done = NULL;
	*(l->last_done ? &l->last_done->next_done : &l->first_done) = la;
	l->last_done = la;
	l->n_done++;
	if ((uint64_t)l->n_done > l->base.sup->config->gc_max_allocs)
		destroy(l, l->first_done);
}

void
local_allocs_forget(struct local *l, int64_t before_ns)
{
	for (struct local_alloc *la = l->first_done, *next; la; la = next) {
		next = la->next_done;
		if (la->n_claims == 0 && local_reschedule_failed_at(&la->sa->a) < before_ns)
			destroy(l, la);
	}
}

/* One that stands for its slot is known on, so that it is not placed anew; nothing else is left of
 * it. */
bool
local_alloc_collect(struct source *s, struct sup_alloc *sa)
{
	struct local_alloc *la = local_alloc_of(sa);

	if (!la || la->destroyed || (la->collected && !la->done) || !client_alloc_ended(sa))
		return false;
	if (la->done) {
		destroy(local_of(s), la);
		return true;
	}
	la->collected = true;
	client_alloc_destroy(s->sup, sa);
	return true;
}

bool
local_alloc_collect_oldest(struct source *s)
{
	for (struct local_alloc *la = local_of(s)->first_done; la; la = la->next_done)
		if (local_alloc_collect(s, la->sa))
			return true;
	alloc_foreach(s->sup, sa)
	{
		if (local_alloc_collect(s, sa))
			return true;
	}
	return false;
}

/* To its deployment. */
static bool
is_news(const struct alloc *a)
{
	return *str(a->deployment_id) &&
	       (alloc_client_terminal(a) ||
		   (a->deployment_status && a->deployment_status->healthy != OPT_UNSET));
}

void
local_alloc_written(struct source *s, struct sup_alloc *sa)
{
	struct local_alloc *la = local_alloc_of(sa);

	if (la)
		local_alloc_changed(local_of(s), la);
}

void
local_alloc_updated(struct source *s, struct sup_alloc *sa)
{
	struct local *l = local_of(s);
	struct local_alloc *la = local_alloc_of(sa);

	if (!la || la->destroyed)
		return;
	/* The client has written the row of what it changed: the index alone is not worth another
	 * commit. */
	sa->a.modify_index = ++l->index;
	local_alloc_changed(l, la);
	if (is_news(&sa->a))
		local_mark_deployment(l, la->job);
	if (!alloc_client_terminal(&sa->a))
		return;
	local_mark_job(l, la->job);
	give_back_resources(l, la);
	if (la->slot->current != la)
		local_alloc_done(l, la);
	else
		local_mark_slot(l, la->slot);
}

void
local_alloc_destroyed(struct source *s, struct sup_alloc *sa)
{
	struct local *l = local_of(s);
	struct local_alloc *la = local_alloc_of(sa);
	struct local_slot *slot;
	struct local_job *j;

	if (!la)
		return;
	/* Asked for by whoever was here, or by the last supervisor. */
	if (!la->destroyed && (la->collected || !la->done)) {
		la->collected = true;
		local_volume_release_all(l, la);
		return;
	}
	j = la->job;
	slot = la->slot;
	local_volume_release_all(l, la);
	local_services_set(s, sa, NULL, NULL, 0);
	give_back_resources(l, la);
	local_alloc_gone(l, la);
	local_alloc_free(l, la);
	alloc_forget(s->sup, sa);
	/* A job that was purged and is registered again waits for it. */
	if (slot->waits)
		local_mark_slot(l, slot);
	local_mark_job(l, j);
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
		log_error(
		    "allocation %s has no place in job %s: it is left alone", sa->a.id, job->id);
	}
	return 0;
}
