// SPDX-License-Identifier: Apache-2.0
/* local_api_namespaces.c: lists, makes and deletes namespaces over the API, and checks which
 * drivers and networks a namespace permits. Runs in: supervisor. */
#include <errno.h>
#include <string.h>

#include "common/cleanup.h"
#include "supervisor/acl/acl_rules.h"
#include "supervisor/server/api/local_api.h"
#include "supervisor/server/job/local_job_view.h"
#include "supervisor/server/job/local_namespaces.h"
#include "supervisor/server/variable/local_variables.h"

#define NAME_MAX_LEN        128 /* as with the servers */
#define DESCRIPTION_MAX_LEN 256

void
local_api_list_namespaces(struct sup *sup, struct api_req *req)
{
	size_t n;
	cleanup_free struct local_key **all = local_namespaces_sorted(local_of_sup(sup), &n);
	struct api_list list;

	api_list_begin_named(&list, req);
	for (size_t i = 0; i < n; i++)
		if (api_prefix_fits(req, all[i]->name) &&
		    api_permits(req, ACL_NAMESPACE, all[i]->name))
			api_list_add(&list, &namespace_type, &local_namespace_of(all[i])->ns);
	api_list_reply(&list, req);
}

static struct local_namespace *
find_namespace(struct sup *sup, struct api_req *req)
{
	struct local_namespace *n = local_namespace_find(local_of_sup(sup), api_param(req, 0));

	if (!n)
		api_reply_error(req, 404, "Namespace not found");
	return n;
}

void
local_api_get_namespace(struct sup *sup, struct api_req *req)
{
	struct local_namespace *n = find_namespace(sup, req);

	if (n)
		api_reply_model(req, &namespace_type, &n->ns);
}

static bool
name_is_valid(const char *name)
{
	size_t len = strlen(name);

	return len > 0 && len <= NAME_MAX_LEN &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") ==
		   len;
}

static int
check_namespace(const struct namespace *ns, const char *name, struct err *e)
{
	struct problems p = { 0 };
	int r;

	if (name && strcmp(name, str(ns->name)) != 0)
		model_problem(&p, "namespace name \"%.140s\" does not match the name in the path",
		    str(ns->name));
	if (!name_is_valid(str(ns->name)))
		model_problem(&p,
		    "namespace name \"%.140s\" must have 1 to %d letters, digits and '-'",
		    str(ns->name), NAME_MAX_LEN);
	if (strlen(str(ns->description)) > DESCRIPTION_MAX_LEN)
		model_problem(&p, "description longer than %d", DESCRIPTION_MAX_LEN);
	if (*str(ns->quota))
		model_problem(&p, "there are no quotas");
	if (ns->node_pools)
		model_problem(&p, "there are no node pools: this is the only node");
	if (ns->vault || ns->consul)
		model_problem(&p, "Vault and Consul are not supported");
	r = problems_err(&p, e);
	problems_done(&p);
	return r;
}

void
local_api_put_namespace(struct sup *sup, struct api_req *req)
{
	cleanup_done(namespace) struct namespace ns;
	struct err e = { 0 };
	const json_t *body = api_body(req, &e);
	int r = body ? 0 : -EINVAL;

	namespace_init(&ns);
	if (r == 0)
		r = model_from_json(&namespace_type, body, &ns, &e);
	if (r == 0)
		r = check_namespace(&ns, api_param(req, 0), &e);
	if (r < 0) {
		api_reply_error(req, 400, "%s", e.msg);
		return;
	}
	local_namespace_put(local_of_sup(sup), &ns);
	api_reply_json(req, json_null());
}

/* Returns 0 if the namespace can be deleted: its jobs are dead, and it has no volumes and
 * no variables. */
static int
check_unused(struct local *l, const struct local_namespace *ns, struct err *e)
{
	size_t n_jobs, n_volumes, n_variables;
	cleanup_free struct local_key **jobs = local_jobs_sorted(l, &n_jobs);
	cleanup_free struct local_key **volumes = local_volumes_sorted(l, &n_volumes);
	const char *name = ns->key.name;
	cleanup_free struct local_key **variables =
	    local_variables_select(l, name, "", &n_variables);

	if (strcmp(name, LOCAL_NAMESPACE_DEFAULT) == 0)
		return err_say(e, -EBUSY, "the default namespace cannot be deleted");
	for (size_t i = 0; i < n_jobs; i++) {
		const struct local_job *j = local_job_of(jobs[i]);

		if (!j->purge && strcmp(local_job_wanted(j)->namespace, name) == 0 &&
		    local_job_status(j) != JOB_DEAD)
			return err_say(e, -EBUSY,
			    "namespace \"%s\" has a job that is not dead: \"%s\"; stop its jobs "
			    "before it is deleted",
			    name, local_job_wanted(j)->id);
	}
	for (size_t i = 0; i < n_volumes; i++) {
		const struct csi_volume *vol = &local_volume_of(volumes[i])->vol;

		if (strcmp(str(vol->namespace), name) == 0)
			return err_say(e, -EBUSY,
			    "namespace \"%s\" has a volume: \"%s\"; delete or deregister its "
			    "volumes before it is deleted",
			    name, vol->id);
	}
	if (n_variables > 0)
		return err_say(e, -EBUSY,
		    "namespace \"%s\" has a variable: \"%s\"; purge its variables before it is "
		    "deleted",
		    name, local_variable_of(variables[0])->var.path);
	return 0;
}

/* Purges the jobs of the namespace, which are dead, with their history. */
static void
purge_jobs(struct local *l, const char *name)
{
	size_t n;
	cleanup_free struct local_key **jobs = local_jobs_sorted(l, &n);

	for (size_t i = 0; i < n; i++) {
		struct local_job *j = local_job_of(jobs[i]);

		if (!j->purge && strcmp(local_job_wanted(j)->namespace, name) == 0)
			local_job_purge(l, j);
	}
}

void
local_api_delete_namespace(struct sup *sup, struct api_req *req)
{
	struct local *l = local_of_sup(sup);
	struct local_namespace *n = find_namespace(sup, req);
	struct err e = { 0 };

	if (!n)
		return;
	if (check_unused(l, n, &e) < 0) {
		api_reply_error(req, 409, "%s", e.msg);
		return;
	}
	purge_jobs(l, n->key.name);
	local_namespace_forget(l, n);
	api_reply_json(req, json_null());
}

static bool
is_permitted(const struct strings *enabled, const struct strings *disabled, const char *name)
{
	return (enabled->n == 0 || strings_has(enabled, name)) && !strings_has(disabled, name);
}

static void
check_group(const struct namespace *ns, const struct task_group *g, struct problems *p)
{
	const struct namespace_capabilities *c = ns->capabilities;

	for (size_t i = 0; i < g->tasks.n; i++)
		if (!is_permitted(
			&c->enabled_drivers, &c->disabled_drivers, str(g->tasks.v[i].driver)))
			model_problem(p,
			    "group \"%s\", task \"%s\": namespace \"%s\" does not permit the "
			    "driver %s",
			    str(g->name), str(g->tasks.v[i].name), ns->name,
			    str(g->tasks.v[i].driver));
	for (size_t i = 0; i < g->networks.n; i++) {
		const char *mode = str(g->networks.v[i].mode);

		if (!is_permitted(&c->enabled_modes, &c->disabled_modes, *mode ? mode : "host"))
			model_problem(p,
			    "group \"%s\": namespace \"%s\" does not permit the network mode %s",
			    str(g->name), ns->name, *mode ? mode : "host");
	}
}

void
local_api_check_namespace(struct local *l, const struct job *job, struct problems *p)
{
	const struct local_namespace *n = local_namespace_find(l, str(job->namespace));

	if (!n) {
		model_problem(p, "job \"%.140s\" is in nonexistent namespace \"%.140s\"",
		    str(job->id), str(job->namespace));
		return;
	}
	for (size_t i = 0; n->ns.capabilities && i < job->task_groups.n; i++)
		check_group(&n->ns, &job->task_groups.v[i], p);
}
