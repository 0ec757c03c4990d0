// SPDX-License-Identifier: Apache-2.0
/* nomad_volume_watch.c: waits for changes of volumes at the servers, with one blocking query for
 * each volume. Runs in: supervisor. */
#include "supervisor/cluster/node/nomad_volume_watch.h"

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/duration.h"
#include "common/mem.h"
#include "supervisor/cluster/node/nomad_call.h"
#include "supervisor/cluster/rpc/rpc_claim.h"

#define WAIT_MS     300000 /* time of a blocking query */
#define DEADLINE_MS 30000  /* of an answer, in addition */
#define GAP_MS      500    /* between two queries, also if servers answer without blocking */
#define RETRY_MS    5000
#define WATCHES_MAX 64 /* a query occupies a stream to the server all the time */

struct nomad_volume_watch {
	LIST_ENTRY(nomad_volume_watch) link;
	struct nomad *n;
	char *namespace, *volume_id;
	volume_changed *fn;
	uint64_t index; /* of the last answer; 0: there was none */
	uint64_t call;
	struct sup_timer timer;
};

static void
free_watch(struct nomad_volume_watch *w)
{
	LIST_REMOVE(w, link);
	w->n->n_volume_watches--;
	sup_timer_cancel(&w->timer);
	free(w->namespace);
	free(w->volume_id);
	free(w);
}

static void ask_volume(void *arg);

static void
ask_after(struct nomad_volume_watch *w, uint64_t ms)
{
	sup_timer_set(w->n->src.base.sup, &w->timer, CLOCK_MONOTONIC, ms * 1000, ask_volume, w);
}

static void
on_volume(struct sup *sup, void *arg, int r, const void *body, size_t len, const struct err *e)
{
	cleanup_done(rpc_meta_rep) struct rpc_meta_rep rep;
	struct nomad_volume_watch *w = arg;
	struct err why = { 0 };
	bool changed;

	w->call = 0;
	r = nomad_decode(r, body, len, e, &rpc_meta_rep_type, &rep, &why);
	if (r < 0 && (w->index == 0 || strstr(why.msg, "Permission denied"))) {
		free_watch(w);
		return;
	}
	if (r < 0) {
		ask_after(w, RETRY_MS);
		return;
	}
	changed = rep.meta.index != w->index;
	w->index = rep.meta.index;
	if (w->fn(w->n, w->namespace, w->volume_id, changed))
		ask_after(w, GAP_MS);
	else
		free_watch(w);
}

static void
ask_volume(void *arg)
{
	struct nomad_volume_watch *w = arg;
	struct nomad *n = w->n;
	struct rpc_volume_req req;
	unsigned wait_ms = w->index > 0 ? WAIT_MS + WAIT_MS / 16 : 0;

	rpc_volume_req_init(&req);
	nomad_query(n, &req.query);
	str_set(&req.query.namespace, w->namespace);
	str_set(&req.id, w->volume_id);
	req.query.min_query_index = w->index;
	req.query.max_query_time = w->index > 0 ? (int64_t)WAIT_MS * NS_PER_MS : 0;
	w->call = nomad_call(n, "CSIVolume.Get", &rpc_volume_req_type, &req, wait_ms + DEADLINE_MS,
	    LINK_REPEAT, on_volume, w);
	rpc_volume_req_done(&req);
}

bool
nomad_volume_watch(
    struct nomad *n, const char *namespace, const char *volume_id, volume_changed *fn)
{
	struct nomad_volume_watch *w;

	LIST_FOREACH (w, &n->volume_watches, link)
		if (str_eq(w->volume_id, volume_id) && str_eq(w->namespace, namespace))
			return w->index > 0;
	if (n->n_volume_watches >= WATCHES_MAX)
		return false;
	w = mem_new(struct nomad_volume_watch);
	*w = (struct nomad_volume_watch){ .n = n, .fn = fn };
	str_set(&w->namespace, namespace);
	str_set(&w->volume_id, volume_id);
	LIST_INSERT_HEAD(&n->volume_watches, w, link);
	n->n_volume_watches++;
	ask_volume(w);
	return false;
}

void
nomad_volume_watch_free(struct nomad *n)
{
	while (!LIST_EMPTY(&n->volume_watches))
		free_watch(LIST_FIRST(&n->volume_watches));
}
