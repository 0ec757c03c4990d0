// SPDX-License-Identifier: Apache-2.0
/* local_api.c: the routes of the local source, evaluations, and stopping an alloc. Runs
 * in: supervisor. */
#include "supervisor/server/api/local_api.h"
#include "supervisor/server/feed/local_events.h"
#include "supervisor/api/alloc_view.h"
#include "supervisor/server/place/local_reconcile.h"

#include <string.h>

static struct local_eval *
find_eval(struct sup *sup, struct api_req *req)
{
	struct local_eval *ev = local_eval_find(local_of_sup(sup), api_param(req, 0));

	if (!ev)
		api_reply_error(req, 404, "eval not found");
	return ev;
}

static void
list_evals(struct sup *sup, struct api_req *req)
{
	struct api_list list;

	api_list_begin(&list, req);
	for (struct local_eval *ev = local_eval_newest(local_of_sup(sup)); ev; ev = ev->prev) {
		if (api_prefix_fits(req, ev->ev.id) &&
		    api_namespace_fits(req, str(ev->ev.namespace)))
			api_list_add(&list, &eval_type, &ev->ev);
	}
	api_list_reply(&list, req);
}

static void
get_eval(struct sup *sup, struct api_req *req)
{
	struct local_eval *ev = find_eval(sup, req);

	if (ev)
		api_reply_model(req, &eval_type, &ev->ev);
}

static void
get_eval_allocs(struct sup *sup, struct api_req *req)
{
	struct local_eval *ev = find_eval(sup, req);
	struct api_list list;

	if (!ev)
		return;
	api_list_begin(&list, req);
	for (struct local_alloc *la = ev->job ? ev->job->allocs : NULL; la; la = la->next) {
		if (str_eq(la->sa->a.eval_id, ev->ev.id))
			api_list_add_alloc(&list, la->sa);
	}
	api_list_reply(&list, req);
}

void
local_api_reply_eval(struct sup *sup, struct api_req *req, const struct local_eval *ev,
    uint64_t job_index, const char *warnings)
{
	api_reply_json(req,
	    json_pack("{s:s, s:I, s:I, s:I, s:s, s:i, s:b}", "EvalID", ev ? ev->ev.id : "",
		"EvalCreateIndex", (json_int_t)(ev ? ev->ev.create_index : 0), "JobModifyIndex",
		(json_int_t)job_index, "Index", (json_int_t)local_of_sup(sup)->index, "Warnings",
		warnings, "LastContact", 0, "KnownLeader", 1));
}

/* Answers as soon as the request is durable; the evaluation ends when the replacement has
 * its place. */
static void
stop_alloc(struct sup *sup, struct api_req *req)
{
	struct local *l = local_of_sup(sup);
	struct sup_alloc *sa = api_alloc(req);
	struct local_alloc *la = sa ? local_alloc_of(sa) : NULL;
	struct local_eval *ev;
	struct err e = { 0 };
	bool no_delay = false;

	if (!la) {
		api_reply_error(req, 404, "alloc not found");
		return;
	}
	if (api_query_bool(req, "no_shutdown_delay", &no_delay, &e) < 0) {
		api_reply_error(req, 400, "%s", e.msg);
		return;
	}
	ev = local_eval_new(l, la->job, "alloc-stop");
	if (!ev) {
		api_reply_error(req, 500, "no memory to stop the allocation");
		return;
	}
	if (no_delay)
		local_alloc_hurry(l, la);
	local_alloc_stop(l, la, "alloc was stopped by an operator");
	local_reconcile_slot(l, la->slot, ev);
	local_api_reply_eval(sup, req, ev, local_job_wanted(la->job)->job_modify_index, "");
}

const struct api_route local_api_routes[] = {
	{ "GET", "/v1/jobs", local_api_list_jobs, false },
	{ "PUT", "/v1/jobs", local_api_register_job, true },
	{ "GET", "/v1/job/:id", local_api_get_job, false },
	{ "PUT", "/v1/job/:id", local_api_register_job, true },
	{ "DELETE", "/v1/job/:id", local_api_delete_job, true },
	{ "GET", "/v1/job/:id/allocations", local_api_job_allocs, false },
	{ "GET", "/v1/job/:id/evaluations", local_api_job_evals, false },
	{ "GET", "/v1/job/:id/summary", local_api_job_summary, false },
	{ "GET", "/v1/job/:id/versions", local_api_job_versions, false },
	{ "GET", "/v1/job/:id/actions", local_api_job_actions, false },
	{ "GET", "/v1/job/:id/deployment", local_api_job_deployment, false },
	{ "GET", "/v1/job/:id/deployments", local_api_job_deployments, false },
	{ "PUT", "/v1/job/:id/plan", local_api_plan_job, false },
	{ "PUT", "/v1/job/:id/revert", local_api_revert_job, true },
	{ "PUT", "/v1/job/:id/dispatch", local_api_dispatch_job, true },
	{ "PUT", "/v1/job/:id/periodic/force", local_api_force_job, true },
	{ "GET", "/v1/job/:id/scale", local_api_job_scale, false },
	{ "PUT", "/v1/job/:id/scale", local_api_scale_job, true },
	{ "PUT", "/v1/job/:id/evaluate", local_api_evaluate_job, true },
	{ "PUT", "/v1/validate/job", local_api_validate_job, false },
	{ "GET", "/v1/evaluations", list_evals, false },
	{ "GET", "/v1/evaluation/:id", get_eval, false },
	{ "GET", "/v1/evaluation/:id/allocations", get_eval_allocs, false },
	{ "GET", "/v1/deployments", local_api_list_deployments, false },
	{ "GET", "/v1/deployment/:id", local_api_get_deployment, false },
	{ "GET", "/v1/deployment/allocations/:id", local_api_deployment_allocs, false },
	{ "PUT", "/v1/deployment/promote/:id", local_api_promote_deployment, true },
	{ "PUT", "/v1/deployment/pause/:id", local_api_pause_deployment, true },
	{ "PUT", "/v1/deployment/fail/:id", local_api_fail_deployment, true },
	{ "PUT", "/v1/deployment/allocation-health/:id", local_api_set_alloc_health, true },
	{ "PUT", "/v1/allocation/:id/stop", stop_alloc, true },
	{ "GET", "/v1/event/stream", local_api_stream_events, false },
	{ "GET", "/v1/allocation/:id/services", local_api_alloc_services, false },
	{ "GET", "/v1/services", local_api_list_services, false },
	{ "GET", "/v1/service/:name", local_api_get_service, false },
	{ "DELETE", "/v1/service/:name/:id", local_api_delete_service, true },
	{ "GET", "/v1/volumes", local_api_list_volumes, false },
	{ "PUT", "/v1/volumes", local_api_register_volumes, true },
	{ "GET", "/v1/volumes/external", local_api_list_external, false },
	{ "GET", "/v1/volumes/snapshot", local_api_list_snapshots, false },
	{ "PUT", "/v1/volumes/snapshot", local_api_create_snapshot, true },
	{ "DELETE", "/v1/volumes/snapshot", local_api_delete_snapshot, true },
	{ "GET", "/v1/volume/csi/:id", local_api_get_volume, false },
	{ "PUT", "/v1/volume/csi/:id", local_api_register_volumes, true },
	{ "DELETE", "/v1/volume/csi/:id", local_api_deregister_volume, true },
	{ "PUT", "/v1/volume/csi/:id/create", local_api_create_volume, true },
	{ "DELETE", "/v1/volume/csi/:id/delete", local_api_delete_volume, true },
	{ "GET", "/v1/plugins", local_api_list_plugins, false },
	{ "GET", "/v1/plugin/csi/:id", local_api_get_plugin, false },
	{ "PUT", "/v1/search", local_api_search, false },
	{ "GET", "/v1/namespaces", local_api_list_namespaces, false },
	{ "GET", "/v1/namespace/:name", local_api_get_namespace, false },
	{ "GET", "/v1/regions", local_api_list_regions, false },
	{ "PUT", "/v1/system/gc", local_api_collect_system, true },
	{ "PUT", "/v1/system/reconcile/summaries", local_api_reconcile_summaries, false },
	{ "GET", "/v1/node/pools", local_api_no_pools, false },
	{ "PUT", "/v1/node/:id/drain", local_api_drain_node, true },
	{ 0 },
};
