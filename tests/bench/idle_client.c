// SPDX-License-Identifier: Apache-2.0
/*
 * idle_client.c: replaces the client in a supervisor whose tasks do not exist: they are reported as
 * running when they are started, and as ended when they are stopped. So only the cost of the
 * source, state.db and the API remains. Runs in: the supervisor of `make bench`.
 */
#include <stdlib.h>

#include "common/clock.h"
#include "common/list.h"
#include "common/mem.h"
#include "model/task_event.h"
#include "supervisor/table/alloc_table.h"
#include "supervisor/alloc/client.h"
#include "supervisor/source/source.h"
#include "supervisor/core/sup_turn.h"

/* A request for an alloc, which takes effect in the next turn, as with real tasks. */
struct request {
	STAILQ_ENTRY(request) next;
	struct id alloc;
};

static STAILQ_HEAD(, request) requests = STAILQ_HEAD_INITIALIZER(requests);
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
	str_set(&sa->a.client_description, description);
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
	STAILQ_HEAD(, request) all = STAILQ_HEAD_INITIALIZER(all);
	struct request *r;

	STAILQ_CONCAT(&all, &requests);
	while ((r = STAILQ_FIRST(&all))) {
		struct sup_alloc *sa = alloc_find(sup, &r->alloc);

		STAILQ_REMOVE_HEAD(&all, next);
		if (sa)
			obey(sup, sa);
		free(r);
	}
	if (all_ended && STAILQ_EMPTY(&requests)) {
		all_ended(sup);
		all_ended = NULL;
	}
}

static void
add_request(struct sup *sup, const struct sup_alloc *sa)
{
	struct request *r = mem_new(struct request);

	r->alloc = sa->id;
	STAILQ_INSERT_TAIL(&requests, r, next);
	turn_defer(sup, &later);
}

void
client_alloc_run(struct sup *sup, struct sup_alloc *sa)
{
	add_request(sup, sa);
}

void
client_alloc_update(struct sup *sup, struct sup_alloc *sa)
{
	add_request(sup, sa);
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
	alloc_foreach(sup, sa) add_request(sup, sa);
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
		add_request(sup, sa);
	}
	all_ended = wish->done;
	turn_defer(sup, &later); /* also without any alloc */
}

void
client_stop_no_more(struct sup *sup)
{
	all_ended = NULL;
}
