// SPDX-License-Identifier: Apache-2.0
/* hook_checks.c: the checks of an alloc begin when everything that its tasks need is there. Runs
 * in: supervisor. */
#include "supervisor/alloc/alloc_runner.h"
#include "supervisor/service/checks.h"

static void
prerun(struct alloc_runner *ar)
{
	if (!ar->stopping)
		checks_begin(ar);
	alloc_hook_done(ar, 0, NULL);
}

static void
postrun(struct alloc_runner *ar)
{
	checks_end(ar);
	alloc_hook_done(ar, 0, NULL);
}

static void
update(struct alloc_runner *ar)
{
	if (ar->checks_on)
		checks_begin(ar);
}

const struct alloc_hook alloc_hook_checks = {
	.name = "checks_hook",
	.prerun = prerun,
	.postrun = postrun,
	.update = update,
	.pre_kill = checks_end,
	.shutdown = checks_free,
};
