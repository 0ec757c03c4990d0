/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc_phase.h: the phases of an alloc on this node, and the facts on which each transition
 * depends. Pure. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_ALLOC_PHASE_H
#define DROVER_SUPERVISOR_ALLOC_ALLOC_PHASE_H

#include <stdbool.h>

/* An alloc never returns to an earlier phase. */
enum alloc_phase {
	ALLOC_NEW,        /* the runner is being made */
	ALLOC_PRERUN,     /* runs prerun of the hooks */
	ALLOC_RUNNING,    /* its tasks start, run and end */
	ALLOC_ABANDONED,  /* some prerun was not called or failed: no task starts any more */
	ALLOC_POSTRUN,    /* runs postrun of the hooks */
	ALLOC_DONE,       /* only its directories and rows are left */
	ALLOC_DESTROYING, /* runs destroy of the hooks */
	ALLOC_GONE,       /* the runner is about to be freed */
	ALLOC_PHASES
};

struct alloc_facts {
	bool restored;       /* it ran when the last supervisor ended */
	bool was_done;       /* it was in ALLOC_DONE then */
	bool hooks_left;     /* a hook of this phase is running or is still to be called */
	bool hook_failed;    /* a prerun has failed */
	bool stopping;       /* it is to end */
	bool destroy;        /* it is to be removed from the node */
	bool starts_nothing; /* no task may start, not even a poststop task */
	bool poststop_left;  /* a task has started, so poststop tasks are still to run */
	bool tasks_dead;     /* all tasks have ended for good */
};

/* Returns the next phase; the same phase if no transition is possible. */
enum alloc_phase alloc_phase_next(enum alloc_phase phase, const struct alloc_facts *f);

#endif
