// SPDX-License-Identifier: Apache-2.0
/* local_age.c: forgets, after eval_gc_threshold, allocs that were replaced and evaluations without
 * allocs. Jobs: local_family.c. Runs in: supervisor. */
#include "supervisor/server/drive/local_age.h"

#include "common/clock.h"
#include "common/duration.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/server/job/local_allocs.h"
#include "supervisor/server/job/local_evals.h"

static void
on_time(void *arg)
{
	struct local *l = arg;
	int64_t before_ns =
	    clock_real_ns() - (int64_t)(l->base.sup->config->eval_gc_ms * NS_PER_MS);

	local_allocs_forget(l, before_ns);
	local_evals_forget(l, before_ns);
	local_age_start(l);
}

void
local_age_start(struct local *l)
{
	sup_timer_set(l->base.sup, &l->age, CLOCK_MONOTONIC,
	    l->base.sup->config->gc_interval_ms * 1000, on_time, l);
}

void
local_age_free(struct local *l)
{
	sup_timer_cancel(&l->age);
}
