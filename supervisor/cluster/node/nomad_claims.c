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
#include "supervisor/cluster/rpc/rpc_claim.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/node/node_state.h"
#include "supervisor/volume/volumes.h"

/* A server calls the plugin's controller before it answers, which may take minutes. */
#define CLAIM_DEADLINE_MS   300000
#define CLAIM_RETRY_MS      2000
#define CLAIM_RETRY_MAX     60000
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
	uint64_t call, begun_ms;
	unsigned failures;
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
	free(w);
}

static void
end_claim(struct nomad_claiming *w, int r, const struct csi_volume *volume, const struct err *e)
{
	LIST_REMOVE(w, link);
	w->cb(w->n->src.base.sup, w->arg, r, volume, e);
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

static void
try_later(struct nomad_claiming *w, const struct err *e)
{
	uint64_t ms = nomad_retry_ms(&w->failures, CLAIM_RETRY_MS, CLAIM_RETRY_MAX);

	journal_info(JOURNAL_VOLUME, ABOUT_VOLUME(w->sa, str(w->vr->source)),
	    "allocation %.8s: claim volume %s: %s; retrying", w->sa->a.id, str(w->vr->source),
	    e->msg);
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
	(void)err_prefix(&why, "could not claim volume %s", str(w->vr->source));
	end_claim(w, r, NULL, &why);
}

static void
ask_claim(struct nomad_claiming *w)
{
	struct nomad *n = w->n;
	struct rpc_claim_req req;

	rpc_claim_req_init(&req);
	nomad_write(n, &req.write);
	str_set(&req.write.namespace, w->sa->job->job.namespace);
	get_volume_id(w->sa, w->vr, &req.volume_id);
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

/* The servers release claims of ended allocs by themselves, so a release that is lost here is
 * repaired there. */
static void
on_released(struct sup *sup, void *arg, int r, const void *body, size_t len, const struct err *e)
{
	cleanup_free char *what = arg;

	if (r < 0)
		log_warn("%s: %s", what, e->msg);
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
	char *what = NULL;

	if (nomad_alloc_of(sa) && !nomad_alloc_of(sa)->claimed)
		return;
	turn_durable(s->sup);
	nomad_write(n, &req.write);
	get_volume_id(sa, vr, &req.volume_id);
	str_setf(&what, "allocation %.8s: release volume %s", sa->a.id, str(vr->source));
	str_set(&req.write.namespace, sa->job->job.namespace);
	(void)nomad_call(n, "CSIVolume.Unpublish", &rpc_unpublish_req_type, &req,
	    RELEASE_DEADLINE_MS, LINK_REPEAT, on_released, what);
	free(req.volume_id);
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
