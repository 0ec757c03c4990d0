// SPDX-License-Identifier: Apache-2.0
/* api_alloc.c: /v1/allocations and /v1/allocation/:id. Runs in: supervisor. */
#include "supervisor/alloc/alloc_table.h"
#include "supervisor/api/api.h"
#include "supervisor/api/api_list.h"
#include "supervisor/api/api_node.h"
#include "supervisor/api/api_orders.h"

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
	struct sup_alloc *sa;
	struct alloc view;
	struct id id;

	sa = id_from_uuid(api_param(req, 0), &id) ? alloc_find(sup, &id) : NULL;
	if (!sa) {
		api_reply_error(req, 404, "alloc not found");
		return;
	}
	/* The table keeps the job apart; the API shows it inside. */
	view = sa->a;
	view.job = &sa->job->job;
	api_reply_model(req, &alloc_type, &view);
}

const struct api_route api_alloc_routes[] = {
	{ "GET", "/v1/allocations", api_list_allocs, false },
	{ "GET", "/v1/allocation/:id", api_get_alloc, false },
	{ "PUT", "/v1/client/allocation/:id/restart", api_restart_alloc, true },
	{ "PUT", "/v1/client/allocation/:id/signal", api_signal_alloc, true },
	{ 0 },
};
