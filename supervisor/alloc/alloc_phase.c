// SPDX-License-Identifier: Apache-2.0
/* alloc_phase.c: the transitions between the phases of an alloc. Runs in: supervisor. */
#include "supervisor/alloc/alloc_phase.h"

#include <stddef.h>

#include "common/cleanup.h"

static bool
was_done(const struct alloc_facts *f)
{
	return f->was_done;
}

static bool
was_dead(const struct alloc_facts *f)
{
	return f->restored && f->tasks_dead;
}

static bool
is_possible(const struct alloc_facts *f)
{
	return true;
}

/* If poststop tasks are to run, an alloc that stops still runs its hooks. */
static bool
is_abandoned(const struct alloc_facts *f)
{
	return f->hook_failed || (f->stopping && (f->starts_nothing || !f->poststop_left));
}

static bool
hooks_done(const struct alloc_facts *f)
{
	return !f->hooks_left;
}

static bool
tasks_dead(const struct alloc_facts *f)
{
	return f->tasks_dead;
}

static bool
is_to_go(const struct alloc_facts *f)
{
	return f->destroy;
}

/* The first possible transition is taken. */
static const struct {
	enum alloc_phase from, to;
	bool (*may)(const struct alloc_facts *f);
} edges[] = {
	{ ALLOC_NEW, ALLOC_DONE, was_done },
	{ ALLOC_NEW, ALLOC_POSTRUN, was_dead },
	{ ALLOC_NEW, ALLOC_PRERUN, is_possible },
	{ ALLOC_PRERUN, ALLOC_ABANDONED, is_abandoned },
	{ ALLOC_PRERUN, ALLOC_RUNNING, hooks_done },
	{ ALLOC_RUNNING, ALLOC_POSTRUN, tasks_dead },
	{ ALLOC_ABANDONED, ALLOC_POSTRUN, tasks_dead },
	{ ALLOC_POSTRUN, ALLOC_DONE, hooks_done },
	{ ALLOC_DONE, ALLOC_DESTROYING, is_to_go },
	{ ALLOC_DESTROYING, ALLOC_GONE, hooks_done },
};

enum alloc_phase
alloc_phase_next(enum alloc_phase phase, const struct alloc_facts *f)
{
	for (size_t i = 0; i < ELEMENTSOF(edges); i++)
		if (edges[i].from == phase && edges[i].may(f))
			return edges[i].to;
	return phase;
}
