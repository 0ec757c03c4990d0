// SPDX-License-Identifier: Apache-2.0
/* local_family.c: the children of jobs, and how long dead ones are kept. Runs in: supervisor. */
#include <errno.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/server/job/local_allocs.h"
#include "supervisor/server/job/local_family.h"
#include "supervisor/server/job/local_job_view.h"
#include "model/job_stub.h"

/* Dead children on the whole node. Dead children are kept for job_gc_threshold, or until there are
 * more than this. */
#define DEAD_KEPT 1000
/* Children of one parent, dead ones included: limits a job that is launched faster than its
 * children end. */
#define CHILDREN_MAX 6000

struct local_families {
	struct local_map map;
	TAILQ_HEAD(local_dead, local_job) dead; /* oldest first */
	unsigned n_dead;
};

void
local_families_init(struct local *l)
{
	l->families = mem_new(struct local_families);
	TAILQ_INIT(&l->families->dead);
}

void
local_families_free(struct local *l)
{
	local_map_done(&l->families->map, l, NULL);
	free(l->families);
}

static struct local_family *
find_family(const struct local *l, const char *namespace, const char *parent)
{
	cleanup_free char *name = mem_printf("%s/%s", namespace, parent);
	struct local_key *key = local_map_find(&l->families->map, name);

	return key ? container_of(key, struct local_family, key) : NULL;
}

static struct local_family *
make_family(struct local *l, const struct job *child)
{
	struct local_family *f = mem_new(struct local_family);

	f->name = mem_printf("%s/%s", child->namespace, child->parent_id);
	local_map_add(&l->families->map, &f->key, f->name);
	return f;
}

void
local_family_join(struct local *l, struct local_job *j)
{
	const struct job *job = local_job_wanted(j);
	struct local_family *f;

	if (j->family || !*str(job->parent_id))
		return;
	f = find_family(l, job->namespace, job->parent_id);
	if (!f)
		f = make_family(l, job);
	j->family = f;
	LIST_INSERT_HEAD(&f->children, j, sibling);
	f->n++;
}

static void
unlist_dead(struct local *l, struct local_job *j)
{
	if (!j->dead_s)
		return;
	TAILQ_REMOVE(&l->families->dead, j, dead);
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
	LIST_REMOVE(j, sibling);
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
	    "job \"%.140s\" has %zu children, which is the limit: wait until some have ended",
	    parent->id, f->n);
}

void
local_family_count(struct local *l, const struct job *parent, struct job_children *ret)
{
	const struct local_family *f = local_family_of(l, parent);
	const struct local_job *j;

	*ret = (struct job_children){ 0 };
	if (!f)
		return;
	LIST_FOREACH (j, &f->children, sibling) {
		enum job_status status = j->purge ? JOB_STATUS_NONE : local_job_status(j);

		ret->pending += status == JOB_PENDING;
		ret->running += status == JOB_RUNNING;
		ret->dead += status == JOB_DEAD;
	}
}

/* Returns when the last task of a dead job ended, in s since 1970. The allocs' rows say so too
 * after a restart of the agent. */
static int64_t
died_at(const struct local_job *j)
{
	int64_t last = local_job_wanted(j)->submit_time;
	const struct local_alloc *la;

	LIST_FOREACH (la, &j->allocs, of_job) {
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
	struct local_job *before;

	j->dead_s = died_at(j);
	TAILQ_FOREACH_REVERSE (before, &l->families->dead, local_dead, dead)
		if (before->dead_s <= j->dead_s)
			break;
	if (before)
		TAILQ_INSERT_AFTER(&l->families->dead, before, j, dead);
	else
		TAILQ_INSERT_HEAD(&l->families->dead, j, dead);
	l->families->n_dead++;
}

static struct local_job *
oldest_dead(const struct local *l)
{
	return TAILQ_FIRST(&l->families->dead);
}

static void
purge_dead(struct local *l, struct local_job *j)
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
	/* j is kept, even if the clock was set back and it is the oldest. */
	while (l->families->n_dead > DEAD_KEPT && oldest_dead(l) != j)
		purge_dead(l, oldest_dead(l));
	return oldest_dead(l) == j;
}

int64_t
local_family_collect_at(const struct local *l)
{
	int64_t kept_s = (int64_t)(l->base.sup->config->job_gc_ms / 1000);

	return oldest_dead(l) ? oldest_dead(l)->dead_s + kept_s : 0;
}

void
local_family_collect(struct local *l, int64_t now_s)
{
	while (oldest_dead(l) && local_family_collect_at(l) <= now_s)
		purge_dead(l, oldest_dead(l));
}
