// SPDX-License-Identifier: Apache-2.0
/* alloc_status.c: the client status of an alloc, from the states of its tasks. Runs in: supervisor.
 */
#include "supervisor/alloc/alloc_status.h"

#include "common/clock.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/source/source.h"

bool
alloc_fails_by_lease(const struct alloc_runner *ar)
{
	enum job_kind type = ar->sa->job->job.type;

	return ar->sup->source->ops->is_lost || type == JOB_BATCH || type == JOB_SYSBATCH;
}

/* A lost alloc stays lost, so this happens once. */
static void
record_loss(struct alloc *a)
{
	struct alloc_state_change *change = list_add(alloc_state_change, &a->alloc_states);

	str_set(&change->value, client_status_names[CLIENT_LOST]);
	change->time = clock_real_ns();
}

static enum client_status
find_status(struct alloc_runner *ar, const char **ret_description)
{
	const struct source_ops *ops = ar->sup->source->ops;
	struct alloc *a = &ar->sa->a;
	enum client_status now = alloc_client_status(a, ar->sa->group, ret_description);

	if (now != CLIENT_FAILED || !ops->is_lost || !ops->is_lost(a))
		return now;
	if (a->client_status != CLIENT_LOST && alloc_client_terminal(a))
		return now;
	if (a->client_status != CLIENT_LOST)
		record_loss(a);
	*ret_description = ALLOC_LEASE_PASSED;
	return CLIENT_LOST;
}

void
alloc_status_update(struct alloc_runner *ar)
{
	struct alloc *a = &ar->sa->a;
	const char *description;

	a->client_status = find_status(ar, &description);
	if (ar->stop_reason && a->client_status == CLIENT_COMPLETE)
		description = ar->stop_reason;
	str_set(&a->client_description, description);
	a->modify_time = clock_real_ns();
	alloc_changed(ar->sup, ar->sa);
	ar->news = true;
	alloc_step_soon(ar);
}
