// SPDX-License-Identifier: Apache-2.0
/* api_stats.c: /v1/client/stats and /v1/client/allocation/:id/stats. Runs in: supervisor. */

#include <errno.h>

#include "supervisor/api/api_routes.h"
#include "supervisor/alloc/usage.h"
#include "supervisor/node/node_state.h"

static void
on_usage(struct sup *sup, void *arg, const struct host_stats *host, const struct alloc_usage *alloc,
    const struct err *e)
{
	if (host)
		api_reply_model(arg, &host_stats_type, host);
	else if (alloc)
		api_reply_model(arg, &alloc_usage_type, alloc);
	else
		api_reply_error(arg, e->code == -ENOENT ? 404 : 500, "%s", e->msg);
}

void
api_get_host_stats(struct sup *sup, struct api_req *req)
{
	const char *node_id = api_query(req, "node_id");

	if (node_id && *node_id && !str_eq(node_id, node_get(sup)->id))
		api_reply_error(req, 404, "Unknown node \"%s\"", node_id);
	else
		usage_ask_host(sup, on_usage, req);
}

void
api_get_alloc_stats(struct sup *sup, struct api_req *req)
{
	const char *task = api_query(req, "task");
	struct id id;

	if (!id_from_uuid(api_param(req, 0), &id))
		api_reply_error(req, 404, "Unknown allocation \"%s\"", api_param(req, 0));
	else
		usage_ask_alloc(sup, &id, task ? task : "", on_usage, req);
}
