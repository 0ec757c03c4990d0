// SPDX-License-Identifier: Apache-2.0
/* nomad_leave.c: has the servers drain this node before the agent ends, forget a node that retires,
 * and take back one that had landed. In a drain they stop its allocs as they start others
 * elsewhere, and the system jobs last. Runs in: supervisor. */
#include "supervisor/cluster/node/nomad_leave.h"

#include <errno.h>

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "supervisor/alloc/departure.h"
#include "supervisor/cluster/node/nomad_call.h"
#include "supervisor/core/journal.h"
#include "supervisor/node/node_state.h"
#include "supervisor/table/alloc_table.h"

#define DEADLINE_MS 15000
#define CHECK_MS    1000
#define SETTLE_MS   200 /* between checks whether all updates have been sent */

static void
answer(struct nomad *n, int r, const struct err *e)
{
	leave_cb *cb = n->leave;

	n->leave = NULL;
	if (cb)
		cb(n->src.base.sup, r, e);
}

static bool
is_over(struct nomad *n)
{
	alloc_foreach(n->src.base.sup,
	    sa) if (!client_alloc_ended(sa) &&
		    !(n->leave_spares_system && sa->job->job.type == JOB_SYSTEM)) return false;
	return LIST_EMPTY(&n->pending) && !n->update_call;
}

static void
on_check(void *arg)
{
	struct nomad *n = arg;

	if (is_over(n))
		answer(n, 0, NULL);
	else
		nomad_after(n, &n->leave_timer, CHECK_MS, on_check);
}

static void
on_drained(struct sup *sup, void *arg, int r, const void *body, size_t len, const struct err *e)
{
	struct nomad *n = nomad_of_sup(sup);

	if (r < 0)
		answer(n, r, e);
	else
		on_check(n);
}

static void
ask_drain(struct nomad *n, struct drain_strategy *drain, bool eligible, const char *message,
    link_cb *cb, uint64_t *ret_call)
{
	cleanup_done(rpc_drain_req) struct rpc_drain_req req;

	rpc_drain_req_init(&req);
	str_set(&req.node_id, node_get(n->src.base.sup)->id);
	req.drain_strategy = drain;
	req.mark_eligible = eligible;
	string_map_set(&req.meta, "message", message);
	nomad_write(n, &req.write);
	*ret_call = nomad_call(
	    n, "Node.UpdateDrain", &rpc_drain_req_type, &req, DEADLINE_MS, LINK_REPEAT, cb, NULL);
}

void
nomad_leave(struct source *s, const struct drain_strategy *drain, const char *message, leave_cb *cb)
{
	struct nomad *n = nomad_of(s);
	struct drain_strategy *own = mem_new(struct drain_strategy);
	uint64_t call;

	n->leave = cb;
	n->leave_spares_system = drain->ignore_system_jobs;
	*own = *drain;
	ask_drain(n, own, false, message, on_drained, &call);
}

/* The node departs, or comes back. */

static void
end_departure(struct nomad *n, int r, const struct err *e)
{
	leave_cb *cb = n->departs;

	n->departs = NULL;
	sup_timer_cancel(&n->leave_timer);
	if (cb)
		cb(n->src.base.sup, r, e);
}

static bool
is_refused(int r)
{
	return r == -EREMOTEIO || r == -EBADMSG;
}

static void on_deregister_time(void *arg);

static void
on_deregistered(
    struct sup *sup, void *arg, int r, const void *body, size_t len, const struct err *e)
{
	struct nomad *n = nomad_of_sup(sup);

	n->departs_call = 0;
	if (r >= 0 || (r == -EREMOTEIO && strstr(e->msg, "not found"))) {
		n->departed = true;
		end_departure(n, 0, NULL);
	} else if (is_refused(r)) {
		end_departure(n, r, e);
	} else {
		nomad_after(n, &n->leave_timer, CHECK_MS, on_deregister_time);
	}
}

static void
ask_deregister(struct nomad *n)
{
	cleanup_done(rpc_deregister_req) struct rpc_deregister_req req;

	rpc_deregister_req_init(&req);
	str_set(&req.node_id, node_get(n->src.base.sup)->id);
	nomad_write(n, &req.write);
	if (n->departs_token)
		str_set(&req.write.auth_token, n->departs_token);
	n->departs_call = nomad_call(n, "Node.Deregister", &rpc_deregister_req_type, &req,
	    DEADLINE_MS, LINK_REPEAT, on_deregistered, NULL);
}

/* The servers get the last states of the allocs first, but not of a node that they have given up.
 */
static void
on_deregister_time(void *arg)
{
	struct nomad *n = arg;

	if (n->departed)
		end_departure(n, 0, NULL);
	else if ((!LIST_EMPTY(&n->pending) || n->update_call) &&
		 !departure_is_renewing(n->src.base.sup))
		nomad_after(n, &n->leave_timer, SETTLE_MS, on_deregister_time);
	else
		ask_deregister(n);
}

void
nomad_deregister(struct source *s, const char *token, leave_cb *cb)
{
	struct nomad *n = nomad_of(s);

	n->departs = cb;
	str_set(&n->departs_token, *str(token) ? token : NULL);
	nomad_after(n, &n->leave_timer, 0, on_deregister_time);
}

static void on_return_time(void *arg);

static void
on_returned(struct sup *sup, void *arg, int r, const void *body, size_t len, const struct err *e)
{
	struct nomad *n = nomad_of_sup(sup);

	n->departs_call = 0;
	if (r < 0 && !is_refused(r))
		nomad_after(n, &n->leave_timer, CHECK_MS, on_return_time);
	else
		end_departure(n, r < 0 ? r : 0, e);
}

/* The servers must know the node first. */
static void
on_return_time(void *arg)
{
	struct nomad *n = arg;

	if (n->ready)
		ask_drain(n, NULL, n->back_eligible, "returned", on_returned, &n->departs_call);
	else
		nomad_after(n, &n->leave_timer, CHECK_MS, on_return_time);
}

void
nomad_come_back(struct source *s, bool eligible, leave_cb *cb)
{
	struct nomad *n = nomad_of(s);

	link_cancel(s->sup, n->departs_call);
	n->departs_call = 0;
	n->leave = NULL;
	n->departs = cb;
	n->back_eligible = eligible;
	nomad_after(n, &n->leave_timer, 0, on_return_time);
}

void
nomad_leave_unknown(struct nomad *n, const struct err *e)
{
	if (n->departed)
		return;
	n->departed = true;
	journal_info(JOURNAL_NODE, NULL, "the servers have forgotten this node, which retires");
	answer(n, -ENOENT, e);
}

void
nomad_leave_free(struct nomad *n)
{
	sup_timer_cancel(&n->leave_timer);
	if (n->departs_token)
		explicit_bzero(n->departs_token, strlen(n->departs_token));
	free(n->departs_token);
}
