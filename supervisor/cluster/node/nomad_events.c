// SPDX-License-Identifier: Apache-2.0
/* nomad_events.c: sends events of the node to the servers, also those that an earlier supervisor
 * could not send. Runs in: supervisor. */
#include "supervisor/cluster/node/nomad_events.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <systemd/sd-event.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "supervisor/cluster/node/nomad_call.h"
#include "supervisor/cluster/node/nomad_register.h"
#include "supervisor/core/store.h"
#include "supervisor/node/node_state.h"

#define ROW         "nomad_events_unsent"
#define COLLECT_MS  5000  /* time to collect further events before they are sent */
#define AGAIN_MS    30000 /* after the servers have refused them */
#define DEADLINE_MS 30000

static void on_events_time(void *arg);

static void
send_after(struct nomad *n, uint64_t ms)
{
	nomad_after(n, &n->events.timer, ms, on_events_time);
}

/* The events themselves are those of the node, which are in state.db. */
static int
write_row(struct sup *sup, struct dirty *d, struct err *e)
{
	const struct nomad *n = nomad_of_sup(sup);
	char text[24];

	(void)snprintf(text, sizeof text, "%zu", n->events.n_unsent);
	return store_meta_put(sup->store, ROW, text, e);
}

static void
set_unsent(struct nomad *n, size_t n_unsent)
{
	const size_t kept = node_get(n->src.base.sup)->events.n;

	n->events.n_unsent = n_unsent < kept ? n_unsent : kept;
	turn_write(n->src.base.sup, &n->events.row);
}

static void
on_emitted(struct sup *sup, void *arg, int r, const void *body, size_t len, const struct err *e)
{
	struct nomad *n = nomad_of_sup(sup);

	n->events.call = 0;
	if (r >= 0)
		set_unsent(n, n->events.n_added);
	else if (!nomad_register_if_unknown(n, r, e) && !n->events.failing)
		log_warn("send events of the node: %s; it is tried again", e->msg);
	n->events.failing = r < 0;
	if (n->events.n_unsent > 0)
		send_after(n, r < 0 ? AGAIN_MS : COLLECT_MS);
}

static void
on_events_time(void *arg)
{
	cleanup_done(rpc_events_req) struct rpc_events_req req;
	struct nomad *n = arg;
	const struct node *node = node_get(n->src.base.sup);
	struct rpc_node_events *to;

	if (!n->ready || n->events.call) {
		send_after(n, COLLECT_MS);
		return;
	}
	rpc_events_req_init(&req);
	nomad_write(n, &req.write);
	to = map_put(rpc_node_events, &req.node_events, node->id);
	for (size_t i = node->events.n - n->events.n_unsent; i < node->events.n; i++)
		node_event_copy(&node->events.v[i], list_add(node_event, &to->events));
	n->events.n_added = 0;
	n->events.call = nomad_call(
	    n, "Node.EmitEvents", &rpc_events_req_type, &req, DEADLINE_MS, 0, on_emitted, NULL);
}

void
nomad_event_add(struct nomad *n)
{
	n->events.n_added++;
	set_unsent(n, n->events.n_unsent + 1);
	if (!sup_timer_is_set(&n->events.timer) && !n->events.call)
		send_after(n, COLLECT_MS);
}

int
nomad_events_load(struct nomad *n, struct err *e)
{
	cleanup_free char *text = NULL;
	struct sup *sup = n->src.base.sup;
	int r;

	n->events.row.write = write_row;
	n->events.row.point = CRASH_ROW_NODE;
	r = store_meta_get(sup->store, ROW, &text, e);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	/* A new node has no events of the old one. */
	n->events.n_unsent = strtoul(text, NULL, 10);
	if (n->events.n_unsent > node_get(sup)->events.n)
		n->events.n_unsent = node_get(sup)->events.n;
	if (n->events.n_unsent > 0)
		send_after(n, COLLECT_MS);
	return 0;
}

void
nomad_events_free(struct nomad *n)
{
	sup_timer_cancel(&n->events.timer);
	turn_forget_write(n->src.base.sup, &n->events.row);
}
