// SPDX-License-Identifier: Apache-2.0
/* local_claims.c: the claims that allocs hold on CSI volumes. Runs in: supervisor. */
#include "supervisor/server/claim/local_claims.h"

#include <errno.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/mem.h"
#include "supervisor/core/journal.h"
#include "supervisor/node/node_state.h"
#include "supervisor/server/claim/claims.h"
#include "supervisor/server/claim/local_reach.h"
#include "supervisor/server/claim/local_attach.h"
#include "supervisor/server/claim/local_release.h"
#include "supervisor/server/job/local_allocs.h"
#include "supervisor/server/job/local_marks.h"
#include "supervisor/volume/volumes.h"

static void
fill_claim(struct local *l, const char *alloc_id, const struct csi_volume *vol,
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
	ret->since = clock_real_ns();
	str_set(&ret->alloc_id, alloc_id);
	str_set(&ret->node_id, node->id);
	str_set(&ret->external_node_id, info && info->node_info ? info->node_info->id : NULL);
}

/* Returns the volume of a request, up to date; NULL, with *e, if it cannot be claimed. A volume
 * that is being changed has no new claims; an alloc with a claim on it (alloc_id, "": none) may go
 * on. */
static struct local_volume *
find_usable_volume(struct local *l, const char *namespace, const struct volume_request *vr,
    int64_t index, const char *alloc_id, struct err *e)
{
	cleanup_free char *id = NULL;
	struct local_volume *lv;

	volume_request_source(vr, index, &id);
	lv = local_volume_find(l, namespace, id);
	if (!lv) {
		(void)err_say(e, -ENOENT, "missing CSI volume %s", id);
		return NULL;
	}
	if (lv->busy && !volume_find_claim(&lv->vol, alloc_id)) {
		(void)err_say(e, -EAGAIN, "CSI volume %s is being %s", id, lv->busy);
		return NULL;
	}
	local_volume_refresh(l, &lv->vol);
	return lv;
}

int
local_claim_check(struct local *l, const char *namespace, int64_t index,
    const struct volume_request *vr, struct err *e)
{
	struct local_volume *lv = find_usable_volume(l, namespace, vr, index, "", e);
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
	if (info->node_info && local_reach_check(l, &lv->vol, info->node_info, e) < 0)
		return e->code;
	fill_claim(l, "", &lv->vol, vr, &claim);
	if (volume_claim_check(&lv->vol, &claim, e) < 0)
		return e->code;
	return volume_attach_check(&lv->vol, &claim, e);
}

/* Returns a bit for each request of sa's group that is for the same volume as vr; *ret_self is the
 * bit of vr itself. */
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
	struct local_volume *lv = find_usable_volume(
	    l, sa->job->job.namespace, vr, alloc_name_index(sa->a.name), sa->a.id, e);
	cleanup_done(csi_claim) struct csi_claim claim;
	bool had;
	uint64_t self;
	int r;

	csi_claim_init(&claim);
	if (!lv)
		return e->code;
	had = volume_find_claim(&lv->vol, sa->a.id) != NULL;
	fill_claim(l, sa->a.id, &lv->vol, vr, &claim);
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
local_claims_reserve(struct local *l, struct sup_alloc *sa)
{
	for (size_t i = 0; i < sa->group->volumes.n; i++) {
		const struct volume_request *vr = &sa->group->volumes.v[i].value;
		struct local_volume *lv;
		struct err e = { 0 };

		if (vr->type != VOLUME_CSI)
			continue;
		/* The check before the placement succeeded. If this fails nevertheless, so does the
		 * alloc's own claim, which reports it. */
		if (take_claim(l, sa, vr, &lv, &e) < 0)
			journal_warn(JOURNAL_VOLUME, ABOUT_VOLUME(sa, str(vr->source)),
			    "allocation %s: %s", sa->a.id, e.msg);
		else
			volume_plan(l->base.sup, sa, vr, &lv->vol);
	}
}

void
local_claim_acquire(struct source *s, struct sup_alloc *sa, const struct volume_request *vr,
    claim_cb *cb, void *arg)
{
	struct local_volume *lv = NULL;
	struct err e = { 0 };
	int r = local_alloc_of(sa) ? take_claim(local_of(s), sa, vr, &lv, &e)
				   : err_say(&e, -ENOENT, "allocation %s is not known", sa->a.id);

	if (r < 0)
		cb(s->sup, arg, r, NULL, &e);
	else
		local_attach(local_of(s), lv, sa, vr, cb, arg);
}

void
local_claim_release(struct source *s, struct sup_alloc *sa, const struct volume_request *vr)
{
	struct local *l = local_of(s);
	struct local_alloc *la = local_alloc_of(sa);
	cleanup_free char *id = NULL;
	struct local_volume *lv;
	uint64_t same, self;

	if (!la)
		return;
	volume_request_source(vr, alloc_name_index(sa->a.name), &id);
	same = requests_of_volume(sa, vr, &self);
	la->held &= ~self;
	if (la->held & same)
		return; /* another request of this alloc still uses it */
	lv = local_volume_find(l, sa->job->job.namespace, id);
	if (lv)
		local_release_begin(l, lv, sa->a.id);
	if (la->slot->current == la && la->over)
		local_mark_slot(l, la->slot);
}

void
local_claims_release_all(struct local *l, struct local_alloc *la)
{
	const struct task_group *g = la->sa->group;

	for (size_t i = 0; i < g->volumes.n; i++) {
		cleanup_free char *id = NULL;
		struct local_volume *lv;

		if (g->volumes.v[i].value.type != VOLUME_CSI)
			continue;
		volume_request_source(
		    &g->volumes.v[i].value, alloc_name_index(la->sa->a.name), &id);
		lv = local_volume_find(l, la->sa->job->job.namespace, id);
		if (lv)
			local_release_begin(l, lv, la->sa->a.id);
	}
}

/* Returns the first alloc that is not over and has a claim, or NULL. */
const char *
local_volume_holder(struct local *l, struct local_volume *lv)
{
	const struct csi_claim *c;

	for (size_t i = 0; (c = volume_nth_claim(&lv->vol, i)); i++)
		if (!local_claim_is_over(l, c))
			return c->alloc_id;
	return NULL;
}

static void
add_text(char **text, const char *fmt, const char *a, const char *b)
{
	cleanup_free char *before = steal_ptr(text), *more = mem_printf(fmt, a, b);

	*text = mem_printf("%s%s%s", str(before), before ? "; " : "", more);
}

/* Says what of the claims is left behind on the node and at the controller; NULL: nothing. */
static char *
say_forgotten(struct local *l, struct local_volume *lv)
{
	const struct csi_claim *c;
	char *text = NULL;

	for (size_t i = 0; (c = volume_nth_claim(&lv->vol, i)); i++) {
		if (volume_is_mounted_for(
			l->base.sup, str(c->alloc_id), lv->vol.namespace, lv->vol.id))
			add_text(&text,
			    "it is still mounted on this node for allocation %.8s, until plugin %s "
			    "has unmounted it",
			    str(c->alloc_id), str(lv->vol.plugin_id));
		if (c->attach != CLAIM_UNATTACHED && !volume_other_attachment(&lv->vol, c))
			add_text(&text,
			    "it may still be attached to node %s: the controller of plugin %s is "
			    "not "
			    "asked to detach it",
			    str(c->external_node_id), str(lv->vol.plugin_id));
	}
	return text;
}

bool
local_volume_abandon(struct local *l, struct local_volume *lv, char **ret_forgotten)
{
	const struct csi_claim *c;

	if (local_volume_holder(l, lv))
		return false;
	*ret_forgotten = say_forgotten(l, lv);
	/* Their successors then wait for a new volume with this name. */
	while ((c = volume_nth_claim(&lv->vol, 0)))
		local_claim_free(l, lv, c);
	local_attach_drop(lv);
	local_release_drop(lv);
	local_volume_forget(l, lv);
	return true;
}

void
local_claims_load(struct local *l)
{
	size_t n;
	cleanup_free struct local_key **all = local_volumes_sorted(l, &n);

	for (size_t i = 0; i < n; i++) {
		struct csi_volume *vol = &local_volume_of(all[i])->vol;
		const struct csi_claim *c;

		for (size_t k = 0; (c = volume_nth_claim(vol, k)); k++) {
			struct local_alloc *la = local_claimer(l, str(c->alloc_id));

			if (!la)
				continue;
			la->n_claims++;
			la->held = UINT64_MAX;
		}
	}
}
