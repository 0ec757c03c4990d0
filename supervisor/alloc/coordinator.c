// SPDX-License-Identifier: Apache-2.0
/* coordinator.c: which tasks of an alloc may start now. Runs in: supervisor. */
#include "supervisor/alloc/coordinator.h"

#include <stddef.h>

#include "common/cleanup.h"

#define GATE(stage) (1U << (stage))

static const unsigned gates[COORDINATOR_STATES] = {
	[COORDINATOR_PRESTART] = GATE(STAGE_PRESTART) | GATE(STAGE_PRESTART_SIDECAR),
	[COORDINATOR_MAIN] = GATE(STAGE_PRESTART_SIDECAR) | GATE(STAGE_MAIN),
	[COORDINATOR_POSTSTART] = GATE(STAGE_PRESTART_SIDECAR) | GATE(STAGE_MAIN) |
				  GATE(STAGE_POSTSTART) | GATE(STAGE_POSTSTART_SIDECAR),
	[COORDINATOR_WAIT] =
	    GATE(STAGE_PRESTART_SIDECAR) | GATE(STAGE_MAIN) | GATE(STAGE_POSTSTART_SIDECAR),
	[COORDINATOR_POSTSTOP] = GATE(STAGE_POSTSTOP),
};

static bool
all_pending(const struct stage_count *s)
{
	for (unsigned i = 0; i < STAGES; i++)
		if (s[i].pending != s[i].n)
			return false;
	return true;
}

static bool
ended_well(const struct stage_count *s)
{
	return s->dead == s->n && s->failed == 0;
}

static bool
prestart_done(const struct stage_count *s)
{
	return ended_well(&s[STAGE_PRESTART]) &&
	       s[STAGE_PRESTART_SIDECAR].running == s[STAGE_PRESTART_SIDECAR].n;
}

static bool
main_begun(const struct stage_count *s)
{
	return s[STAGE_MAIN].pending == 0;
}

static bool
poststart_done(const struct stage_count *s)
{
	return ended_well(&s[STAGE_POSTSTART]);
}

/* Possible in every state, because a prestart task may fail. */
static bool
all_over(const struct stage_count *s)
{
	unsigned n = 0, dead = 0;

	for (unsigned i = 0; i < STAGE_POSTSTOP; i++) {
		n += s[i].n;
		dead += s[i].dead;
	}
	return n > 0 && dead == n;
}

static const struct coordinator_edge {
	enum coordinator_state from, to;
	bool (*may)(const struct stage_count *stages);
} edges[] = {
	{ COORDINATOR_INIT, COORDINATOR_POSTSTOP, all_over },
	{ COORDINATOR_PRESTART, COORDINATOR_POSTSTOP, all_over },
	{ COORDINATOR_MAIN, COORDINATOR_POSTSTOP, all_over },
	{ COORDINATOR_POSTSTART, COORDINATOR_POSTSTOP, all_over },
	{ COORDINATOR_WAIT, COORDINATOR_POSTSTOP, all_over },
	{ COORDINATOR_INIT, COORDINATOR_PRESTART, all_pending },
	{ COORDINATOR_PRESTART, COORDINATOR_MAIN, prestart_done },
	{ COORDINATOR_MAIN, COORDINATOR_POSTSTART, main_begun },
	{ COORDINATOR_POSTSTART, COORDINATOR_WAIT, poststart_done },
};

enum task_stage
task_stage(const struct task *task)
{
	const struct lifecycle *l = task->lifecycle;

	switch (l ? l->hook : HOOK_NONE) {
	case HOOK_PRESTART:
		return l->sidecar ? STAGE_PRESTART_SIDECAR : STAGE_PRESTART;
	case HOOK_POSTSTART:
		return l->sidecar ? STAGE_POSTSTART_SIDECAR : STAGE_POSTSTART;
	case HOOK_POSTSTOP:
		return STAGE_POSTSTOP;
	case HOOK_NONE:
		break;
	}
	return STAGE_MAIN;
}

static enum coordinator_state
find_next(enum coordinator_state state, const struct stage_count *stages)
{
	for (size_t i = 0; i < ELEMENTSOF(edges); i++)
		if (edges[i].from == state && edges[i].may(stages))
			return edges[i].to;
	return state;
}

enum coordinator_state
coordinator_next(enum coordinator_state state, const struct stage_count stages[STAGES])
{
	enum coordinator_state before;

	do {
		before = state;
		state = find_next(before, stages);
	} while (state != before);
	return state;
}

bool
coordinator_opens(enum coordinator_state state, enum task_stage stage)
{
	return gates[state] & GATE(stage);
}
