// SPDX-License-Identifier: Apache-2.0
/* local_api.c: the table of handlers, evaluations over the API, and stopping an alloc. Runs in:
 * supervisor. */
#include "supervisor/server/api/local_api.h"
#include "supervisor/http/api_paths.h"
#include "supervisor/api/api_routes.h"
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

void
local_api_list_evals(struct sup *sup, struct api_req *req)
{
	struct api_list list;

	api_list_begin(&list, req);
	for (struct local_eval *ev = local_eval_newest(local_of_sup(sup)); ev;
	     ev = LIST_NEXT(ev, older)) {
		if (api_prefix_fits(req, ev->ev.id) &&
		    api_namespace_fits(req, str(ev->ev.namespace)))
			api_list_add(&list, &eval_type, &ev->ev);
	}
	api_list_reply(&list, req);
}

void
local_api_get_eval(struct sup *sup, struct api_req *req)
{
	struct local_eval *ev = find_eval(sup, req);

	if (ev)
		api_reply_model(req, &eval_type, &ev->ev);
}

void
local_api_get_eval_allocs(struct sup *sup, struct api_req *req)
{
	struct local_eval *ev = find_eval(sup, req);

	if (ev)
		local_api_reply_allocs(req, ev->job, ev->ev.id, NULL);
}

void
local_api_reply_allocs(
    struct api_req *req, struct local_job *j, const char *eval_id, const char *deployment_id)
{
	struct local_alloc *la = j ? LIST_FIRST(&j->allocs) : NULL;
	struct api_list list;

	api_list_begin(&list, req);
	for (; la; la = LIST_NEXT(la, of_job)) {
		const struct alloc *a = &la->sa->a;

		if ((!eval_id || str_eq(a->eval_id, eval_id)) &&
		    (!deployment_id || str_eq(a->deployment_id, deployment_id)))
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

/* Answers as soon as the request is durable; the evaluation is closed when the replacement is
 * placed.
 */
void
local_api_stop_alloc(struct sup *sup, struct api_req *req)
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
	if (no_delay)
		local_alloc_skip_delay(l, la);
	local_alloc_stop(l, la, "alloc was stopped by an operator");
	local_reconcile_slot(l, la->slot, ev);
	local_api_reply_eval(sup, req, ev, local_job_wanted(la->job)->job_modify_index, "");
}

static api_handler *const handlers[API_PATHS] = {
#define API_PATH(method, pattern, durable, need, index, agent, server, ...) server,
#include "supervisor/http/api_paths.def"
#undef API_PATH
};

api_handler *
local_api_handler(unsigned path)
{
	return handlers[path] == api_none ? NULL : handlers[path];
}
