// SPDX-License-Identifier: Apache-2.0
/* local_api_detach.c: deregisters volumes, and detaches them from the node. Runs in: supervisor. */
#include <string.h>

#include "supervisor/node/node_state.h"
#include "supervisor/server/api/local_api.h"
#include "supervisor/server/claim/local_claims.h"

void
local_api_deregister_volume(struct sup *sup, struct api_req *req)
{
	struct local_volume *lv = local_api_find_volume(sup, req);
	struct err e = { 0 };
	bool force = false;

	if (!lv)
		return;
	if (api_query_bool(req, "force", &force, &e) < 0) {
		api_reply_error(req, 400, "invalid force value");
		return;
	}
	if (!force || lv->busy || !local_volume_abandon(local_of_sup(sup), lv)) {
		if (!local_api_check_unused(req, lv))
			return;
		local_volume_forget(local_of_sup(sup), lv);
	}
	api_reply_text(req, 200, "application/json", "", 0);
}

/* Releases the claims of allocations that have ended, whose release the plugin does not permit. */
void
local_api_detach_volume(struct sup *sup, struct api_req *req)
{
	struct local_volume *lv = local_api_find_volume(sup, req);
	const char *node = api_query(req, "node"), *holder;
	size_t released;

	if (!lv)
		return;
	if (!node || !*node) {
		api_reply_error(req, 400, "detach requires node ID");
		return;
	}
	if (strcmp(node, node_get(sup)->id) != 0) {
		api_reply_error(req, 404,
		    "no node \"%.140s\": volume \"%s\" can only be on node %s", node, lv->vol.id,
		    node_get(sup)->id);
		return;
	}
	released = local_volume_detach(local_of_sup(sup), lv, &holder);
	if (released == 0 && holder)
		api_reply_error(req, 409,
		    "volume in use: %s (by allocation %s, which runs: stop it first)", lv->vol.id,
		    holder);
	else
		api_reply_text(req, 200, "application/json", "", 0);
}
