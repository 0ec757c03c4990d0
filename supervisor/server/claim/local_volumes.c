// SPDX-License-Identifier: Apache-2.0
/* local_volumes.c: CSI volumes and their claims. Runs in: supervisor. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "supervisor/core/store.h"
#include "supervisor/node/node_state.h"
#include "supervisor/server/claim/claims.h"
#include "supervisor/server/local.h"
#include "supervisor/volume/plugins.h"
#include "supervisor/volume/volumes.h"

struct local_volume *
local_volume_find(struct local *l, const char *namespace, const char *id)
{
	cleanup_free char *name = NULL;

	if (asprintf(&name, "%s/%s", namespace, id) < 0)
		return NULL;
	return (struct local_volume *)(void *)local_map_find(&l->volumes, name);
}

/* --- rows --- */

static void
free_volume(struct local_volume *lv)
{
	csi_volume_done(&lv->vol);
	free(lv->name);
	free(lv);
}

static int
write_volume(struct sup *sup, struct dirty *d, struct err *e)
{
	struct local_volume *lv =
	    (struct local_volume *)(void *)((char *)d - offsetof(struct local_volume, row));
	struct text json = { 0 };
	int r;

	if (lv->gone)
		return STORE_EXEC(sup->store, STMT_VOLUME_DELETE, e, SV_TEXT(lv->vol.namespace),
		    SV_TEXT(lv->vol.id));
	if (model_to_text(&csi_volume_type, &lv->vol, MODEL_COMPACT, &json) < 0)
		return err_set(e, -ENOMEM, "write volume %s", lv->vol.id);
	r = STORE_EXEC(sup->store, STMT_VOLUME_PUT, e, SV_TEXT(lv->vol.namespace),
	    SV_TEXT(lv->vol.id), SV_TEXT(json.text));
	text_done(&json);
	return r;
}

static void
on_volume_written(struct sup *sup, struct dirty *d)
{
	struct local_volume *lv =
	    (struct local_volume *)(void *)((char *)d - offsetof(struct local_volume, row));

	if (lv->gone)
		free_volume(lv);
}

static struct local_volume *
insert_volume(struct local *l, struct csi_volume *vol)
{
	struct local_volume *lv = calloc(1, sizeof *lv);

	if (!lv)
		return NULL;
	lv->row.write = write_volume;
	lv->row.point = CRASH_ROW_VOLUME;
	lv->row.written = on_volume_written;
	if (asprintf(&lv->name, "%s/%s", vol->namespace, vol->id) < 0) {
		free(lv);
		return NULL;
	}
	if (local_map_add(&l->volumes, &lv->key, lv->name) < 0) {
		free(lv->name);
		free(lv);
		return NULL;
	}
	lv->vol = *vol;
	csi_volume_init(vol);
	return lv;
}

void
local_volume_changed(struct local *l, struct local_volume *lv)
{
	lv->vol.modify_index = local_index_next(l);
	local_volumes_changed(l, lv->vol.modify_index);
	lv->vol.modify_time = local_now_ns();
	turn_write(l->base.sup, &lv->row);
	turn_durable(l->base.sup);
}

struct local_volume *
local_volume_new(struct local *l, struct csi_volume *vol)
{
	struct local_volume *lv = insert_volume(l, vol);

	if (!lv)
		return NULL;
	local_volume_changed(l, lv);
	lv->vol.create_index = lv->vol.modify_index;
	lv->vol.create_time = lv->vol.modify_time;
	return lv;
}

void
local_volume_forget(struct local *l, struct local_volume *lv)
{
	local_map_remove(&l->volumes, &lv->key);
	lv->gone = true;
	local_volumes_changed(l, local_index_next(l));
	turn_write(l->base.sup, &lv->row);
	turn_durable(l->base.sup);
}

/* --- plugins --- */

static int
put_info(void *map, const char *node_id, const struct csi_info *info)
{
	struct csi_info *slot = map_put(csi_info, map, node_id), copy;

	if (!slot || csi_info_copy(info, &copy) < 0)
		return -ENOMEM;
	/* Several instances of one plugin on one node: the healthy one counts. */
	if (slot->plugin_id && slot->healthy && !copy.healthy) {
		csi_info_done(&copy);
		return 0;
	}
	csi_info_done(slot);
	*slot = copy;
	return 0;
}

static void
add_instance(struct csi_plugin *plugin, const struct csi_info *info, void *map, const char *node_id)
{
	if (!info)
		return;
	(void)str_set(&plugin->provider, info->provider);
	(void)str_set(&plugin->version, info->provider_version);
	plugin->controller_required |= info->requires_controller_plugin;
	(void)put_info(map, node_id, info);
}

bool
local_plugin_get(struct local *l, const char *id, struct csi_plugin *ret)
{
	struct sup *sup = l->base.sup;
	const char *node_id = node_get(sup)->id;
	bool found = false;

	csi_plugin_init(ret);
	(void)str_set(&ret->id, id);
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

	if (local_plugin_get(l, str(vol->plugin_id), &plugin)) {
		(void)str_set(&vol->provider, plugin.provider);
		(void)str_set(&vol->provider_version, plugin.version);
		vol->controller_required = plugin.controller_required;
	}
	vol->controllers_healthy = plugin.controllers_healthy;
	vol->controllers_expected = plugin.controllers_expected;
	vol->nodes_healthy = plugin.nodes_healthy;
	vol->nodes_expected = plugin.nodes_expected;
	vol->schedulable = *str(vol->external_id) && vol->nodes_healthy > 0 &&
			   (!csi_plugin_needs_attach(&plugin) || vol->controllers_healthy > 0);
}

/* --- claims --- */

static int
make_claim(struct local *l, const char *alloc_id, const struct csi_volume *vol,
    const struct volume_request *vr, struct csi_claim *ret)
{
	const struct node *node = node_get(l->base.sup);
	const struct csi_info *info =
	    map_get(csi_info, &node->csi_node_plugins, str(vol->plugin_id));

	csi_claim_init(ret);
	ret->mode = vr->read_only ? CLAIM_READ : CLAIM_WRITE;
	ret->access_mode = vr->access_mode;
	ret->attachment_mode = vr->attachment_mode;
	ret->state = CLAIM_TAKEN;
	if (str_set(&ret->alloc_id, alloc_id) < 0 || str_set(&ret->node_id, node->id) < 0 ||
	    str_set(&ret->external_node_id, info && info->node_info ? info->node_info->id : NULL) <
		0)
		return -ENOMEM;
	return 0;
}

/* The volume of a request, in a state in which it may be claimed; NULL with *e. */
static struct local_volume *
usable_volume(struct local *l, const char *namespace, const struct volume_request *vr,
    int64_t index, struct err *e)
{
	cleanup_free char *id = NULL;
	struct local_volume *lv;

	if (volume_request_source(vr, index, &id) < 0) {
		(void)err_set(e, -ENOMEM, "find volume %s", str(vr->source));
		return NULL;
	}
	lv = local_volume_find(l, namespace, id);
	if (!lv) {
		(void)err_say(e, -ENOENT, "missing CSI volume %s", id);
		return NULL;
	}
	if (lv->busy) {
		(void)err_say(e, -EAGAIN, "CSI volume %s is being %s", id, lv->busy);
		return NULL;
	}
	local_volume_refresh(l, &lv->vol);
	return lv;
}

int
local_volume_check(struct local *l, const char *namespace, int64_t index,
    const struct volume_request *vr, struct err *e)
{
	struct local_volume *lv = usable_volume(l, namespace, vr, index, e);
	cleanup_done(csi_claim) struct csi_claim claim;
	const struct csi_info *info;

	csi_claim_init(&claim);
	if (!lv)
		return e->code;
	info = map_get(csi_info, &node_get(l->base.sup)->csi_node_plugins, str(lv->vol.plugin_id));
	if (!info)
		return err_say(e, -ENOENT, "CSI plugin %s of volume %s is missing from the node",
		    str(lv->vol.plugin_id), lv->vol.id);
	if (!info->healthy)
		return err_say(e, -EAGAIN, "CSI plugin %s of volume %s is unhealthy: %s",
		    str(lv->vol.plugin_id), lv->vol.id, str(info->health_description));
	if (make_claim(l, "", &lv->vol, vr, &claim) < 0)
		return err_set(e, -ENOMEM, "check volume %s", lv->vol.id);
	return volume_claim_check(&lv->vol, &claim, e);
}

/* Which requests of sa's group are for the same volume as vr, as bits; *ret_self is vr's own. */
static uint64_t
requests_of_volume(const struct sup_alloc *sa, const struct volume_request *vr, uint64_t *ret_self)
{
	uint64_t bits = 0;

	*ret_self = 0;
	for (size_t i = 0; i < sa->group->volumes.n && i < 64; i++) {
		const struct volume_request *other = &sa->group->volumes.v[i].value;

		if (other == vr)
			*ret_self = 1ull << i;
		if (other->type == VOLUME_CSI && str_eq(other->source, vr->source) &&
		    other->per_alloc == vr->per_alloc)
			bits |= 1ull << i;
	}
	return bits;
}

static int
take_claim(struct local *l, struct sup_alloc *sa, const struct volume_request *vr,
    struct local_volume **ret, struct err *e)
{
	struct local_alloc *la = local_alloc_of(sa);
	struct local_volume *lv =
	    usable_volume(l, sa->job->job.namespace, vr, alloc_name_index(sa->a.name), e);
	cleanup_done(csi_claim) struct csi_claim claim;
	bool had;
	uint64_t self;
	int r;

	csi_claim_init(&claim);
	if (!lv)
		return e->code;
	had = volume_find_claim(&lv->vol, sa->a.id) != NULL;
	if (make_claim(l, sa->a.id, &lv->vol, vr, &claim) < 0)
		return err_set(e, -ENOMEM, "claim volume %s", lv->vol.id);
	r = volume_claim(&lv->vol, &claim, e);
	if (r < 0)
		return r;
	(void)requests_of_volume(sa, vr, &self);
	la->held |= self;
	if (!had) {
		la->n_claims++;
		local_volume_changed(l, lv);
	}
	*ret = lv;
	return 0;
}

void
local_volume_reserve(struct local *l, struct sup_alloc *sa)
{
	for (size_t i = 0; i < sa->group->volumes.n; i++) {
		const struct volume_request *vr = &sa->group->volumes.v[i].value;
		struct local_volume *lv;
		struct err e = { 0 };

		/* It fitted just now; if not even so, the alloc's own claim says why. */
		if (vr->type != VOLUME_CSI)
			continue;
		if (take_claim(l, sa, vr, &lv, &e) < 0)
			log_warn("allocation %s: %s", sa->a.id, e.msg);
		else
			volume_plan(l->base.sup, sa, vr, &lv->vol);
	}
}

void
local_volume_claim(struct source *s, struct sup_alloc *sa, const struct volume_request *vr,
    claim_cb *cb, void *arg)
{
	struct local_volume *lv = NULL;
	struct err e = { 0 };
	int r = local_alloc_of(sa) ? take_claim(local_of(s), sa, vr, &lv, &e)
				   : err_say(&e, -ENOENT, "allocation %s is not known", sa->a.id);

	cb(s->sup, arg, r, lv ? &lv->vol : NULL, &e);
}

static void
free_claim(struct local *l, struct local_alloc *la, struct local_volume *lv)
{
	cleanup_done(csi_claim) struct csi_claim claim;
	const struct csi_claim *held = volume_find_claim(&lv->vol, la->sa->a.id);
	struct err e = { 0 };

	csi_claim_init(&claim);
	if (!held)
		return;
	if (csi_claim_copy(held, &claim) < 0) {
		log_error(
		    "volume %s: no memory to release the claim of %s", lv->vol.id, la->sa->a.id);
		return;
	}
	claim.state = CLAIM_READY_TO_FREE;
	if (volume_claim(&lv->vol, &claim, &e) < 0) {
		log_error(
		    "volume %s: release the claim of %s: %s", lv->vol.id, la->sa->a.id, e.msg);
		return;
	}
	if (la->n_claims > 0)
		la->n_claims--;
	local_volume_changed(l, lv);
	local_mark_node(l);
}

void
local_volume_release(struct source *s, struct sup_alloc *sa, const struct volume_request *vr)
{
	struct local *l = local_of(s);
	struct local_alloc *la = local_alloc_of(sa);
	cleanup_free char *id = NULL;
	struct local_volume *lv;
	uint64_t same, self;

	if (!la || volume_request_source(vr, alloc_name_index(sa->a.name), &id) < 0)
		return;
	same = requests_of_volume(sa, vr, &self);
	la->held &= ~self;
	if (la->held & same)
		return; /* another request of this alloc still uses it */
	lv = local_volume_find(l, sa->job->job.namespace, id);
	if (lv)
		free_claim(l, la, lv);
	if (la->slot->current == la && la->over)
		local_mark_slot(l, la->slot);
}

void
local_volume_release_all(struct local *l, struct local_alloc *la)
{
	const struct task_group *g = la->sa->group;

	for (size_t i = 0; i < g->volumes.n && la->n_claims > 0; i++) {
		cleanup_free char *id = NULL;
		struct local_volume *lv;

		if (g->volumes.v[i].value.type != VOLUME_CSI ||
		    volume_request_source(
			&g->volumes.v[i].value, alloc_name_index(la->sa->a.name), &id) < 0)
			continue;
		lv = local_volume_find(l, la->sa->job->job.namespace, id);
		if (lv)
			free_claim(l, la, lv);
	}
}

/* The alloc that has the i-th claim, of writers and then readers. */
static const char *
claim_key(const struct csi_volume *v, size_t i)
{
	return i < v->write_claims.n ? v->write_claims.v[i].key
				     : v->read_claims.v[i - v->write_claims.n].key;
}

/* NULL: it is not known any more. */
static struct local_alloc *
find_claimer(struct local *l, const char *alloc_id)
{
	struct id id;
	struct sup_alloc *sa = id_from_uuid(alloc_id, &id) ? alloc_find(l->base.sup, &id) : NULL;

	return sa ? local_alloc_of(sa) : NULL;
}

bool
local_volume_abandon(struct local *l, struct local_volume *lv)
{
	cleanup_done(csi_volume) struct csi_volume before;
	struct local_alloc *la;

	csi_volume_init(&before);
	if (csi_volume_copy(&lv->vol, &before) < 0)
		return false;
	for (size_t i = 0; i < before.write_claims.n + before.read_claims.n; i++) {
		la = find_claimer(l, claim_key(&before, i));
		if (la && !la->over)
			return false;
	}
	for (size_t i = 0; i < before.write_claims.n + before.read_claims.n; i++) {
		la = find_claimer(l, claim_key(&before, i));
		if (la)
			free_claim(l, la, lv);
	}
	local_volume_forget(l, lv);
	/* Their successors wait for the next of its name from now on. */
	for (size_t i = 0; i < before.write_claims.n + before.read_claims.n; i++) {
		la = find_claimer(l, claim_key(&before, i));
		if (la && la->slot->current == la)
			local_mark_slot(l, la->slot);
	}
	return true;
}

/* --- at start --- */

static void
count_claim(struct local *l, const char *alloc_id)
{
	struct local_alloc *la = find_claimer(l, alloc_id);

	if (!la)
		return;
	la->n_claims++;
	la->held = UINT64_MAX;
}

static int
load_volume(void *arg, const struct store_row *row, struct err *e)
{
	struct local *l = arg;
	const char *json = store_col_text(row, 2);
	cleanup_done(csi_volume) struct csi_volume vol;
	struct local_volume *lv;
	struct err why = { 0 };

	csi_volume_init(&vol);
	if (model_from_text(&csi_volume_type, json, strlen(json), &vol, &why) < 0) {
		log_error("state.db: volume %s is left alone: %s", store_col_text(row, 1), why.msg);
		return 0;
	}
	lv = insert_volume(l, &vol);
	if (!lv)
		return err_set(e, -ENOMEM, "read the volumes of state.db");
	for (size_t i = 0; i < lv->vol.read_claims.n; i++)
		count_claim(l, lv->vol.read_claims.v[i].key);
	for (size_t i = 0; i < lv->vol.write_claims.n; i++)
		count_claim(l, lv->vol.write_claims.v[i].key);
	return 0;
}

/* After the allocs. */
int
local_volumes_load(struct local *l, struct err *e)
{
	return store_each(l->base.sup->store, STMT_VOLUME_ALL, NULL, 0, load_volume, l, e);
}
