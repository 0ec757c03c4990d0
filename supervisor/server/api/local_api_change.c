// SPDX-License-Identifier: Apache-2.0
/* local_api_change.c: rolls a job back to an older version, or changes the count of a group. Runs
 * in: supervisor. */
#include <errno.h>
#include <string.h>

#include "supervisor/server/api/local_api.h"

/* Returns 0, or the status of the answer with the sentence. */
static int
choose_version(
    struct api_req *req, const struct local_job *j, const struct job **ret, struct err *e)
{
	const json_t *body = api_body(req, e), *version = json_object_get(body, "JobVersion"),
		     *prior = json_object_get(body, "EnforcePriorVersion");
	const struct job *wanted = local_job_wanted(j);
	const struct local_version *v;

	if (!body)
		return 400;
	if (!json_is_integer(version)) {
		(void)err_say(e, -EINVAL, "the body has no number JobVersion");
		return 400;
	}
	if (json_is_integer(prior) && (uint64_t)json_integer_value(prior) != wanted->version) {
		(void)err_say(e, -EINVAL, "Current job has version %llu; enforcing version %lld",
		    (unsigned long long)wanted->version, (long long)json_integer_value(prior));
		return 409;
	}
	v = local_job_version(j, (uint64_t)json_integer_value(version));
	if (!v) {
		(void)err_say(e, -ENOENT, "job \"%.140s\" has no version %lld", wanted->id,
		    (long long)json_integer_value(version));
		return 404;
	}
	if (&v->ref->job == wanted) {
		(void)err_say(e, -EINVAL, "can't revert to current version");
		return 400;
	}
	*ret = &v->ref->job;
	return 0;
}

void
local_api_revert_job(struct sup *sup, struct api_req *req)
{
	struct local_job *j = local_api_find_job(sup, req);
	cleanup_done(job) struct job job;
	const struct job *old;
	struct err e = { 0 };
	int status;

	job_init(&job);
	if (!j)
		return;
	status = choose_version(req, j, &old, &e);
	if (status) {
		api_reply_error(req, status, "%s", e.msg);
		return;
	}
	job_copy(old, &job);
	job.stop = false;
	/* The node's volumes and drivers may have changed since. */
	if (local_api_check_job(local_of_sup(sup), &job, &e) < 0)
		api_reply_error(req, 400, "%s", e.msg);
	else
		local_api_put_job(sup, req, &job, "job-register");
}

static const char *
target_group(const json_t *body, const struct job *job)
{
	const json_t *target = json_object_get(body, "Target");
	const char *name = json_string_value(json_object_get(target, "Group"));

	return name ? name : job->task_groups.n == 1 ? job->task_groups.v[0].name : "";
}

/* Copies the job, with the count that the body asks for. Returns 0 or -EINVAL. */
static int
copy_scaled(struct api_req *req, const struct job *job, struct job *ret, struct err *e)
{
	const json_t *body = api_body(req, e), *count = json_object_get(body, "Count");
	const char *name = target_group(body, job);

	if (!body)
		return -EINVAL;
	if (job->stop)
		return err_say(e, -EINVAL, "job \"%.140s\" is stopped: run it first", job->id);
	if (!job_group(job, name))
		return err_say(e, -EINVAL, "task group \"%.140s\" does not exist in the job", name);
	if (!json_is_integer(count) || json_integer_value(count) < 0)
		return err_say(e, -EINVAL, "Count: expected a number of 0 or more");
	job_copy(job, ret);
	for (size_t i = 0; i < ret->task_groups.n; i++) {
		if (strcmp(ret->task_groups.v[i].name, name) == 0)
			ret->task_groups.v[i].count = json_integer_value(count);
	}
	return 0;
}

void
local_api_scale_job(struct sup *sup, struct api_req *req)
{
	struct local_job *j = local_api_find_job(sup, req);
	cleanup_done(job) struct job job;
	struct err e = { 0 };
	int r;

	job_init(&job);
	if (!j)
		return;
	r = copy_scaled(req, local_job_wanted(j), &job, &e);
	if (r == 0)
		r = local_api_check_index(local_of_sup(sup), api_body(req, &e), &job, &e);
	if (r == 0)
		r = local_api_check_job(local_of_sup(sup), &job, &e);
	if (r < 0)
		api_reply_error(req, r == -EEXIST ? 409 : 400, "%s", e.msg);
	else
		local_api_put_job(sup, req, &job, "job-scaling");
}

void
local_api_job_scale(struct sup *sup, struct api_req *req)
{
	struct local_job *j = local_api_find_job(sup, req);
	const struct job *job = j ? local_job_wanted(j) : NULL;
	json_t *groups;

	if (!j)
		return;
	groups = json_object();
	for (size_t i = 0; i < job->task_groups.n; i++) {
		const struct task_group *g = &job->task_groups.v[i];
		json_int_t placed = 0, running = 0, healthy = 0, unhealthy = 0;
		const struct local_alloc *la;

		LIST_FOREACH (la, &j->allocs, of_job) {
			const struct deployment_status *s = la->sa->a.deployment_status;

			if (la->over || strcmp(la->sa->a.task_group, g->name) != 0)
				continue;
			placed++;
			healthy += s && s->healthy == OPT_TRUE;
			unhealthy += s && s->healthy == OPT_FALSE;
			running += la->sa->a.client_status == CLIENT_RUNNING;
		}
		(void)json_object_set_new(groups, g->name,
		    json_pack("{s:I, s:I, s:I, s:I, s:I, s:n}", "Desired", (json_int_t)g->count,
			"Placed", placed, "Running", running, "Healthy", healthy, "Unhealthy",
			unhealthy, "Events"));
	}
	api_reply_json(req, json_pack("{s:s, s:s, s:b, s:I, s:I, s:o}", "JobID", job->id,
				"Namespace", job->namespace, "JobStopped", job->stop,
				"JobCreateIndex", (json_int_t)job->create_index, "JobModifyIndex",
				(json_int_t)job->modify_index, "TaskGroups", groups));
}
