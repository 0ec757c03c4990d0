// SPDX-License-Identifier: Apache-2.0
/* api_checks.c: /v1/client/allocation/:id/checks. Runs in: supervisor. */

#include "supervisor/api/api_routes.h"
#include "supervisor/alloc/hook_checks.h"
#include "supervisor/api/alloc_view.h"

void
api_get_alloc_checks(struct sup *sup, struct api_req *req)
{
	struct sup_alloc *sa = api_alloc(req);
	struct text t = { 0 };
	const char *sep = "{";

	if (!sa) {
		api_reply_error(req, 404, "Unknown allocation \"%s\"", api_param(req, 0));
		return;
	}
	for (const struct check *c = sa->runner ? checks_next(alloc_checks(sa->runner), NULL)
						: NULL;
	     c; c = checks_next(alloc_checks(sa->runner), c)) {
		text_printf(&t, "%s", sep);
		text_json_string(&t, str(check_result(c)->id));
		text_append(&t, ":", 1);
		model_to_text(&check_result_type, check_result(c), api_model_flags(req), &t);
		sep = ",";
	}
	text_printf(&t, "%s", *sep == '{' ? "null" : "}");
	api_reply_take(req, &t);
}
