// SPDX-License-Identifier: Apache-2.0
/* local_api_jobs.c: shows and stops jobs over the API. Runs in: supervisor. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/server/api/local_api.h"
#include "supervisor/server/job/local_job_view.h"
#include "supervisor/server/job/local_family.h"
#include "supervisor/server/drive/local_register.h"
#include "model/job_stub.h"

struct local_job *
local_api_find_job(struct sup *sup, struct api_req *req)
{
	struct local_job *j =
	    local_job_find(local_of_sup(sup), api_namespace(req), api_param(req, 0));

	if (!j)
		api_reply_error(req, 404, "job not found");
	return j;
}

static void
count_alloc(struct group_summary *g, const struct alloc *a)
{
	switch (a->client_status) {
	case CLIENT_RUNNING:
		g->running++;
		break;
	case CLIENT_COMPLETE:
		g->complete++;
		break;
	case CLIENT_FAILED:
		g->failed++;
		break;
	case CLIENT_LOST:
		g->lost++;
		break;
	case CLIENT_UNKNOWN:
		g->unknown++;
		break;
	case CLIENT_NONE:
	case CLIENT_PENDING:
		g->starting++;
		break;
	}
}

static void
fill_summary(struct job_summary *s, const struct local_job *j)
{
	const struct job *job = local_job_wanted(j);
	const struct local_alloc *la;

	str_set(&s->job_id, job->id);
	str_set(&s->namespace, job->namespace);
	s->create_index = job->create_index;
	s->modify_index = job->modify_index;
	local_family_count(j->l, job, &s->children);
	for (size_t i = 0; i < job->task_groups.n; i++)
		(void)map_put(group_summary, &s->summary, job->task_groups.v[i].name);
	LIST_FOREACH (la, &j->allocs, of_job)
		count_alloc(map_put(group_summary, &s->summary, la->sa->a.task_group), &la->sa->a);
	for (size_t i = 0; j->blocked && i < j->blocked->ev.queued_allocations.n; i++) {
		const struct int_pair *queued = &j->blocked->ev.queued_allocations.v[i];

		if (queued->value > 0)
			map_put(group_summary, &s->summary, queued->key)->queued = queued->value;
	}
}

static void
add_stub(struct api_list *list, const struct local_job *j)
{
	cleanup_done(job_stub) struct job_stub stub;
	struct job whole = *local_job_wanted(j);
	char why[LOCAL_JOB_WHY_SIZE];

	job_stub_init(&stub);
	local_job_describe(j, why);
	job_stub_fill(&stub, local_job_wanted(j));
	fill_summary(&stub.job_summary, j);
	str_set(&stub.status_description, why);
	stub.status = local_job_status(j);
	whole.status = stub.status;
	api_list_add_stub(list, &job_stub_type, &stub, &job_type, &whole);
}

void
local_api_list_jobs(struct sup *sup, struct api_req *req)
{
	struct local *l = local_of_sup(sup);
	size_t n;
	cleanup_free struct local_key **jobs = local_jobs_sorted(l, &n);
	struct api_list list;

	api_list_begin_named(&list, req);
	for (size_t i = 0; i < n; i++) {
		const struct local_job *j = local_job_of(jobs[i]);
		const struct job *job = local_job_wanted(j);

		if (!j->purge && api_prefix_fits(req, job->id) &&
		    api_namespace_fits(req, job->namespace))
			add_stub(&list, j);
	}
	api_list_reply(&list, req);
}

void
local_api_get_job(struct sup *sup, struct api_req *req)
{
	struct local_job *j = local_api_find_job(sup, req);
	struct text json = { 0 };

	if (!j)
		return;
	local_job_print(j, api_model_flags(req), &json);
	api_reply_take(req, &json);
}

static void
add_actions(json_t *list, const struct task_group *group, const struct task *task)
{
	for (size_t i = 0; i < task->actions.n; i++) {
		const struct task_action *a = &task->actions.v[i];
		json_t *args = json_array();

		for (size_t k = 0; k < a->args.n; k++)
			(void)json_array_append_new(args, json_string(str(a->args.v[k])));
		(void)json_array_append_new(
		    list, json_pack("{s:s, s:s, s:o, s:s, s:s}", "Name", str(a->name), "Command",
			      str(a->command), "Args", args, "TaskName", str(task->name),
			      "TaskGroupName", str(group->name)));
	}
}

void
local_api_job_actions(struct sup *sup, struct api_req *req)
{
	struct local_job *j = local_api_find_job(sup, req);
	const struct job *job = j ? local_job_wanted(j) : NULL;
	json_t *list;

	if (!job)
		return;
	list = json_array();
	for (size_t i = 0; i < job->task_groups.n; i++)
		for (size_t k = 0; k < job->task_groups.v[i].tasks.n; k++)
			add_actions(
			    list, &job->task_groups.v[i], &job->task_groups.v[i].tasks.v[k]);
	api_reply_json(req, list);
}

void
local_api_job_allocs(struct sup *sup, struct api_req *req)
{
	struct local_job *j = local_api_find_job(sup, req);

	if (j)
		local_api_reply_allocs(req, j, NULL, NULL);
}

void
local_api_job_evals(struct sup *sup, struct api_req *req)
{
	struct local_job *j = local_api_find_job(sup, req);
	struct local_eval *ev;
	struct api_list list;

	if (!j)
		return;
	api_list_begin(&list, req);
	LIST_FOREACH (ev, &j->evals, of_job)
		api_list_add(&list, &eval_type, &ev->ev);
	api_list_reply(&list, req);
}

void
local_api_job_summary(struct sup *sup, struct api_req *req)
{
	struct local_job *j = local_api_find_job(sup, req);
	cleanup_done(job_summary) struct job_summary summary;

	job_summary_init(&summary);
	if (!j)
		return;
	fill_summary(&summary, j);
	api_reply_model(req, &job_summary_type, &summary);
}

/* Answers as soon as the request is durable. */
void
local_api_delete_job(struct sup *sup, struct api_req *req)
{
	struct local *l = local_of_sup(sup);
	struct local_job *j = local_api_find_job(sup, req);
	struct local_alloc *la;
	struct local_eval *ev;
	struct err e = { 0 };
	bool purge = false, no_delay = false;
	uint64_t priority = 0;

	if (!j)
		return;
	if (api_query_bool(req, "purge", &purge, &e) < 0 ||
	    api_query_bool(req, "no_shutdown_delay", &no_delay, &e) < 0 ||
	    api_query_number(req, "eval_priority", &priority, &e) < 0 ||
	    eval_check_priority(priority, &e) < 0) {
		api_reply_error(req, 400, "%s", e.msg);
		return;
	}
	LIST_FOREACH (la, &j->allocs, of_job)
		if (no_delay)
			local_alloc_skip_delay(l, la);
	ev = local_job_stop(l, j, purge);
	local_eval_set_priority(ev, priority);
	local_api_reply_eval(sup, req, ev, local_job_wanted(j)->job_modify_index, "");
}
