// SPDX-License-Identifier: Apache-2.0
/* nomad_watch.c: finds out which allocs this node must run: a blocking query for a list of ids and
 * indexes, then queries for the allocs that are new. An older answer than the last is ignored. A
 * list that is empty, or in which running allocs are missing after the index was reset, must be
 * confirmed. Runs in: supervisor. */
#include "supervisor/cluster/node/nomad_watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>

#include "common/duration.h"
#include "common/log.h"
#include "supervisor/alloc/departure.h"
#include "supervisor/cluster/node/nomad.h"
#include "supervisor/cluster/node/nomad_allocs.h"
#include "supervisor/cluster/node/nomad_call.h"
#include "supervisor/cluster/node/nomad_register.h"
#include "supervisor/cluster/node/nomad_update.h"
#include "supervisor/node/node_state.h"
#include "supervisor/cluster/rpc/rpc_alloc.h"

#define LIST_MS        300000 /* time of the blocking query */
#define LIST_SLACK_MS  40000  /* jitter that servers add, and time to answer */
#define PULL_MS        30000
#define PULL_MAX       64 /* allocs in one call, because their jobs may be large */
#define RETRY_MS       1000
#define RETRY_MAX_MS   15000
#define MISSING_MS     2000
#define STALE_PAUSE_MS 1000

static void ask_list(struct nomad *n);
static void pull_next(struct nomad *n);

static void
on_watch_time(void *arg)
{
	struct nomad *n = arg;

	ask_list(n);
}

static void
watch_later(struct nomad *n, uint64_t ms)
{
	n->watch = WATCH_WAIT;
	nomad_after(n, &n->watch_timer, ms, on_watch_time);
}

static void
drop_list(struct nomad *n)
{
	rpc_client_allocs_rep_done(&n->list);
	n->wanted_at = n->wanted_n = 0;
}

static void
on_failure(struct nomad *n, const char *what, int r, const struct err *e)
{
	drop_list(n);
	if (!nomad_register_if_unknown(n, r, e) && r != -ENETUNREACH)
		log_warn("%s: %s", what, e->msg);
	watch_later(n, nomad_retry_ms(&n->watch_failures, RETRY_MS, RETRY_MAX_MS));
}

/* The whole list is processed: allocs that are not in it were removed by the servers. */
static void
finish_list(struct nomad *n)
{
	nomad_allocs_remove_others(n);
	n->watch_index = n->list.meta.index;
	n->watch_fresh = false;
	n->watch_failures = 0;
	if (!n->watch_synced) {
		n->watch_synced = true;
		nomad_update_soon(n);
	}
	drop_list(n);
	ask_list(n);
}

/* Alloc.GetAllocs. */

static bool
is_wanted(const struct nomad *n, const char *id)
{
	for (size_t i = 0; i < n->wanted_n; i++)
		if (strcmp(n->list.allocs.v[n->wanted_at + i].key, id) == 0)
			return true;
	return false;
}

/* Checks that the answer has all requested allocs. */
static bool
take_allocs(struct nomad *n, const struct rpc_allocs_rep *rep)
{
	size_t found = 0;

	for (size_t i = 0; i < rep->allocs.n; i++) {
		struct err e = { 0 };
		struct alloc a;
		int r;

		alloc_init(&a);
		r = rpc_alloc_decode(&rep->allocs.v[i], &a, &e);
		if (!is_wanted(n, str(a.id))) {
			log_warn("a server returned an allocation that was not requested");
			alloc_done(&a);
			continue;
		}
		found++;
		if (r < 0)
			nomad_alloc_put_invalid(n, &a, &e);
		else
			nomad_alloc_put(n, &a);
		alloc_done(&a);
	}
	return found >= n->wanted_n;
}

static void
on_pulled(struct sup *sup, void *arg, int r, const void *body, size_t len, const struct err *e)
{
	struct nomad *n = nomad_of_sup(sup);
	cleanup_done(rpc_allocs_rep) struct rpc_allocs_rep rep;
	struct err why = { 0 };
	bool complete;

	n->watch_call = 0;
	r = nomad_decode(r, body, len, e, &rpc_allocs_rep_type, &rep, &why);
	if (r < 0) {
		on_failure(n, "fetch allocations", r, &why);
		return;
	}
	turn_durable(sup);
	complete = take_allocs(n, &rep);
	if (!complete) {
		/* An alloc is missing because it was collected since, or the server is behind. The
		 * list is requested again, with the same index. */
		drop_list(n);
		watch_later(n, MISSING_MS + (uint64_t)random() % MISSING_MS);
		return;
	}
	n->wanted_at += n->wanted_n;
	pull_next(n);
}

static void
pull_next(struct nomad *n)
{
	size_t left = n->list.allocs.n - n->wanted_at;
	struct rpc_allocs_req req;
	uint64_t index = 0;

	if (left == 0) {
		finish_list(n);
		return;
	}
	rpc_allocs_req_init(&req);
	nomad_query(n, &req.query);
	n->wanted_n = left < PULL_MAX ? left : PULL_MAX;
	for (size_t i = 0; i < n->wanted_n; i++) {
		const struct int_pair *pair = &n->list.allocs.v[n->wanted_at + i];

		strings_add(&req.alloc_ids, pair->key);
		if ((uint64_t)pair->value > index)
			index = (uint64_t)pair->value;
	}
	req.query.allow_stale = true;
	req.query.min_query_index = index > 0 ? index - 1 : 0;
	req.query.max_query_time = (int64_t)PULL_MS * NS_PER_MS;
	n->watch = WATCH_PULL;
	n->watch_call = nomad_call(n, "Alloc.GetAllocs", &rpc_allocs_req_type, &req,
	    PULL_MS + PULL_MS / 16 + LIST_SLACK_MS, LINK_REPEAT, on_pulled, NULL);
	rpc_allocs_req_done(&req);
}

/* Node.GetClientAllocs. */

/* A server that lost the node or its own state lists no allocs, or only new ones. Such a list stops
 * nothing until a beat was answered, which shows that the node is known, and the leader confirms
 * it. Once servers and node agree, an alloc that is missing in the list was really removed (for
 * example by a purge). */
static bool
is_doubtful(struct nomad *n, size_t listed)
{
	unsigned have = n->src.base.sup->allocs->n;
	unsigned lacking = n->watch_fresh || !n->watch_synced ? nomad_allocs_lacking(n) : 0;

	if ((listed > 0 || have == 0) && lacking == 0) {
		n->watch_doubt = false;
		return false;
	}
	if (n->watch_doubt && n->beats > n->doubt_beats) {
		n->watch_doubt = false;
		return false;
	}
	if (!n->watch_doubt && listed == 0)
		log_warn("the servers list no allocations for this node, which has %u: asking "
			 "again after the next heartbeat",
		    have);
	else if (!n->watch_doubt)
		log_warn("%u allocations that run here are missing in the servers' list: asking "
			 "again after the next heartbeat",
		    lacking);
	n->watch_doubt = true;
	n->doubt_beats = n->beats;
	return true;
}

static void
begin_list(struct nomad *n, struct rpc_client_allocs_rep *rep)
{
	struct int_map *allocs = &n->list.allocs;
	size_t kept = 0, listed = rep->allocs.n;

	n->list = *rep;
	rpc_client_allocs_rep_init(rep);
	nomad_allocs_begin_list(n);
	for (size_t i = 0; i < allocs->n; i++) {
		const struct int_pair pair = allocs->v[i];

		if (nomad_alloc_is_news(n, pair.key, (uint64_t)pair.value))
			allocs->v[kept++] = pair;
		else
			free(pair.key);
	}
	allocs->n = kept;
	if (is_doubtful(n, listed)) {
		drop_list(n);
		n->watch = WATCH_DOUBT;
	} else {
		pull_next(n);
	}
}

/* Ignores an answer that is not newer than the last. If the query did not even block, it is
 * repeated only after a delay. */
static void
ignore_old(struct nomad *n, uint64_t index)
{
	n->watch_doubt = false;
	if (index < n->watch_index) {
		log_warn("a server answered with index %llu after %llu: ignored",
		    (unsigned long long)index, (unsigned long long)n->watch_index);
		if (n->watch_failures == 0) /* finds out whether only this server is behind */
			nomad_register_again(n);
	}
	if (clock_ms() - n->watch_asked_ms < STALE_PAUSE_MS)
		watch_later(n, nomad_retry_ms(&n->watch_failures, RETRY_MS, RETRY_MAX_MS));
	else
		ask_list(n);
}

static void
on_list(struct sup *sup, void *arg, int r, const void *body, size_t len, const struct err *e)
{
	struct nomad *n = nomad_of_sup(sup);
	cleanup_done(rpc_client_allocs_rep) struct rpc_client_allocs_rep rep;
	struct err why = { 0 };

	n->watch_call = 0;
	r = nomad_decode(r, body, len, e, &rpc_client_allocs_rep_type, &rep, &why);
	if (r < 0) {
		on_failure(n, "list this node's allocations", r, &why);
	} else if (rep.meta.index < n->watch_index ||
		   (rep.meta.index == n->watch_index && !n->watch_fresh && n->watch_synced)) {
		ignore_old(n, rep.meta.index);
	} else {
		begin_list(n, &rep);
	}
}

/* The first list after a start and the confirmation of an empty list are requested from the leader;
 * any server may answer the others from its own state. */
static void
ask_list(struct nomad *n)
{
	const struct node *node = node_get(n->src.base.sup);
	struct rpc_node_req req;
	bool blocks = n->watch_index > 0 && n->watch_synced && !n->watch_fresh && !n->watch_doubt;

	if (departure_is_renewing(n->src.base.sup)) {
		n->watch = WATCH_OFF;
		return;
	}
	rpc_node_req_init(&req);
	nomad_query(n, &req.query);
	str_set(&req.node_id, node->id);
	str_set(&req.secret_id, node->secret_id);
	req.query.allow_stale = blocks;
	req.query.min_query_index = blocks ? n->watch_index : 0;
	req.query.max_query_time = blocks ? (int64_t)LIST_MS * NS_PER_MS : 0;
	n->watch = WATCH_LIST;
	n->watch_asked_ms = clock_ms();
	n->watch_call = nomad_call(n, "Node.GetClientAllocs", &rpc_node_req_type, &req,
	    (blocks ? LIST_MS + LIST_MS / 16 : 0) + LIST_SLACK_MS, LINK_REPEAT, on_list, NULL);
	rpc_node_req_done(&req);
}

void
nomad_watch_start(struct nomad *n)
{
	if (n->watch == WATCH_OFF)
		ask_list(n);
	else
		nomad_watch_wake(n);
}

void
nomad_watch_restart(struct nomad *n)
{
	n->watch_fresh = true;
	n->watch_doubt = false;
	n->watch_index = 0;
	if (n->watch == WATCH_OFF)
		return;
	link_cancel(n->src.base.sup, n->watch_call);
	n->watch_call = 0;
	sup_timer_cancel(&n->watch_timer);
	drop_list(n);
	ask_list(n);
}

void
nomad_watch_stop(struct nomad *n)
{
	link_cancel(n->src.base.sup, n->watch_call);
	n->watch_call = 0;
	n->watch = WATCH_OFF;
	nomad_watch_free(n);
}

void
nomad_watch_wake(struct nomad *n)
{
	if (n->watch != WATCH_WAIT && !(n->watch == WATCH_DOUBT && n->beats > n->doubt_beats))
		return;
	sup_timer_cancel(&n->watch_timer);
	ask_list(n);
}

void
nomad_watch_free(struct nomad *n)
{
	sup_timer_cancel(&n->watch_timer);
	drop_list(n);
}
