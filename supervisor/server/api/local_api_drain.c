// SPDX-License-Identifier: Apache-2.0
/* local_api_drain.c: drains of the node over the API. Runs in: supervisor. */
#include "supervisor/api/api_node.h"
#include "supervisor/server/api/local_api.h"
#include "supervisor/server/place/local_drain.h"

void
local_api_drain_node(struct sup *sup, struct api_req *req)
{
	struct local *l = local_of_sup(sup);
	struct err e = { 0 };
	struct drain_strategy drain = { 0 };
	const json_t *body, *spec;

	if (!api_is_this_node(sup, req))
		return;
	body = api_body(req, &e);
	spec = json_object_get(body, "DrainSpec");
	if (!json_is_object(body) || (spec && !json_is_object(spec) && !json_is_null(spec))) {
		api_reply_error(req, 400, "%s",
		    body ? "DrainSpec must be an object, or null to end the drain" : e.msg);
		return;
	}
	if (json_is_object(spec) && model_from_json(&drain_strategy_type, spec, &drain, &e) < 0) {
		api_reply_error(req, 400, "DrainSpec: %s", e.msg);
		return;
	}
	if (json_is_object(spec))
		local_drain_begin(l, &drain);
	else
		local_drain_cancel(l, json_is_true(json_object_get(body, "MarkEligible")));
	api_reply_node_change(sup, req);
}
