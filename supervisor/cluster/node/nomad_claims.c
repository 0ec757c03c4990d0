// SPDX-License-Identifier: Apache-2.0
/* nomad_claims.c: claims CSI volumes at the servers and releases them. Runs in: supervisor. */
#include "supervisor/cluster/node/nomad_claims.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/mem.h"
#include "supervisor/cluster/node/nomad.h"
#include "supervisor/cluster/node/nomad_allocs.h"
#include "supervisor/cluster/node/nomad_call.h"
#include "supervisor/cluster/node/nomad_register.h"
#include "supervisor/cluster/node/nomad_volume_watch.h"
#include "supervisor/cluster/rpc/rpc_claim.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/node/node_state.h"
#include "supervisor/volume/volumes.h"

/* A server calls the plugin's controller before it answers, which may take minutes. */
#define CLAIM_DEADLINE_MS   300000
#define CLAIM_RETRY_MS      2000
#define CLAIM_RETRY_MAX     60000
#define CLAIM_UNWATCHED_MAX 10000 /* while others have the volume and it cannot be watched */
#define CLAIM_LIMIT_MS      (24 * 3600 * 1000ull) /* a claim fails for good after this time */
#define RELEASE_DEADLINE_MS 300000

/* One claim in progress. */
struct nomad_claiming {
	LIST_ENTRY(nomad_claiming) link;
	struct nomad *n;
	struct sup_alloc *sa;
	const struct volume_request *vr; /* points into the job version with which sa started */
	claim_cb *cb;
	void *arg;
	char *namespace, *volume_id;
	uint64_t call, begun_ms;
	unsigned failures;
	bool claimed_out; /* the last call was refused because others have the volume */
	bool again;       /* the volume has changed during the call */
	struct sup_timer timer;
};

static void ask_claim(struct nomad_claiming *w);

static void
get_volume_id(const struct sup_alloc *sa, const struct volume_request *vr, char **ret)
{
	volume_request_source(vr, alloc_name_index(str(sa->a.name)), ret);
}

static void
free_claim(struct nomad_claiming *w)
{
	sup_timer_cancel(&w->timer);
	free(w->namespace);
	free(w->volume_id);
	free(w);
}

/* The volume may be free. Sends the oldest waiting claim of readers and of writers: each answer
 * wakes the next one, so that many claims of one volume do not flood the servers. Returns true if
 * a claim waits for the volume. */
static bool
on_volume_changed(struct nomad *n, const char *namespace, const char *volume_id, bool changed)
{
	struct nomad_claiming *w, *oldest[2] = { NULL, NULL };

	LIST_FOREACH (w, &n->claims, link)
		if (w->claimed_out && str_eq(w->volume_id, volume_id) &&
		    str_eq(w->namespace, namespace))
			oldest[w->vr->read_only] = w;
	for (size_t i = 0; changed && i < ELEMENTSOF(oldest); i++) {
		if (oldest[i] && oldest[i]->call)
			oldest[i]->again = true;
		else if (oldest[i])
			ask_claim(oldest[i]);
	}
	return oldest[0] || oldest[1];
}

static void
end_claim(struct nomad_claiming *w, int r, const struct csi_volume *volume, const struct err *e)
{
	struct nomad *n = w->n;

	LIST_REMOVE(w, link);
	w->cb(n->src.base.sup, w->arg, r, volume, e);
	(void)on_volume_changed(n, w->namespace, w->volume_id, true);
	free_claim(w);
}

/* Returns true for errors that may pass: another alloc still has the volume, or the plugin or a
 * server is unreachable. */
static bool
is_temporary(int r, const struct err *e)
{
	static const char *const texts[] = { "volume max claims reached",
		"CSI client error (retryable)", "no servers", "No cluster leader",
		"No path to node" };

	if (r == -ENETUNREACH || r == -ECONNRESET || r == -ETIMEDOUT)
		return true;
	for (size_t i = 0; r == -EREMOTEIO && i < ELEMENTSOF(texts); i++)
		if (strstr(e->msg, texts[i]))
			return true;
	return false;
}

static void
on_retry_time(void *arg)
{
	struct nomad_claiming *w = arg;

	ask_claim(w);
}

/* Tells the log each time, and the alloc's events at the 1st, 2nd, 4th, 8th … failure: a task keeps
 * only its last events. */
static void
tell_wait(struct nomad_claiming *w, uint64_t ms, const struct err *why)
{
	struct err e = { 0 };

	(void)err_say(&e, -EINPROGRESS, "%s; tried %u time%s, next try in %llu s%s", why->msg,
	    w->failures, w->failures == 1 ? "" : "s", (unsigned long long)ms / 1000,
	    w->claimed_out ? " or when the volume is released" : "");
	journal_info(JOURNAL_VOLUME, ABOUT_VOLUME(w->sa, w->volume_id),
	    "allocation %.8s: claim volume %s: %s", w->sa->a.id, w->volume_id, e.msg);
	if ((w->failures & (w->failures - 1)) == 0)
		w->cb(w->n->src.base.sup, w->arg, e.code, NULL, &e);
}

/* While others have the volume, it is watched, and the timer is a safety net. */
static void
try_later(struct nomad_claiming *w, const struct err *e)
{
	uint64_t max_ms = CLAIM_RETRY_MAX, ms;
	bool again = w->again;

	w->again = false;
	w->claimed_out = strstr(e->msg, "volume max claims reached");
	if (w->claimed_out &&
	    !nomad_volume_watch(w->n, w->namespace, w->volume_id, on_volume_changed))
		max_ms = CLAIM_UNWATCHED_MAX;
	ms = nomad_retry_ms(&w->failures, CLAIM_RETRY_MS, max_ms);
	tell_wait(w, ms, e);
	if (again) {
		ask_claim(w);
		return;
	}
	sup_timer_set(w->n->src.base.sup, &w->timer, CLOCK_MONOTONIC, ms * 1000, on_retry_time, w);
}

static void
on_claimed(struct sup *sup, void *arg, int r, const void *body, size_t len, const struct err *e)
{
	cleanup_done(rpc_claim_rep) struct rpc_claim_rep rep;
	struct nomad_claiming *w = arg;
	struct err why = { 0 };

	w->call = 0;
	r = nomad_decode(r, body, len, e, &rpc_claim_rep_type, &rep, &why);
	if (r == 0 && !rep.volume)
		r = err_say(&why, -EBADMSG, "the servers' answer contains no volume");
	if (r == 0) {
		struct string_map context = rep.volume->publish_context;

		turn_durable(sup);
		rep.volume->publish_context = rep.publish_context;
		rep.publish_context = context;
		end_claim(w, 0, rep.volume, NULL);
		return;
	}
	if (nomad_register_if_unknown(w->n, r, &why) ||
	    (is_temporary(r, &why) && clock_ms() - w->begun_ms < CLAIM_LIMIT_MS)) {
		try_later(w, &why);
		return;
	}
	if (w->failures > 0)
		(void)err_prefix(&why, "could not claim volume %s, tried %u times", w->volume_id,
		    w->failures + 1);
	else
		(void)err_prefix(&why, "could not claim volume %s", w->volume_id);
	end_claim(w, r, NULL, &why);
}

static void
ask_claim(struct nomad_claiming *w)
{
	struct nomad *n = w->n;
	struct rpc_claim_req req;

	sup_timer_cancel(&w->timer);
	rpc_claim_req_init(&req);
	nomad_write(n, &req.write);
	str_set(&req.write.namespace, w->namespace);
	str_set(&req.volume_id, w->volume_id);
	str_set(&req.alloc_id, w->sa->a.id);
	str_set(&req.node_id, node_get(n->src.base.sup)->id);
	req.claim = w->vr->read_only ? CLAIM_READ : CLAIM_WRITE;
	req.access_mode = w->vr->access_mode;
	req.attachment_mode = w->vr->attachment_mode;
	req.state = CLAIM_TAKEN;
	w->call = nomad_call(n, "CSIVolume.Claim", &rpc_claim_req_type, &req, CLAIM_DEADLINE_MS,
	    LINK_REPEAT, on_claimed, w);
	rpc_claim_req_done(&req);
}

void
nomad_claim(struct source *s, struct sup_alloc *sa, const struct volume_request *vr, claim_cb *cb,
    void *arg)
{
	cleanup_done(csi_volume) struct csi_volume known;
	struct nomad *n = nomad_of(s);
	struct nomad_claiming *w;

	/* A volume that was mounted before a restart of the agent already has its claim, so no
	 * server is needed. */
	csi_volume_init(&known);
	if (volume_get_mounted(s->sup, sa, str(vr->name), &known)) {
		cb(s->sup, arg, 0, &known, NULL);
		return;
	}
	w = mem_new(struct nomad_claiming);
	*w = (struct nomad_claiming){
		.n = n, .sa = sa, .vr = vr, .cb = cb, .arg = arg, .begun_ms = clock_ms()
	};
	str_set(&w->namespace, sa->job->job.namespace);
	get_volume_id(sa, vr, &w->volume_id);
	LIST_INSERT_HEAD(&n->claims, w, link);
	if (nomad_alloc_of(sa))
		nomad_alloc_of(sa)->claimed = true;
	/* Before the first beat a server may not know how to reach the plugins of this node. */
	if (n->beats > 0)
		ask_claim(w);
}

void
nomad_claims_begin(struct nomad *n)
{
	struct nomad_claiming *w;

	LIST_FOREACH (w, &n->claims, link) {
		if (w->call || sup_timer_is_set(&w->timer))
			continue;
		w->begun_ms = clock_ms(); /* time without a server does not count */
		ask_claim(w);
	}
}

void
nomad_claim_cancel(struct source *s, struct sup_alloc *sa)
{
	struct nomad_claiming *w;
	struct err e = { 0 };

	LIST_FOREACH (w, &nomad_of(s)->claims, link)
		if (w->sa == sa)
			break;
	if (!w)
		return;
	link_cancel(s->sup, w->call);
	end_claim(w, err_say(&e, -ECANCELED, "the allocation is to be stopped"), NULL, &e);
}

/* Releasing. */

struct releasing {
	char *alloc_id, *namespace, *volume_id;
};

static void
free_releasing(struct releasing *l)
{
	free(l->alloc_id);
	free(l->namespace);
	free(l->volume_id);
	free(l);
}

/* The servers release claims of ended allocs by themselves, so a release that is lost here is
 * repaired there. */
static void
on_released(struct sup *sup, void *arg, int r, const void *body, size_t len, const struct err *e)
{
	struct releasing *l = arg;

	if (r < 0)
		log_warn(
		    "allocation %.8s: release volume %s: %s", l->alloc_id, l->volume_id, e->msg);
	else
		(void)on_volume_changed(nomad_of_sup(sup), l->namespace, l->volume_id, true);
	free_releasing(l);
}

void
nomad_release(struct source *s, struct sup_alloc *sa, const struct volume_request *vr)
{
	struct csi_claim claim = {
		.alloc_id = sa->a.id,
		.node_id = node_get(s->sup)->id,
		.mode = vr->read_only ? CLAIM_READ : CLAIM_WRITE,
		.access_mode = vr->access_mode,
		.attachment_mode = vr->attachment_mode,
		.state = CLAIM_UNPUBLISHING,
	};
	struct rpc_unpublish_req req = { .claim = &claim };
	struct nomad *n = nomad_of(s);
	struct releasing *l;

	if (nomad_alloc_of(sa) && !nomad_alloc_of(sa)->claimed)
		return;
	turn_durable(s->sup);
	nomad_write(n, &req.write);
	l = mem_new(struct releasing);
	str_set(&l->alloc_id, sa->a.id);
	str_set(&l->namespace, sa->job->job.namespace);
	get_volume_id(sa, vr, &l->volume_id);
	req.volume_id = l->volume_id;
	str_set(&req.write.namespace, l->namespace);
	(void)nomad_call(n, "CSIVolume.Unpublish", &rpc_unpublish_req_type, &req,
	    RELEASE_DEADLINE_MS, LINK_REPEAT, on_released, l);
	nomad_write_done(&req.write);
}

void
nomad_claims_free(struct nomad *n)
{
	while (!LIST_EMPTY(&n->claims)) {
		struct nomad_claiming *w = LIST_FIRST(&n->claims);

		LIST_REMOVE(w, link);
		free_claim(w);
	}
}
