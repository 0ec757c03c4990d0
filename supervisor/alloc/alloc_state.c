// SPDX-License-Identifier: Apache-2.0
/* alloc_state.c: marks work for the runner of an alloc, and answers questions about its state. Runs
 * in: supervisor. */
#include "supervisor/alloc/alloc_state.h"

void
alloc_step_soon(struct alloc_runner *ar)
{
	turn_defer(ar->sup, &ar->step);
}

void
alloc_save_soon(struct alloc_runner *ar)
{
	turn_before_commit(ar->sup, &ar->save);
}

void
alloc_report_end(struct alloc_runner *ar)
{
	ar->news |= alloc_client_terminal(&ar->sa->a);
}

void
alloc_stop_soon(struct alloc_runner *ar)
{
	ar->stopping = true;
	alloc_report_end(ar);
	alloc_step_soon(ar);
}

bool
alloc_skips_delay(const struct alloc_runner *ar)
{
	return ar->ends_at_once || ar->sa->a.desired_transition.no_shutdown_delay == OPT_TRUE;
}

uint64_t
alloc_job_hash(const struct alloc_runner *ar)
{
	uint64_t hash =
	    hash_string(str(ar->sa->a.namespace)) * 31 + hash_string(str(ar->sa->a.job_id));

	return hash ? hash : 1;
}

int64_t
alloc_shutdown_delay_ns(const struct alloc_runner *ar)
{
	int64_t delay = ar->sa->group->shutdown_delay;

	return delay > 0 && !alloc_skips_delay(ar) ? delay : 0;
}

bool
alloc_has_started(const struct alloc *a)
{
	for (size_t i = 0; i < a->task_states.n; i++)
		if (a->task_states.v[i].value.started_at != 0)
			return true;
	return false;
}

bool
alloc_has_run(const struct alloc_runner *ar)
{
	for (unsigned i = 0; i < ar->n_tasks; i++)
		if (ar->tasks[i].run)
			return true;
	return false;
}

struct task_runner *
alloc_find_task(const struct sup_alloc *sa, const char *name)
{
	for (unsigned i = 0; sa->runner && i < sa->runner->n_tasks; i++)
		if (str_eq(sa->runner->tasks[i].task->name, name))
			return &sa->runner->tasks[i];
	return NULL;
}
