// SPDX-License-Identifier: Apache-2.0
/* api_alloc.c: /v1/allocations and /v1/allocation/:id. Runs in: supervisor. */
#include "supervisor/table/alloc_table.h"
#include "supervisor/alloc/task_history.h"
#include "supervisor/api/alloc_view.h"
#include "supervisor/http/api.h"
#include "supervisor/http/api_list.h"
#include "supervisor/api/api_node.h"
#include "supervisor/api/api_routes.h"

void
api_list_allocs(struct sup *sup, struct api_req *req)
{
	struct api_list list;

	api_list_begin(&list, req);
	alloc_foreach(sup, sa)
	{
		if (api_prefix_fits(req, str(sa->a.id)) &&
		    api_namespace_fits(req, str(sa->a.namespace)))
			api_list_add_alloc(&list, sa);
	}
	api_list_reply(&list, req);
}

void
api_get_alloc(struct sup *sup, struct api_req *req)
{
	struct sup_alloc *sa = api_alloc(req);
	struct alloc view;

	if (!sa) {
		api_reply_error(req, 404, "alloc not found");
		return;
	}
	alloc_view_init(&view, sa);
	api_reply_model(req, &alloc_type, &view);
	alloc_view_done(&view);
}

/* Lists all stored events of an alloc's tasks; the alloc itself has the last ten. This path exists
 * only in drover. */
void
api_get_events(struct sup *sup, struct api_req *req)
{
	struct sup_alloc *sa = api_alloc(req);
	struct text json = { 0 };
	struct err e = { 0 };
	int r = 0;

	if (!sa) {
		api_reply_error(req, 404, "alloc not found");
		return;
	}
	text_append(&json, "{", 1);
	for (size_t i = 0; r >= 0 && i < sa->a.task_states.n; i++) {
		const char *task = sa->a.task_states.v[i].key;

		text_append(&json, ",", i > 0);
		text_json_string(&json, task);
		text_append(&json, ":[", 2);
		r = task_history_print(sup, sa, task, &json, &e);
		text_append(&json, "]", 1);
	}
	text_append(&json, "}", 1);
	if (r >= 0) {
		api_reply_take(req, &json);
		return;
	}
	text_done(&json);
	api_reply_error(req, 500, "%s", e.msg);
}
