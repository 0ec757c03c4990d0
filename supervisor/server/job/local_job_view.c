// SPDX-License-Identifier: Apache-2.0
/* local_job_view.c: the status of a job, and the job as the API and the events show it. Runs in:
 * supervisor. */
#include "supervisor/server/job/local_job_view.h"

#include <stdio.h>

#include "supervisor/server/feed/local_events.h"
#include "supervisor/server/job/local_allocs.h"
#include "supervisor/server/job/local_evals.h"

enum job_status
local_job_status(const struct local_job *j)
{
	bool live = false;

	if (job_is_parent(local_job_wanted(j)))
		return local_job_wanted(j)->stop ? JOB_DEAD : JOB_RUNNING;
	if (j->blocked)
		return JOB_PENDING;
	for (const struct local_alloc *la = j->allocs; la && !live; la = la->next)
		live = !la->over;
	if (live)
		return JOB_RUNNING;
	for (size_t i = 0; i < j->n_groups; i++) {
		for (size_t k = 0; k < j->groups[i]->n_slots; k++) {
			if (j->groups[i]->slots[k]->waits)
				return JOB_PENDING;
		}
	}
	return JOB_DEAD;
}

/* The first thing that keeps a group from its place: a filter, else a dimension. */
static const char *
describe_metric(const struct alloc_metric *m, char *ret, size_t size)
{
	if (m->constraint_filtered.n > 0)
		(void)snprintf(ret, size, "%s", m->constraint_filtered.v[0].key);
	else if (m->dimension_exhausted.n > 0)
		(void)snprintf(ret, size, "not enough %s", m->dimension_exhausted.v[0].key);
	else
		(void)snprintf(ret, size,
		    "the node takes no allocations or is in none of the job's datacenters");
	return ret;
}

void
local_job_describe(const struct local_job *j, char ret[LOCAL_JOB_WHY_SIZE])
{
	char why[LOCAL_JOB_WHY_SIZE - 200];

	ret[0] = '\0';
	if (!j->blocked || j->blocked->ev.failed_tg_allocs.n == 0)
		return;
	(void)snprintf(ret, LOCAL_JOB_WHY_SIZE, "group %.100s: %s",
	    j->blocked->ev.failed_tg_allocs.v[0].key,
	    describe_metric(&j->blocked->ev.failed_tg_allocs.v[0].value, why, sizeof why));
}

int
local_job_print(const struct local_job *j, enum model_flags flags, struct text *t)
{
	char why[LOCAL_JOB_WHY_SIZE];
	struct job view;

	local_job_describe(j, why);
	view = *local_job_wanted(j); /* shares all but these two */
	view.status = local_job_status(j);
	view.status_description = why[0] ? why : NULL;
	return model_to_text(&job_type, &view, flags, t);
}

/* --- events --- */

static const struct local_job *
job_of(const struct local_news *n)
{
	return (const struct local_job *)(const void *)((const char *)n -
							offsetof(struct local_job, news));
}

static void
get_head(struct local *l, const struct local_news *n, struct event_head *ret)
{
	const struct local_job *j = job_of(n);
	const struct job *job = local_job_wanted(j);

	*ret = (struct event_head){ .topic = "Job",
		.type = job->stop || j->purge ? "JobDeregistered" : "JobRegistered",
		.namespace = job->namespace,
		.keys = { job->id } };
}

static int
print_event(struct local *l, const struct local_news *n, struct text *t)
{
	return local_job_print(job_of(n), 0, t);
}

const struct local_news_type local_job_news = { "Job", get_head, print_event };
