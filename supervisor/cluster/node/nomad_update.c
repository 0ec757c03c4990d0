// SPDX-License-Identifier: Apache-2.0
/* nomad_update.c: reports the state of allocs to the servers: many in one call, soon after a change
 * of status, within a second otherwise, and only if something has changed. Runs in: supervisor. */
#include "supervisor/cluster/node/nomad_update.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>

#include "common/clock.h"
#include "common/log.h"
#include "supervisor/cluster/node/nomad.h"
#include "supervisor/cluster/node/nomad_allocs.h"
#include "supervisor/cluster/node/nomad_node.h"
#include "supervisor/table/alloc_table.h"
#include "supervisor/cluster/rpc/rpc_alloc.h"

#define URGENT_MS    100
#define TYPICAL_MS   1000
#define DEADLINE_MS  30000
#define RETRY_MS     1000
#define RETRY_MAX_MS 10000
#define BATCH_MAX    256

static int on_update_time(struct sd_event_source *s, uint64_t usec, void *userdata);

/* Sets the timer to ms from now, unless it is already earlier. */
static void
send_within(struct nomad *n, uint64_t ms)
{
	uint64_t due = clock_ms() + ms;

	if (n->update_call || (n->update_due_ms && (n->update_due_ms <= due || n->update_failures)))
		return;
	n->update_due_ms = due;
	nomad_after(n, &n->update_timer, ms, on_update_time);
}

/* Computes a hash over an update; an unchanged update is not sent again. */
static uint64_t
digest(const struct alloc *a)
{
	static struct text t;
	uint64_t h = 0xcbf29ce484222325;

	t.len = 0;
	model_to_msgpack(&alloc_update_type, a, MODEL_COMPACT, &t);
	for (size_t i = 0; i < t.len; i++)
		h = (h ^ (uint8_t)t.text[i]) * 0x100000001b3;
	return h;
}

static void
add_pending(struct nomad *n, struct nomad_alloc *na)
{
	if (na->pending)
		return;
	na->pending = true;
	na->next = n->pending;
	n->pending = na;
}

void
nomad_update_look(struct nomad *n, struct nomad_alloc *na)
{
	const struct alloc *a = &na->sa->a;
	bool urgent = a->client_status != na->acked_status;

	if (na->acked && !urgent && digest(a) == na->acked_digest)
		return;
	add_pending(n, na);
	send_within(n, urgent ? URGENT_MS : TYPICAL_MS);
}

void
nomad_update_soon(struct nomad *n)
{
	send_within(n, 0);
}

void
nomad_update_all(struct nomad *n)
{
	alloc_foreach(n->base.sup, sa)
	{
		struct nomad_alloc *na = nomad_alloc_of(sa);

		if (!na || alloc_client_terminal(&sa->a))
			continue;
		na->acked = false;
		add_pending(n, na);
	}
	n->update_failures = 0;
	if (n->pending)
		send_within(n, 0);
}

void
nomad_update_forget(struct nomad *n, struct nomad_alloc *na)
{
	struct nomad_alloc **at = &n->pending;

	if (!na->pending)
		return;
	while (*at != na)
		at = &(*at)->next;
	*at = na->next;
	na->pending = false;
}

/* The call. */

static void
note_acked(struct nomad *n)
{
	alloc_foreach(n->base.sup, sa)
	{
		struct nomad_alloc *na = nomad_alloc_of(sa);

		if (!na || !na->sending)
			continue;
		na->sending = false;
		na->acked = true;
		na->acked_digest = na->sending_digest;
		na->acked_status = na->sending_status;
	}
	for (struct nomad_invalid *inv = n->invalid; inv; inv = inv->next) {
		inv->told |= inv->sending;
		inv->sending = false;
	}
}

static void
note_failed(struct nomad *n)
{
	alloc_foreach(n->base.sup, sa)
	{
		struct nomad_alloc *na = nomad_alloc_of(sa);

		if (!na || !na->sending)
			continue;
		na->sending = false;
		add_pending(n, na);
	}
	for (struct nomad_invalid *inv = n->invalid; inv; inv = inv->next)
		inv->sending = false;
}

static void
on_update_done(struct sup *sup, void *arg, int r, const void *body, size_t len, const struct err *e)
{
	struct nomad *n = nomad_of_sup(sup);

	n->update_call = 0;
	if (r < 0) {
		if (!nomad_node_check_unknown(n, r, e) && r != -ENETUNREACH)
			log_warn("report the state of allocations: %s", e->msg);
		note_failed(n);
		send_within(n, nomad_retry_ms(&n->update_failures, RETRY_MS, RETRY_MAX_MS));
		return;
	}
	n->update_failures = 0;
	note_acked(n);
	/* Allocs that changed during the call are in the list, without a timer. */
	for (struct nomad_alloc *na = n->pending; na; na = na->next)
		send_within(
		    n, na->sa->a.client_status != na->acked_status ? URGENT_MS : TYPICAL_MS);
	for (const struct nomad_invalid *inv = n->invalid; inv; inv = inv->next)
		if (!inv->told)
			send_within(n, URGENT_MS);
}

static int
add_update(struct rpc_update_req *req, const struct alloc *a)
{
	struct alloc *copy = list_add(alloc, &req->allocs);

	if (!copy || model_copy(&alloc_update_type, a, copy) < 0)
		return -ENOMEM;
	if (!copy->network_status)
		copy->network_status = alloc_network_status_new();
	for (size_t i = 0; alloc_client_terminal(a) && i < copy->task_states.n; i++)
		if (copy->task_states.v[i].value.finished_at == 0)
			copy->task_states.v[i].value.finished_at = clock_real_ns();
	return 0;
}

/* Removes up to BATCH_MAX allocs from the list. */
static size_t
fill_update(struct nomad *n, struct rpc_update_req *req)
{
	size_t count = 0;

	for (struct nomad_invalid *inv = n->invalid; inv; inv = inv->next) {
		if (inv->told || add_update(req, &inv->update) < 0)
			continue;
		inv->sending = true;
		count++;
	}
	while (n->pending && count < BATCH_MAX) {
		struct nomad_alloc *na = n->pending;
		const struct alloc *a = &na->sa->a;

		n->pending = na->next;
		na->pending = false;
		na->sending_digest = digest(a);
		na->sending_status = a->client_status;
		if (na->acked && na->sending_digest == na->acked_digest)
			continue;
		if (add_update(req, a) < 0)
			break;
		na->sending = true;
		count++;
	}
	return count;
}

/* Before the first list, the servers may know changes that this node does not. */
static int
on_update_time(struct sd_event_source *s, uint64_t usec, void *userdata)
{
	struct rpc_update_req req;
	struct nomad *n = userdata;

	n->update_timer = sd_event_source_disable_unref(n->update_timer);
	n->update_due_ms = 0;
	if (!n->ready || !n->watch_synced || n->update_call)
		return 0;
	rpc_update_req_init(&req);
	nomad_write(n, &req.write);
	if (fill_update(n, &req) > 0)
		n->update_call = nomad_call(n, "Node.UpdateAlloc", &rpc_update_req_type, &req,
		    DEADLINE_MS, LINK_REPEAT, on_update_done, NULL);
	rpc_update_req_done(&req);
	return 0;
}

void
nomad_update_free(struct nomad *n)
{
	n->update_timer = sd_event_source_disable_unref(n->update_timer);
}
