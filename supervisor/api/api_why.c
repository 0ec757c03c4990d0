// SPDX-License-Identifier: Apache-2.0
/* api_why.c: /v1/client/allocation/:id/why, drover's own. Runs in: supervisor. */

#include <string.h>

#include "common/utf8.h"
#include "supervisor/api/api_routes.h"
#include "supervisor/alloc/alloc_why.h"
#include "supervisor/api/alloc_view.h"

static json_t *
show_cause(const struct cause *cause)
{
	char text[4096];

	/* The text may quote a task or a check; it must be made valid UTF-8, because jansson
	 * refuses other bytes. */
	(void)utf8_sanitize(text, sizeof text, cause->text, strlen(cause->text));
	return json_pack("{s:I, s:s, s:s}", "Time", (json_int_t)cause->time_ns, "Task", cause->task,
	    "Text", text);
}

void
api_get_alloc_why(struct sup *sup, struct api_req *req)
{
	struct sup_alloc *sa = api_alloc(req);
	json_t *list = json_array();
	struct err e = { 0 };
	struct causes causes;
	int r;

	if (!sa) {
		json_decref(list);
		api_reply_error(req, 404, "Unknown allocation \"%.64s\"", api_param(req, 0));
		return;
	}
	r = alloc_why(sup, sa, &causes, &e);
	for (size_t i = 0; r >= 0 && i < causes.n; i++)
		(void)json_array_append_new(list, show_cause(&causes.v[i]));
	causes_done(&causes);
	if (r >= 0) {
		api_reply_json(
		    req, json_pack("{s:s, s:s, s:s, s:s, s:s, s:o}", "ID", str(sa->a.id), "Name",
			     str(sa->a.name), "JobID", str(sa->a.job_id), "ClientStatus",
			     client_status_names[sa->a.client_status], "DesiredStatus",
			     desired_status_names[sa->a.desired_status], "Causes", list));
		return;
	}
	json_decref(list);
	api_reply_error(req, 500, "%s", e.msg);
}
