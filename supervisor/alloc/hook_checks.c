// SPDX-License-Identifier: Apache-2.0
/* hook_checks.c: the checks of an alloc begin when everything that its tasks need is there. Runs
 * in: supervisor. */
#include "supervisor/alloc/hook_checks.h"

#include "supervisor/alloc/alloc_orders.h"
#include "supervisor/alloc/alloc_runner.h"

struct checks *
alloc_checks(const struct alloc_runner *ar)
{
	return alloc_hook_state(ar, &alloc_hook_checks);
}

static void
restart_tasks(void *arg, const char *task, const char *reason)
{
	struct alloc_runner *ar = arg;

	if (!*task)
		(void)alloc_restart_running(ar, reason, true);
	for (unsigned i = 0; i < ar->n_tasks; i++)
		if (str_eq(ar->tasks[i].task->name, task))
			(void)task_runner_restart(&ar->tasks[i], reason, true, 0);
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

static void
on_changed(void *arg, bool saved)
{
	struct alloc_runner *ar = arg;

	ar->unsaved |= saved;
	turn_defer(ar->sup, &ar->step);
}

static const struct checks_events events = {
	.restart = restart_tasks,
	.runs = some_task_runs,
	.changed = on_changed,
};

static int
init(struct alloc_runner *ar, const json_t *kept)
{
	struct checks *cs = alloc_checks(ar);

	cs->sup = ar->sup;
	cs->sa = ar->sa;
	cs->restored = ar->restored;
	checks_init(cs, &events, ar, json_object_get(kept, "checks"));
	return 0;
}

static void
save(const struct alloc_runner *ar, struct text *t)
{
	text_printf(t, ",\"checks\":");
	checks_save(alloc_checks(ar), t);
}

static void
prerun(struct alloc_runner *ar)
{
	if (!ar->stopping)
		checks_begin(alloc_checks(ar));
	alloc_hook_done(ar, 0, NULL);
}

static void
end(struct alloc_runner *ar)
{
	if (checks_end(alloc_checks(ar)))
		alloc_client_save(ar);
}

static void
postrun(struct alloc_runner *ar)
{
	end(ar);
	alloc_hook_done(ar, 0, NULL);
}

static void
update(struct alloc_runner *ar)
{
	if (alloc_checks(ar)->on)
		checks_begin(alloc_checks(ar));
}

static void
shutdown(struct alloc_runner *ar)
{
	checks_done(alloc_checks(ar));
}

const struct alloc_hook alloc_hook_checks = {
	.name = "checks_hook",
	.state_size = sizeof(struct checks),
	.init = init,
	.save = save,
	.shutdown = shutdown,
	.prerun = prerun,
	.postrun = postrun,
	.update = update,
	.pre_kill = end,
};
