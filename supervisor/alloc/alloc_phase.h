/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc_phase.h: the phases of an alloc on this node, and which facts move it to the next. Pure.
 * Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_ALLOC_PHASE_H
#define DROVER_SUPERVISOR_ALLOC_ALLOC_PHASE_H

#include <stdbool.h>

/* No alloc ever goes back to an earlier one. */
enum alloc_phase {
	ALLOC_NEW,        /* the runner is being made */
	ALLOC_PRERUN,     /* hooks, in order */
	ALLOC_RUNNING,    /* the tasks' gates open, and the tasks run and end */
	ALLOC_ABANDONED,  /* its hooks are not all done, and no task will start any more */
	ALLOC_POSTRUN,    /* hooks, in reverse */
	ALLOC_DONE,       /* its directory and its rows are left */
	ALLOC_DESTROYING, /* hooks, in reverse */
	ALLOC_GONE,       /* the runner is about to be freed */
	ALLOC_PHASES
};

struct alloc_facts {
	bool restored;       /* the alloc was given before this supervisor started */
	bool was_done;       /* the last supervisor had brought it to ALLOC_DONE */
	bool hooks_left;     /* a hook of this phase is under way, or still to be called */
	bool hook_failed;    /* in prerun */
	bool stopping;       /* the source wants it stopped */
	bool destroy;        /* and removed */
	bool starts_nothing; /* not even a poststop task */
	bool poststop_left;  /* a task has started, so poststop tasks are still to run */
	bool tasks_dead;     /* all of them */
};

/* The phase that follows; the same phase while the alloc stays in it. */
enum alloc_phase alloc_phase_next(enum alloc_phase phase, const struct alloc_facts *f);

#endif
