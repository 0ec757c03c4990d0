// SPDX-License-Identifier: Apache-2.0
/* api_routes.c: which handler answers each path. Runs in: supervisor. */
#include "supervisor/api/api_routes.h"

#include "common/mem.h"
#include "supervisor/http/api_paths.h"

static api_handler *const handlers[API_PATHS] = {
#define API_PATH(method, pattern, durable, need, index, agent, ...) agent,
#include "supervisor/http/api_paths.def"
#undef API_PATH
};

/* The name in api_paths.def for "no handler"; it is never called. */
void
api_none(struct sup *sup, struct api_req *req)
{
	api_reply_error(req, 404, "resource not found");
}

struct api_route *
api_routes_make(const struct source_api *source)
{
	struct api_route *routes = mem_zeroed(API_PATHS + 1, sizeof *routes);
	unsigned i;

	for (i = 0; i < API_PATHS; i++) {
		api_handler *fn = source->handler(i);
		bool remote = fn && source->remote;

		if (!fn && handlers[i] != api_none)
			fn = handlers[i];
		routes[i] = (struct api_route){ api_paths[i].method, api_paths[i].pattern, fn,
			api_paths[i].durable && !remote, api_paths[i].durable == API_LAST };
	}
	return routes;
}
