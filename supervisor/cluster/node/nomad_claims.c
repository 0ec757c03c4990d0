// SPDX-License-Identifier: Apache-2.0
/* nomad_claims.c: claims CSI volumes at the servers and releases them. Runs in: supervisor. */
#include "supervisor/cluster/node/nomad_claims.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "supervisor/cluster/node/nomad.h"
#include "supervisor/cluster/node/nomad_allocs.h"
#include "supervisor/cluster/node/nomad_node.h"
#include "supervisor/node/node_state.h"
#include "supervisor/volume/volumes.h"
#include "supervisor/cluster/rpc/rpc_claim.h"

/* A server calls the controller before it answers; the controller may be a plugin on this node. */
#define CLAIM_DEADLINE_MS   300000
#define CLAIM_RETRY_MS      2000
#define CLAIM_RETRY_MAX     60000
#define CLAIM_LIMIT_MS      (24 * 3600 * 1000ull)
#define RELEASE_DEADLINE_MS 300000

/* One claim in progress. */
struct nomad_wait {
	struct nomad_wait *next;
	struct nomad *n;
	struct sup_alloc *sa;
	const struct volume_request *vr; /* points into the job version with which sa started */
	claim_cb *cb;
	void *arg;
	uint64_t call, begun_ms;
	unsigned failures;
	struct sd_event_source *timer;
};

static void ask_claim(struct nomad_wait *w);

static void
volume_id(const struct sup_alloc *sa, const struct volume_request *vr, char **ret)
{
	volume_request_source(vr, alloc_name_index(str(sa->a.name)), ret);
}

static void
wait_unlink(struct nomad_wait *w)
{
	struct nomad_wait **at = &w->n->claims;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
}

static void
wait_free(struct nomad_wait *w)
{
	w->timer = sd_event_source_disable_unref(w->timer);
	free(w);
}

static void
wait_end(struct nomad_wait *w, int r, const struct csi_volume *volume, const struct err *e)
{
	wait_unlink(w);
	w->cb(w->n->base.sup, w->arg, r, volume, e);
	wait_free(w);
}

/* Returns true for errors that may pass: another alloc still has the volume, or the plugin or a
 * server is unreachable. */
static bool
may_come(int r, const struct err *e)
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

static int
on_wait_time(struct sd_event_source *s, uint64_t usec, void *userdata)
{
	struct nomad_wait *w = userdata;

	w->timer = sd_event_source_disable_unref(w->timer);
	ask_claim(w);
	return 0;
}

static void
try_later(struct nomad_wait *w, const struct err *e)
{
	uint64_t ms = nomad_retry_ms(&w->failures, CLAIM_RETRY_MS, CLAIM_RETRY_MAX);

	log_info("allocation %.8s: claim volume %s: %s; retrying", w->sa->a.id, str(w->vr->source),
	    e->msg);
	(void)sd_event_add_time_relative(
	    w->n->base.sup->event, &w->timer, CLOCK_MONOTONIC, ms * 1000, 0, on_wait_time, w);
}

static void
on_claimed(struct sup *sup, void *arg, int r, const void *body, size_t len, const struct err *e)
{
	cleanup_done(rpc_claim_rep) struct rpc_claim_rep rep;
	struct nomad_wait *w = arg;
	struct err why = { 0 };

	w->call = 0;
	rpc_claim_rep_init(&rep);
	if (r == 0) {
		r = model_from_msgpack(&rpc_claim_rep_type, body, len, &rep, WIRE_MEMORY_MAX, &why);
		e = &why;
	}
	if (r == 0 && !rep.volume)
		r = err_say(&why, -EBADMSG, "the servers' answer contains no volume");
	if (r == 0) {
		struct string_map context = rep.volume->publish_context;

		turn_durable(sup);
		rep.volume->publish_context = rep.publish_context;
		rep.publish_context = context;
		wait_end(w, 0, rep.volume, NULL);
		return;
	}
	if (nomad_node_check_unknown(w->n, r, e) ||
	    (may_come(r, e) && clock_ms() - w->begun_ms < CLAIM_LIMIT_MS)) {
		try_later(w, e);
		return;
	}
	(void)err_say(
	    &why, r, "could not claim volume %s: %.400s", str(w->vr->source), strdupa(e->msg));
	wait_end(w, r, NULL, &why);
}

static void
ask_claim(struct nomad_wait *w)
{
	struct nomad *n = w->n;
	struct rpc_claim_req req;

	rpc_claim_req_init(&req);
	nomad_write(n, &req.write);
	(void)str_set(&req.write.namespace, w->sa->job->job.namespace);
	volume_id(w->sa, w->vr, &req.volume_id);
	(void)str_set(&req.alloc_id, w->sa->a.id);
	(void)str_set(&req.node_id, node_get(n->base.sup)->id);
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
	struct nomad_wait *w;
	struct err e = { 0 };

	/* A volume that was mounted before a restart of the agent already has its claim, so no
	 * server is needed. */
	csi_volume_init(&known);
	if (volume_get_mounted(s->sup, sa, str(vr->name), &known)) {
		cb(s->sup, arg, 0, &known, NULL);
		return;
	}
	w = calloc(1, sizeof *w);
	if (!w) {
		cb(s->sup, arg, err_set(&e, -ENOMEM, "claim volume %s", str(vr->source)), NULL, &e);
		return;
	}
	*w = (struct nomad_wait){
		.n = n, .sa = sa, .vr = vr, .cb = cb, .arg = arg, .begun_ms = clock_ms()
	};
	w->next = n->claims;
	n->claims = w;
	if (nomad_alloc_of(sa))
		nomad_alloc_of(sa)->claimed = true;
	/* Before the first beat a server may not know how to reach the plugins of this node. */
	if (n->beats > 0)
		ask_claim(w);
}

void
nomad_claims_begin(struct nomad *n)
{
	for (struct nomad_wait *w = n->claims, *next; w; w = next) {
		next = w->next;
		if (w->call || w->timer)
			continue;
		w->begun_ms =
		    clock_ms(); /* a failure to reach any server does not count as an attempt */
		ask_claim(w);
	}
}

void
nomad_claim_cancel(struct source *s, struct sup_alloc *sa)
{
	struct nomad_wait *w = nomad_of(s)->claims;
	struct err e = { 0 };

	while (w && w->sa != sa)
		w = w->next;
	if (!w)
		return;
	link_cancel(s->sup, w->call);
	wait_end(w, err_say(&e, -ECANCELED, "the allocation is to be stopped"), NULL, &e);
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
	volume_id(sa, vr, &req.volume_id);
	(void)str_setf(&what, "allocation %.8s: release volume %s", sa->a.id, str(vr->source));
	(void)str_set(&req.write.namespace, sa->job->job.namespace);
	(void)nomad_call(n, "CSIVolume.Unpublish", &rpc_unpublish_req_type, &req,
	    RELEASE_DEADLINE_MS, LINK_REPEAT, on_released, what);
	free(req.volume_id);
	free(req.write.region);
	free(req.write.namespace);
	free(req.write.auth_token);
}

void
nomad_claims_free(struct nomad *n)
{
	while (n->claims) {
		struct nomad_wait *w = n->claims;

		n->claims = w->next;
		wait_free(w);
	}
}
