// SPDX-License-Identifier: Apache-2.0
/* local_job_view.c: the status of a job, and the job as the API and the events show it. Runs in:
 * supervisor. */
#include "supervisor/server/job/local_job_view.h"

#include <stdio.h>
#include <string.h>

#include "supervisor/server/feed/local_events.h"
#include "supervisor/server/job/local_allocs.h"
#include "supervisor/server/job/local_evals.h"

enum job_status
local_job_status(const struct local_job *j)
{
	const struct local_alloc *la;

	if (job_is_parent(local_job_wanted(j)))
		return local_job_wanted(j)->stop ? JOB_DEAD : JOB_RUNNING;
	if (j->blocked)
		return JOB_PENDING;
	LIST_FOREACH (la, &j->allocs, of_job)
		if (!la->over)
			return JOB_RUNNING;
	for (size_t i = 0; i < j->n_groups; i++) {
		for (size_t k = 0; k < j->groups[i]->n_slots; k++) {
			if (j->groups[i]->slots[k]->waits)
				return JOB_PENDING;
		}
	}
	return JOB_DEAD;
}

/* A dimension is a word, such as "memory", or a sentence about ports. */
static void
describe_dimension(const char *dimension, char *ret, size_t size)
{
	bool sentence = strncmp(dimension, "network: ", strlen("network: ")) == 0;

	(void)snprintf(ret, size, "%s%s", sentence ? "" : "not enough ", dimension);
}

/* Writes the first reason why a group is not placed: a filter, otherwise a dimension. */
static const char *
describe_metric(const struct alloc_metric *m, char *ret, size_t size)
{
	if (m->constraint_filtered.n > 0)
		(void)snprintf(ret, size, "%s", m->constraint_filtered.v[0].key);
	else if (m->dimension_exhausted.n > 0)
		describe_dimension(m->dimension_exhausted.v[0].key, ret, size);
	else
		(void)snprintf(ret, size,
		    "the node is not eligible, or not in the job's datacenters or node pool");
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

void
local_job_print(const struct local_job *j, enum model_flags flags, struct text *t)
{
	char why[LOCAL_JOB_WHY_SIZE];
	struct job view;

	local_job_describe(j, why);
	view = *local_job_wanted(j); /* a shallow copy, for two other fields */
	view.status = local_job_status(j);
	view.status_description = why[0] ? why : NULL;
	model_to_text(&job_type, &view, flags, t);
}

static const struct local_job *
job_of(const struct local_news *n)
{
	return container_of(n, struct local_job, news);
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

static void
print_event(struct local *l, const struct local_news *n, struct text *t)
{
	local_job_print(job_of(n), 0, t);
}

const struct local_news_type local_job_news = { "Job", get_head, print_event };
