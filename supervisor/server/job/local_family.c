// SPDX-License-Identifier: Apache-2.0
/* local_family.c: the children of jobs, and how long they are kept when their work is over. Runs
 * in: supervisor. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "supervisor/server/job/local_allocs.h"
#include "supervisor/server/job/local_family.h"
#include "supervisor/server/job/local_job_view.h"
#include "model/job_stub.h"

/* Children that are over, on the whole node; none is kept longer than job_gc_threshold. */
#define DEAD_KEPT 1000
/* Children of one parent, also those that are over: bounds a job that is launched faster than it
 * ends. */
#define CHILDREN_MAX 6000

struct local_families {
	struct local_map map;
	struct local_job *first_dead, *last_dead; /* oldest first */
	unsigned n_dead;
};

int
local_families_init(struct local *l)
{
	l->families = calloc(1, sizeof *l->families);
	return l->families ? 0 : -ENOMEM;
}

void
local_families_free(struct local *l)
{
	if (l->families)
		local_map_done(&l->families->map);
	free(l->families);
}

static struct local_family *
find_family(const struct local *l, const char *namespace, const char *parent)
{
	cleanup_free char *name = NULL;

	if (asprintf(&name, "%s/%s", namespace, parent) < 0)
		return NULL;
	return (struct local_family *)(void *)local_map_find(&l->families->map, name);
}

static struct local_family *
make_family(struct local *l, const struct job *child)
{
	struct local_family *f = find_family(l, child->namespace, child->parent_id);

	if (f)
		return f;
	f = calloc(1, sizeof *f);
	if (!f)
		return NULL;
	if (asprintf(&f->name, "%s/%s", child->namespace, child->parent_id) < 0) {
		free(f);
		return NULL;
	}
	if (local_map_add(&l->families->map, &f->key, f->name) < 0) {
		free(f->name);
		free(f);
		return NULL;
	}
	return f;
}

int
local_family_join(struct local *l, struct local_job *j)
{
	const struct job *job = local_job_wanted(j);
	struct local_family *f;

	if (j->family || !*str(job->parent_id))
		return 0;
	f = make_family(l, job);
	if (!f)
		return -ENOMEM;
	j->family = f;
	j->next_sibling = f->children;
	if (f->children)
		f->children->prev_sibling = j;
	f->children = j;
	f->n++;
	return 0;
}

static void
unlist_dead(struct local *l, struct local_job *j)
{
	if (!j->dead_s)
		return;
	*(j->prev_dead ? &j->prev_dead->next_dead : &l->families->first_dead) = j->next_dead;
	*(j->next_dead ? &j->next_dead->prev_dead : &l->families->last_dead) = j->prev_dead;
	j->prev_dead = j->next_dead = NULL;
	j->dead_s = 0;
	l->families->n_dead--;
}

void
local_family_leave(struct local *l, struct local_job *j)
{
	struct local_family *f = j->family;

	if (!f)
		return;
	unlist_dead(l, j);
	j->family = NULL;
	*(j->prev_sibling ? &j->prev_sibling->next_sibling : &f->children) = j->next_sibling;
	if (j->next_sibling)
		j->next_sibling->prev_sibling = j->prev_sibling;
	if (--f->n > 0)
		return;
	local_map_remove(&l->families->map, &f->key);
	free(f->name);
	free(f);
}

struct local_family *
local_family_of(struct local *l, const struct job *parent)
{
	return find_family(l, parent->namespace, parent->id);
}

int
local_family_check(struct local *l, const struct job *parent, struct err *e)
{
	const struct local_family *f = local_family_of(l, parent);

	if (!f || f->n < CHILDREN_MAX)
		return 0;
	return err_say(e, -EAGAIN,
	    "job \"%.140s\" has %zu children already: no more are made before some of them end",
	    parent->id, f->n);
}

void
local_family_count(struct local *l, const struct job *parent, struct job_children *ret)
{
	const struct local_family *f = local_family_of(l, parent);

	*ret = (struct job_children){ 0 };
	for (const struct local_job *j = f ? f->children : NULL; j; j = j->next_sibling) {
		enum job_status status = j->purge ? JOB_STATUS_NONE : local_job_status(j);

		ret->pending += status == JOB_PENDING;
		ret->running += status == JOB_RUNNING;
		ret->dead += status == JOB_DEAD;
	}
}

/* --- the dead --- */

/* When the last of its tasks ended: also after a restart of the agent. */
static int64_t
died_at(const struct local_job *j)
{
	int64_t last = local_job_wanted(j)->submit_time;

	for (const struct local_alloc *la = j->allocs; la; la = la->next) {
		const struct alloc *a = &la->sa->a;

		for (size_t i = 0; i < a->task_states.n; i++)
			if (a->task_states.v[i].value.finished_at > last)
				last = a->task_states.v[i].value.finished_at;
	}
	return last > 1000000000 ? last / 1000000000 : 1;
}

static void
list_dead(struct local *l, struct local_job *j)
{
	struct local_job *before = l->families->last_dead;

	j->dead_s = died_at(j);
	while (before && before->dead_s > j->dead_s)
		before = before->prev_dead;
	j->prev_dead = before;
	j->next_dead = before ? before->next_dead : l->families->first_dead;
	*(before ? &before->next_dead : &l->families->first_dead) = j;
	*(j->next_dead ? &j->next_dead->prev_dead : &l->families->last_dead) = j;
	l->families->n_dead++;
}

static void
forget_dead(struct local *l, struct local_job *j)
{
	unlist_dead(l, j);
	local_job_purge(l, j);
}

bool
local_family_examine(struct local *l, struct local_job *j)
{
	bool dead = j->family && !j->purge && local_job_status(j) == JOB_DEAD;

	if (dead == (j->dead_s != 0))
		return false;
	if (!dead) {
		unlist_dead(l, j);
		return false;
	}
	list_dead(l, j);
	/* Never j itself, whatever the clock says. */
	while (l->families->n_dead > DEAD_KEPT && l->families->first_dead != j)
		forget_dead(l, l->families->first_dead);
	return l->families->first_dead == j;
}

int64_t
local_family_collect_at(const struct local *l)
{
	int64_t kept_s = (int64_t)(l->base.sup->config->job_gc_ms / 1000);

	return l->families->first_dead ? l->families->first_dead->dead_s + kept_s : 0;
}

void
local_family_collect(struct local *l, int64_t now_s)
{
	while (l->families->first_dead && local_family_collect_at(l) <= now_s)
		forget_dead(l, l->families->first_dead);
}
