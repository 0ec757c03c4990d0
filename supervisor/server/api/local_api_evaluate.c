// SPDX-License-Identifier: Apache-2.0
/* local_api_evaluate.c: evaluates a job again, or validates one without registering it. Runs in:
 * supervisor. */
#include <errno.h>

#include "supervisor/server/api/local_api.h"
#include "supervisor/server/api/local_gate.h"
#include "supervisor/server/place/local_reconcile.h"

/* Compares the job with its allocs. With ForceReschedule, allocs that ended by themselves are
 * replaced.
 */
void
local_api_evaluate_job(struct sup *sup, struct api_req *req)
{
	struct local *l = local_of_sup(sup);
	struct local_job *j = local_api_find_job(sup, req);
	struct err e = { 0 };
	const json_t *body, *options;
	struct local_eval *ev;

	if (!j)
		return;
	body = api_body(req, &e);
	options = json_object_get(body, "EvalOptions");
	if (!body && e.code != -ENODATA) {
		api_reply_error(req, 400, "%s", e.msg);
		return;
	}
	if (job_is_parent(local_job_wanted(j))) {
		api_reply_error(req, 400,
		    "can't evaluate a periodic or parameterized job: only its children have "
		    "allocations");
		return;
	}
	ev = local_eval_new(l, j, "job-register");
	local_reconcile_job(l, j, ev, json_is_true(json_object_get(options, "ForceReschedule")));
	local_api_reply_eval(sup, req, ev, local_job_wanted(j)->job_modify_index, "");
}

/* Answers whether the job could be registered. */
void
local_api_validate_job(struct sup *sup, struct api_req *req)
{
	cleanup_done(job) struct job job;
	struct problems warn = { 0 }, faults = { 0 };
	cleanup_free char *warnings = NULL, *text = NULL;
	struct err e = { 0 };
	const json_t *body = api_body(req, &e);
	json_t *list = json_null();
	int r;

	job_init(&job);
	if (!json_is_object(json_object_get(body, "Job"))) {
		api_reply_error(req, 400, "%s", body ? "the body has no object Job" : e.msg);
		return;
	}
	r = local_api_read_job(sup, req, &job, &warn, &faults);
	if (r < 0)
		list = json_array();
	for (size_t i = 0; i < faults.list.n; i++)
		(void)json_array_append_new(list, json_string(faults.list.v[i]));
	warnings = problems_text(&warn);
	text = problems_text(&faults);
	problems_done(&warn);
	problems_done(&faults);
	if (r == -EPERM) {
		json_decref(list);
		local_gate_refuse(sup, req);
		return;
	}
	api_reply_json(req, json_pack("{s:b, s:o, s:s, s:s}", "DriverConfigValidated", 1,
				"ValidationErrors", list, "Error", text, "Warnings", warnings));
}
