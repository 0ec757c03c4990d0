// SPDX-License-Identifier: Apache-2.0
/*
 * hook_check.c: an alloc that needs what this node does not have fails with a sentence that names
 * it, before anything of it begins. Runs in: supervisor.
 */
#include "supervisor/alloc/alloc_runner.h"

bool
alloc_has_started(const struct alloc *a)
{
	for (size_t i = 0; i < a->task_states.n; i++)
		if (a->task_states.v[i].value.started_at != 0)
			return true;
	return false;
}

static void
check(struct alloc_runner *ar)
{
	const struct source_ops *ops = ar->sup->source->ops;
	struct err e = { 0 };

	/* It was found good when it began; a configuration that has changed since ends nothing. */
	if (ops->check && !alloc_has_started(&ar->sa->a) &&
	    ops->check(ar->sup->source, ar->sa, &e) < 0)
		alloc_hook_done(ar, e.code, &e);
	else
		alloc_hook_done(ar, 0, NULL);
}

const struct alloc_hook alloc_hook_check = { .name = "validate", .prerun = check };
