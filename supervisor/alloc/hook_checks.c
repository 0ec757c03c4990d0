// SPDX-License-Identifier: Apache-2.0
/* hook_checks.c: starts the checks of an alloc after all other hooks, and ends them before its
 * tasks are stopped. Runs in: supervisor. */
#include "supervisor/alloc/hook_checks.h"

#include "supervisor/alloc/alloc_hooks.h"
#include "supervisor/alloc/alloc_orders.h"
#include "supervisor/alloc/alloc_record.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/alloc/task_runner.h"
#include "supervisor/alloc/task_templates.h"

struct checks *
alloc_checks(const struct alloc_runner *ar)
{
	return alloc_hook_state(ar, &alloc_hook_checks);
}

static void
restart_tasks(void *arg, const char *task, const char *reason)
{
	struct alloc_runner *ar = arg;
	struct task_runner *tr = alloc_find_task(ar->sa, task);

	if (!*task)
		(void)alloc_restart_running(ar, reason, true);
	else if (tr)
		(void)task_runner_restart(tr, reason, true, 0);
}

static bool
some_task_runs(void *arg, const char *task)
{
	const struct alloc_runner *ar = arg;

	for (unsigned i = 0; i < ar->n_tasks; i++)
		if (ar->tasks[i].phase == TASK_RUNNING &&
		    (!*task || str_eq(ar->tasks[i].task->name, task)))
			return true;
	return false;
}

static bool
knows_env(void *arg, const char *task)
{
	const struct alloc_runner *ar = arg;
	const struct task_runner *tr = alloc_find_task(ar->sa, task);

	return !tr || template_env_known(tr);
}

static void
on_changed(void *arg, bool saved)
{
	struct alloc_runner *ar = arg;

	if (saved)
		alloc_save_soon(ar);
	alloc_step_soon(ar);
}

static const struct checks_events events = {
	.restart = restart_tasks,
	.runs = some_task_runs,
	.knows_env = knows_env,
	.changed = on_changed,
};

static void
init_checks(struct alloc_runner *ar, const struct alloc_record *kept)
{
	struct checks *cs = alloc_checks(ar);

	cs->sup = ar->sup;
	cs->sa = ar->sa;
	cs->restored = ar->restored;
	checks_init(cs, &events, ar, &kept->checks);
}

static void
save_checks(const struct alloc_runner *ar, struct alloc_record *rec)
{
	checks_save(alloc_checks(ar), &rec->checks);
}

static void
begin_checks(struct alloc_runner *ar)
{
	if (!ar->stopping)
		checks_begin(alloc_checks(ar));
	alloc_hook_done(ar, 0, NULL);
}

static void
end_checks(struct alloc_runner *ar)
{
	if (checks_end(alloc_checks(ar)))
		alloc_save_soon(ar);
}

static void
end_checks_in_postrun(struct alloc_runner *ar)
{
	end_checks(ar);
	alloc_hook_done(ar, 0, NULL);
}

static void
update_checks(struct alloc_runner *ar)
{
	if (alloc_checks(ar)->on)
		checks_begin(alloc_checks(ar));
}

static void
free_checks(struct alloc_runner *ar)
{
	checks_done(alloc_checks(ar));
}

/* Checks whose variables have changed begin anew. */
static void
on_env(struct task_runner *tr)
{
	update_checks(tr->ar);
}

static void
on_task_started(struct task_runner *tr)
{
	bool some = false;

	for (size_t i = 0; i < tr->task->templates.n; i++)
		some |= tr->task->templates.v[i].env;
	if (some)
		update_checks(tr->ar);
	checks_task_started(alloc_checks(tr->ar), tr->task->name);
}

ALLOC_HOOK(checks, "checks_hook", sizeof(struct checks), .init = init_checks, .save = save_checks,
    .shutdown = free_checks, .prerun = begin_checks, .postrun = end_checks_in_postrun,
    .update = update_checks, .pre_kill = end_checks, .task.started = on_task_started,
    .task.knows_env = on_env);
