// SPDX-License-Identifier: Apache-2.0
/* local_api_doctor.c: /v1/agent/volumes with the claims of the embedded server. Runs in:
 * supervisor. */
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/api/api_doctor.h"
#include "supervisor/server/api/local_api.h"
#include "supervisor/server/claim/claims.h"
#include "supervisor/server/claim/local_release.h"

static void
add_plugins(struct sup *sup, struct strings *ret)
{
	size_t n;
	cleanup_free struct local_key **volumes = local_volumes_sorted(local_of_sup(sup), &n);

	for (size_t i = 0; i < n; i++) {
		const char *plugin = str(local_volume_of(volumes[i])->vol.plugin_id);

		if (!strings_has(ret, plugin))
			strings_add(ret, plugin);
	}
}

static const json_t *
find_row(const json_t *page, const char *alloc)
{
	const json_t *row;
	size_t i;

	json_array_foreach (volume_page_list(page, "Mounts"), i, row)
		if (strcmp(volume_page_text(row, "AllocationID"), alloc) == 0)
			return row;
	return NULL;
}

/* --- claims --- */

static void
check_claim(struct local *l, struct local_volume *lv, const struct csi_claim *c, json_t *page)
{
	const char *alloc = str(c->alloc_id);
	const struct local_alloc *la = local_claimer(l, alloc);
	struct claim_outlook look;

	local_claim_look(l, lv, c, &look);
	if (local_claim_is_over(l, c))
		volume_page_problem(page, "claim-left", alloc, true, "-fix tries to release it",
		    "allocation %.8s, which %s, still claims it: %s", alloc,
		    la ? "has ended" : "does not exist any more",
		    *look.waits_for ? look.waits_for : "its release has not begun");
	else if (look.state == CLAIM_TAKEN && la && la->sa->a.client_status == CLIENT_RUNNING &&
		 !find_row(page, alloc))
		volume_page_problem(page, "claim-without-mount", alloc, false,
		    "stop the allocation: its replacement mounts the volume",
		    "allocation %.8s runs and claims it, but it is not mounted for it", alloc);
}

static void
add_claim(struct local *l, struct local_volume *lv, const struct csi_claim *c, json_t *claims)
{
	const struct local_alloc *la = local_claimer(l, str(c->alloc_id));
	struct claim_outlook look;

	local_claim_look(l, lv, c, &look);
	(void)json_array_append_new(claims,
	    json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:o}", "AllocationID", str(c->alloc_id),
		"AllocStatus", la ? client_status_names[la->sa->a.client_status] : "unknown",
		"NodeID", str(c->node_id), "Mode", claim_mode_names[c->mode], "AccessMode",
		csi_access_names[c->access_mode], "State", claim_state_names[look.state],
		"Attached", claim_attach_names[c->attach], "WaitsFor",
		volume_page_string(look.waits_for)));
}

static void
add_claims(struct local *l, struct local_volume *lv, json_t *page)
{
	json_t *claims = json_array();
	const struct csi_claim *c;

	for (size_t i = 0; (c = volume_nth_claim(&lv->vol, i)); i++) {
		add_claim(l, lv, c, claims);
		check_claim(l, lv, c, page);
	}
	(void)json_object_set_new(page, "Claims", claims);
}

/* Rows of allocations that are over are judged already. */
static void
check_rows(struct local *l, struct local_volume *lv, json_t *page)
{
	const json_t *row;
	size_t i;

	json_array_foreach (volume_page_list(page, "Mounts"), i, row) {
		const char *alloc = volume_page_text(row, "AllocationID");
		const struct local_alloc *la = local_claimer(l, alloc);

		if (la && !la->over && !volume_find_claim(&lv->vol, alloc))
			volume_page_problem(page, "mount-without-claim", alloc, false,
			    "stop the allocation: its replacement claims the volume first",
			    "it is %s for allocation %.8s, which has no claim",
			    volume_page_text(row, "Step"), alloc);
	}
}

/* --- what the plugin says about nodes --- */

/* Adds a problem if the plugin says that the volume is published on a node, and no claim explains
 * it. Without servers this is the only node, so a volume without claims and mounts can be detached
 * if the plugin names no other node. */
static void
check_node(struct local_volume *lv, json_t *page, const char *node, size_t n)
{
	const json_t *plugin = json_object_get(page, "Plugin");
	const char *me = volume_page_text(plugin, "NodeID");
	bool used = volume_in_use(&lv->vol) || lv->vol.past_claims.n > 0 || lv->work.calling ||
		    json_array_size(volume_page_list(page, "Mounts")) > 0;
	bool attaches = json_is_true(json_object_get(plugin, "Attaches"));

	if (*me && strcmp(node, me) != 0)
		volume_page_problem(page, "published-elsewhere", node, false,
		    "make sure that no other agent uses this volume",
		    "plugin %s says that it is published on node %s, which is not this node",
		    str(lv->vol.plugin_id), node);
	else if (*me && !used)
		volume_page_problem(page, "published-without-claim", node, attaches && n == 1,
		    attaches && n == 1 ? "-fix detaches it"
				       : "see the mounts of the plugin on this node",
		    "plugin %s says that it is published on this node (%s), but no allocation "
		    "claims it",
		    str(lv->vol.plugin_id), node);
}

static void
check_nodes(struct local_volume *lv, json_t *page)
{
	const json_t *nodes = json_object_get(json_object_get(page, "Plugin"), "PublishedNodes");
	const json_t *node;
	size_t i;

	json_array_foreach (nodes, i, node)
		check_node(lv, page, json_string_value(node), json_array_size(nodes));
}

/* --- pages and repairs --- */

static void
add_pages(struct sup *sup, const struct volume_facts *f, json_t *pages)
{
	struct local *l = local_of_sup(sup);
	size_t n;
	cleanup_free struct local_key **volumes = local_volumes_sorted(l, &n);

	for (size_t i = 0; i < n; i++) {
		struct local_volume *lv = local_volume_of(volumes[i]);
		const struct volume_subject s = { .namespace = str(lv->vol.namespace),
			.id = str(lv->vol.id),
			.plugin = str(lv->vol.plugin_id),
			.external_id = str(lv->vol.external_id) };
		json_t *page = volume_page_make(sup, f, &s);

		if (!*s.external_id && !lv->busy)
			volume_page_problem(page, "creation-unknown", "", false,
			    "run `drover volume create` again with the same file",
			    "the plugin has not confirmed that it has created the volume");
		add_claims(l, lv, page);
		check_rows(l, lv, page);
		check_nodes(lv, page);
		(void)json_array_append_new(pages, page);
	}
}

static void
on_done(struct sup *sup, void *arg, int r, const struct err *e)
{
	/* The next comparison shows whether the problem is still there. */
}

static bool
fix(struct sup *sup, const json_t *page, const json_t *problem)
{
	struct local *l = local_of_sup(sup);
	struct local_volume *lv =
	    local_volume_find(l, volume_page_text(page, "Namespace"), volume_page_text(page, "ID"));
	const char *kind = volume_page_text(problem, "Kind");

	if (lv && strcmp(kind, "claim-left") == 0) {
		local_release_ask(l, lv, on_done, NULL);
		return true;
	}
	return lv && strcmp(kind, "published-without-claim") == 0 &&
	       local_detach_unclaimed(l, lv, volume_page_text(problem, "Object"));
}

static const struct doctor_source source = {
	.add_plugins = add_plugins,
	.add_pages = add_pages,
	.fix = fix,
};

void
local_api_get_doctor(struct sup *sup, struct api_req *req)
{
	api_doctor_run(sup, req, &source, false);
}

void
local_api_put_doctor(struct sup *sup, struct api_req *req)
{
	api_doctor_run(sup, req, &source, true);
}
