// SPDX-License-Identifier: Apache-2.0
/* local_api_plugins.c: CSI plugins over the API. Runs in: supervisor. */
#include <string.h>

#include "supervisor/server/api/local_api.h"
#include "supervisor/volume/plugins.h"

/* Returns true if p is the first instance with its id. */
static bool
is_first(struct sup *sup, struct plugin *p)
{
	for (struct plugin *q = plugin_next(sup, NULL); q && q != p; q = plugin_next(sup, q)) {
		if (strcmp(plugin_id(q), plugin_id(p)) == 0)
			return false;
	}
	return true;
}

void
local_api_list_plugins(struct sup *sup, struct api_req *req)
{
	struct api_list list;

	api_list_begin_named(&list, req);
	for (struct plugin *p = local_api_wants_csi(req) ? plugin_next(sup, NULL) : NULL; p;
	     p = plugin_next(sup, p)) {
		cleanup_done(csi_plugin) struct csi_plugin plugin;

		csi_plugin_init(&plugin);
		if (!is_first(sup, p) || !api_prefix_fits(req, plugin_id(p)))
			continue;
		(void)local_plugin_get(local_of_sup(sup), plugin_id(p), &plugin);
		api_list_add(&list, &csi_plugin_stub_type, &plugin);
	}
	api_list_reply(&list, req);
}

void
local_api_get_plugin(struct sup *sup, struct api_req *req)
{
	cleanup_done(csi_plugin) struct csi_plugin plugin;
	bool found = local_plugin_get(local_of_sup(sup), api_param(req, 0), &plugin);

	if (!found) {
		api_reply_error(req, 404, "plugin not found");
		return;
	}
	for (struct plugin *p = plugin_next(sup, NULL); p; p = plugin_next(sup, p)) {
		struct sup_alloc *sa =
		    strcmp(plugin_id(p), plugin.id) == 0 ? alloc_find(sup, plugin_alloc(p)) : NULL;

		if (sa)
			local_api_fill_stub(list_add(alloc, &plugin.allocations), sa);
	}
	api_reply_model(req, &csi_plugin_type, &plugin);
}
