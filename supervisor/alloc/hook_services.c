// SPDX-License-Identifier: Apache-2.0
/*
 * hook_services.c: registers the services of an alloc: those of its group before its tasks start,
 * except while all tasks restart, and those of a task while the task runs. Runs in: supervisor.
 */
#include "supervisor/alloc/alloc_hooks.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/alloc/task_events.h"
#include "supervisor/alloc/task_templates.h"
#include "supervisor/core/journal.h"
#include "supervisor/service/services.h"

struct group_services {
	bool on;   /* they are registered */
	bool back; /* deregistered for a restart: the next start of a task registers them */
};

struct task_services {
	bool on; /* they are registered */
};

static struct group_services *
state_of(const struct alloc_runner *ar)
{
	return alloc_hook_state(ar, &alloc_hook_services);
}

static struct task_services *
state_of_task(const struct task_runner *tr)
{
	return task_hook_state(tr, &alloc_hook_services);
}

/* --- services of the group --- */

static void
register_group(struct alloc_runner *ar)
{
	struct err e = { 0 };
	int r = 0;

	/* A stopping alloc runs only poststop tasks, which need no services. */
	if (!ar->stopping) {
		r = services_up(ar->sup, ar->sa, NULL, &e);
		state_of(ar)->on = r >= 0;
	}
	alloc_hook_done(ar, r, &e);
}

static void
deregister_all(struct alloc_runner *ar)
{
	*state_of(ar) = (struct group_services){ 0 };
	services_all_down(ar->sup, ar->sa);
	alloc_hook_done(ar, 0, NULL);
}

static void
deregister_group(struct alloc_runner *ar)
{
	*state_of(ar) = (struct group_services){ 0 };
	services_down(ar->sup, ar->sa, NULL);
}

/* The services of tasks are deregistered when the run of each task ends. */
static void
deregister_for_restart(struct alloc_runner *ar)
{
	bool back = state_of(ar)->on || state_of(ar)->back;

	deregister_group(ar);
	state_of(ar)->back = back;
}

/* task: NULL for the services of the group. */
static void
register_anew(struct alloc_runner *ar, const struct task *task)
{
	struct err e = { 0 };

	if (services_up(ar->sup, ar->sa, task, &e) < 0)
		journal_warn(JOURNAL_ALLOC, ABOUT_ALLOC(ar->sa),
		    "allocation %.8s: %s; its services are not updated", ar->sa->a.id, e.msg);
}

static void
update_services(struct alloc_runner *ar)
{
	if (state_of(ar)->on)
		register_anew(ar, NULL);
	for (unsigned i = 0; i < ar->n_tasks; i++)
		if (state_of_task(&ar->tasks[i])->on)
			register_anew(ar, ar->tasks[i].task);
}

/* --- services of a task --- */

static void
register_task(struct task_runner *tr)
{
	struct err e = { 0 };
	bool on = services_up(tr->ar->sup, tr->ar->sa, tr->task, &e) >= 0;

	state_of_task(tr)->on = on;
	if (!on)
		task_runner_tell(tr, EVENT_HOOK_FAILED, e.msg, false);
}

/* After a restart of the agent, what the source has stays until the variables are known that the
 * services may contain. */
static void
on_task_runs(struct task_runner *tr)
{
	struct group_services *group = state_of(tr->ar);

	if (template_env_known(tr))
		register_task(tr);
	if (!group->back)
		return;
	group->back = false;
	group->on = true;
	register_anew(tr->ar, NULL);
}

static void
on_task_ends(struct task_runner *tr)
{
	state_of_task(tr)->on = false;
	services_down(tr->ar->sup, tr->ar->sa, tr->task);
}

ALLOC_HOOK(services, "group_services", sizeof(struct group_services), .prerun = register_group,
    .postrun = deregister_all, .update = update_services,
    .pre_task_restart = deregister_for_restart, .pre_kill = deregister_group,
    .task.state_size = sizeof(struct task_services), .task.runs = on_task_runs,
    .task.knows_env = register_task, .task.ends = on_task_ends);
