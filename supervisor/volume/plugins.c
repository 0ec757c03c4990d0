// SPDX-License-Identifier: Apache-2.0
/* plugins.c: the registry of this node's CSI plugins. Runs in: supervisor. */
#include "supervisor/volume/plugins.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "supervisor/core/changed.h"
#include "supervisor/node/node_state.h"
#include "supervisor/volume/plugin_calls.h"
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
	free_p(&sup->plugins);
}

static bool
has_half(const struct plugin *p, enum csi_plugin_kind half)
{
	return p->kind == CSI_PLUGIN_MONOLITH || p->kind == half;
}

struct plugin *
plugin_find(struct sup *sup, const char *id, enum csi_plugin_kind half)
{
	struct plugin *p;

	LIST_FOREACH (p, &sup->plugins->instances, link)
		if (p->registered && has_half(p, half) && strcmp(p->id, id) == 0)
			return p;
	return NULL;
}

struct plugin *
plugin_next(struct sup *sup, struct plugin *p)
{
	do
		p = p ? LIST_NEXT(p, link) : LIST_FIRST(&sup->plugins->instances);
	while (p && !p->registered);
	return p;
}

bool
plugin_exists(struct sup *sup, const char *id)
{
	struct plugin *p;

	LIST_FOREACH (p, &sup->plugins->instances, link)
		if (strcmp(p->id, id) == 0)
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

bool
plugin_is_healthy(const struct plugin *p)
{
	return p->healthy;
}

const char *
plugin_container_root(const struct plugin *p)
{
	return p->container_root;
}

struct plugin *
plugin_new(struct sup *sup, const char *id, enum csi_plugin_kind kind, const struct id *alloc,
    const char *container_root)
{
	struct plugin *p = mem_new(struct plugin);

	*p = (struct plugin){ .sup = sup,
		.kind = kind,
		.alloc = *alloc,
		.id = mem_strdup(id),
		.container_root = mem_strdup(container_root) };
	LIST_INSERT_HEAD(&sup->plugins->instances, p, link);
	return p;
}

void
plugin_free(struct plugin *p)
{
	if (!p)
		return;
	LIST_REMOVE(p, link);
	plugin_calls_abandon(p);
	plugin_channel_close(p);
	csi_info_free(p->controller);
	csi_info_free(p->node);
	free(p->id);
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
	plugin_channel_close(p);
}

static void
update_node(struct sup *sup)
{
	node_forget_plugins(sup);
	for (struct plugin *p = plugin_next(sup, NULL); p; p = plugin_next(sup, p)) {
		if (p->controller)
			node_put_plugin(sup, true, p->id, p->controller);
		if (p->node)
			node_put_plugin(sup, false, p->id, p->node);
	}
	node_changed(sup);
	changed_mark(sup, CHANGED_PLUGINS);
}

void
plugin_set_info(struct plugin *p, struct csi_info *controller, struct csi_info *node)
{
	csi_info_free(p->controller);
	csi_info_free(p->node);
	p->controller = controller;
	p->node = node;
	p->registered = p->answered = true;
	plugin_calls_check(p->sup);
	(void)plugin_set_health(p, true, "healthy");
	update_node(p->sup);
}

bool
plugin_set_health(struct plugin *p, bool healthy, const char *description)
{
	struct csi_info *infos[] = { p->controller, p->node };
	bool changed = healthy != p->healthy;

	p->healthy = healthy;
	for (size_t i = 0; i < ELEMENTSOF(infos); i++) {
		if (!infos[i])
			continue;
		infos[i]->healthy = healthy;
		infos[i]->update_time = clock_real_ns();
		str_set(&infos[i]->health_description, description);
	}
	if (changed && p->registered)
		update_node(p->sup);
	return changed;
}

void
plugin_deregister(struct plugin *p)
{
	if (!p->registered)
		return;
	p->registered = false;
	p->healthy = false;
	update_node(p->sup);
}
