// SPDX-License-Identifier: Apache-2.0
/* local_api_deployments.c: shows, promotes, pauses and fails deployments over the API. Runs in:
 * supervisor. */
#include <errno.h>
#include <string.h>

#include "supervisor/server/api/local_api.h"
#include "supervisor/server/deploy/local_deployment.h"
#include "supervisor/server/drive/local_deploy.h"
#include "supervisor/alloc/client.h"

static struct local_deployment *
find_deployment(struct sup *sup, struct api_req *req)
{
	struct local_deployment *dep = local_deployment_find(local_of_sup(sup), api_param(req, 0));

	if (dep && !dep->job->purge)
		return dep;
	api_reply_error(req, 404, "deployment not found");
	return NULL;
}

static void
add_deployment(struct api_list *list, const struct local_deployment *dep)
{
	cleanup_done(deployment) struct deployment view;

	local_deployment_view(dep, &view);
	api_list_add(list, &deployment_type, &view);
}

static int
compare_newest(const void *a, const void *b)
{
	uint64_t x = local_deployment_of(*(struct local_key *const *)a)->d.create_index,
		 y = local_deployment_of(*(struct local_key *const *)b)->d.create_index;

	return (x < y) - (x > y);
}

void
local_api_list_deployments(struct sup *sup, struct api_req *req)
{
	struct local *l = local_of_sup(sup);
	size_t n;
	cleanup_free struct local_key **all = local_deployments_sorted(l, &n);
	struct api_list list;

	api_list_begin(&list, req);
	qsort(all, n, sizeof *all, compare_newest);
	for (size_t i = 0; i < n; i++) {
		const struct local_deployment *dep = local_deployment_of(all[i]);

		if (!dep->job->purge && api_prefix_fits(req, dep->d.id) &&
		    api_namespace_fits(req, str(dep->d.namespace)))
			add_deployment(&list, dep);
	}
	api_list_reply(&list, req);
}

void
local_api_job_deployments(struct sup *sup, struct api_req *req)
{
	struct local_job *j = local_api_find_job(sup, req);
	const struct local_deployment *dep;
	struct api_list list;

	if (!j)
		return;
	api_list_begin(&list, req);
	SLIST_FOREACH (dep, &j->deployments, older)
		add_deployment(&list, dep);
	api_list_reply(&list, req);
}

static void
reply_deployment(struct api_req *req, const struct local_deployment *dep)
{
	cleanup_done(deployment) struct deployment view;

	local_deployment_view(dep, &view);
	api_reply_model(req, &deployment_type, &view);
}

/* Answers null if the job has no deployment. */
void
local_api_job_deployment(struct sup *sup, struct api_req *req)
{
	struct local_job *j = local_api_find_job(sup, req);

	if (!j)
		return;
	if (local_deployment_newest(j))
		reply_deployment(req, local_deployment_newest(j));
	else
		api_reply_json(req, json_null());
}

void
local_api_get_deployment(struct sup *sup, struct api_req *req)
{
	struct local_deployment *dep = find_deployment(sup, req);

	if (dep)
		reply_deployment(req, dep);
}

void
local_api_deployment_allocs(struct sup *sup, struct api_req *req)
{
	struct local_deployment *dep = find_deployment(sup, req);

	if (dep)
		local_api_reply_allocs(req, dep->job, NULL, dep->d.id);
}

static struct local_deployment *
find_active(struct sup *sup, struct api_req *req, const char *verb)
{
	struct local_deployment *dep = find_deployment(sup, req);

	if (!dep || deployment_is_active(&dep->d))
		return dep;
	api_reply_error(req, 400, "can't %s terminal deployment", verb);
	return NULL;
}

/* Returns the body, if its DeploymentID is the one of the path; otherwise answers and returns NULL.
 */
static const json_t *
read_body(struct api_req *req)
{
	struct err e = { 0 };
	const json_t *body = api_body(req, &e);
	const char *id = json_string_value(json_object_get(body, "DeploymentID"));

	if (body && id && strcmp(id, api_param(req, 0)) == 0)
		return body;
	api_reply_error(req, 400, "%s",
	    !body ? e.msg
	    : id  ? "Deployment ID does not match"
		  : "DeploymentID must be specified");
	return NULL;
}

/* version: to which the job was rolled back; -1: it was not. */
static void
reply_change(struct api_req *req, const struct local_deployment *dep, const struct local_eval *ev,
    int64_t version)
{
	json_int_t index = (json_int_t)dep->d.modify_index;

	api_reply_json(req, json_pack("{s:s, s:I, s:I, s:o, s:I}", "EvalID", ev ? ev->ev.id : "",
				"EvalCreateIndex", ev ? (json_int_t)ev->ev.create_index : 0,
				"DeploymentModifyIndex", index, "RevertedJobVersion",
				version < 0 ? json_null() : json_integer(version), "Index", index));
}

static int
read_groups(const json_t *body, struct strings *ret, struct err *e)
{
	const json_t *groups = json_object_get(body, "Groups"), *name;
	size_t i;

	json_array_foreach (groups, i, name) {
		if (!json_is_string(name))
			return err_say(e, -EINVAL, "Groups: expected names");
		strings_add(ret, json_string_value(name));
	}
	return 0;
}

void
local_api_promote_deployment(struct sup *sup, struct api_req *req)
{
	struct local *l = local_of_sup(sup);
	const json_t *body = read_body(req);
	struct local_deployment *dep = body ? find_active(sup, req, "promote") : NULL;
	struct strings groups = { 0 };
	const struct strings *chosen = json_is_true(json_object_get(body, "All")) ? NULL : &groups;
	struct local_eval *ev = NULL;
	struct err e = { 0 };
	int r;

	if (!dep)
		return;
	r = read_groups(body, &groups, &e);
	if (r == 0 && dep->d.status == DEPLOYMENT_PAUSED)
		r = err_say(&e, -EBUSY, "the deployment is paused: resume it first");
	if (r == 0)
		r = local_deploy_check(dep, chosen, &e);
	if (r == 0) {
		ev = local_eval_new(l, dep->job, "deployment-watcher");
		r = local_deploy_promote(l, dep, chosen, ev, &e);
	}
	if (r < 0)
		api_reply_error(req, 400, "%s", e.msg);
	else
		reply_change(req, dep, ev, -1);
	strings_done(&groups);
}

void
local_api_pause_deployment(struct sup *sup, struct api_req *req)
{
	const json_t *body = read_body(req);
	struct local_deployment *dep = body ? find_active(sup, req, "pause") : NULL;

	if (!dep)
		return;
	local_deploy_pause(local_of_sup(sup), dep, json_is_true(json_object_get(body, "Pause")));
	reply_change(req, dep, NULL, -1);
}

void
local_api_fail_deployment(struct sup *sup, struct api_req *req)
{
	struct local_deployment *dep = find_active(sup, req, "fail");
	int64_t version = -1;
	struct local_eval *ev;
	bool revert = false;

	if (!dep)
		return;
	for (size_t i = 0; i < dep->d.groups.n; i++)
		revert |= dep->d.groups.v[i].value.auto_revert;
	ev = local_deploy_fail(
	    local_of_sup(sup), dep, "Deployment marked as failed", revert, &version);
	reply_change(req, dep, ev, version);
}

static int
find_alloc(struct sup *sup, const struct local_deployment *dep, const json_t *name,
    struct sup_alloc **ret, struct err *e)
{
	const char *text = json_string_value(name);
	struct id id;

	*ret = text && id_from_uuid(text, &id) ? alloc_find(sup, &id) : NULL;
	if (!*ret || !str_eq((*ret)->a.deployment_id, dep->d.id))
		return err_say(e, -ENOENT, "the deployment has no allocation \"%.80s\"", str(text));
	return 0;
}

/* set: false only checks the list, so that nothing is set if one of the two lists is wrong. */
static int
set_healths(struct sup *sup, const struct local_deployment *dep, const json_t *ids, bool healthy,
    bool set, struct err *e)
{
	struct sup_alloc *sa;
	const json_t *name;
	size_t i;
	int r;

	json_array_foreach (ids, i, name) {
		r = find_alloc(sup, dep, name, &sa, e);
		if (r < 0)
			return r;
		if (set)
			client_alloc_set_health(sa, healthy);
	}
	return 0;
}

void
local_api_set_alloc_health(struct sup *sup, struct api_req *req)
{
	const json_t *body = read_body(req);
	struct local_deployment *dep = body ? find_active(sup, req, "set health of") : NULL;
	const json_t *good = json_object_get(body, "HealthyAllocationIDs"),
		     *bad = json_object_get(body, "UnhealthyAllocationIDs");
	struct err e = { 0 };

	if (!dep)
		return;
	for (int set = 0; set < 2; set++) {
		if (set_healths(sup, dep, good, true, set, &e) < 0 ||
		    set_healths(sup, dep, bad, false, set, &e) < 0) {
			api_reply_error(req, 400, "%s", e.msg);
			return;
		}
	}
	reply_change(req, dep, NULL, -1);
}
