// SPDX-License-Identifier: Apache-2.0
/* local_api_system.c: search, regions, garbage collection, and the reasons why other
 * paths of the servers' API are not supported. Runs in: supervisor. */
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/acl/acl_rules.h"
#include "supervisor/http/api_router.h"
#include "supervisor/node/node_state.h"
#include "supervisor/server/api/local_api.h"
#include "supervisor/server/api/local_gate.h"
#include "supervisor/server/deploy/local_deployment.h"
#include "supervisor/server/drive/local_age.h"
#include "supervisor/volume/plugins.h"
#include "supervisor/server/job/local_job_view.h"
#include "supervisor/server/variable/local_variables.h"

#define MATCHES_MAX 20

struct search {
	const char *prefix;
	const struct api_req *req;
	enum acl_need need;
	json_t *found; /* the matches of one context */
	bool more;
};

/* Adds the id if it matches. namespace is NULL for a kind without namespaces. */
static void
add_match(struct search *s, const char *id, const char *namespace)
{
	if (strncmp(id, s->prefix, strlen(s->prefix)) != 0 ||
	    (namespace && !(api_namespace_fits(s->req, namespace) &&
			      api_permits(s->req, s->need, namespace))))
		return;
	if (json_array_size(s->found) < MATCHES_MAX)
		(void)json_array_append_new(s->found, json_string(id));
	else
		s->more = true;
}

static void
search_allocs(struct sup *sup, struct search *s)
{
	alloc_foreach(sup, sa)
	{
		add_match(s, str(sa->a.id), str(sa->a.namespace));
	}
}

static void
search_deployments(struct sup *sup, struct search *s)
{
	size_t n;
	cleanup_free struct local_key **all = local_deployments_sorted(local_of_sup(sup), &n);

	for (size_t i = 0; i < n; i++) {
		const struct local_deployment *dep = local_deployment_of(all[i]);

		if (!dep->job->purge)
			add_match(s, dep->d.id, str(dep->d.namespace));
	}
}

static void
search_evals(struct sup *sup, struct search *s)
{
	for (const struct local_eval *ev = local_eval_newest(local_of_sup(sup)); ev;
	     ev = LIST_NEXT(ev, older))
		add_match(s, ev->ev.id, str(ev->ev.namespace));
}

static void
search_jobs(struct sup *sup, struct search *s)
{
	size_t n;
	cleanup_free struct local_key **all = local_jobs_sorted(local_of_sup(sup), &n);

	for (size_t i = 0; i < n; i++) {
		const struct local_job *j = local_job_of(all[i]);

		if (!j->purge)
			add_match(s, local_job_wanted(j)->id, local_job_wanted(j)->namespace);
	}
}

static void
search_nodes(struct sup *sup, struct search *s)
{
	add_match(s, str(node_get(sup)->id), NULL);
}

static void
search_plugins(struct sup *sup, struct search *s)
{
	const char *last = "";

	for (struct plugin *p = plugin_next(sup, NULL); p; p = plugin_next(sup, p)) {
		if (strcmp(plugin_id(p), last) != 0)
			add_match(s, plugin_id(p), NULL);
		last = plugin_id(p);
	}
}

static void
search_volumes(struct sup *sup, struct search *s)
{
	size_t n;
	cleanup_free struct local_key **all = local_volumes_sorted(local_of_sup(sup), &n);

	for (size_t i = 0; i < n; i++) {
		const struct local_volume *lv = local_volume_of(all[i]);

		add_match(s, lv->vol.id, lv->vol.namespace);
	}
}

static void
search_variables(struct sup *sup, struct search *s)
{
	size_t n;
	cleanup_free struct local_key **all =
	    local_variables_select(local_of_sup(sup), api_namespace(s->req), s->prefix, &n);

	for (size_t i = 0; i < n; i++) {
		const struct variable *var = &local_variable_of(all[i])->var;

		if (local_gate_permits_variable(
			s->req, var->namespace, var->path, ACL_VARIABLE_LIST))
			add_match(s, var->path, NULL);
	}
}

static const struct {
	const char *name;
	void (*search)(struct sup *sup, struct search *s);
	enum acl_need need;
} contexts[] = {
	{ "allocs", search_allocs, ACL_READ_JOB },
	{ "deployment", search_deployments, ACL_READ_JOB },
	{ "evals", search_evals, ACL_READ_JOB },
	{ "jobs", search_jobs, ACL_READ_JOB },
	{ "nodes", search_nodes, ACL_NODE_READ },
	{ "plugins", search_plugins, ACL_PLUGIN_LIST },
	{ "vars", search_variables, ACL_VALID },
	{ "volumes", search_volumes, ACL_LIST_VOLUMES },
};

/* ACL_VALID: each object has a permission of its own. */
static bool
may_search(const struct api_req *req, enum acl_need need)
{
	return need == ACL_VALID || api_permits(req, need, api_namespace(req));
}

/* Returns whether the request names a context that its token may not search. */
static bool
is_refused(const struct api_req *req, const char *wanted)
{
	for (size_t i = 0; i < ELEMENTSOF(contexts); i++)
		if (strcmp(wanted, contexts[i].name) == 0)
			return !may_search(req, contexts[i].need);
	return false;
}

/* Answers with the ids that have a prefix, of one kind or of all, at most MATCHES_MAX of each. */
void
local_api_search(struct sup *sup, struct api_req *req)
{
	struct err e = { 0 };
	const json_t *body = api_body(req, &e);
	const char *prefix = json_string_value(json_object_get(body, "Prefix"));
	const char *wanted = json_string_value(json_object_get(body, "Context")) ?: "all";
	json_t *matches, *truncations;
	bool all = !*wanted || strcmp(wanted, "all") == 0, known = all;

	if (!prefix) {
		api_reply_error(req, 400, "%s", body ? "the body has no text Prefix" : e.msg);
		return;
	}
	if (is_refused(req, wanted)) {
		local_gate_refuse(sup, req);
		return;
	}
	matches = json_object();
	truncations = json_object();
	for (size_t i = 0; i < ELEMENTSOF(contexts); i++) {
		struct search s = { .prefix = prefix,
			.req = req,
			.need = contexts[i].need,
			.found = json_array() };
		bool is_wanted = all || strcmp(wanted, contexts[i].name) == 0;

		known |= is_wanted;
		if (is_wanted && may_search(req, s.need))
			contexts[i].search(sup, &s);
		(void)json_object_set_new(
		    truncations, contexts[i].name, json_boolean(is_wanted && s.more));
		if (json_array_size(s.found) > 0)
			(void)json_object_set(matches, contexts[i].name, s.found);
		json_decref(s.found);
	}
	if (known) {
		api_reply_json(
		    req, json_pack("{s:o, s:o, s:I, s:i, s:b}", "Matches", matches, "Truncations",
			     truncations, "Index", (json_int_t)local_of_sup(sup)->index,
			     "LastContact", 0, "KnownLeader", 1));
		return;
	}
	json_decref(matches);
	json_decref(truncations);
	api_reply_error(req, 400, "there is no context \"%.40s\" for a search", wanted);
}

void
local_api_list_regions(struct sup *sup, struct api_req *req)
{
	const char *region = sup->config->region;

	api_reply_json(req, json_pack("[s]", region[0] ? region : "global"));
}

/* Returns true if no alloc of the job will ever start again by itself. */
static bool
is_finished(const struct local_job *j)
{
	const struct job *job = local_job_wanted(j);
	bool once = (job->type == JOB_BATCH || job->type == JOB_SYSBATCH) && !job_is_parent(job);

	return !j->purge && (job->stop || once) && local_job_status(j) == JOB_DEAD;
}

/* Collects allocs and evaluations that are over, and purges jobs that are stopped or done, without
 * waiting for their thresholds. */
void
local_api_collect_system(struct sup *sup, struct api_req *req)
{
	struct local *l = local_of_sup(sup);
	size_t n;
	cleanup_free struct local_key **jobs = local_jobs_sorted(l, &n);

	alloc_foreach(sup, sa)
	{
		(void)local_alloc_collect(sup->source, sa);
	}
	for (size_t i = 0; i < n; i++) {
		struct local_job *j = local_job_of(jobs[i]);

		if (is_finished(j))
			local_job_purge(l, j);
	}
	local_age_collect(l);
	api_reply_json(req, json_null());
}

/* Summaries are counted for each request, so they are always right. */
void
local_api_reconcile_summaries(struct sup *sup, struct api_req *req)
{
	api_reply_json(req, json_null());
}

void
local_api_no_pools(struct sup *sup, struct api_req *req)
{
	api_reply_error(req, 501, "%s", local_elsewhere("/v1/node/pools"));
}

/* Reasons for the 501 of paths that only servers answer. They are not a column of api_paths.def,
 * because one reason covers many paths, including those that later servers add. */
static const struct api_absent absent[] = {
	{ "/v1/acl/auth-method*", "auth methods are not supported: make tokens instead" },
	{ "/v1/acl/binding-rule*", "binding rules are not supported: give roles to tokens" },
	{ "/v1/acl/login", "auth methods are not supported: make tokens instead" },
	{ "/v1/acl/oidc/*", "auth methods are not supported: make tokens instead" },
	{ "/v1/acl/identity/*", "this is the only node: no other needs an introduction" },
	{ "/v1/acl/token/onetime*", "one-time tokens are not supported: there is no web page" },
	{ "/v1/agent/*", "this agent works alone: it has no servers and knows no other agents" },
	{ "/v1/client/allocation/*/pause", "schedules of tasks are not supported" },
	{ "/v1/client/allocation/*/snapshot",
	    "this is the only node: disks do not move to another" },
	{ "/v1/client/identity*",
	    "the node has no identity: the embedded server signs only the tokens of tasks" },
	{ "/v1/deployment/unblock/*", "there is only one region: no deployment waits for another" },
	{ "/v1/evaluations/count", "counting evaluations is not supported: list them" },
	{ "/v1/job/*/stable", "a version becomes stable when its deployment succeeds" },
	{ "/v1/jobs/statuses", "job statuses are not supported yet: list the jobs" },
	{ "/v1/node/pool*", "there are no node pools: this is the only node" },
	{ "/v1/node/*/evaluate", "this is the only node: evaluate jobs instead" },
	{ "/v1/node/*/purge", "this is the only node: it cannot be purged" },
	{ "/v1/operator/*", "this agent works alone: it has no servers to operate" },
	{ "/v1/quota*", "there are no quotas" },
	{ "/v1/recommendation*", "there are no recommendations" },
	{ "/v1/scaling/*", "scaling policies are stored in their jobs, but have no effect" },
	{ "/v1/search/fuzzy", "only prefixes can be searched: /v1/search" },
	{ "/v1/sentinel/*", "there are no policies" },
	{ "/v1/status/*", "this agent works alone: it has no servers" },
	{ "/v1/volume/host/*", "host volumes are defined in the configuration" },
	{ 0 },
};

const char *
local_elsewhere(const char *target)
{
	return api_absent_reason(absent, target);
}
