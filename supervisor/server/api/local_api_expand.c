// SPDX-License-Identifier: Apache-2.0
/* local_api_expand.c: expands volumes over the API: at the plugin's controller, and then where they
 * are mounted. Runs in: supervisor. */
#include <errno.h>
#include <stdlib.h>

#include "common/mem.h"
#include "supervisor/server/api/local_api.h"
#include "supervisor/server/claim/local_expand.h"
#include "supervisor/server/job/local_marks.h"
#include "supervisor/volume/controller_calls.h"
#include "supervisor/volume/plugins.h"

struct expansion {
	struct api_req *req;
	struct local_volume *lv;
	int64_t min, max;
};

static void
end_expansion(struct sup *sup, struct expansion *x)
{
	x->lv->busy = NULL;
	local_volume_changed(local_of_sup(sup), x->lv);
	local_mark_node(local_of_sup(sup));
	free(x);
}

static void
on_expanded_here(struct sup *sup, void *arg, int r, const struct err *e)
{
	struct expansion *x = arg;

	if (r < 0)
		api_reply_error(x->req, 500,
		    "expand volume \"%s\": it has %lld bytes at its plugin, but not yet where it "
		    "is mounted, which is tried %s: %s",
		    x->lv->vol.id, (long long)x->lv->vol.capacity,
		    local_expand_is_refused(r) ? "when it is mounted the next time" : "again",
		    e->msg);
	else
		local_api_reply_volume(sup, x->req, x->lv);
	end_expansion(sup, x);
}

/* The volume has its new size; the row says so before a node is asked. */
static void
take_size(struct sup *sup, struct expansion *x, int64_t capacity_bytes, bool on_nodes)
{
	struct csi_volume *vol = &x->lv->vol;

	vol->capacity = capacity_bytes;
	vol->requested_capacity_min = x->min;
	vol->requested_capacity_max = x->max;
	if (on_nodes)
		vol->node_expansion = capacity_bytes;
	local_volume_changed(local_of_sup(sup), x->lv);
	if (vol->node_expansion)
		local_expand_here(local_of_sup(sup), x->lv, on_expanded_here, x);
	else
		on_expanded_here(sup, x, 0, NULL);
}

static void
on_expanded(
    struct sup *sup, void *arg, int r, int64_t capacity_bytes, bool on_nodes, const struct err *e)
{
	struct expansion *x = arg;

	if (r >= 0) {
		take_size(sup, x, capacity_bytes, on_nodes);
		return;
	}
	api_reply_error(
	    x->req, local_api_volume_status(r), "expand volume \"%s\": %s", x->lv->vol.id, e->msg);
	end_expansion(sup, x);
}

/* Finds which half of the plugin expands volumes first. Returns 0; -EBUSY if it does not run, or
 * none does; -EAGAIN if that is not known before another half has answered. */
static int
find_half(struct local *l, const char *id, bool *ret_controller, struct err *e)
{
	cleanup_done(csi_plugin) struct csi_plugin plugin;
	struct plugin *controller = plugin_find(l->base.sup, id, CSI_PLUGIN_CONTROLLER);
	struct plugin *node = plugin_find(l->base.sup, id, CSI_PLUGIN_NODE);
	const struct csi_info *c = controller ? plugin_controller_info(controller) : NULL;
	const struct csi_info *n = node ? plugin_node_info(node) : NULL;
	bool has_controller = c && c->controller_info, has_node = n && n->node_info;

	if (!local_plugin_get(l, id, &plugin))
		return err_say(e, -EBUSY, "plugin \"%s\" does not run on this node", id);
	*ret_controller = has_controller && c->controller_info->supports_expand;
	if (*ret_controller)
		return 0;
	if (!has_controller && plugin.controller_required)
		return err_say(e, -EAGAIN,
		    "the controller of plugin \"%s\" does not run on this node, or has not "
		    "answered "
		    "yet",
		    id);
	if (!has_node)
		return err_say(e, -EAGAIN,
		    "the node service of plugin \"%s\" does not run on this node, or has not "
		    "answered yet",
		    id);
	return n->node_info->supports_expand
		   ? 0
		   : err_say(e, -EBUSY, "plugin \"%s\" does not expand volumes", id);
}

void
local_api_expand_volume(
    struct sup *sup, struct api_req *req, struct local_volume *lv, const struct csi_volume *vol)
{
	bool controller = false;
	struct expansion *x;
	struct err e = { 0 };
	int r = find_half(local_of_sup(sup), str(lv->vol.plugin_id), &controller, &e);

	if (r < 0) {
		api_reply_error(req, local_api_volume_status(r),
		    "volume \"%s\" exists already with a smaller size, and %s", lv->vol.id, e.msg);
		return;
	}
	x = mem_new(struct expansion);
	*x = (struct expansion){ .req = req,
		.lv = lv,
		.min = vol->requested_capacity_min,
		.max = vol->requested_capacity_max };
	lv->busy = "expanded";
	if (controller)
		volume_expand(sup, &lv->vol, x->min, x->max, on_expanded, x);
	else
		take_size(sup, x, x->min, true);
}

void
local_api_resume_expansion(struct sup *sup, struct api_req *req, struct local_volume *lv)
{
	struct expansion *x = mem_new(struct expansion);

	*x = (struct expansion){ .req = req, .lv = lv };
	lv->busy = "expanded";
	local_expand_here(local_of_sup(sup), lv, on_expanded_here, x);
}
