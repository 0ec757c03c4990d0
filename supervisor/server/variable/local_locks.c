// SPDX-License-Identifier: Apache-2.0
/* local_locks.c: the times of variables' locks. Runs in: supervisor. */
#include "supervisor/server/variable/local_locks.h"

#include <stdlib.h>

#include "common/duration.h"
#include "common/mem.h"

#define NS_PER_USEC 1000

struct local_lock {
	struct local_variable *v;
	struct sup_timer timer;
	bool lost; /* the delay is running */
};

static void
on_delay_over(void *arg)
{
	struct local_lock *lock = arg;

	local_variable_unlock(lock->v);
}

static void
on_ttl_over(void *arg)
{
	struct local_lock *lock = arg;

	lock->lost = true;
	sup_timer_set(lock->v->l->base.sup, &lock->timer, CLOCK_MONOTONIC,
	    (uint64_t)lock->v->var.lock->delay / NS_PER_USEC, on_delay_over, lock);
}

void
local_lock_begin(struct local_variable *v)
{
	if (!v->lock)
		v->lock = mem_new(struct local_lock);
	v->lock->v = v;
	v->lock->lost = false;
	sup_timer_set(v->l->base.sup, &v->lock->timer, CLOCK_MONOTONIC,
	    2 * (uint64_t)v->var.lock->ttl / NS_PER_USEC, on_ttl_over, v->lock);
}

bool
local_lock_renew(struct local_variable *v)
{
	if (v->lock->lost)
		return false;
	local_lock_begin(v);
	return true;
}

void
local_lock_drop(struct local_variable *v)
{
	if (!v->lock)
		return;
	sup_timer_cancel(&v->lock->timer);
	free_p(&v->lock);
}
