// SPDX-License-Identifier: Apache-2.0
/* volume_watch.c: compares what plugins list with the volumes that are mounted on this node. Runs
 * in: supervisor. */
#include "supervisor/volume/volume_watch.h"

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/hash.h"
#include "common/mem.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/node/node_events.h"
#include "supervisor/node/node_state.h"
#include "supervisor/volume/mount.h"
#include "supervisor/volume/plugin_listing.h"
#include "supervisor/volume/plugins.h"
#include "supervisor/volume/volume_judge.h"

#define PERIOD_USEC 60000000 /* from the end of a comparison to the next one */
#define SOON_USEC   2000000  /* several plugins start at about the same time */

/* The sentence about a volume that was reported last. */
struct said {
	struct hash_link link;
	char *plugin, *external_id, *text;
	bool used; /* in forget_unmounted() */
};

struct volume_watch {
	struct sup *sup;
	struct sup_timer timer;
	unsigned asking; /* lists that are out, and compare() itself */
	struct hash_table said;
};

/* A list that is out. */
struct asked {
	struct volume_watch *w;
	char plugin[];
};

static uint64_t
hash_of(const struct mount *m)
{
	return hash_string(str(m->rec.plugin)) * 31 + hash_string(str(m->rec.external_id));
}

static struct said *
find_said(struct volume_watch *w, const struct mount *m)
{
	for (struct hash_link *l = hash_first(&w->said, hash_of(m)); l; l = hash_next(l)) {
		struct said *s = container_of(l, struct said, link);

		if (str_eq(s->plugin, m->rec.plugin) && str_eq(s->external_id, m->rec.external_id))
			return s;
	}
	return NULL;
}

static void
forget(struct volume_watch *w, struct said *s)
{
	hash_remove(&w->said, &s->link);
	free(s->plugin);
	free(s->external_id);
	free(s->text);
	free(s);
}

/* text: what disagrees, or NULL. */
static void
report(struct volume_watch *w, const struct mount *m, const char *text)
{
	cleanup_done(node_event) struct node_event ev;

	node_event_init(&ev);
	str_set(&ev.subsystem, "Storage");
	str_set(&ev.message, text ? "Volume is not as expected" : "Volume is as expected again");
	string_map_set(&ev.details, "volume_id", m->rec.volume_id);
	string_map_set(&ev.details, "plugin_id", m->rec.plugin);
	if (text)
		string_map_set(&ev.details, "error", text);
	node_event_add(w->sup, &ev);
	if (text)
		journal_warn(
		    JOURNAL_VOLUME, ABOUT_MOUNT(m), "volume %s: %s", m->rec.volume_id, text);
	else
		journal_info(JOURNAL_VOLUME, ABOUT_MOUNT(m),
		    "volume %s: plugin %s reports nothing unexpected about it any more",
		    m->rec.volume_id, m->rec.plugin);
}

static void
note(struct volume_watch *w, const struct mount *m, const char *text)
{
	struct said *s = find_said(w, m);

	if (str_eq(s ? s->text : NULL, text))
		return;
	report(w, m, text);
	if (!text) {
		forget(w, s);
		return;
	}
	if (!s) {
		s = mem_new(struct said);
		str_set(&s->plugin, m->rec.plugin);
		str_set(&s->external_id, m->rec.external_id);
		hash_add(&w->said, &s->link, hash_of(m));
	}
	str_set(&s->text, text);
}

/* Returns the controller of the plugin, if it can list more than which volumes exist. */
static const struct csi_controller_info *
find_lister(struct sup *sup, const char *plugin)
{
	struct plugin *p = plugin_find(sup, plugin, CSI_PLUGIN_CONTROLLER);
	const struct csi_info *info = p ? plugin_controller_info(p) : NULL;
	const struct csi_controller_info *c = info ? info->controller_info : NULL;

	return c && plugin_is_healthy(p) && c->supports_list_volumes &&
		       (c->supports_list_volumes_attached_nodes || c->supports_condition)
		   ? c
		   : NULL;
}

static const struct csi_node_info *
find_node(struct sup *sup, const char *plugin)
{
	struct plugin *p = plugin_find(sup, plugin, CSI_PLUGIN_NODE);
	const struct csi_info *info = p ? plugin_node_info(p) : NULL;

	return info ? info->node_info : NULL;
}

static bool
is_mounted(const struct mount *m)
{
	return m->step == MOUNT_PUBLISHED && !m->unmounting;
}

static void
take_list(struct volume_watch *w, const char *plugin, const struct rpc_csi_rep *list)
{
	const struct csi_node_info *node = find_node(w->sup, plugin);
	struct volume_evidence ev = { .plugin = plugin,
		.controller = find_lister(w->sup, plugin),
		.node = node ? str(node->id) : "",
		.mounted = true,
		.condition_told = node && node->supports_stats && node->supports_condition };
	struct volume_verdict v;
	struct mount *m;

	LIST_FOREACH (m, &w->sup->volumes->mounts, link) {
		if (!ev.controller || !is_mounted(m) || !str_eq(m->rec.plugin, plugin))
			continue;
		ev.external_id = str(m->rec.external_id);
		ev.entry = volume_entry_find(list, ev.external_id);
		note(w, m, volume_judge(&ev, 0, &v) ? v.text : NULL);
	}
}

/* Forgets volumes that are not mounted any more. Returns whether any is mounted. */
static bool
forget_unmounted(struct volume_watch *w)
{
	struct hash_link *l, *next;
	struct mount *m;
	bool any = false;

	LIST_FOREACH (m, &w->sup->volumes->mounts, link) {
		struct said *s = m->step != MOUNT_GONE ? find_said(w, m) : NULL;

		any |= is_mounted(m);
		if (s)
			s->used = true;
	}
	for (l = hash_each(&w->said, NULL); l; l = next) {
		struct said *s = container_of(l, struct said, link);

		next = hash_each(&w->said, l);
		if (!s->used)
			forget(w, s);
		else
			s->used = false;
	}
	return any;
}

static void compare(void *arg);

static void
end_asking(struct volume_watch *w)
{
	if (--w->asking == 0 && forget_unmounted(w))
		sup_timer_set(w->sup, &w->timer, CLOCK_MONOTONIC, PERIOD_USEC, compare, w);
}

static void
on_list(struct sup *sup, void *arg, struct rpc_csi_rep *list, const struct err *e)
{
	cleanup_free struct asked *a = arg;

	/* A plugin that does not answer is reported by its health. */
	if (list)
		take_list(a->w, a->plugin, list);
	rpc_csi_rep_free(list);
	end_asking(a->w);
}

static void
ask(struct volume_watch *w, const char *plugin)
{
	struct asked *a = mem_zeroed(1, sizeof *a + strlen(plugin) + 1);

	a->w = w;
	(void)strcpy(a->plugin, plugin);
	w->asking++;
	plugin_listing_begin(w->sup, plugin, on_list, a);
}

static void
compare(void *arg)
{
	struct volume_watch *w = arg;
	struct strings plugins = { 0 };
	struct mount *m;

	w->asking++;
	LIST_FOREACH (m, &w->sup->volumes->mounts, link)
		if (is_mounted(m) && !strings_has(&plugins, m->rec.plugin) &&
		    find_lister(w->sup, m->rec.plugin))
			strings_add(&plugins, m->rec.plugin);
	for (size_t i = 0; i < plugins.n; i++)
		ask(w, plugins.v[i]);
	strings_done(&plugins);
	end_asking(w);
}

void
volume_watch_mounted(struct volume_watch *w)
{
	if (w->asking == 0 && !sup_timer_is_set(&w->timer))
		sup_timer_set(w->sup, &w->timer, CLOCK_MONOTONIC, PERIOD_USEC, compare, w);
}

void
volume_watch_soon(struct volume_watch *w)
{
	if (w->asking == 0)
		sup_timer_set(w->sup, &w->timer, CLOCK_MONOTONIC, SOON_USEC, compare, w);
}

struct volume_watch *
volume_watch_new(struct sup *sup)
{
	struct volume_watch *w = mem_new(struct volume_watch);

	w->sup = sup;
	return w;
}

void
volume_watch_free(struct volume_watch *w)
{
	if (!w)
		return;
	sup_timer_cancel(&w->timer);
	for (struct hash_link *l; (l = hash_each(&w->said, NULL));)
		forget(w, container_of(l, struct said, link));
	hash_done(&w->said);
	free(w);
}
