// SPDX-License-Identifier: Apache-2.0
/*
 * hook_services.c: the services of an alloc's group are registered before its tasks start. Runs in:
 * supervisor.
 */
#include "supervisor/alloc/alloc_runner.h"
#include "supervisor/service/services.h"

static void
prerun(struct alloc_runner *ar)
{
	struct err e = { 0 };
	int r = 0;

	/* What is left of one that ends is for its poststop tasks. */
	if (!ar->stopping) {
		r = services_up(ar, NULL, &e);
		ar->services_on = r >= 0;
	}
	alloc_hook_done(ar, r, &e);
}

static void
postrun(struct alloc_runner *ar)
{
	ar->services_on = ar->services_back = false;
	services_all_down(ar);
	alloc_hook_done(ar, 0, NULL);
}

/* Nobody is sent there any more. */
static void
leave(struct alloc_runner *ar)
{
	ar->services_on = ar->services_back = false;
	services_down(ar, NULL);
}

/* Those of the tasks go with each. */
static void
leave_for_now(struct alloc_runner *ar)
{
	bool back = ar->services_on || ar->services_back;

	leave(ar);
	ar->services_back = back;
}

const struct alloc_hook alloc_hook_services = {
	.name = "group_services",
	.prerun = prerun,
	.postrun = postrun,
	.update = services_update,
	.pre_task_restart = leave_for_now,
	.pre_kill = leave,
};
