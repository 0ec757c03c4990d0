// SPDX-License-Identifier: Apache-2.0
/* local_api_jobs.c: registers, shows and stops jobs over the API. Runs in: supervisor. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/duration.h"
#include "common/id.h"
#include "common/mem.h"
#include "supervisor/driver/driver.h"
#include "supervisor/server/api/local_api.h"
#include "supervisor/server/job/job_children.h"
#include "supervisor/server/job/job_validate.h"
#include "supervisor/server/job/local_job_view.h"
#include "supervisor/server/job/local_family.h"
#include "supervisor/server/drive/local_register.h"
#include "supervisor/server/place/local_constraint.h"
#include "supervisor/server/capacity/local_ports.h"
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

static void
check_task(struct local *l, const struct task_group *g, const struct task *t, struct problems *p)
{
	const struct driver_ops *driver = driver_find(str(t->driver));
	struct err e = { 0 };

	if (!driver)
		model_problem(p, "group \"%s\", task \"%s\": unknown driver \"%s\"", str(g->name),
		    str(t->name), str(t->driver));
	else if (driver->check(l->base.sup->config, t, false, &e) < 0)
		model_problem(p, "group \"%s\": %s", str(g->name), e.msg);
	else if (t->volume_mounts.n > 0 && !driver->mounts)
		model_problem(p,
		    "group \"%s\", task \"%s\": driver %s cannot mount volumes: use exec",
		    str(g->name), str(t->name), driver->name);
}

static void
check_volume(struct local *l, const struct job *job, const struct task_group *g,
    const struct volume_request *vr, struct problems *p)
{
	if (vr->type != VOLUME_CSI)
		return;
	for (int64_t i = 0; i < (vr->per_alloc ? g->count : 1); i++) {
		cleanup_free char *id = NULL;

		volume_request_source(vr, i, &id);
		if (!local_volume_find(l, job->namespace, id))
			model_problem(
			    p, "group \"%s\": volume \"%s\" does not exist", str(g->name), id);
	}
}

int
local_api_check_job(struct local *l, const struct job *job, struct err *e)
{
	struct problems p = { 0 };
	int r = job_check_size(job, e);

	if (r < 0)
		return r;
	local_api_check_namespace(l, job, &p);
	job_validate(job, &p);
	job_validate_local(job, &p);
	local_constraint_validate(job, &p);
	for (size_t i = 0; i < job->task_groups.n; i++) {
		const struct task_group *g = &job->task_groups.v[i];

		for (size_t k = 0; k < g->tasks.n; k++)
			check_task(l, g, &g->tasks.v[k], &p);
		/* Only for a valid count, which is limited. */
		for (size_t k = 0; k < g->volumes.n && p.list.n == 0; k++)
			check_volume(l, job, g, &g->volumes.v[k].value, &p);
	}
	r = problems_err(&p, e);
	problems_done(&p);
	return r;
}

/* Warns of tasks whose kill_timeout is more than the node permits: they are killed earlier. */
static void
warn_kill_timeouts(const struct sup *sup, const struct job *job, struct problems *warn)
{
	int64_t max_ns = (int64_t)sup->config->max_kill_timeout_ms * NS_PER_MS;
	char wanted[DURATION_SIZE], max[DURATION_SIZE];

	duration_format(max_ns, max);
	for (size_t i = 0; i < job->task_groups.n; i++) {
		const struct task_group *g = &job->task_groups.v[i];

		for (size_t k = 0; k < g->tasks.n; k++) {
			const struct task *t = &g->tasks.v[k];

			if (t->kill_timeout <= max_ns)
				continue;
			duration_format(t->kill_timeout, wanted);
			model_problem(warn,
			    "group \"%s\", task \"%s\": kill_timeout of %s is more than the node's "
			    "max_kill_timeout, which is used: %s",
			    str(g->name), str(t->name), wanted, max);
		}
	}
}

static int
check_change(struct local *l, const struct job *job, struct err *e)
{
	const struct local_job *j = local_job_find(l, job->namespace, str(job->id));

	return job_check_change(j ? local_job_wanted(j) : NULL, job, e);
}

int
local_api_read_job(
    struct sup *sup, struct api_req *req, struct job *ret, struct problems *warn, struct err *e)
{
	const char *id = api_param(req, 0), *namespace = api_query(req, "namespace");
	const json_t *body = api_body(req, e), *json = json_object_get(body, "Job");
	int r;

	if (!body)
		return -EINVAL;
	if (!json_is_object(json))
		return err_say(e, -EINVAL, "the body has no object Job");
	r = model_from_json(&job_type, json, ret, e);
	if (r == 0)
		r = job_check_size(ret, e);
	if (r < 0)
		return r;
	if (namespace && *namespace && !ret->namespace)
		str_set(&ret->namespace, namespace);
	if (id && strcmp(id, str(ret->id)) != 0)
		return err_say(e, -EINVAL, "Job ID \"%.140s\" does not match the id in the path",
		    str(ret->id));
	model_find_unknown(&job_type, json, warn);
	job_warn_local(ret, warn);
	job_complete(ret);
	warn_kill_timeouts(sup, ret, warn);
	local_ports_warn(ret, warn);
	r = check_change(local_of_sup(sup), ret, e);
	return r < 0 ? r : local_api_check_job(local_of_sup(sup), ret, e);
}

/* Checks EnforceIndex: the job must have the index that the caller saw. Returns 0 or -EEXIST. */
static int
check_index(struct local *l, struct api_req *req, const struct job *job, struct err *e)
{
	const json_t *body = api_body(req, e);
	const struct local_job *j = local_job_find(l, job->namespace, job->id);
	json_int_t want = json_integer_value(json_object_get(body, "JobModifyIndex"));
	uint64_t have = j ? local_job_wanted(j)->job_modify_index : 0;

	if (!json_is_true(json_object_get(body, "EnforceIndex")) || (uint64_t)want == have)
		return 0;
	if (want == 0)
		return err_say(e, -EEXIST, "Enforcing job modify index 0: job already exists");
	return err_say(e, -EEXIST, "Enforcing job modify index %lld: job %s with index %llu",
	    (long long)want, have ? "exists" : "does not exist", (unsigned long long)have);
}

void
local_api_put_job(struct sup *sup, struct api_req *req, struct job *job, const char *trigger,
    const char *warnings)
{
	struct local_eval *ev;
	struct local_job *j;

	local_job_register(local_of_sup(sup), job, trigger, &j, &ev);
	local_api_reply_eval(sup, req, ev, local_job_wanted(j)->job_modify_index, warnings);
}

void
local_api_register_job(struct sup *sup, struct api_req *req)
{
	struct local *l = local_of_sup(sup);
	cleanup_done(job) struct job job;
	struct problems warn = { 0 };
	struct err e = { 0 }, warnings = { 0 };
	int r;

	job_init(&job);
	r = local_api_read_job(sup, req, &job, &warn, &e);
	(void)problems_err(&warn, &warnings);
	problems_done(&warn);
	if (r >= 0)
		r = check_index(l, req, &job, &e);
	if (r < 0) {
		api_reply_error(req, r == -EEXIST ? 409 : 400, "%s", e.msg);
		return;
	}
	local_api_put_job(sup, req, &job, "job-register", warnings.msg);
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

	if (!j)
		return;
	if (api_query_bool(req, "purge", &purge, &e) < 0 ||
	    api_query_bool(req, "no_shutdown_delay", &no_delay, &e) < 0) {
		api_reply_error(req, 400, "%s", e.msg);
		return;
	}
	LIST_FOREACH (la, &j->allocs, of_job)
		if (no_delay)
			local_alloc_skip_delay(l, la);
	ev = local_job_stop(l, j, purge);
	local_api_reply_eval(sup, req, ev, local_job_wanted(j)->job_modify_index, "");
}
