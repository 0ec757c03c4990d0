// SPDX-License-Identifier: Apache-2.0
/* nomad_node.c: registers the node when it has changed, sends beats, and tells the other parts what
 * the servers' answers mean for them. Runs in: supervisor. */
#include "supervisor/cluster/node/nomad_node.h"

#include "supervisor/alloc/departure.h"
#include "supervisor/cluster/node/nomad_call.h"
#include "supervisor/cluster/node/nomad_claims.h"
#include "supervisor/cluster/node/nomad_register.h"
#include "supervisor/cluster/node/nomad_services.h"
#include "supervisor/cluster/node/nomad_stall.h"
#include "supervisor/cluster/node/nomad_update.h"
#include "supervisor/cluster/node/nomad_watch.h"
#include "supervisor/core/journal.h"
#include "supervisor/node/node_events.h"
#include "supervisor/node/node_state.h"

#define CHANGE_MS       1000 /* delay after a change, to collect others */
#define CHANGE_GAP_MS   5000 /* minimum time between two registrations for changes */
#define PLUGINS_MS      2000 /* delay at start, for plugins that already run */
#define PLUGINS_MORE_MS 200  /* delay after one of them was found */
#define BEAT_SLACK_MS   5000 /* a beat that is later than its TTL by more than this was missed */

/* Registration. */

/* Plugins of the previous agent are still reported as present while they are being found again. */
static bool
expects_plugins(struct nomad *n)
{
	alloc_foreach(n->src.base.sup, sa)
	{
		for (size_t i = 0; !alloc_terminal(&sa->a) && i < sa->group->tasks.n; i++)
			if (sa->group->tasks.v[i].csi_plugin)
				return true;
	}
	return false;
}

static void
on_registered(struct nomad *n, bool first, bool anew)
{
	if (first || anew)
		nomad_services_all(n);
	if (anew) {
		nomad_update_all(n, true);
		nomad_watch_restart(n);
	}
	nomad_watch_start(n);
	/* The node may have changed during the call. */
	nomad_node_changed(n);
}

void
nomad_node_start(struct nomad *n)
{
	n->on_registered = on_registered;
	if (n->registered)
		journal_info(JOURNAL_SERVERS, NULL, "rejoining the servers as a known node");
	if (expects_plugins(n))
		nomad_register_after(n, PLUGINS_MS);
	else
		nomad_register(n);
}

void
nomad_node_changed(struct nomad *n)
{
	struct node view = nomad_register_view(n);
	uint64_t now = clock_ms(), due = n->register_at_ms + CHANGE_GAP_MS;

	if (!n->ready && sup_timer_is_set(&n->register_timer) && n->register_failures == 0)
		nomad_register_after(n, PLUGINS_MORE_MS);
	if (!n->ready || n->register_call || sup_timer_is_set(&n->register_timer))
		return;
	n->sent.status = view.status;
	if (model_equal(&node_type, &view, &n->sent))
		return;
	nomad_register_after(n, due > now + CHANGE_MS ? due - now : CHANGE_MS);
}

/* Beats. */

static void
make_beat(struct sup *sup, const void **ret_body, size_t *ret_len)
{
	struct nomad *n = nomad_of_sup(sup);
	struct rpc_status_req req = {
		.node_id = node_get(sup)->id,
		.status = NODE_READY,
		.force_identity_renewal = n->renew_identity,
	};

	*ret_len = 0;
	if (!n->ready || n->departed || departure_is_renewing(sup))
		return;
	nomad_write(n, &req.write);
	n->beat.len = 0;
	model_to_msgpack(&rpc_status_req_type, &req, MODEL_COMPACT, &n->beat);
	*ret_body = n->beat.text;
	*ret_len = n->beat.len;
	nomad_write_done(&req.write);
}

/* After a gap the servers may consider the node lost. It stays "initializing" until they have
 * received updates of its allocs. */
static void
take_beat(struct nomad *n, const struct rpc_node_rep *rep)
{
	uint64_t now = clock_ms();
	bool first = n->beats == 0;
	bool gap =
	    first || now - n->beat_ms > (uint64_t)rep->heartbeat_ttl / 1000000 + BEAT_SLACK_MS;

	if (nomad_stall_stops(n))
		return;
	nomad_stall_heard(n, rep->heartbeat_ttl);
	n->beats++;
	n->beat_ms = now;
	nomad_register_take_identity(n, rep->signed_identity);
	if (rep->scheduling_eligibility && rep->scheduling_eligibility != n->eligibility) {
		n->eligibility = rep->scheduling_eligibility;
		node_set_eligibility(n->src.base.sup, n->eligibility);
		journal_info(JOURNAL_NODE, NULL, "the servers set the node to %s",
		    node_eligibility_names[n->eligibility]);
	}
	if (first)
		nomad_update_one(n);
	else if (gap)
		nomad_update_all(n, false);
	if (gap) {
		nomad_services_all(n);
		nomad_claims_begin(n);
	}
	nomad_watch_wake(n);
}

static void
on_beat(struct sup *sup, void *arg, int r, const void *body, size_t len, const struct err *e)
{
	cleanup_done(rpc_node_rep) struct rpc_node_rep rep;
	struct nomad *n = nomad_of_sup(sup);
	struct err why = { 0 };

	r = nomad_decode(r, body, len, e, &rpc_node_rep_type, &rep, &why);
	if (r == 0)
		take_beat(n, &rep);
	else if (!nomad_register_if_unknown(n, r, &why))
		journal_warn(JOURNAL_SERVERS, NULL, "heartbeat: %s", why.msg);
}

static void
on_server(struct sup *sup, const char *server, const char *why)
{
	struct nomad *n = nomad_of_sup(sup);

	if (*server)
		journal_info(JOURNAL_SERVERS, NULL, "using server %s", server);
	else
		journal_warn(JOURNAL_SERVERS, NULL, "no server is reachable: %s", why);
	if (!*server)
		node_event_say(sup, "Link", "No server is reachable: %s", why);
	else if (n->beats > 0)
		node_event_say(sup, "Link", "The node uses server %s", server);
	if (!*server || nomad_stall_stops(n))
		return;
	if (sup_timer_is_set(&n->register_timer) && !n->ready && n->register_failures > 0)
		nomad_register(n);
	nomad_watch_wake(n);
}

const struct link_events nomad_link_events = {
	.beat = make_beat,
	.beat_done = on_beat,
	.server_changed = on_server,
};

void
nomad_node_free(struct nomad *n)
{
	text_done(&n->beat);
}
