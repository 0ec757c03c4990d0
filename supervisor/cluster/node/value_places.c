// SPDX-License-Identifier: Apache-2.0
/* value_places.c: shares the places for blocking queries among jobs. Runs in: supervisor. */
#include "supervisor/cluster/node/value_places.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

struct place_job {
	LIST_ENTRY(place_job) link;
	unsigned refs; /* places of this job, taken or not */
	unsigned n;    /* of these, taken */
	TAILQ_HEAD(, value_place) taken;
	char name[];
};

void
value_places_init(struct value_places *all, unsigned max)
{
	*all = (struct value_places){ .max = max };
	LIST_INIT(&all->jobs);
}

static struct place_job *
find_job(const struct value_places *all, const char *name)
{
	struct place_job *j;

	LIST_FOREACH (j, &all->jobs, link)
		if (strcmp(j->name, name) == 0)
			return j;
	return NULL;
}

static struct place_job *
add_job(struct value_places *all, const char *name)
{
	size_t size = strlen(name) + 1;
	struct place_job *j = mem_zeroed(1, sizeof *j + size);

	memcpy(j->name, name, size);
	TAILQ_INIT(&j->taken);
	LIST_INSERT_HEAD(&all->jobs, j, link);
	return j;
}

void
value_place_init(struct value_places *all, struct value_place *p, const char *job)
{
	*p = (struct value_place){ .job = find_job(all, job) ?: add_job(all, job) };
	p->job->refs++;
}

void
value_place_done(struct value_places *all, struct value_place *p)
{
	value_place_leave(all, p);
	if (--p->job->refs > 0)
		return;
	LIST_REMOVE(p->job, link);
	free(p->job);
}

/* Returns the place to be given to a job that has n; NULL if no job has at least two more. */
static struct value_place *
find_loser(const struct value_places *all, unsigned n)
{
	const struct place_job *most = NULL, *j;

	LIST_FOREACH (j, &all->jobs, link)
		if (j->n > n + 1 && (!most || j->n > most->n))
			most = j;
	return most ? TAILQ_FIRST(&most->taken) : NULL;
}

bool
value_place_take(struct value_places *all, struct value_place *p, struct value_place **ret_loser)
{
	*ret_loser = NULL;
	if (all->taken >= all->max) {
		*ret_loser = find_loser(all, p->job->n);
		if (!*ret_loser)
			return false;
		value_place_leave(all, *ret_loser);
	}
	TAILQ_INSERT_TAIL(&p->job->taken, p, link);
	p->job->n++;
	p->taken = true;
	all->taken++;
	return true;
}

void
value_place_leave(struct value_places *all, struct value_place *p)
{
	if (!p->taken)
		return;
	TAILQ_REMOVE(&p->job->taken, p, link);
	p->job->n--;
	p->taken = false;
	all->taken--;
}
