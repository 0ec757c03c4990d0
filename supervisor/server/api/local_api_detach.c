// SPDX-License-Identifier: Apache-2.0
/* local_api_detach.c: deregisters volumes, detaches them from the node, and shows their claims.
 * Runs in: supervisor. */
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/mem.h"
#include "supervisor/node/node_state.h"
#include "supervisor/server/api/local_api.h"
#include "supervisor/server/claim/claims.h"
#include "supervisor/server/claim/local_claims.h"
#include "supervisor/server/claim/local_release.h"

void
local_api_deregister_volume(struct sup *sup, struct api_req *req)
{
	struct local_volume *lv = local_api_find_volume(sup, req);
	cleanup_free char *forgotten = NULL;
	struct err e = { 0 };
	bool force = false;

	if (!lv)
		return;
	if (api_query_bool(req, "force", &force, &e) < 0) {
		api_reply_error(req, 400, "invalid force value");
		return;
	}
	if (!force || lv->busy || !local_volume_abandon(local_of_sup(sup), lv, &forgotten)) {
		if (!local_api_check_unused(req, lv))
			return;
		local_volume_forget(local_of_sup(sup), lv);
	}
	if (forgotten)
		api_reply_json(req, json_pack("{s:s}", "Warnings", forgotten));
	else
		api_reply_text(req, 200, "application/json", "", 0);
}

static void
on_released(struct sup *sup, void *arg, int r, const struct err *e)
{
	struct api_req *req = arg;

	if (r < 0)
		api_reply_error(req, 500, "%s", e->msg);
	else
		api_reply_text(req, 200, "application/json", "", 0);
}

/* Releases the claims of allocations that have ended: answers when they are, or with what that
 * waits for. */
void
local_api_detach_volume(struct sup *sup, struct api_req *req)
{
	struct local_volume *lv = local_api_find_volume(sup, req);
	const char *node = api_query(req, "node"), *holder;
	struct local *l = local_of_sup(sup);

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
	holder = local_volume_holder(l, lv);
	if (holder && !local_volume_is_left(l, lv))
		api_reply_error(req, 409,
		    "volume in use: %s (by allocation %s, which runs: stop it first)", lv->vol.id,
		    holder);
	else
		local_release_ask(l, lv, on_released, req);
}

static json_t *
claim_to_json(struct local *l, struct local_volume *lv, const struct csi_claim *c)
{
	struct claim_outlook look;

	local_claim_look(l, lv, c, &look);
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:s, s:s, s:I, s:I}",
	    "AllocationID", str(c->alloc_id), "NodeID", str(c->node_id), "ExternalNodeID",
	    str(c->external_node_id), "Mode", claim_mode_names[c->mode], "AccessMode",
	    csi_access_names[c->access_mode], "AttachmentMode",
	    csi_attachment_names[c->attachment_mode], "State", claim_state_names[look.state],
	    "Attached", claim_attach_names[c->attach], "Since", (json_int_t)c->since, "WaitsFor",
	    look.waits_for, "LastError", str(look.error), "Tries", (json_int_t)look.failures,
	    "NextTry",
	    (json_int_t)(look.next_ms ? clock_real_ns() + (int64_t)look.next_ms * 1000000 : 0));
}

/* Nomad's servers do not have this path, and never show claims. */
void
local_api_volume_claims(struct sup *sup, struct api_req *req)
{
	struct local_volume *lv = local_api_find_volume(sup, req);
	struct csi_claim *c;
	json_t *list;

	if (!lv)
		return;
	list = json_array();
	for (size_t i = 0; (c = volume_nth_claim(&lv->vol, i)); i++)
		(void)json_array_append_new(list, claim_to_json(local_of_sup(sup), lv, c));
	api_reply_json(req, list);
}
