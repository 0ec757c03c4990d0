// SPDX-License-Identifier: Apache-2.0
/* local_age.c: forgets, after eval_gc_threshold, allocs that were replaced and evaluations without
 * allocs, replaces keys and deletes expired ACL tokens. Jobs: local_family.c. Runs in: supervisor.
 */
#include "supervisor/server/drive/local_age.h"

#include "common/clock.h"
#include "common/duration.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/server/acl/local_acl.h"
#include "supervisor/server/job/local_allocs.h"
#include "supervisor/server/job/local_evals.h"
#include "supervisor/server/job/local_job.h"
#include "supervisor/server/sign/local_keys.h"

#define COLLECT_USEC  1000000           /* between two looks at jobs that are being purged */
#define TOKEN_KEEP_NS (3600 * NS_PER_S) /* expired tokens are listed for so long */

/* Returns when the oldest alloc was made that has not ended; INT64_MAX: all have. */
static int64_t
oldest_alive_ns(struct local *l)
{
	int64_t oldest = INT64_MAX;

	alloc_foreach(l->base.sup, sa)
	{
		if (!alloc_client_terminal(&sa->a) && sa->a.create_time < oldest)
			oldest = sa->a.create_time;
	}
	return oldest;
}

static void
forget_old(void *arg)
{
	struct local *l = arg;
	int64_t before_ns =
	    clock_real_ns() - (int64_t)(l->base.sup->config->eval_gc_ms * NS_PER_MS);

	if (before_ns < l->collect_before_ns)
		before_ns = l->collect_before_ns;
	if (!local_jobs_purging(l))
		l->collect_before_ns = 0;
	local_allocs_forget(l, before_ns);
	local_evals_forget(l, before_ns);
	local_keys_age(l, oldest_alive_ns(l));
	local_tokens_age(l, clock_real_ns() - TOKEN_KEEP_NS);
	local_age_start(l);
}

void
local_age_start(struct local *l)
{
	sup_timer_set(l->base.sup, &l->age, CLOCK_MONOTONIC,
	    l->collect_before_ns ? COLLECT_USEC : l->base.sup->config->gc_interval_ms * 1000,
	    forget_old, l);
}

void
local_age_collect(struct local *l)
{
	l->collect_before_ns = clock_real_ns();
	forget_old(l);
}

void
local_age_free(struct local *l)
{
	sup_timer_cancel(&l->age);
}
