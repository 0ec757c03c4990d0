// SPDX-License-Identifier: Apache-2.0
/* plugins.c: the registry of this node's CSI plugins. Runs in: supervisor. */
#include "supervisor/volume/plugins.h"

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/mem.h"
#include "supervisor/core/changed.h"
#include "supervisor/node/node_events.h"
#include "supervisor/node/node_state.h"
#include "supervisor/volume/plugin_calls.h"
#include "supervisor/volume/plugin_counts.h"
#include "supervisor/volume/plugin_hold.h"
#include "supervisor/volume/plugin_inst.h"

void
plugins_new(struct sup *sup)
{
	sup->plugins = mem_new(struct plugins);
}

void
plugins_free(struct sup *sup)
{
	if (!sup->plugins)
		return;
	while (!LIST_EMPTY(&sup->plugins->calls))
		plugin_call_cancel(LIST_FIRST(&sup->plugins->calls));
	sup_timer_cancel(&sup->plugins->check);
	plugin_holds_free(sup);
	plugin_counts_free(sup);
	free_p(&sup->plugins);
}

static bool
has_half(const struct plugin *p, enum csi_plugin_kind half)
{
	return p->kind == CSI_PLUGIN_MONOLITH || p->kind == half;
}

/* Of several instances, one that answers is called, and one that may answer again soon is waited
 * for, before one that ends. */
static int
rank(const struct plugin *p)
{
	return p->healthy ? 2 : p->runs;
}

struct plugin *
plugin_find(struct sup *sup, const char *id, enum csi_plugin_kind half)
{
	struct plugin *p, *best = NULL;

	LIST_FOREACH (p, &sup->plugins->instances, link)
		if (p->registered && has_half(p, half) && strcmp(p->id, id) == 0 &&
		    (!best || rank(p) > rank(best)))
			best = p;
	return best;
}

struct plugin *
plugin_next(struct sup *sup, struct plugin *p)
{
	return p ? LIST_NEXT(p, link) : LIST_FIRST(&sup->plugins->instances);
}

bool
plugin_exists(struct sup *sup, const char *id, enum csi_plugin_kind kind)
{
	struct plugin *p;

	LIST_FOREACH (p, &sup->plugins->instances, link)
		if (p->kind == kind && strcmp(p->id, id) == 0)
			return true;
	return false;
}

const char *
plugin_id(const struct plugin *p)
{
	return p->id;
}

enum csi_plugin_kind
plugin_kind(const struct plugin *p)
{
	return p->kind;
}

const struct id *
plugin_alloc(const struct plugin *p)
{
	return &p->alloc;
}

const struct csi_info *
plugin_controller_info(const struct plugin *p)
{
	return p->controller;
}

const struct csi_info *
plugin_node_info(const struct plugin *p)
{
	return p->node;
}

int
plugin_check_node_expands(struct sup *sup, const char *id, struct err *e)
{
	struct plugin *p = plugin_find(sup, id, CSI_PLUGIN_NODE);
	const struct csi_info *info = p ? plugin_node_info(p) : NULL;

	if (!info || !info->node_info || info->node_info->supports_expand)
		return 0;
	return err_say(e, -EOPNOTSUPP,
	    "plugin %s wants the node to expand the volume, but its node service has no capability "
	    "EXPAND_VOLUME",
	    id);
}

bool
plugin_is_healthy(const struct plugin *p)
{
	return p->healthy;
}

const struct plugin_caps *
plugin_caps_of(const struct plugin *p)
{
	return p->registered ? &p->caps : NULL;
}

int64_t
plugin_health_since(const struct plugin *p)
{
	return p->health_since_ns;
}

const char *
plugin_container_root(const struct plugin *p)
{
	return p->container_root;
}

uint64_t
plugin_channel(const struct plugin *p)
{
	return p->channel_opened;
}

static struct csi_info *
make_first_info(const struct plugin *p)
{
	struct csi_info *info = csi_info_new();
	char alloc[ID_UUID_SIZE];

	str_set(&info->plugin_id, p->id);
	if (!id_is_zero(&p->alloc)) {
		id_to_uuid(&p->alloc, alloc);
		str_set(&info->alloc_id, alloc);
	}
	info->update_time = clock_real_ns();
	str_set(&info->health_description, "initial fingerprint not completed");
	return info;
}

struct plugin *
plugin_new(struct sup *sup, const char *id, enum csi_plugin_kind kind, const struct id *alloc,
    const char *socket, const char *container_root)
{
	struct plugin *p = mem_new(struct plugin);

	*p = (struct plugin){ .sup = sup,
		.kind = kind,
		.health_since_ns = clock_real_ns(),
		.alloc = *alloc,
		.id = mem_strdup(id),
		.socket = mem_strdup(socket),
		.container_root = mem_strdup(container_root) };
	*(kind == CSI_PLUGIN_CONTROLLER ? &p->controller : &p->node) = make_first_info(p);
	LIST_INSERT_HEAD(&sup->plugins->instances, p, link);
	return p;
}

/* Of several instances the node has the one that is called. */
static void
update_node(struct sup *sup)
{
	struct plugin *p;

	node_forget_plugins(sup);
	LIST_FOREACH (p, &sup->plugins->instances, link) {
		if (p->controller && p == plugin_find(sup, p->id, CSI_PLUGIN_CONTROLLER))
			node_put_plugin(sup, true, p->id, p->controller);
		if (p->node && p == plugin_find(sup, p->id, CSI_PLUGIN_NODE))
			node_put_plugin(sup, false, p->id, p->node);
	}
	node_changed(sup);
	changed_mark(sup, CHANGED_PLUGINS);
}

void
plugin_free(struct plugin *p)
{
	struct sup *sup;

	if (!p)
		return;
	sup = p->sup;
	LIST_REMOVE(p, link);
	plugin_calls_abandon(p);
	if (p->registered)
		update_node(sup);
	csi_info_free(p->controller);
	csi_info_free(p->node);
	free(p->id);
	free(p->socket);
	free(p->container_root);
	free(p);
}

void
plugin_set_run(struct plugin *p, const struct id *run)
{
	p->runs = run != NULL;
	p->answered = false;
	if (run) {
		p->run = *run;
		return;
	}
	plugin_calls_abandon(p);
}

/* An event of the node: servers and users see it also when the plugin is gone. */
static void
report_health(const struct plugin *p, const char *description)
{
	cleanup_done(node_event) struct node_event ev;

	node_event_init(&ev);
	str_set(&ev.subsystem, "CSI");
	ev.message = p->healthy
			 ? mem_printf("CSI plugin %s became healthy", p->id)
			 : mem_printf("CSI plugin %s became unhealthy: %s", p->id, description);
	string_map_set(&ev.details, "plugin", p->id);
	string_map_set(&ev.details, "type", csi_plugin_kind_names[p->kind]);
	node_event_add(p->sup, &ev);
}

bool
plugin_set_health(struct plugin *p, bool healthy, const char *description)
{
	struct csi_info *infos[] = { p->controller, p->node };
	bool changed = healthy != p->healthy, differs = changed;

	p->healthy = healthy;
	if (changed)
		p->health_since_ns = clock_real_ns();
	for (size_t i = 0; i < ELEMENTSOF(infos); i++) {
		if (!infos[i])
			continue;
		differs |= !str_eq(infos[i]->health_description, description);
		infos[i]->healthy = healthy;
		infos[i]->update_time = clock_real_ns();
		str_set(&infos[i]->health_description, description);
	}
	if (changed && p->registered)
		report_health(p, description);
	if (differs && p->registered)
		update_node(p->sup);
	return changed;
}

void
plugin_set_info(struct plugin *p, struct csi_info *controller, struct csi_info *node,
    const struct plugin_caps *caps)
{
	csi_info_free(p->controller);
	csi_info_free(p->node);
	p->controller = controller;
	p->node = node;
	p->caps = *caps;
	p->registered = p->answered = true;
	plugin_calls_check(p->sup);
	(void)plugin_set_health(p, true, "healthy");
	update_node(p->sup);
}
