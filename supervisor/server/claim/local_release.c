// SPDX-License-Identifier: Apache-2.0
/* local_release.c: releases claims, step by step. Runs in: supervisor. */
#include "supervisor/volume/controller_calls.h"
#include "supervisor/server/claim/local_release.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/mem.h"
#include "supervisor/core/changed.h"
#include "supervisor/core/journal.h"
#include "supervisor/server/claim/claims.h"
#include "supervisor/server/claim/local_attach.h"
#include "supervisor/server/job/local_allocs.h"
#include "supervisor/server/job/local_marks.h"
#include "supervisor/volume/plugins.h"

#define DELAY_MS     5000 /* between two tries to detach; doubled after each */
#define DELAY_MAX_MS 60000
#define GONE_MS      10000    /* between checks for mounts of an alloc that is gone */
#define ASK_USEC     20000000 /* how long a request waits for a release */

struct local_releases {
	struct local *l;
	struct changed_watch plugins;
};

/* A request that waits for the releases of a volume. */
struct release_wait {
	LIST_ENTRY(release_wait) link;
	struct local *l;
	struct local_volume *lv;
	volume_cb *cb;
	void *arg;
	struct sup_timer late;
};

static void
end_ask(struct release_wait *w, int r, const struct err *e)
{
	struct release_wait was = *w;

	LIST_REMOVE(w, link);
	sup_timer_cancel(&w->late);
	free(w);
	if (was.cb)
		was.cb(was.l->base.sup, was.arg, r, e);
}

void
local_release_drop(struct local_volume *lv)
{
	while (!LIST_EMPTY(&lv->work.asked)) {
		LIST_FIRST(&lv->work.asked)->cb = NULL;
		end_ask(LIST_FIRST(&lv->work.asked), 0, NULL);
	}
	sup_timer_cancel(&lv->work.again);
	free_p(&lv->work.error);
}

struct local_alloc *
local_claimer(struct local *l, const char *alloc_id)
{
	struct id id;
	struct sup_alloc *sa = id_from_uuid(alloc_id, &id) ? alloc_find(l->base.sup, &id) : NULL;

	return sa ? local_alloc_of(sa) : NULL;
}

/* An alloc whose row could not be read may still run. */
bool
local_claim_is_over(struct local *l, const struct csi_claim *c)
{
	const struct local_alloc *la = local_claimer(l, str(c->alloc_id));

	return la ? la->over : l->base.sup->allocs->n_unreadable == 0;
}

static bool
has_mount(struct local *l, const struct local_volume *lv, const struct csi_claim *c)
{
	return volume_is_mounted_for(l->base.sup, str(c->alloc_id), lv->vol.namespace, lv->vol.id);
}

void
local_claim_free(struct local *l, struct local_volume *lv, const struct csi_claim *c)
{
	struct csi_claim ready = { .alloc_id = c->alloc_id, .state = CLAIM_READY_TO_FREE };
	struct local_alloc *la = local_claimer(l, str(c->alloc_id));
	struct err e = { 0 };

	if (volume_held_claim(&lv->vol, str(c->alloc_id)) && la && la->n_claims > 0)
		la->n_claims--;
	(void)volume_claim(&lv->vol, &ready, &e); /* freeing cannot fail */
	local_volume_changed(l, lv);
	local_mark_node(l);
	if (la && la->over && la->slot->current == la)
		local_mark_slot(l, la->slot);
}

static void
reset_failures(struct local_volume *lv)
{
	lv->work.failures = 0;
	lv->work.not_before_ms = lv->work.delay_ms = 0;
	free_p(&lv->work.error);
}

static void
note_failure(struct local_volume *lv, const struct err *e)
{
	struct local_claim_work *w = &lv->work;

	w->failures++;
	w->delay_ms = w->delay_ms ? w->delay_ms * 2 : DELAY_MS;
	if (w->delay_ms > DELAY_MAX_MS)
		w->delay_ms = DELAY_MAX_MS;
	w->not_before_ms = clock_ms() + w->delay_ms;
	str_set(&w->error, e->msg);
}

static void
on_detached(struct sup *sup, void *arg, int r, const struct err *e)
{
	struct local_volume *lv = arg;
	cleanup_free char *alloc = mem_strdup(lv->work.calling);
	const struct csi_claim *past = map_get(csi_claim, &lv->vol.past_claims, alloc);
	struct local *l = local_of_sup(sup);

	if (!local_volume_end_call(lv))
		return;
	if (r < 0) {
		note_failure(lv, e);
		journal_warn(JOURNAL_VOLUME,
		    (&(struct journal_about){
			.alloc_id = alloc, .namespace = lv->vol.namespace, .volume = lv->vol.id }),
		    "volume %s of allocation %.8s stays attached and claimed: %s; retried in %llu "
		    "s",
		    lv->vol.id, alloc, e->msg, (unsigned long long)lv->work.delay_ms / 1000);
	} else {
		reset_failures(lv);
		if (past)
			volume_release_claim(&lv->vol, past, CLAIM_CONTROLLER_DETACHED);
	}
	local_claims_step(l, lv);
}

enum controller { CONTROLLER_MISSING, CONTROLLER_PASSIVE, CONTROLLER_ATTACHES };

static enum controller
find_controller(struct local *l, const struct csi_volume *vol)
{
	struct plugin *p = plugin_find(l->base.sup, str(vol->plugin_id), CSI_PLUGIN_CONTROLLER);
	const struct csi_info *info = p ? plugin_controller_info(p) : NULL;

	if (!info || !info->controller_info)
		return CONTROLLER_MISSING;
	return info->controller_info->supports_attach_detach ? CONTROLLER_ATTACHES
							     : CONTROLLER_PASSIVE;
}

/* Detaches the volume for its last claim on the node, if a try is due. */
static void
detach(struct local *l, struct local_volume *lv, struct csi_claim *held)
{
	if (lv->work.not_before_ms > clock_ms() ||
	    find_controller(l, &lv->vol) == CONTROLLER_MISSING)
		return;
	if (held->attach != CLAIM_DETACHING) {
		held->attach = CLAIM_DETACHING;
		local_volume_changed(l, lv); /* durable before the call */
	}
	str_set(&lv->work.calling, held->alloc_id);
	lv->work.detaching = true;
	volume_detach(l->base.sup, &lv->vol, str(held->external_node_id), on_detached, lv);
}

/* Returns whether the volume must be detached before this claim is freed. */
static bool
needs_detach(struct local *l, struct local_volume *lv, const struct csi_claim *held)
{
	return held && held->attach != CLAIM_UNATTACHED &&
	       !volume_other_attachment(&lv->vol, held) &&
	       find_controller(l, &lv->vol) != CONTROLLER_PASSIVE;
}

/* Returns true if the claim was freed, or a call has begun. */
static bool
step_release(struct local *l, struct local_volume *lv, const struct csi_claim *past)
{
	struct csi_claim *held = volume_held_claim(&lv->vol, str(past->alloc_id));

	if ((past->state == CLAIM_UNPUBLISHING || past->state == CLAIM_TAKEN) &&
	    has_mount(l, lv, past))
		return false;
	if (past->state != CLAIM_CONTROLLER_DETACHED && past->state != CLAIM_READY_TO_FREE &&
	    needs_detach(l, lv, held)) {
		detach(l, lv, held);
		return lv->work.calling != NULL;
	}
	local_claim_free(l, lv, past);
	return true;
}

static void
on_unclaimed_detached(struct sup *sup, void *arg, int r, const struct err *e)
{
	struct local_volume *lv = arg;

	if (!local_volume_end_call(lv))
		return;
	if (r < 0)
		journal_warn(JOURNAL_VOLUME,
		    (&(struct journal_about){
			.namespace = lv->vol.namespace, .volume = lv->vol.id }),
		    "volume %s stays attached without a claim: %s", lv->vol.id, e->msg);
	local_claims_step(local_of_sup(sup), lv);
}

bool
local_detach_unclaimed(struct local *l, struct local_volume *lv, const char *node)
{
	if (lv->gone || lv->busy || lv->work.calling || volume_in_use(&lv->vol) ||
	    lv->vol.past_claims.n > 0)
		return false;
	str_set(&lv->work.calling, CALLING_FOR_NONE);
	lv->work.detaching = true;
	volume_detach(l->base.sup, &lv->vol, node, on_unclaimed_detached, lv);
	return true;
}

/* Begins the releases of claims whose allocs are over and have nothing mounted. Returns whether an
 * alloc is gone and its mount is not: nobody reports the end of that mount. */
static bool
find_over(struct local *l, struct local_volume *lv)
{
	const struct csi_claim *c;
	bool gone = false;

	for (size_t i = 0; (c = volume_nth_claim(&lv->vol, i)); i++) {
		if (map_get(csi_claim, &lv->vol.past_claims, str(c->alloc_id)) ||
		    !local_claim_is_over(l, c))
			continue;
		if (has_mount(l, lv, c)) {
			gone |= !local_claimer(l, str(c->alloc_id));
			continue;
		}
		volume_release_claim(&lv->vol, c, CLAIM_NODE_DETACHED);
		local_volume_changed(l, lv);
	}
	return gone;
}

/* Returns a claim whose alloc is over or whose release has begun; NULL: there is none. */
static const struct csi_claim *
find_left(struct local *l, struct local_volume *lv)
{
	const struct csi_claim *c;

	for (size_t i = 0; (c = volume_nth_claim(&lv->vol, i)); i++)
		if (map_get(csi_claim, &lv->vol.past_claims, str(c->alloc_id)) ||
		    local_claim_is_over(l, c))
			return c;
	return NULL;
}

bool
local_volume_is_left(struct local *l, struct local_volume *lv)
{
	return find_left(l, lv) != NULL;
}

static void
on_again(void *arg)
{
	struct local_volume *lv = arg;

	local_claims_step(lv->l, lv);
}

static void
set_timer(struct local *l, struct local_volume *lv, bool gone)
{
	uint64_t now = clock_ms(), ms = gone ? GONE_MS : 0;

	if (lv->vol.past_claims.n > 0 && lv->work.not_before_ms > now)
		ms = lv->work.not_before_ms - now;
	if (ms && !lv->work.calling)
		sup_timer_set(
		    l->base.sup, &lv->work.again, CLOCK_MONOTONIC, ms * 1000, on_again, lv);
	else
		sup_timer_cancel(&lv->work.again);
}

/* Answers the requests that wait for releases, if all are done or one has failed. */
static void
answer_asked(struct local *l, struct local_volume *lv)
{
	const struct csi_claim *left = find_left(l, lv);
	struct claim_outlook look;
	struct err e = { 0 };

	if (left && (lv->work.calling || !lv->work.error))
		return;
	if (left) {
		local_claim_look(l, lv, left, &look);
		(void)err_say(&e, -EIO, "%s", look.waits_for);
	}
	while (!LIST_EMPTY(&lv->work.asked))
		end_ask(LIST_FIRST(&lv->work.asked), e.code, &e);
}

void
local_claims_step(struct local *l, struct local_volume *lv)
{
	bool gone;

	if (lv->gone || lv->work.calling)
		return;
	gone = find_over(l, lv);
	for (size_t i = 0; i < lv->vol.past_claims.n && !lv->work.calling;)
		i = step_release(l, lv, &lv->vol.past_claims.v[i].value) ? 0 : i + 1;
	local_attach_next(l, lv);
	if (lv->vol.past_claims.n == 0)
		reset_failures(lv);
	set_timer(l, lv, gone);
	answer_asked(l, lv);
}

void
local_release_begin(struct local *l, struct local_volume *lv, const char *alloc_id)
{
	const struct csi_claim *c = volume_find_claim(&lv->vol, alloc_id);
	const struct csi_claim *past = map_get(csi_claim, &lv->vol.past_claims, alloc_id);

	if (!c)
		return;
	if (!past || past->state == CLAIM_UNPUBLISHING) {
		volume_release_claim(&lv->vol, c, CLAIM_NODE_DETACHED);
		local_volume_changed(l, lv);
	}
	local_claims_step(l, lv);
}

static void
on_ask_late(void *arg)
{
	struct release_wait *w = arg;
	const struct csi_claim *left = find_left(w->l, w->lv);
	struct claim_outlook look = { 0 };
	struct err e = { 0 };

	if (left)
		local_claim_look(w->l, w->lv, left, &look);
	(void)err_say(&e, -ETIMEDOUT, "%s", look.waits_for);
	end_ask(w, left ? e.code : 0, &e);
}

void
local_release_ask(struct local *l, struct local_volume *lv, volume_cb *cb, void *arg)
{
	struct release_wait *w = mem_new(struct release_wait);

	*w = (struct release_wait){ .l = l, .lv = lv, .cb = cb, .arg = arg };
	LIST_INSERT_HEAD(&lv->work.asked, w, link);
	sup_timer_set(l->base.sup, &w->late, CLOCK_MONOTONIC, ASK_USEC, on_ask_late, w);
	reset_failures(lv);
	volume_retry_unmounts(l->base.sup, lv->vol.namespace, lv->vol.id);
	local_claims_step(l, lv);
}

/* Says what the release of this claim waits for. */
static void
say_wait(
    struct local *l, struct local_volume *lv, const struct csi_claim *c, struct claim_outlook *ret)
{
	const char *plugin = str(lv->vol.plugin_id), *id = lv->vol.id, *alloc = NULL;
	const struct volume_trouble *t =
	    volume_trouble_of(l->base.sup, lv->vol.namespace, id, &alloc);
	char why[ERR_MSG_SIZE] = "its plugin has not unmounted it yet";
	size_t size = sizeof ret->waits_for;

	if (t && str_eq(alloc, c->alloc_id))
		volume_trouble_say(t, why, sizeof why);
	if (has_mount(l, lv, c))
		(void)snprintf(ret->waits_for, size,
		    "volume %s is still mounted on this node for allocation %.8s: %.400s", id,
		    str(c->alloc_id), why);
	else if (lv->work.calling)
		(void)snprintf(ret->waits_for, size,
		    "volume %s: Controller%sPublishVolume of plugin %s has not been answered yet",
		    id, lv->work.detaching ? "Un" : "", plugin);
	else if (find_controller(l, &lv->vol) == CONTROLLER_MISSING)
		(void)snprintf(ret->waits_for, size,
		    "volume %s is still attached to node %s: the controller of plugin %s does not "
		    "run "
		    "on this node; it is detached when it does",
		    id, str(c->external_node_id), plugin);
	else if (lv->work.error)
		(void)snprintf(ret->waits_for, size,
		    "volume %s is still attached to node %s: %.300s; tried %u times, retried in "
		    "%llu s",
		    id, str(c->external_node_id), lv->work.error, lv->work.failures,
		    (unsigned long long)(ret->next_ms + 999) / 1000);
}

void
local_claim_look(
    struct local *l, struct local_volume *lv, const struct csi_claim *c, struct claim_outlook *ret)
{
	const struct csi_claim *past = map_get(csi_claim, &lv->vol.past_claims, str(c->alloc_id));
	uint64_t now = clock_ms();

	*ret = (struct claim_outlook){ .state = past ? past->state : CLAIM_TAKEN };
	if (!past && !local_claim_is_over(l, c))
		return;
	if (!past)
		ret->state = CLAIM_UNPUBLISHING;
	if (!has_mount(l, lv, c)) {
		ret->error = lv->work.error;
		ret->failures = lv->work.failures;
		if (lv->work.not_before_ms > now)
			ret->next_ms = lv->work.not_before_ms - now;
	}
	say_wait(l, lv, c, ret);
}

static void
step_all(struct local *l, bool retry)
{
	size_t n;
	cleanup_free struct local_key **all = local_volumes_sorted(l, &n);

	for (size_t i = 0; i < n; i++) {
		struct local_volume *lv = local_volume_of(all[i]);

		if (retry)
			lv->work.not_before_ms = 0;
		if (volume_in_use(&lv->vol) || lv->vol.past_claims.n > 0)
			local_claims_step(l, lv);
	}
}

static void
on_plugins_changed(struct sup *sup, struct changed_watch *w)
{
	step_all(container_of(w, struct local_releases, plugins)->l, true);
}

void
local_releases_init(struct local *l)
{
	l->releases = mem_new(struct local_releases);
	*l->releases = (struct local_releases){ .l = l, .plugins.fn = on_plugins_changed };
}

void
local_releases_start(struct local *l)
{
	changed_watch(l->base.sup, CHANGED_PLUGINS, &l->releases->plugins);
	step_all(l, false);
}

void
local_releases_free(struct local *l)
{
	changed_unwatch(l->base.sup, &l->releases->plugins);
	free(l->releases);
}
