// SPDX-License-Identifier: Apache-2.0
/* local_api_plugins.c: CSI plugins over the API. Runs in: supervisor. */
#include <string.h>

#include "common/cleanup.h"
#include "supervisor/acl/acl_rules.h"
#include "supervisor/node/node_state.h"
#include "supervisor/server/api/local_api.h"
#include "supervisor/volume/capability_gate.h"
#include "supervisor/volume/controller_calls.h"
#include "supervisor/volume/plugins.h"
#include "supervisor/volume/volume_stats.h"
#include "supervisor/volume/volumes.h"

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

static void
list_caps(const struct plugin_caps *caps, struct csi_instance *to)
{
	plugin_caps_list(caps, PLUGIN_CAPS, &to->plugin);
	plugin_caps_list(caps, PLUGIN_EXPANSION, &to->expansion);
	plugin_caps_list(caps, PLUGIN_CONTROLLER_CAPS, &to->controller);
	plugin_caps_list(caps, PLUGIN_NODE_CAPS, &to->node);
	plugin_caps_list(caps, PLUGIN_GROUP_CAPS, &to->group);
}

static void
fill_node(
    struct sup *sup, const char *id, const struct csi_node_info *node, struct csi_instance *to)
{
	str_set(&to->external_node_id, node->id);
	if (node->accessible_topology) {
		to->topology = csi_topology_new();
		csi_topology_copy(node->accessible_topology, to->topology);
	}
	to->max_volumes = node->max_volumes < INT64_MAX ? node->max_volumes : 0;
	to->volumes = (int64_t)volumes_of_plugin(sup, id);
}

static void
fill_instance(struct sup *sup, const struct plugin *p, struct csi_instance *to)
{
	const struct csi_info *node = plugin_node_info(p),
			      *info = node ?: plugin_controller_info(p);

	str_set(&to->node_id, node_get(sup)->id);
	str_set(&to->type, csi_plugin_kind_names[plugin_kind(p)]);
	to->healthy = plugin_is_healthy(p);
	to->health_since = plugin_health_since(p);
	str_set(&to->alloc_id, info->alloc_id);
	str_set(&to->health_description, info->health_description);
	str_set(&to->provider, info->provider);
	str_set(&to->version, info->provider_version);
	if (node && node->node_info)
		fill_node(sup, plugin_id(p), node->node_info, to);
	if (plugin_caps_of(p))
		list_caps(plugin_caps_of(p), to);
}

/* The end of a GetCapacity: the capacity, or why the call failed; the other one is NULL. */
struct capacity_found {
	const struct csi_capacity *capacity;
	const char *error;
};

static void
reply_plugin(struct sup *sup, struct api_req *req, const struct capacity_found *found)
{
	cleanup_done(csi_plugin) struct csi_plugin plugin;

	if (!local_plugin_get(local_of_sup(sup), api_param(req, 0), &plugin)) {
		api_reply_error(req, 404, "plugin not found");
		return;
	}
	for (struct plugin *p = plugin_next(sup, NULL); p; p = plugin_next(sup, p)) {
		struct sup_alloc *sa = alloc_find(sup, plugin_alloc(p));

		if (strcmp(plugin_id(p), plugin.id) != 0)
			continue;
		fill_instance(sup, p, list_add(csi_instance, &plugin.instances));
		if (sa && api_permits(req, ACL_READ_JOB, str(sa->a.namespace)))
			local_api_fill_stub(list_add(alloc, &plugin.allocations), sa);
	}
	if (found && found->capacity) {
		plugin.capacity = csi_capacity_new();
		*plugin.capacity = *found->capacity;
	}
	if (found)
		str_set(&plugin.capacity_error, found->error);
	api_reply_model(req, &csi_plugin_type, &plugin);
}

static void
on_capacity(
    struct sup *sup, void *arg, int r, const struct csi_capacity *capacity, const struct err *e)
{
	const struct capacity_found found = {
		.capacity = r < 0 ? NULL : capacity,
		.error = r < 0 ? e->msg : NULL,
	};

	reply_plugin(sup, arg, &found);
}

/* With ?refresh=true the plugin is asked for its capacity. */
void
local_api_get_plugin(struct sup *sup, struct api_req *req)
{
	cleanup_done(csi_volume) struct csi_volume any;
	const char *id = api_param(req, 0);
	bool refresh = false;
	struct err e = { 0 };

	csi_volume_init(&any);
	str_set(&any.plugin_id, id);
	if (api_query_bool(req, "refresh", &refresh, &e) < 0)
		api_reply_error(req, 400, "invalid refresh value");
	else if (refresh && capability_has_call(sup, id, CSI_CALL_REQ__CALL_GET_CAPACITY))
		volume_capacity(sup, &any, on_capacity, req);
	else
		reply_plugin(sup, req, NULL);
}
