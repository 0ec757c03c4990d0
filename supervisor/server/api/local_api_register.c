// SPDX-License-Identifier: Apache-2.0
/* local_api_register.c: checks and registers jobs over the API, with their sources. Runs in:
 * supervisor. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/duration.h"
#include "model/engine/text.h"
#include "model/job_submission.h"
#include "supervisor/driver/container.h"
#include "supervisor/acl/acl_rules.h"
#include "supervisor/server/api/local_api.h"
#include "supervisor/server/api/local_gate.h"
#include "supervisor/server/capacity/local_ports.h"
#include "supervisor/server/drive/local_register.h"
#include "supervisor/server/job/job_children.h"
#include "supervisor/server/job/job_validate.h"
#include "supervisor/server/job/local_source.h"
#include "supervisor/server/place/local_constraint.h"
#include "supervisor/service/service_place.h"

/* The limit on the size of a job's source and its variables: Nomad's default of
 * job_max_source_size. */
#define SOURCE_BYTES_MAX 1000000

static void
refuse_driver(const struct task_group *g, const struct task *t, struct problems *p)
{
	struct text names = { 0 };

	for (size_t i = 0; drivers[i]; i++)
		text_printf(&names, "%s%s", i > 0 ? ", " : "", drivers[i]->name);
	model_problem(p, "group \"%s\", task \"%s\": unknown driver \"%s\": there are %s",
	    str(g->name), str(t->name), str(t->driver), names.text);
	text_done(&names);
}

static void
check_services(const struct task_group *g, const struct task *t, struct problems *p)
{
	for (size_t i = 0; i < t->services.n; i++)
		if (service_needs_driver_network(&t->services.v[i]) && !container_has_network(g, t))
			model_problem(p,
			    "group \"%s\", task \"%s\", service "
			    "\"%.100s\": " SERVICE_NEEDS_DRIVER_NETWORK,
			    str(g->name), str(t->name), str(t->services.v[i].name));
}

static void
check_task(struct local *l, const struct task_group *g, const struct task *t, struct problems *p)
{
	const struct driver_ops *driver = driver_find(str(t->driver));
	struct err e = { 0 };

	if (!*str(t->driver))
		return; /* job_validate() reports that */
	if (!driver)
		refuse_driver(g, t, p);
	else if (driver->check(l->base.sup->config, t, false, &e) < 0)
		model_problem(p, "group \"%s\": %s", str(g->name), e.msg);
	else if (t->volume_mounts.n > 0 && !driver->mounts)
		model_problem(p,
		    "group \"%s\", task \"%s\": driver %s cannot mount volumes: use exec",
		    str(g->name), str(t->name), driver->name);
	if (driver)
		check_services(g, t, p);
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

static void
find_faults(struct local *l, const struct job *job, struct problems *p)
{
	local_api_check_namespace(l, job, p);
	job_validate(job, p);
	job_validate_local(job, p);
	local_constraint_validate(job, p);
	for (size_t i = 0; i < job->task_groups.n; i++) {
		const struct task_group *g = &job->task_groups.v[i];

		for (size_t k = 0; k < g->tasks.n; k++)
			check_task(l, g, &g->tasks.v[k], p);
		/* Only for a valid count, which is limited. */
		for (size_t k = 0; k < g->volumes.n && p->list.n == 0; k++)
			check_volume(l, job, g, &g->volumes.v[k].value, p);
	}
}

int
local_api_check_job(struct local *l, const struct job *job, struct err *e)
{
	struct problems p = { 0 };
	int r = job_check_size(job, e);

	if (r < 0)
		return r;
	find_faults(l, job, &p);
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

/* Reads and completes the body's job. Returns 0, or -errno with the fault that ended it. */
static int
decode_job(
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
	if (!api_permits(req, API_NEED_OF_PATH, *str(ret->namespace) ? ret->namespace : "default"))
		return err_say(e, -EPERM, "Permission denied");
	if (id && strcmp(id, str(ret->id)) != 0)
		return err_say(e, -EINVAL, "Job ID \"%.140s\" does not match the id in the path",
		    str(ret->id));
	model_find_unknown(&job_type, json, warn);
	job_warn_local(ret, warn);
	job_complete(ret);
	warn_kill_timeouts(sup, ret, warn);
	local_ports_warn(ret, warn);
	r = check_change(local_of_sup(sup), ret, e);
	return r < 0 ? r : job_check_size(ret, e);
}

int
local_api_read_job(struct sup *sup, struct api_req *req, struct job *ret, struct problems *warn,
    struct problems *faults)
{
	struct err e = { 0 };
	int r = decode_job(sup, req, ret, warn, &e);

	if (r < 0)
		model_problem(faults, "%s", e.msg);
	else
		find_faults(local_of_sup(sup), ret, faults);
	return r == -EPERM ? r : faults->list.n ? -EINVAL : 0;
}

int
local_api_check_index(struct local *l, const json_t *body, const struct job *job, struct err *e)
{
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

static void
put_job(struct sup *sup, struct api_req *req, struct job *job,
    const struct job_submission *submission, const char *trigger, int64_t priority,
    const char *warnings)
{
	struct local_eval *ev;
	struct local_job *j;

	local_job_register(local_of_sup(sup), job, submission, trigger, &j, &ev);
	local_eval_set_priority(ev, priority);
	local_api_reply_eval(sup, req, ev, local_job_wanted(j)->job_modify_index, warnings);
}

void
local_api_put_job(struct sup *sup, struct api_req *req, struct job *job, const char *trigger)
{
	put_job(sup, req, job, NULL, trigger, 0, "");
}

/* Reads the body's Submission into *ret (initialised), which stays empty if there is none. One that
 * is too large is left out, with a warning. */
static int
read_submission(
    struct api_req *req, struct job_submission *ret, struct problems *warn, struct err *e)
{
	const json_t *json = json_object_get(api_body(req, e), "Submission");
	size_t size;
	int r;

	if (!json || json_is_null(json))
		return 0;
	if (!json_is_object(json))
		return err_say(e, -EINVAL, "Submission: expected an object");
	r = model_from_json(&job_submission_type, json, ret, e);
	if (r < 0)
		return r;
	size = job_submission_size(ret);
	if (size <= SOURCE_BYTES_MAX)
		return 0;
	model_problem(warn,
	    "the job's source is not stored: with its variables it has %zu bytes, the limit is %d",
	    size, SOURCE_BYTES_MAX);
	job_submission_done(ret);
	return 0;
}

static void
preserve_group(const struct task_group *old, struct task_group *g, bool counts, bool resources)
{
	if (counts)
		g->count = old->count;
	for (size_t i = 0; resources && i < g->tasks.n; i++) {
		struct task *t = &g->tasks.v[i];
		const struct task *before = group_task(old, str(t->name));

		if (!before || !before->resources)
			continue;
		resources_free(t->resources);
		t->resources = resources_new();
		resources_copy(before->resources, t->resources);
	}
}

/* Gives the groups the counts, and the tasks the resources, that they have in the registered
 * version, as far as the body asks for it. */
static void
preserve_values(struct local *l, const json_t *body, struct job *job)
{
	bool counts = json_is_true(json_object_get(body, "PreserveCounts"));
	bool resources = json_is_true(json_object_get(body, "PreserveResources"));
	const struct local_job *j = local_job_find(l, job->namespace, job->id);

	for (size_t i = 0; j && i < job->task_groups.n; i++) {
		struct task_group *g = &job->task_groups.v[i];
		const struct task_group *old = job_group(local_job_wanted(j), g->name);

		if (old)
			preserve_group(old, g, counts, resources);
	}
}

/* Reads what the body asks for beside its job, whose counts and resources it may change. Returns 0
 * or -errno: -EEXIST if the job has not the index that the caller saw. */
static int
read_options(struct local *l, struct api_req *req, struct job *job, struct problems *warn,
    int64_t *ret_priority, struct err *e)
{
	const json_t *body = api_body(req, e);
	int r = local_api_check_index(l, body, job, e);

	*ret_priority = json_integer_value(json_object_get(body, "EvalPriority"));
	if (r == 0)
		r = eval_check_priority(*ret_priority, e);
	if (r < 0)
		return r;
	if (json_is_true(json_object_get(body, "PolicyOverride")))
		model_problem(warn, LOCAL_NO_POLICIES);
	preserve_values(l, body, job);
	return local_api_check_job(l, job, e);
}

static bool
permits_host_volume(void *arg, const char *name, bool writes)
{
	return local_gate_permits_host_volume(arg, name, writes);
}

/* Checks the token's permission for what the job uses beside its namespace: volumes and plugins. */
static int
check_permissions(struct sup *sup, struct api_req *req, const struct job *job, struct err *e)
{
	int r;

	for (size_t i = 0; i < job->task_groups.n; i++) {
		const struct task_group *g = &job->task_groups.v[i];
		bool permitted = true;

		for (size_t k = 0; k < g->volumes.n; k++) {
			const struct volume_request *vr = &g->volumes.v[k].value;

			permitted &= vr->type == VOLUME_CSI
					 ? api_permits(req, ACL_MOUNT_VOLUME, job->namespace)
					 : local_gate_permits_host_volume(
					       req, str(vr->source), !vr->read_only);
		}
		for (size_t k = 0; k < g->tasks.n; k++) {
			const struct task *task = &g->tasks.v[k];

			permitted &= !task->csi_plugin ||
				     api_permits(req, ACL_REGISTER_PLUGIN, job->namespace);
			if ((r = container_check_permitted(
				 sup->config, task, permits_host_volume, req, e)) < 0)
				return r;
		}
		if (!permitted)
			return err_say(e, -EPERM,
			    "Permission denied: the token permits neither the volumes nor the "
			    "plugin of group \"%.140s\"",
			    str(g->name));
	}
	return 0;
}

void
local_api_register_job(struct sup *sup, struct api_req *req)
{
	struct local *l = local_of_sup(sup);
	cleanup_done(job) struct job job;
	cleanup_done(job_submission) struct job_submission submission;
	struct problems warn = { 0 }, faults = { 0 };
	cleanup_free char *warnings = NULL;
	struct err e = { 0 };
	int64_t priority = 0;
	int r;

	job_init(&job);
	job_submission_init(&submission);
	r = local_api_read_job(sup, req, &job, &warn, &faults);
	if (r == 0)
		r = check_permissions(sup, req, &job, &e);
	if (r == 0)
		r = read_options(l, req, &job, &warn, &priority, &e);
	if (r == 0)
		r = read_submission(req, &submission, &warn, &e);
	warnings = problems_text(&warn);
	if (faults.list.n > 0)
		api_reply_problems(req, r == -EPERM ? 403 : 400, &faults);
	else if (r < 0)
		api_reply_error(req, r == -EPERM ? 403 : r == -EEXIST ? 409 : 400, "%s", e.msg);
	else
		put_job(sup, req, &job, &submission, "job-register", priority, warnings);
	problems_done(&warn);
	problems_done(&faults);
}

/* Reads the source of a version of j. Returns 0, or -errno: -ENOENT if it has none. */
static int
get_submission(struct sup *sup, const struct local_job *j, uint64_t version,
    struct job_submission *ret, struct err *e)
{
	const struct local_version *v = local_job_version(j, version);
	const struct job *job = v ? &v->ref->job : NULL;
	cleanup_free char *json = NULL;
	int r = job ? local_source_read(sup, job, &json, e) : -ENOENT;

	if (r == 0)
		r = model_from_text(&job_submission_type, json, strlen(json), ret, e);
	if (r < 0)
		return r;
	str_set(&ret->namespace, job->namespace);
	str_set(&ret->job_id, job->id);
	ret->version = version;
	ret->job_modify_index = job->job_modify_index;
	return 0;
}

void
local_api_job_submission(struct sup *sup, struct api_req *req)
{
	struct local *l = local_of_sup(sup);
	const struct local_job *j = local_job_find(l, api_namespace(req), api_param(req, 0));
	cleanup_done(job_submission) struct job_submission submission;
	uint64_t version;
	struct err e = { 0 };
	int r;

	job_submission_init(&submission);
	if (api_query_number(req, "version", &version, &e) <= 0) {
		api_reply_error(req, 400, "Unable to parse job submission version parameter");
		return;
	}
	r = j ? get_submission(sup, j, version, &submission, &e) : -ENOENT;
	if (r == -ENOENT)
		api_reply_error(req, 404, "job source not found");
	else if (r < 0)
		api_reply_error(req, 500, "%s", e.msg);
	else
		api_reply_model(req, &job_submission_type, &submission);
}
