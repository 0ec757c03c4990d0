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
#include "supervisor/cluster/node/nomad_call.h"
#include "supervisor/cluster/node/nomad_register.h"
#include "supervisor/table/alloc_table.h"
#include "supervisor/cluster/rpc/rpc_alloc.h"
#include "supervisor/core/store.h"

#define URGENT_MS    100  /* delay of the call after a change of status */
#define TYPICAL_MS   1000 /* after other changes */
#define DEADLINE_MS  30000
#define RETRY_MS     1000
#define RETRY_MAX_MS 10000
#define BATCH_MAX    256 /* allocs in one call */

static void on_update_time(void *arg);

/* The row of the update that servers have acknowledged of an alloc; alloc_forget() deletes it. */

static int
write_acked(struct sup *sup, struct dirty *d, struct err *e)
{
	const struct nomad_alloc *na = container_of(d, struct nomad_alloc, acked_row);
	const struct id *id = &na->sa->id;

	if (!na->acked)
		return STORE_EXEC(sup->store, STMT_ACKED_DELETE, e, SV_ID(id));
	return STORE_EXEC(sup->store, STMT_ACKED_PUT, e, SV_ID(id), SV_INT(na->acked_hash));
}

void
nomad_update_init(struct nomad_alloc *na)
{
	na->acked_status = CLIENT_PENDING;
	na->acked_row.write = write_acked;
	na->acked_row.point = CRASH_ROW_ACKED;
}

static void
set_acked(struct nomad *n, struct nomad_alloc *na, bool acked, uint64_t hash)
{
	if (na->acked == acked && (!acked || na->acked_hash == hash))
		return;
	na->acked = acked;
	na->acked_hash = hash;
	turn_write(n->src.base.sup, &na->acked_row);
}

void
nomad_update_unacked(struct nomad *n, struct nomad_alloc *na)
{
	set_acked(n, na, false, 0);
}

/* The status of that update is not stored; a changed one makes another hash. */
static int
load_acked(void *arg, const struct store_row *row, struct err *e)
{
	struct nomad *n = arg;
	struct nomad_alloc *na;
	struct sup_alloc *sa;
	struct id id;

	sa = store_col_id(row, 0, &id) ? alloc_find(n->src.base.sup, &id) : NULL;
	na = sa ? nomad_alloc_of(sa) : NULL;
	if (!na)
		return 0;
	na->acked = true;
	na->acked_hash = (uint64_t)store_col_int(row, 1);
	na->acked_status = sa->a.client_status;
	return 0;
}

int
nomad_update_load(struct nomad *n, struct err *e)
{
	return store_each(n->src.base.sup->store, STMT_ACKED_ALL, NULL, 0, load_acked, n, e);
}

/* The list of allocs whose update is to be sent. */

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

/* Computes an FNV-1a hash of an update; an unchanged update is not sent again. */
static uint64_t
hash_update(struct nomad *n, const struct alloc *a)
{
	struct text *t = &n->update_body;
	uint64_t h = 0xcbf29ce484222325;

	t->len = 0;
	model_to_msgpack(&alloc_update_type, a, MODEL_COMPACT, t);
	for (size_t i = 0; i < t->len; i++)
		h = (h ^ (uint8_t)t->text[i]) * 0x100000001b3;
	return h;
}

static void
add_pending(struct nomad *n, struct nomad_alloc *na)
{
	if (na->pending || na->foreign)
		return;
	na->pending = true;
	LIST_INSERT_HEAD(&n->pending, na, pending_link);
}

void
nomad_update_check(struct nomad *n, struct nomad_alloc *na)
{
	const struct alloc *a = &na->sa->a;
	bool urgent = a->client_status != na->acked_status;

	if (na->acked && !urgent && hash_update(n, a) == na->acked_hash)
		return;
	add_pending(n, na);
	send_within(n, urgent ? URGENT_MS : TYPICAL_MS);
}

void
nomad_update_soon(struct nomad *n)
{
	send_within(n, 0);
}

static void
report_again(struct nomad *n, struct nomad_alloc *na)
{
	nomad_update_unacked(n, na);
	add_pending(n, na);
}

void
nomad_update_one(struct nomad *n)
{
	alloc_foreach(n->src.base.sup, sa)
	{
		struct nomad_alloc *na = nomad_alloc_of(sa);

		if (!na || alloc_client_terminal(&sa->a))
			continue;
		report_again(n, na);
		send_within(n, 0);
		return;
	}
}

void
nomad_update_all(struct nomad *n, bool anew)
{
	alloc_foreach(n->src.base.sup, sa)
	{
		struct nomad_alloc *na = nomad_alloc_of(sa);

		if (na && (anew || !alloc_client_terminal(&sa->a)))
			report_again(n, na);
	}
	n->update_failures = 0;
	if (!LIST_EMPTY(&n->pending))
		send_within(n, 0);
}

void
nomad_update_forget(struct nomad *n, struct nomad_alloc *na)
{
	if (na->pending)
		LIST_REMOVE(na, pending_link);
	na->pending = false;
}

/* The call. */

/* Ends the call in progress. acked: the servers have its updates; otherwise they are sent again. */
static void
end_sending(struct nomad *n, bool acked)
{
	struct nomad_invalid *inv;

	alloc_foreach(n->src.base.sup, sa)
	{
		struct nomad_alloc *na = nomad_alloc_of(sa);

		if (!na || !na->sending)
			continue;
		na->sending = false;
		if (!acked) {
			add_pending(n, na);
			continue;
		}
		set_acked(n, na, true, na->sending_hash);
		na->acked_status = na->sending_status;
	}
	LIST_FOREACH (inv, &n->invalid, link) {
		inv->reported |= acked && inv->sending;
		inv->sending = false;
	}
}

static void
on_update_done(struct sup *sup, void *arg, int r, const void *body, size_t len, const struct err *e)
{
	struct nomad *n = nomad_of_sup(sup);
	const struct nomad_invalid *inv;
	const struct nomad_alloc *na;

	n->update_call = 0;
	if (r < 0) {
		if (!nomad_register_if_unknown(n, r, e) && r != -ENETUNREACH)
			log_warn("report the state of allocations: %s", e->msg);
		end_sending(n, false);
		send_within(n, nomad_retry_ms(&n->update_failures, RETRY_MS, RETRY_MAX_MS));
		return;
	}
	n->update_failures = 0;
	end_sending(n, true);
	/* Allocs that changed during the call are in the list, without a timer. */
	LIST_FOREACH (na, &n->pending, pending_link)
		send_within(
		    n, na->sa->a.client_status != na->acked_status ? URGENT_MS : TYPICAL_MS);
	LIST_FOREACH (inv, &n->invalid, link)
		if (!inv->reported)
			send_within(n, URGENT_MS);
}

static void
add_update(struct rpc_update_req *req, const struct alloc *a)
{
	struct alloc *copy = list_add(alloc, &req->allocs);

	model_copy(&alloc_update_type, a, copy);
	if (!copy->network_status)
		copy->network_status = alloc_network_status_new();
	for (size_t i = 0; alloc_client_terminal(a) && i < copy->task_states.n; i++)
		if (copy->task_states.v[i].value.finished_at == 0)
			copy->task_states.v[i].value.finished_at = clock_real_ns();
}

/* Removes up to BATCH_MAX allocs from the list. */
static size_t
fill_update(struct nomad *n, struct rpc_update_req *req)
{
	struct nomad_invalid *inv;
	size_t count = 0;

	LIST_FOREACH (inv, &n->invalid, link) {
		if (inv->reported)
			continue;
		add_update(req, &inv->update);
		inv->sending = true;
		count++;
	}
	while (!LIST_EMPTY(&n->pending) && count < BATCH_MAX) {
		struct nomad_alloc *na = LIST_FIRST(&n->pending);
		const struct alloc *a = &na->sa->a;

		nomad_update_forget(n, na);
		na->sending_hash = hash_update(n, a);
		na->sending_status = a->client_status;
		if (na->acked && na->sending_hash == na->acked_hash)
			continue;
		add_update(req, a);
		na->sending = true;
		count++;
	}
	return count;
}

/* Before the first list, the servers may know changes that this node does not. */
static void
on_update_time(void *arg)
{
	struct rpc_update_req req;
	struct nomad *n = arg;

	n->update_due_ms = 0;
	if (!n->ready || !n->watch_synced || n->update_call)
		return;
	rpc_update_req_init(&req);
	nomad_write(n, &req.write);
	if (fill_update(n, &req) > 0)
		n->update_call = nomad_call(n, "Node.UpdateAlloc", &rpc_update_req_type, &req,
		    DEADLINE_MS, LINK_REPEAT, on_update_done, NULL);
	rpc_update_req_done(&req);
}

void
nomad_update_free(struct nomad *n)
{
	text_done(&n->update_body);
	sup_timer_cancel(&n->update_timer);
}
