// SPDX-License-Identifier: Apache-2.0
/* local_volumes.c: CSI volumes, and their fields that follow from their plugins. Runs in:
 * supervisor. */
#include "supervisor/server/claim/local_volumes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/mem.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/store.h"
#include "supervisor/server/claim/local_attach.h"
#include "supervisor/server/claim/local_release.h"
#include "supervisor/node/node_state.h"
#include "supervisor/server/claim/local_expand.h"
#include "supervisor/server/feed/local_changes.h"
#include "supervisor/server/claim/volume_row.h"
#include "supervisor/server/job/local_namespaces.h"
#include "supervisor/volume/plugins.h"

/* In meta, until the log of state.db, which may still have secrets of rows of an earlier version
 * that were not sealed, has been truncated. */
#define CLEAR_LOG "log_has_secrets"

struct local_volumes {
	struct local_map map;
	struct deferred truncate;
};

void
local_volumes_init(struct local *l)
{
	l->volumes = mem_new(struct local_volumes);
}

struct local_key **
local_volumes_sorted(const struct local *l, size_t *ret_n)
{
	return local_map_sorted(&l->volumes->map, ret_n);
}

struct local_volume *
local_volume_find(struct local *l, const char *namespace, const char *id)
{
	cleanup_free char *name = mem_printf("%s/%s", namespace, id);

	return local_volume_of(local_map_find(&l->volumes->map, name));
}

static void
free_volume(struct local_volume *lv)
{
	local_attach_drop(lv);
	local_release_drop(lv);
	free(lv->work.calling);
	local_expand_drop(lv);
	csi_volume_done(&lv->vol);
	sealed_done(&lv->unread);
	free(lv->name);
	free(lv);
}

static void
drop_volume(struct local *l, struct local_key *key)
{
	turn_forget_write(l->base.sup, &local_volume_of(key)->row);
	free_volume(local_volume_of(key));
}

void
local_volumes_free(struct local *l)
{
	turn_forget_deferred(l->base.sup, &l->volumes->truncate);
	local_map_done(&l->volumes->map, l, drop_volume);
	free(l->volumes);
}

static int
write_volume(struct sup *sup, struct dirty *d, struct err *e)
{
	struct local_volume *lv = container_of(d, struct local_volume, row);

	if (lv->gone)
		return STORE_EXEC(sup->store, STMT_VOLUME_DELETE, e, SV_TEXT(lv->vol.namespace),
		    SV_TEXT(lv->vol.id));
	return volume_row_put(sup->store, sup->seal, &lv->vol, &lv->unread, e);
}

static void
on_volume_written(struct sup *sup, struct dirty *d)
{
	struct local_volume *lv = container_of(d, struct local_volume, row);

	if (lv->gone && !lv->work.calling)
		free_volume(lv);
}

bool
local_volume_end_call(struct local_volume *lv)
{
	free_p(&lv->work.calling);
	if (!lv->gone)
		return true;
	if (!lv->row.list)
		free_volume(lv);
	return false;
}

static struct local_volume *
insert_volume(struct local *l, struct csi_volume *vol)
{
	struct local_volume *lv = mem_new(struct local_volume);

	lv->l = l;
	lv->row.write = write_volume;
	lv->row.point = CRASH_ROW_VOLUME;
	lv->row.written = on_volume_written;
	lv->name = mem_printf("%s/%s", vol->namespace, vol->id);
	local_map_add(&l->volumes->map, &lv->key, lv->name);
	lv->vol = *vol;
	csi_volume_init(vol);
	return lv;
}

void
local_volume_changed(struct local *l, struct local_volume *lv)
{
	lv->vol.modify_index = local_index_next(l);
	local_changes_record(l, LOCAL_VOLUMES, lv->vol.modify_index);
	lv->vol.modify_time = clock_real_ns();
	turn_write(l->base.sup, &lv->row);
	turn_durable(l->base.sup);
}

struct local_volume *
local_volume_new(struct local *l, struct csi_volume *vol)
{
	struct local_volume *lv = insert_volume(l, vol);

	local_volume_changed(l, lv);
	lv->vol.create_index = lv->vol.modify_index;
	lv->vol.create_time = lv->vol.modify_time;
	return lv;
}

void
local_volume_forget(struct local *l, struct local_volume *lv)
{
	local_map_remove(&l->volumes->map, &lv->key);
	lv->gone = true;
	local_changes_record(l, LOCAL_VOLUMES, local_index_next(l));
	turn_write(l->base.sup, &lv->row);
	turn_durable(l->base.sup);
}

static void
put_info(void *map, const char *node_id, const struct csi_info *info)
{
	struct csi_info *slot = map_put(csi_info, map, node_id);

	/* Of several instances of one plugin on one node a healthy one is shown. */
	if (slot->plugin_id && (slot->healthy || !info->healthy))
		return;
	csi_info_done(slot);
	csi_info_copy(info, slot);
}

static void
add_instance(struct csi_plugin *plugin, const struct csi_info *info, void *map, const char *node_id)
{
	if (!info)
		return;
	if (!plugin->provider) { /* of the newest instance that has answered */
		str_set(&plugin->provider, info->provider);
		str_set(&plugin->version, info->provider_version);
	}
	plugin->controller_required |= info->requires_controller_plugin;
	put_info(map, node_id, info);
}

bool
local_plugin_get(struct local *l, const char *id, struct csi_plugin *ret)
{
	struct sup *sup = l->base.sup;
	const char *node_id = node_get(sup)->id;
	bool found = false;

	csi_plugin_init(ret);
	str_set(&ret->id, id);
	for (struct plugin *p = plugin_next(sup, NULL); p; p = plugin_next(sup, p)) {
		if (strcmp(plugin_id(p), id) != 0)
			continue;
		found = true;
		add_instance(ret, plugin_controller_info(p), &ret->controllers, node_id);
		add_instance(ret, plugin_node_info(p), &ret->nodes, node_id);
	}
	ret->controllers_expected = (int64_t)ret->controllers.n;
	ret->nodes_expected = (int64_t)ret->nodes.n;
	csi_plugin_count(ret);
	return found;
}

void
local_volume_refresh(struct local *l, struct csi_volume *vol)
{
	cleanup_done(csi_plugin) struct csi_plugin plugin;
	bool attaches;

	if (local_plugin_get(l, str(vol->plugin_id), &plugin)) {
		str_set(&vol->provider, plugin.provider);
		str_set(&vol->provider_version, plugin.version);
		vol->controller_required = plugin.controller_required;
	}
	vol->controllers_healthy = plugin.controllers_healthy;
	vol->controllers_expected = plugin.controllers_expected;
	vol->nodes_healthy = plugin.nodes_healthy;
	vol->nodes_expected = plugin.nodes_expected;
	attaches = csi_plugin_needs_attach(&plugin) || csi_plugin_lacks_controller(&plugin);
	vol->schedulable = *str(vol->external_id) && vol->nodes_healthy > 0 &&
			   (!attaches || vol->controllers_healthy > 0);
}

/* The state of reading all volumes' rows. */
struct volume_load {
	struct local *l;
	bool clear;       /* an earlier version has not sealed a secret */
	struct text lost; /* the volumes whose secrets cannot be read */
};

static int
load_volume(void *arg, const struct store_row *row, struct err *e)
{
	struct volume_load *load = arg;
	struct sup *sup = load->l->base.sup;
	cleanup_done(csi_volume) struct csi_volume vol;
	struct sealed unread = { 0 };
	struct local_volume *lv;
	struct err why = { 0 };
	bool clear;

	csi_volume_init(&vol);
	if (volume_row_get(row, sup->seal, &vol, &unread, &clear, &why) < 0) {
		journal_error(JOURNAL_STATE, NULL, "state.db: volume %s is ignored: %s",
		    store_col_text(row, 1), why.msg);
		return 0;
	}
	local_namespace_adopt(load->l, str(vol.namespace));
	lv = insert_volume(load->l, &vol);
	lv->unread = unread;
	if (lv->vol.secrets_lost)
		text_printf(&load->lost, "%s%s", load->lost.len ? ", " : "", lv->vol.id);
	if (clear)
		turn_write(sup, &lv->row);
	load->clear |= clear;
	return 0;
}

/* Runs when the rows are sealed. */
static void
truncate_log(struct sup *sup, struct deferred *d)
{
	struct err e = { 0 };
	int r;

	while ((r = store_shrink(sup->store, &e)) > 0)
		;
	if (r == 0)
		r = STORE_EXEC(sup->store, STMT_META_DELETE, &e, SV_TEXT(CLEAR_LOG));
	if (r < 0)
		journal_error(JOURNAL_STATE, NULL,
		    "secrets of volumes stay in the log of state.db until the next start: %s",
		    e.msg);
}

int
local_volumes_load(struct local *l, struct err *e)
{
	struct store *store = l->base.sup->store;
	struct volume_load load = { .l = l };
	cleanup_free char *again = NULL;
	int r = store_each(store, STMT_VOLUME_ALL, NULL, 0, load_volume, &load, e);

	if (r == 0 && load.lost.len)
		journal_error(JOURNAL_STATE, NULL,
		    "the secrets of these volumes cannot be read, because state/seal.key is not "
		    "the key they were encrypted with: %s; bring that file back and restart the "
		    "agent, or register them again with their secrets",
		    load.lost.text);
	text_done(&load.lost);
	if (r < 0 || (!load.clear && store_meta_get(store, CLEAR_LOG, &again, e) == -ENOENT))
		return r;
	l->volumes->truncate.run = truncate_log;
	turn_defer(l->base.sup, &l->volumes->truncate);
	return store_meta_put(store, CLEAR_LOG, "1", e);
}
