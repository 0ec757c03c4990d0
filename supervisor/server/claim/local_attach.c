// SPDX-License-Identifier: Apache-2.0
/* local_attach.c: attaches claimed volumes to this node: one attachment for all claims of a volume.
 * Runs in: supervisor. */
#include "supervisor/server/claim/local_attach.h"

#include <errno.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/core/journal.h"
#include "supervisor/server/claim/claims.h"
#include "supervisor/server/claim/local_release.h"
#include "supervisor/server/job/local_allocs.h"
#include "supervisor/volume/controller_calls.h"
#include "supervisor/volume/volumes.h"

/* How long a claim waits for the controller of its plugin to run: as long as an alloc waits for the
 * plugin itself. */
#define CONTROLLER_USEC 60000000

/* A claim that is taken and not answered yet. */
struct claim_wait {
	LIST_ENTRY(claim_wait) link;
	struct local *l;
	struct local_volume *lv;
	struct local_alloc *la;
	const struct volume_request *vr;
	claim_cb *cb;
	void *arg;
	struct sup_timer late;
};

static void
free_wait(struct claim_wait *w)
{
	LIST_REMOVE(w, link);
	w->la->claim_wait = NULL;
	sup_timer_cancel(&w->late);
	free(w);
}

void
local_attach_drop(struct local_volume *lv)
{
	while (!LIST_EMPTY(&lv->work.waits))
		free_wait(LIST_FIRST(&lv->work.waits));
}

static void
copy_context(const struct string_map *from, struct string_map *to)
{
	for (size_t i = 0; i < from->n; i++)
		string_map_set(to, from->v[i].key, from->v[i].value);
}

/* Calls the callback, perhaps within local_attach(). c: the claim, if r is 0. */
static void
answer_claim(struct local *l, const struct local_volume *lv, const struct csi_claim *c,
    claim_cb *cb, void *arg)
{
	cleanup_done(csi_volume) struct csi_volume view;

	csi_volume_init(&view);
	csi_volume_copy(&lv->vol, &view);
	copy_context(&c->publish_context, &view.publish_context);
	cb(l->base.sup, arg, 0, &view, NULL);
}

static void
end_wait(struct claim_wait *w, int r, const struct csi_claim *c, const struct err *e)
{
	struct claim_wait was = *w;

	free_wait(w);
	if (r < 0)
		was.cb(was.l->base.sup, was.arg, r, NULL, e);
	else
		answer_claim(was.l, was.lv, c, was.cb, was.arg);
}

static bool
is_attached(struct local *l, const struct csi_claim *c)
{
	return c->attach == CLAIM_ATTACHED && str_eq(c->attach_boot, l->base.sup->boot_id);
}

enum need { NEED_NOTHING, NEED_CONTROLLER, NEED_ATTACH };

/* Without a node plugin the claim is answered: the mount waits for the plugin and claims again. */
static enum need
get_need(struct local *l, struct csi_volume *vol, bool *ret_read_only)
{
	cleanup_done(csi_plugin) struct csi_plugin plugin;

	(void)local_plugin_get(l, str(vol->plugin_id), &plugin);
	if (plugin.nodes.n == 0 || !plugin.controller_required)
		return NEED_NOTHING;
	if (csi_plugin_lacks_controller(&plugin))
		return NEED_CONTROLLER;
	if (!csi_plugin_needs_attach(&plugin))
		return NEED_NOTHING;
	*ret_read_only = plugin.controllers.v[0].value.controller_info->supports_read_only_attach;
	return NEED_ATTACH;
}

static void
set_attached(struct local *l, struct local_volume *lv, struct csi_claim *c, bool read_only,
    const struct string_map *context)
{
	struct csi_claim none;

	csi_claim_init(&none);
	c->attach = CLAIM_ATTACHED;
	c->attach_read_only = read_only;
	str_set(&c->attach_boot, l->base.sup->boot_id);
	none.publish_context = c->publish_context;
	c->publish_context = (struct string_map){ 0 };
	csi_claim_done(&none);
	copy_context(context, &c->publish_context);
	local_volume_changed(l, lv);
}

static struct claim_wait *
find_wait(struct local_volume *lv, const char *alloc_id)
{
	struct claim_wait *w;

	LIST_FOREACH (w, &lv->work.waits, link)
		if (str_eq(w->la->sa->a.id, alloc_id))
			return w;
	return NULL;
}

static void
on_attached(struct sup *sup, void *arg, int r, const struct string_map *publish_context,
    const struct err *e)
{
	struct local_volume *lv = arg;
	cleanup_free char *alloc = mem_strdup(lv->work.calling);
	struct csi_claim *c = volume_held_claim(&lv->vol, alloc);
	struct local *l = local_of_sup(sup);
	struct claim_wait *w = find_wait(lv, alloc);
	struct err why = { 0 };

	if (!local_volume_end_call(lv))
		return;
	if (r >= 0 && c)
		set_attached(l, lv, c, c->attach_read_only, publish_context);
	if (!c)
		r = err_say(&why, -ECANCELED, "the claim was released");
	else if (r < 0)
		(void)err_say(&why, r, "attach volume %s to node %s: %s", lv->vol.id,
		    str(c->external_node_id), e->msg);
	if (w)
		end_wait(w, r, c, &why);
	local_claims_step(l, lv);
}

/* Copies the volume with only the capability of this claim. */
static void
copy_for_call(
    const struct local_volume *lv, const struct volume_request *vr, struct csi_volume *ret)
{
	struct csi_capability *cap;

	csi_volume_copy(&lv->vol, ret);
	while (ret->requested_capabilities.n > 0)
		list_remove(csi_capability, &ret->requested_capabilities, 0);
	cap = list_add(csi_capability, &ret->requested_capabilities);
	cap->access_mode = vr->access_mode;
	cap->attachment_mode = vr->attachment_mode;
	mount_options_merge(&ret->mount_options, vr->mount_options);
}

static void
call_controller(struct local *l, struct local_volume *lv, struct claim_wait *w, struct csi_claim *c,
    bool can_read_only)
{
	cleanup_done(csi_volume) struct csi_volume vol;

	csi_volume_init(&vol);
	copy_for_call(lv, w->vr, &vol);
	c->attach = CLAIM_ATTACHING;
	c->attach_read_only = can_read_only && c->mode == CLAIM_READ;
	local_volume_changed(l, lv); /* durable before the call */
	str_set(&lv->work.calling, c->alloc_id);
	lv->work.detaching = false;
	volume_attach(
	    l->base.sup, &vol, str(c->external_node_id), c->attach_read_only, on_attached, lv);
}

static void
on_controller_late(void *arg)
{
	struct claim_wait *w = arg;
	struct err e = { 0 };

	(void)err_say(&e, -EAGAIN,
	    "volume %s must be attached by the controller of plugin %s, which does not run on this "
	    "node: a task with a csi_plugin block of this id and of type controller or monolith "
	    "must "
	    "run",
	    w->lv->vol.id, str(w->lv->vol.plugin_id));
	end_wait(w, e.code, NULL, &e);
}

/* Returns true if the list may have changed: the claim was answered, or a call has begun. */
static bool
try_wait(struct local *l, struct local_volume *lv, struct claim_wait *w)
{
	struct csi_claim *c = volume_held_claim(&lv->vol, w->la->sa->a.id);
	const struct csi_claim *other;
	bool can_read_only = false;
	struct err e = { 0 };
	enum need need;

	if (!c || map_get(csi_claim, &lv->vol.past_claims, c->alloc_id)) {
		end_wait(w, err_say(&e, -ECANCELED, "the claim was released"), NULL, &e);
		return true;
	}
	need = is_attached(l, c) ? NEED_NOTHING : get_need(l, &lv->vol, &can_read_only);
	if (need == NEED_CONTROLLER && !sup_timer_is_set(&w->late))
		sup_timer_set(
		    l->base.sup, &w->late, CLOCK_MONOTONIC, CONTROLLER_USEC, on_controller_late, w);
	if (need == NEED_CONTROLLER)
		return false;
	if (need == NEED_ATTACH && volume_attach_check(&lv->vol, c, &e) < 0) {
		end_wait(w, e.code, NULL, &e);
		return true;
	}
	other = volume_other_attachment(&lv->vol, c);
	if (need == NEED_ATTACH && (!other || !is_attached(l, other))) {
		call_controller(l, lv, w, c, can_read_only);
		return true;
	}
	if (need == NEED_ATTACH)
		set_attached(l, lv, c, other->attach_read_only, &other->publish_context);
	end_wait(w, 0, c, NULL);
	return true;
}

void
local_attach_next(struct local *l, struct local_volume *lv)
{
	struct claim_wait *w = LIST_FIRST(&lv->work.waits);

	/* An answer may change the list. */
	while (w && !lv->work.calling)
		w = try_wait(l, lv, w) ? LIST_FIRST(&lv->work.waits) : LIST_NEXT(w, link);
}

void
local_attach(struct local *l, struct local_volume *lv, struct sup_alloc *sa,
    const struct volume_request *vr, claim_cb *cb, void *arg)
{
	cleanup_done(csi_volume) struct csi_volume mounted;
	struct csi_claim *c = volume_held_claim(&lv->vol, sa->a.id);
	struct claim_wait *w;

	csi_volume_init(&mounted);
	/* A mounted volume is not attached again, even if an older agent kept no attachment. */
	if (is_attached(l, c) || volume_get_mounted(l->base.sup, sa, str(vr->name), &mounted)) {
		answer_claim(l, lv, c, cb, arg);
		return;
	}
	w = mem_new(struct claim_wait);
	*w = (struct claim_wait){
		.l = l, .lv = lv, .la = local_alloc_of(sa), .vr = vr, .cb = cb, .arg = arg
	};
	w->la->claim_wait = w;
	LIST_INSERT_HEAD(&lv->work.waits, w, link);
	local_claims_step(l, lv);
}

void
local_attach_cancel(struct source *s, struct sup_alloc *sa)
{
	struct claim_wait *w = local_alloc_of(sa) ? local_alloc_of(sa)->claim_wait : NULL;
	struct err e = { 0 };

	if (w)
		end_wait(w, err_say(&e, -ECANCELED, "the allocation is to be stopped"), NULL, &e);
}
