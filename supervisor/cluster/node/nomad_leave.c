// SPDX-License-Identifier: Apache-2.0
/* nomad_leave.c: has the servers drain this node before the agent ends. They stop its allocs as
 * they start others elsewhere, and the system jobs last. Runs in: supervisor. */
#include "supervisor/cluster/node/nomad_leave.h"

#include <errno.h>

#include "common/mem.h"
#include "supervisor/cluster/node/nomad_call.h"
#include "supervisor/node/node_state.h"
#include "supervisor/table/alloc_table.h"

#define DEADLINE_MS 15000
#define CHECK_MS    1000

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

void
nomad_leave(struct source *s, const struct drain_strategy *drain, leave_cb *cb)
{
	struct nomad *n = nomad_of(s);
	cleanup_done(rpc_drain_req) struct rpc_drain_req req;

	n->leave = cb;
	n->leave_spares_system = drain->ignore_system_jobs;
	rpc_drain_req_init(&req);
	str_set(&req.node_id, node_get(s->sup)->id);
	req.drain_strategy = mem_new(struct drain_strategy);
	*req.drain_strategy = *drain;
	string_map_set(&req.meta, "message", "shutting down");
	nomad_write(n, &req.write);
	(void)nomad_call(n, "Node.UpdateDrain", &rpc_drain_req_type, &req, DEADLINE_MS, LINK_REPEAT,
	    on_drained, NULL);
}

void
nomad_leave_free(struct nomad *n)
{
	sup_timer_cancel(&n->leave_timer);
}
