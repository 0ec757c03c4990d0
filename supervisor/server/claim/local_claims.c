// SPDX-License-Identifier: Apache-2.0
/* local_claims.c: the claims that allocs hold on CSI volumes. Runs in: supervisor. */
#include "supervisor/server/claim/local_claims.h"

#include <errno.h>

#include "common/cleanup.h"
#include "supervisor/core/journal.h"
#include "supervisor/node/node_state.h"
#include "supervisor/server/claim/claims.h"
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
	str_set(&ret->alloc_id, alloc_id);
	str_set(&ret->node_id, node->id);
	str_set(&ret->external_node_id, info && info->node_info ? info->node_info->id : NULL);
}

/* Returns the volume of a request, up to date; NULL, with *e, if it cannot be claimed. */
static struct local_volume *
find_usable_volume(struct local *l, const char *namespace, const struct volume_request *vr,
    int64_t index, struct err *e)
{
	cleanup_free char *id = NULL;
	struct local_volume *lv;

	volume_request_source(vr, index, &id);
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
local_claim_check(struct local *l, const char *namespace, int64_t index,
    const struct volume_request *vr, struct err *e)
{
	struct local_volume *lv = find_usable_volume(l, namespace, vr, index, e);
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
	fill_claim(l, "", &lv->vol, vr, &claim);
	return volume_claim_check(&lv->vol, &claim, e);
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
	struct local_volume *lv =
	    find_usable_volume(l, sa->job->job.namespace, vr, alloc_name_index(sa->a.name), e);
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
	csi_claim_copy(held, &claim);
	claim.state = CLAIM_READY_TO_FREE;
	if (volume_claim(&lv->vol, &claim, &e) < 0) {
		journal_error(JOURNAL_VOLUME, ABOUT_VOLUME(la->sa, lv->vol.id),

		    "volume %s: release the claim of %s: %s", lv->vol.id, la->sa->a.id, e.msg);
		return;
	}
	if (la->n_claims > 0)
		la->n_claims--;
	local_volume_changed(l, lv);
	local_mark_node(l);
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
		free_claim(l, la, lv);
	if (la->slot->current == la && la->over)
		local_mark_slot(l, la->slot);
}

void
local_claims_release_all(struct local *l, struct local_alloc *la)
{
	const struct task_group *g = la->sa->group;

	for (size_t i = 0; i < g->volumes.n && la->n_claims > 0; i++) {
		cleanup_free char *id = NULL;
		struct local_volume *lv;

		if (g->volumes.v[i].value.type != VOLUME_CSI)
			continue;
		volume_request_source(
		    &g->volumes.v[i].value, alloc_name_index(la->sa->a.name), &id);
		lv = local_volume_find(l, la->sa->job->job.namespace, id);
		if (lv)
			free_claim(l, la, lv);
	}
}

/* Returns the alloc that has the i-th claim: writers come first, then readers. */
static const char *
claim_key(const struct csi_volume *v, size_t i)
{
	return i < v->write_claims.n ? v->write_claims.v[i].key
				     : v->read_claims.v[i - v->write_claims.n].key;
}

/* Returns NULL if the alloc is not known any more. */
static struct local_alloc *
find_claimer(struct local *l, const char *alloc_id)
{
	struct id id;
	struct sup_alloc *sa = id_from_uuid(alloc_id, &id) ? alloc_find(l->base.sup, &id) : NULL;

	return sa ? local_alloc_of(sa) : NULL;
}

static size_t
count_claims(const struct csi_volume *v)
{
	return v->write_claims.n + v->read_claims.n;
}

/* Returns the first alloc that is not over and has a claim, or NULL. */
static const struct local_alloc *
find_holder(struct local *l, const struct csi_volume *v)
{
	for (size_t i = 0; i < count_claims(v); i++) {
		const struct local_alloc *la = find_claimer(l, claim_key(v, i));

		if (la && !la->over)
			return la;
	}
	return NULL;
}

/* before: the volume with the claims that were released. */
static void
mark_successors(struct local *l, const struct csi_volume *before)
{
	for (size_t i = 0; i < count_claims(before); i++) {
		struct local_alloc *la = find_claimer(l, claim_key(before, i));

		if (la && la->over && la->slot->current == la)
			local_mark_slot(l, la->slot);
	}
}

size_t
local_volume_detach(struct local *l, struct local_volume *lv, const char **ret_holder)
{
	cleanup_done(csi_volume) struct csi_volume before;
	const struct local_alloc *holder = find_holder(l, &lv->vol);

	csi_volume_init(&before);
	csi_volume_copy(&lv->vol, &before);
	for (size_t i = 0; i < count_claims(&before); i++) {
		struct local_alloc *la = find_claimer(l, claim_key(&before, i));

		if (la && la->over)
			free_claim(l, la, lv);
	}
	mark_successors(l, &before);
	*ret_holder = holder ? holder->sa->a.id : NULL;
	return count_claims(&before) - count_claims(&lv->vol);
}

bool
local_volume_abandon(struct local *l, struct local_volume *lv)
{
	const char *holder;

	if (find_holder(l, &lv->vol))
		return false;
	/* Their successors then wait for a new volume with this name. */
	(void)local_volume_detach(l, lv, &holder);
	local_volume_forget(l, lv);
	return true;
}

void
local_claims_load(struct local *l)
{
	size_t n;
	cleanup_free struct local_key **all = local_volumes_sorted(l, &n);

	for (size_t i = 0; i < n; i++) {
		const struct csi_volume *vol = &local_volume_of(all[i])->vol;

		for (size_t k = 0; k < vol->write_claims.n + vol->read_claims.n; k++) {
			struct local_alloc *la = find_claimer(l, claim_key(vol, k));

			if (!la)
				continue;
			la->n_claims++;
			la->held = UINT64_MAX;
		}
	}
}
