// SPDX-License-Identifier: Apache-2.0
/*
 * hook_check.c: fails an alloc that needs something that this node does not support, before
 * anything of it is set up. Runs in: supervisor.
 */
#include "supervisor/alloc/alloc_hooks.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/source/source.h"

static void
check_alloc(struct alloc_runner *ar)
{
	const struct source_ops *ops = ar->sup->source->ops;
	struct err e = { 0 };
	int r = 0;

	/* An alloc that has started passed this check before. It continues to run even if the
	 * node's configuration has changed since. */
	if (ops->check && !alloc_has_started(&ar->sa->a))
		r = ops->check(ar->sup->source, ar->sa, &e);
	alloc_hook_done(ar, r, &e);
}

ALLOC_HOOK(check, "validate", 0, .prerun = check_alloc);
