// SPDX-License-Identifier: Apache-2.0
/*
 * idle_client.c: what a source drives, without anything that runs: tasks run when they are told to,
 * and are over when they are told to end. What remains is what source, state.db and API cost.
 * Runs in: the supervisor of `make bench`.
 */
#include <stdlib.h>

#include "common/clock.h"
#include "common/log.h"
#include "model/task_event.h"
#include "supervisor/table/alloc_table.h"
#include "supervisor/alloc/client.h"
#include "supervisor/source/source.h"
#include "supervisor/core/sup_turn.h"

/* One that is told something: it comes about in the next turn, as with tasks that run. */
struct told {
	struct told *next;
	struct id alloc;
};

static struct told *first, **last = &first;
static void (*all_ended)(struct sup *sup);

static void obey_all(struct sup *sup, struct deferred *d);

static struct deferred later = { .run = obey_all };

static void
set_task(struct sup_alloc *sa, const struct task *task, enum task_run_state state,
    enum task_event_type type)
{
	struct task_state *s = map_put(task_state, &sa->a.task_states, task->name);
	struct task_event ev;

	task_event_make(&ev, type, clock_real_ns(), NULL);
	s->state = state;
	if (state == TASK_STATE_RUNNING)
		s->started_at = ev.time;
	else
		s->finished_at = ev.time;
	*list_add(task_event, &s->events) = ev;
}

static void
set_all(struct sup *sup, struct sup_alloc *sa, enum task_run_state state, enum task_event_type type)
{
	const char *description;

	for (size_t i = 0; i < sa->group->tasks.n; i++)
		set_task(sa, &sa->group->tasks.v[i], state, type);
	sa->a.client_status = alloc_client_status(&sa->a, sa->group, &description);
	(void)str_set(&sa->a.client_description, description);
	sa->a.modify_time = clock_real_ns();
	alloc_changed(sup, sa);
	sup->source->ops->alloc_updated(sup->source, sa);
}

static void
obey(struct sup *sup, struct sup_alloc *sa)
{
	if (alloc_client_terminal(&sa->a))
		return;
	if (alloc_server_terminal(&sa->a))
		set_all(sup, sa, TASK_STATE_DEAD, EVENT_KILLED);
	else if (sa->a.client_status == CLIENT_PENDING)
		set_all(sup, sa, TASK_STATE_RUNNING, EVENT_STARTED);
}

static void
obey_all(struct sup *sup, struct deferred *d)
{
	struct told *all = first, *t;

	first = NULL;
	last = &first;
	while ((t = all)) {
		struct sup_alloc *sa = alloc_find(sup, &t->alloc);

		all = t->next;
		if (sa)
			obey(sup, sa);
		free(t);
	}
	if (all_ended && !first) {
		all_ended(sup);
		all_ended = NULL;
	}
}

static void
tell(struct sup *sup, const struct sup_alloc *sa)
{
	struct told *t = calloc(1, sizeof *t);

	if (!t) {
		log_error("allocation %.8s: no memory to be told", sa->a.id);
		return;
	}
	t->alloc = sa->id;
	*last = t;
	last = &t->next;
	turn_defer(sup, &later);
}

void
client_alloc_run(struct sup *sup, struct sup_alloc *sa)
{
	tell(sup, sa);
}

void
client_alloc_update(struct sup *sup, struct sup_alloc *sa)
{
	tell(sup, sa);
}

void
client_alloc_destroy(struct sup *sup, struct sup_alloc *sa)
{
	sup->source->ops->alloc_destroyed(sup->source, sa);
}

bool
client_alloc_ended(const struct sup_alloc *sa)
{
	return alloc_client_terminal(&sa->a);
}

void
client_alloc_set_health(struct sup_alloc *sa, bool healthy)
{
}

void
client_alloc_set_done(struct sup *sup, struct sup_alloc *sa)
{
}

void
client_alloc_reconnected(struct sup_alloc *sa)
{
}

int
client_restore(struct sup *sup, struct err *e)
{
	alloc_foreach(sup, sa) tell(sup, sa);
	return 0;
}

void
client_free(struct sup *sup)
{
}

void
client_stop_all(struct sup *sup, const struct client_stop *wish)
{
	alloc_foreach(sup, sa)
	{
		sa->a.desired_status = DESIRED_STOP;
		tell(sup, sa);
	}
	all_ended = wish->done;
	turn_defer(sup, &later); /* where there is none, too */
}

void
client_stop_no_more(struct sup *sup)
{
	all_ended = NULL;
}
