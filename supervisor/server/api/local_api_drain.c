// SPDX-License-Identifier: Apache-2.0
/* local_api_drain.c: drains of the node over the API. Runs in: supervisor. */
#include <errno.h>

#include "supervisor/api/api_node.h"
#include "supervisor/server/api/local_api.h"
#include "supervisor/server/place/local_drain.h"

static int
begin_drain(struct local *l, const json_t *spec, struct err *e)
{
	struct drain_strategy drain = { 0 };
	int r = model_from_json(&drain_strategy_type, spec, &drain, e);

	return r < 0 ? r : local_drain_begin(l, &drain, e);
}

void
local_api_drain_node(struct sup *sup, struct api_req *req)
{
	struct local *l = local_of_sup(sup);
	struct err e = { 0 };
	const json_t *body, *spec;
	int r = 0;

	if (!api_is_this_node(sup, req))
		return;
	body = api_body(req, &e);
	spec = json_object_get(body, "DrainSpec");
	if (!json_is_object(body) || (spec && !json_is_object(spec) && !json_is_null(spec))) {
		api_reply_error(req, 400, "%s",
		    body ? "DrainSpec must be an object, or null to end the drain" : e.msg);
		return;
	}
	if (json_is_object(spec))
		r = begin_drain(l, spec, &e);
	else
		local_drain_cancel(l, json_is_true(json_object_get(body, "MarkEligible")));
	if (r < 0)
		api_reply_error(req, r == -EINVAL ? 400 : 500, "DrainSpec: %s", e.msg);
	else
		api_reply_node_change(sup, req);
}
