// SPDX-License-Identifier: Apache-2.0
/* nomad_events.c: sends events of the node to the servers. Runs in: supervisor. */
#include "supervisor/cluster/node/nomad_events.h"

#include <string.h>
#include <systemd/sd-event.h>

#include "common/log.h"
#include "supervisor/cluster/node/nomad_call.h"
#include "supervisor/cluster/node/nomad_register.h"
#include "supervisor/node/node_state.h"

#define COLLECT_MS  5000 /* time to collect further events before they are sent */
#define DEADLINE_MS 30000
#define EVENTS_MAX  10

static void on_events_time(void *arg);

static void
send_later(struct nomad *n)
{
	nomad_after(n, &n->events_timer, COLLECT_MS, on_events_time);
}

static void
on_emitted(struct sup *sup, void *arg, int r, const void *body, size_t len, const struct err *e)
{
	struct nomad *n = nomad_of_sup(sup);

	n->events_call = 0;
	if (r < 0 && !nomad_register_if_unknown(n, r, e))
		log_warn("send events of the node: %s", e->msg);
	if (n->events.n > 0)
		send_later(n);
}

static void
on_events_time(void *arg)
{
	cleanup_done(rpc_events_req) struct rpc_events_req req;
	struct nomad *n = arg;
	struct rpc_node_events *events;

	rpc_events_req_init(&req);
	if (!n->ready || n->events_call) {
		send_later(n);
		return;
	}
	nomad_write(n, &req.write);
	events = map_put(rpc_node_events, &req.node_events, node_get(n->src.base.sup)->id);
	memcpy(&events->events, &n->events, sizeof n->events);
	memset(&n->events, 0, sizeof n->events);
	n->events_call = nomad_call(
	    n, "Node.EmitEvents", &rpc_events_req_type, &req, DEADLINE_MS, 0, on_emitted, NULL);
}

void
nomad_event_add(struct nomad *n, const struct node_event *ev)
{
	if (n->events.n >= EVENTS_MAX)
		list_remove(node_event, &n->events, 0);
	node_event_copy(ev, list_add(node_event, &n->events));
	if (!sup_timer_is_set(&n->events_timer) && !n->events_call)
		send_later(n);
}

void
nomad_events_free(struct nomad *n)
{
	sup_timer_cancel(&n->events_timer);
	while (n->events.n > 0)
		list_remove(node_event, &n->events, 0);
}
