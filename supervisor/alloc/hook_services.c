// SPDX-License-Identifier: Apache-2.0
/*
 * hook_services.c: the services of an alloc's group are registered before its tasks start, and not
 * while all of them restart. Runs in: supervisor.
 */
#include "supervisor/alloc/hook_services.h"

#include "common/log.h"
#include "supervisor/alloc/alloc_runner.h"
#include "supervisor/service/services.h"

struct group_services {
	bool on;   /* they are registered */
	bool back; /* they are not, for a restart, and will be with the next start of a task */
};

static struct group_services *
state_of(const struct alloc_runner *ar)
{
	return alloc_hook_state(ar, &alloc_hook_services);
}

static void
prerun(struct alloc_runner *ar)
{
	struct err e = { 0 };
	int r = 0;

	/* Poststop tasks of an alloc that ends need no services. */
	if (!ar->stopping) {
		r = services_up(ar->sup, ar->sa, NULL, &e);
		state_of(ar)->on = r >= 0;
	}
	alloc_hook_done(ar, r, &e);
}

static void
postrun(struct alloc_runner *ar)
{
	*state_of(ar) = (struct group_services){ 0 };
	services_all_down(ar->sup, ar->sa);
	alloc_hook_done(ar, 0, NULL);
}

/* No client is to find them any more. */
static void
leave(struct alloc_runner *ar)
{
	*state_of(ar) = (struct group_services){ 0 };
	services_down(ar->sup, ar->sa, NULL);
}

/* The services of each task end with its run. */
static void
leave_for_now(struct alloc_runner *ar)
{
	bool back = state_of(ar)->on || state_of(ar)->back;

	leave(ar);
	state_of(ar)->back = back;
}

static void
update_one(struct alloc_runner *ar, const struct task *task)
{
	struct err e = { 0 };

	if (services_up(ar->sup, ar->sa, task, &e) < 0)
		log_warn("allocation %.8s: %s; its services are not registered anew", ar->sa->a.id,
		    e.msg);
}

static void
update(struct alloc_runner *ar)
{
	if (state_of(ar)->on)
		update_one(ar, NULL);
	for (unsigned i = 0; i < ar->n_tasks; i++)
		if (ar->tasks[i].services_on)
			update_one(ar, ar->tasks[i].task);
}

void
alloc_services_return(struct alloc_runner *ar)
{
	struct group_services *s = state_of(ar);

	if (!s->back)
		return;
	s->back = false;
	s->on = true;
	update_one(ar, NULL);
}

const struct alloc_hook alloc_hook_services = {
	.name = "group_services",
	.state_size = sizeof(struct group_services),
	.prerun = prerun,
	.postrun = postrun,
	.update = update,
	.pre_task_restart = leave_for_now,
	.pre_kill = leave,
};
