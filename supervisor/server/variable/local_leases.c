// SPDX-License-Identifier: Apache-2.0
/* local_leases.c: the leases of variables' locks. Runs in: supervisor. */
#include "supervisor/server/variable/local_leases.h"

#include <stdlib.h>

#include "common/duration.h"
#include "common/mem.h"

#define NS_PER_USEC 1000

struct local_lease {
	struct local_variable *v;
	struct sup_timer timer;
	bool ended; /* the delay is running */
};

static void
on_delay_over(void *arg)
{
	struct local_lease *lease = arg;

	local_variable_unlock(lease->v);
}

static void
on_ttl_over(void *arg)
{
	struct local_lease *lease = arg;

	lease->ended = true;
	sup_timer_set(lease->v->l->base.sup, &lease->timer, CLOCK_MONOTONIC,
	    (uint64_t)lease->v->var.lock->delay / NS_PER_USEC, on_delay_over, lease);
}

void
local_lease_begin(struct local_variable *v)
{
	if (!v->lease)
		v->lease = mem_new(struct local_lease);
	v->lease->v = v;
	v->lease->ended = false;
	sup_timer_set(v->l->base.sup, &v->lease->timer, CLOCK_MONOTONIC,
	    2 * (uint64_t)v->var.lock->ttl / NS_PER_USEC, on_ttl_over, v->lease);
}

bool
local_lease_renew(struct local_variable *v)
{
	if (v->lease->ended)
		return false;
	local_lease_begin(v);
	return true;
}

void
local_lease_drop(struct local_variable *v)
{
	if (!v->lease)
		return;
	sup_timer_cancel(&v->lease->timer);
	free_p(&v->lease);
}
